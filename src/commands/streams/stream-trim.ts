/**
 * Trimming: its options in XADD and XTRIM.
 *
 * Owns: the options of the running command. Invariant: they are read anew by each command that trims.
 */
import { Trim, TrimBy } from '../../store/streams/trim.js';
import type { Context } from '../context.js';
import { NOT_INTEGER } from '../errors.js';
import { argIsCharacter, idArg } from './stream-arguments.js';

const TWO_WAYS = 'ERR syntax error, MAXLEN and MINID options at the same time are not compatible';
const LENGTH_NEGATIVE = 'ERR The MAXLEN argument must be >= 0.';
const LIMIT_NEGATIVE = 'ERR The LIMIT argument must be >= 0.';
const LIMIT_ALONE = 'ERR syntax error, LIMIT cannot be used without specifying a trimming strategy';
const LIMIT_EXACT = 'ERR syntax error, LIMIT cannot be used without the special ~ option';

const TILDE = 0x7e;
const EQUALS = 0x3d;
/** Without LIMIT, a trim with ~ removes at most so many nodes, and entries between these bounds. */
const NODES_MAX = 100;
const NO_NODES_LIMIT = 10_000;
const LIMIT_MAX = 1_000_000;

export const trim = new Trim();
let isLimitGiven = false;

export function beginTrim(context: Context): void {
  const { streamNodeMaxEntries, streamNodeMaxBytes } = context.environment.settings;
  trim.by = TrimBy.NOTHING;
  trim.isAbout = false;
  trim.limit = 0;
  trim.nodeEntriesMax = streamNodeMaxEntries;
  trim.nodeBytesMax = streamNodeMaxBytes;
  isLimitGiven = false;
}

/** Reads the option at argument `i`; returns the argument behind it, `i` when it is none, -1 after an error reply. */
export function trimOption(context: Context, i: number): number {
  if (i + 1 >= context.argc) return i;
  if (context.argIs(i, 'MAXLEN')) return readWay(context, i, TrimBy.LENGTH);
  if (context.argIs(i, 'MINID')) return readWay(context, i, TrimBy.ID);
  if (!context.argIs(i, 'LIMIT')) return i;
  const limit = context.argInteger(i + 1);
  if (Number.isNaN(limit)) return refuse(context, NOT_INTEGER);
  if (limit < 0) return refuse(context, LIMIT_NEGATIVE);
  trim.limit = limit;
  isLimitGiven = true;
  return i + 2;
}

function readWay(context: Context, i: number, by: TrimBy): number {
  if (trim.by !== TrimBy.NOTHING) return refuse(context, TWO_WAYS);
  let at = i + 1;
  trim.isAbout = at + 1 < context.argc && argIsCharacter(context, at, TILDE);
  if (trim.isAbout || (at + 1 < context.argc && argIsCharacter(context, at, EQUALS))) at++;
  if (by === TrimBy.ID) {
    if (!idArg(context, at, trim.idMin)) return -1;
  } else {
    trim.lengthMax = context.argInteger(at);
    if (Number.isNaN(trim.lengthMax)) return refuse(context, NOT_INTEGER);
    if (trim.lengthMax < 0) return refuse(context, LENGTH_NEGATIVE);
  }
  trim.by = by;
  return at + 1;
}

/** All options have been read: false after an error reply. */
export function endTrim(context: Context): boolean {
  if (trim.limit > 0 && trim.by === TrimBy.NOTHING) return refuse(context, LIMIT_ALONE) > 0;
  if (isLimitGiven && !trim.isAbout) return refuse(context, LIMIT_EXACT) > 0;
  if (!isLimitGiven && trim.isAbout) {
    trim.limit = Math.min(NODES_MAX * trim.nodeEntriesMax || NO_NODES_LIMIT, LIMIT_MAX);
  }
  return true;
}

function refuse(context: Context, text: string): -1 {
  context.reply.error(text);
  return -1;
}
