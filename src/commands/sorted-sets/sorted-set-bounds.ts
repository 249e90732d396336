/**
 * Ranges of a sorted set: by rank, by score, by member. Whatever the bounds, a range comes out as ranks [from, to) in ascending order.
 *
 * Invariant: bounds are read (`readBounds`) before the key is looked at, as Redis does, and resolved against one open sorted set.
 */
import { Bound, type Collection } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { NOT_INTEGER } from '../errors.js';
import { parseDouble } from '../numbers.js';

const NOT_SCORES = 'ERR min or max is not a float';
const NOT_MEMBERS = 'ERR min or max not valid string range item';
const OPEN = 0x28;
const CLOSED = 0x5b;
const PLUS = 0x2b;
const MINUS = 0x2d;

export const enum By {
  RANK = 0,
  SCORE = 1,
  MEMBER = 2,
}

/** The range in hand: a worker runs one command at a time. */
export const range = { from: 0, to: 0 };

/** Ranks as given, or scores. */
let low = 0;
let high = 0;
let lowIsOpen = false;
let highIsOpen = false;

/** Reads the bounds in arguments `i` (the lower one) and `j`; false after an error reply. */
export function readBounds(context: Context, by: By, i: number, j: number): boolean {
  if (by === By.RANK) {
    low = context.argInteger(i);
    high = context.argInteger(j);
    if (!Number.isNaN(low) && !Number.isNaN(high)) return true;
    context.reply.error(NOT_INTEGER);
    return false;
  }
  if (by === By.MEMBER) {
    if (isMemberBound(context, i) && isMemberBound(context, j)) return true;
    context.reply.error(NOT_MEMBERS);
    return false;
  }
  lowIsOpen = isOpen(context, i);
  highIsOpen = isOpen(context, j);
  low = readScore(context, i, lowIsOpen);
  high = readScore(context, j, highIsOpen);
  if (!Number.isNaN(low) && !Number.isNaN(high)) return true;
  context.reply.error(NOT_SCORES);
  return false;
}

function isOpen(context: Context, i: number): boolean {
  return context.argLength(i) > 0 && context.input.u8[context.argOffset(i)] === OPEN;
}

function readScore(context: Context, i: number, isOpenBound: boolean): number {
  const skipped = isOpenBound ? 1 : 0;
  const length = context.argLength(i) - skipped;
  // C's strtod reads nothing as 0.
  return length === 0 ? 0 : parseDouble(context.input, context.argOffset(i) + skipped, length);
}

function isMemberBound(context: Context, i: number): boolean {
  const length = context.argLength(i);
  if (length === 0) return false;
  const first = context.input.u8[context.argOffset(i)];
  return first === OPEN || first === CLOSED || (length === 1 && (first === PLUS || first === MINUS));
}

/** Resolves the bounds in arguments `i` and `j`, which have been read, to `range`; ranks count from the end when `isReversed`. */
export function resolveRange(
  context: Context,
  set: Collection,
  by: By,
  i: number,
  j: number,
  isReversed: boolean,
): void {
  const { count } = set;
  range.from = 0;
  range.to = 0;
  if (count === 0) return;
  if (by === By.RANK) {
    resolveRanks(count, isReversed);
  } else if (by === By.SCORE) {
    set.seekScore(low, lowIsOpen ? Bound.AFTER : Bound.BEFORE);
    range.from = set.rank;
    set.seekScore(high, highIsOpen ? Bound.BEFORE : Bound.AFTER);
    range.to = set.rank;
  } else {
    set.last();
    set.load();
    const highest = set.score;
    set.first();
    set.load();
    const { score } = set;
    // All have one score where ranges by member mean anything; what Redis finds elsewhere, it finds by the members alone.
    const rankOf = score === highest ? rankBehindScore : rankAmongMembers;
    range.from = rankOf(context, set, score, i, false);
    range.to = rankOf(context, set, score, j, true);
  }
  if (range.to < range.from) range.to = range.from;
}

function resolveRanks(count: number, isReversed: boolean): void {
  let start = low < 0 ? Math.max(0, low + count) : low;
  let end = high < 0 ? high + count : Math.min(high, count - 1);
  if (start > end || start >= count) return;
  if (isReversed) {
    const first = count - 1 - end;
    end = count - 1 - start;
    start = first;
  }
  range.from = start;
  range.to = end + 1;
}

/** Members that stand before the bound in argument `i`, in a set whose members all have this score. */
function rankBehindScore(context: Context, set: Collection, score: number, i: number, isUpper: boolean): number {
  const { input } = context;
  const offset = context.argOffset(i);
  const first = input.u8[offset];
  if (first === MINUS) return 0;
  if (first === PLUS) return set.count;
  const found = set.seekMember(score, input, offset + 1, context.argLength(i) - 1);
  const isBehind = found && (first === OPEN) !== isUpper;
  return set.rank + (isBehind ? 1 : 0);
}

/** The same whatever the scores, taking the members to stand in their order. */
function rankAmongMembers(context: Context, set: Collection, _score: number, i: number, isUpper: boolean): number {
  const { input } = context;
  const offset = context.argOffset(i);
  const first = input.u8[offset];
  if (first === MINUS) return 0;
  const bound = input.u8.subarray(offset + 1, offset + context.argLength(i));
  let low = 0;
  let high = set.count;
  while (low < high && first !== PLUS) {
    const middle = (low + high) >>> 1;
    set.seekRank(middle);
    set.load();
    const order = Buffer.compare(set.key.u8.subarray(set.keyOffset, set.keyOffset + set.keyLength), bound);
    const isBefore = order < 0 || (order === 0 && (first === OPEN) !== isUpper);
    if (isBefore) low = middle + 1;
    else high = middle;
  }
  return high;
}
