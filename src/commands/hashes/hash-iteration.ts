/**
 * HSCAN and HRANDFIELD.
 */
import type { Collection } from '../../store/collections/collection.js';
import { blockArg, integerArg, keyArg, optional, patternArg, tokenArg } from '../arguments.js';
import {
  isWanted,
  readCursor,
  readScanOptions,
  replyNothing,
  scanByHash,
  scanning,
} from '../collections/collection-scan.js';
import { replyRandom, seekRandom } from '../collections/random-elements.js';
import type { Context } from '../context.js';
import { BEYOND, NOT_INTEGER, SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import {
  hasExpiries,
  isLive,
  notifyRemoved,
  openHash,
  openHashToRead,
  removeExpired,
  replyFieldValue,
} from './hash-fields.js';

const OUT_OF_RANGE = 'ERR value is out of range';
/** Counts beyond cannot be doubled, which values do. */
const COUNT_LIMIT = 0x3fff_ffff_ffff_ffffn;

function hscan(context: Context): void {
  if (!readCursor(context)) return;
  const hash = openHashToRead(context);
  if (hash === null) return;
  if (!hash.exists) return replyNothing(context);
  if (readScanOptions(context, true)) scanByHash(context, hash, visitField);
}

function visitField(context: Context, hash: Collection): number {
  if (!isLive(context, hash) || !isWanted(context, hash.key, hash.keyOffset, hash.keyLength)) return 0;
  context.reply.bulk(hash.key, hash.keyOffset, hash.keyLength);
  if (scanning.noValues) return 1;
  context.reply.bulk(hash.value, hash.valueOffset, hash.valueLength);
  return 2;
}

/** Removes the fields whose time has come, so that ranks count live ones. */
function dropExpired(context: Context, hash: Collection): void {
  if (!hasExpiries(hash)) return;
  let dropped = 0;
  for (let more = hash.first(); more; more = hash.exists && !hash.atEnd) {
    hash.load();
    if (isLive(context, hash)) {
      hash.next();
      continue;
    }
    removeExpired(context, hash);
    dropped++;
  }
  if (dropped > 0) notifyRemoved(context, hash, 'hexpired');
}

function hrandField(context: Context): void {
  const { reply } = context;
  if (context.argc > 2) return randomFields(context);
  const hash = openHashToRead(context);
  if (hash === null) return;
  dropExpired(context, hash);
  if (!hash.exists) return reply.nil();
  seekRandom(hash);
  hash.load();
  reply.bulk(hash.key, hash.keyOffset, hash.keyLength);
}

function randomFields(context: Context): void {
  const { reply } = context;
  const exact = context.argInteger64(2);
  if (exact === null) return reply.error(NOT_INTEGER);
  if (exact === -0x8000_0000_0000_0000n) return reply.error(BEYOND);
  if (context.argc > 4 || (context.argc === 4 && !context.argIs(3, 'WITHVALUES'))) return reply.error(SYNTAX);
  const withValues = context.argc === 4;
  if (withValues && (exact > COUNT_LIMIT || exact < -COUNT_LIMIT)) return reply.error(OUT_OF_RANGE);
  const count = Number(exact);
  const hash = openHashToRead(context);
  if (hash === null) return;
  dropExpired(context, hash);
  if (!hash.exists || count === 0) return reply.array(0);
  replyRandom(
    context,
    opened,
    count,
    (wanted) => begin(context, wanted, withValues),
    withValues ? replyPair : replyField,
  );
}

function replyField(context: Context, hash: Collection): void {
  replyOne(context, hash, false);
}

function replyPair(context: Context, hash: Collection): void {
  replyOne(context, hash, true);
}

/** The command's hash, which exists; opened anew in each turn. */
function opened(context: Context): Collection {
  const hash = context.keyspace.collections[0];
  return hash.exists ? hash : (openHash(context) as Collection);
}

function begin(context: Context, count: number, withValues: boolean): void {
  const { reply } = context;
  reply.array(withValues && reply.protocol < 3 ? count * 2 : count);
}

function replyOne(context: Context, hash: Collection, withValues: boolean): void {
  const { reply } = context;
  hash.load();
  if (withValues && reply.protocol > 2) reply.array(2);
  reply.bulk(hash.key, hash.keyOffset, hash.keyLength);
  if (withValues) replyFieldValue(context, hash);
}

const COMMON = {
  flags: Flag.READONLY,
  categories: Category.HASH,
  keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
  group: 'hash',
  tips: ['nondeterministic_output'],
} as const;

export const hashIteration: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'hrandfield',
    arity: -2,
    since: '6.2.0',
    summary: 'Returns random fields of a hash.',
    complexity: 'O(N) for N fields returned',
    args: [
      keyArg('key'),
      blockArg('options', [integerArg('count'), optional(tokenArg('WITHVALUES'))], { optional: true }),
    ],
    run: hrandField,
  },
  {
    ...COMMON,
    name: 'hscan',
    arity: -3,
    since: '2.8.0',
    summary: 'Walks the fields of a hash, some at each call.',
    complexity: 'O(1) for each call; O(N) for a whole walk over N fields',
    args: [
      keyArg('key'),
      integerArg('cursor'),
      patternArg('pattern', { token: 'MATCH', optional: true }),
      integerArg('count', { token: 'COUNT', optional: true }),
      tokenArg('NOVALUES', { optional: true, since: '7.4.0' }),
    ],
    run: hscan,
  },
];
