/**
 * LCS: the longest common subsequence of two strings.
 *
 * Dynamic programming over all pairs of prefixes, two rows of lengths at a time. The way back needs one bit for each pair (is the
 * prefix of the first string that is one shorter the better one?): a thirty-second of the table of lengths. Invariant: ties go the same way as in Redis, so that the same subsequence of several is found.
 */
import { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { integerArg, keyArg, optional, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { takeSteps } from '../long-steps.js';
import { isSliceOver, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keysFrom } from '../spec.js';

const NOT_STRINGS = 'ERR The specified keys must contain string values';
const BOTH = 'ERR If you want both the length and indexes, please just use IDX.';
const TOO_LARGE = 'ERR String too long for LCS';
const TRANSIENT = 'ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len';
const LENGTH_MAX = 0xffff_fffe;
/** Pairs of bytes that are compared in about 200 microseconds. */
const CELLS_A_LOOK = 64 * 1024;

const options = { length: false, indexes: false, withLengths: false, minLength: 0 };

function parseOptions(context: Context): boolean {
  options.length = options.indexes = options.withLengths = false;
  options.minLength = 0;
  for (let i = 3; i < context.argc; i++) {
    if (context.argIs(i, 'IDX')) options.indexes = true;
    else if (context.argIs(i, 'LEN')) options.length = true;
    else if (context.argIs(i, 'WITHMATCHLEN')) options.withLengths = true;
    else if (context.argIs(i, 'MINMATCHLEN') && i + 1 < context.argc) {
      const minLength = context.argInteger(++i);
      if (Number.isNaN(minLength)) {
        context.reply.error(NOT_INTEGER);
        return false;
      }
      options.minLength = Math.max(0, minLength);
    } else {
      context.reply.error(SYNTAX);
      return false;
    }
  }
  if (!options.indexes || !options.length) return true;
  context.reply.error(BOTH);
  return false;
}

/** A string operand; where its key is missing, an empty one. */
interface Operand {
  readonly bytes: Bytes;
  readonly offset: number;
  readonly length: number;
}

/** The value of key argument `i`, null when it is no string. */
function operand(context: Context, i: number): Operand | null {
  const { keyspace } = context;
  if (!context.find(context.keyHashes[i - 1], i)) {
    context.miss();
    return { bytes: context.input, offset: 0, length: 0 };
  }
  if (keyspace.type !== ItemType.STRING) return null;
  context.hit();
  return { bytes: keyspace.value, offset: keyspace.valueOffset, length: keyspace.valueLength };
}

function lcs(context: Context): void {
  const { reply } = context;
  const a = operand(context, 1);
  const b = operand(context, 2);
  if (a === null || b === null) return reply.error(NOT_STRINGS);
  if (!parseOptions(context)) return;
  if (a.length >= LENGTH_MAX || b.length >= LENGTH_MAX) return reply.error(TOO_LARGE);
  // Redis's bound on its table of lengths bounds our time.
  if ((a.length + 1) * (b.length + 1) * 4 > context.environment.settings.protoMaxBulkLen) return reply.error(TRANSIENT);

  if (a.length * b.length > CELLS_A_LOOK) {
    const asked = { ...options };
    // Between two turns the store may move the strings.
    const [one, other] = [copyOf(a), copyOf(b)];
    return takeSteps(context, 0, context.keyCount, () => compare(context, one, other, asked));
  }
  // It never yields: it is over before the first look at the clock.
  compare(context, a, b, options).next();
}

function copyOf({ bytes, offset, length }: Operand): Operand {
  return { bytes: Bytes.from(bytes.u8.slice(offset, offset + length)), offset: 0, length };
}

function* compare(context: Context, a: Operand, b: Operand, asked: Readonly<typeof options>): Steps {
  const { reply } = context;
  const better = asked.length ? null : new Uint8Array(Math.ceil((a.length * b.length) / 8));
  const total = yield* fillTable(a, b, better);
  if (better === null) return reply.integer(total);
  if (asked.indexes) replyMatches(context, a, b, better, total, asked);
  else reply.bulkArray(subsequence(a, b, better, total));
}

/** Computes the length; sets bit i * b.length + j of `better` where dropping a[i] loses less than dropping b[j]. */
function* fillTable(a: Operand, b: Operand, better: Uint8Array | null): Steps<number> {
  const a8 = a.bytes.u8.subarray(a.offset, a.offset + a.length);
  const b8 = b.bytes.u8.subarray(b.offset, b.offset + b.length);
  let above = new Uint32Array(b.length + 1);
  let row = new Uint32Array(b.length + 1);
  let bit = 0;
  let cells = 0;
  for (let i = 0; i < a8.length; i++) {
    const byte = a8[i];
    let left = 0;
    for (let j = 0; j < b8.length; j++) {
      const up = above[j + 1];
      if (byte === b8[j]) {
        left = above[j] + 1;
      } else if (up > left) {
        left = up;
        if (better !== null) better[bit >>> 3] |= 1 << (bit & 7);
      }
      row[j + 1] = left;
      bit++;
    }
    const spare = above;
    above = row;
    row = spare;
    cells += b8.length;
    if (cells < CELLS_A_LOOK) continue;
    cells = 0;
    if (isSliceOver()) yield;
  }
  return above[b8.length];
}

/** Walks back from the ends; calls `visit` for each pair that belongs to the subsequence, last first. */
function walkBack(a: Operand, b: Operand, better: Uint8Array, visit: (i: number, j: number) => void): void {
  const a8 = a.bytes.u8;
  const b8 = b.bytes.u8;
  let i = a.length;
  let j = b.length;
  while (i > 0 && j > 0) {
    if (a8[a.offset + i - 1] === b8[b.offset + j - 1]) {
      visit(i - 1, j - 1);
      i--;
      j--;
      continue;
    }
    const bit = (i - 1) * b.length + j - 1;
    if (((better[Math.floor(bit / 8)] >>> (bit % 8)) & 1) !== 0) i--;
    else j--;
  }
}

function subsequence(a: Operand, b: Operand, better: Uint8Array, total: number): Uint8Array {
  const found = new Uint8Array(total);
  let next = total;
  walkBack(a, b, better, (i) => {
    found[--next] = a.bytes.u8[a.offset + i];
  });
  return found;
}

/** IDX: maximal runs of adjacent pairs, last first. */
function replyMatches(
  context: Context,
  a: Operand,
  b: Operand,
  better: Uint8Array,
  total: number,
  asked: Readonly<typeof options>,
): void {
  // (start in a, start in b, length) of each run.
  const runs: number[] = [];
  let startA = 0;
  let startB = 0;
  let length = 0;
  const close = (): void => {
    if (length > 0 && length >= asked.minLength) runs.push(startA, startB, length);
  };
  walkBack(a, b, better, (i, j) => {
    if (length > 0 && i === startA - 1 && j === startB - 1) {
      length++;
    } else {
      close();
      length = 1;
    }
    startA = i;
    startB = j;
  });
  close();

  const { reply } = context;
  reply.map(2);
  reply.bulkString('matches');
  reply.array(runs.length / 3);
  for (let r = 0; r < runs.length; r += 3) {
    reply.array(asked.withLengths ? 3 : 2);
    replyRange(context, runs[r], runs[r + 2]);
    replyRange(context, runs[r + 1], runs[r + 2]);
    if (asked.withLengths) reply.integer(runs[r + 2]);
  }
  reply.bulkString('len');
  reply.integer(total);
}

function replyRange(context: Context, start: number, length: number): void {
  context.reply.array(2);
  context.reply.integer(start);
  context.reply.integer(start + length - 1);
}

export const stringLcs: readonly CommandSpec[] = [
  {
    name: 'lcs',
    arity: -3,
    flags: Flag.READONLY,
    categories: Category.STRING,
    keys: [keysFrom(1, KeyUse.RO | KeyUse.ACCESS, 1)],
    since: '7.0.0',
    group: 'string',
    summary: 'Finds the longest common subsequence of two strings.',
    complexity: 'O(N*M) for strings of N and M bytes',
    args: [
      keyArg('key1'),
      keyArg('key2'),
      optional(tokenArg('LEN')),
      optional(tokenArg('IDX')),
      integerArg('min-match-len', { token: 'MINMATCHLEN', optional: true }),
      optional(tokenArg('WITHMATCHLEN')),
    ],
    run: lcs,
  },
];
