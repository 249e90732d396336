/**
 * Ranges of sorted sets: ZRANGE and its older forms, ZRANGESTORE ZCOUNT ZLEXCOUNT ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX.
 */
import { ReplyType } from '../../protocol/resp/reply.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import {
  type ArgumentSpec,
  blockArg,
  doubleArg,
  integerArg,
  keyArg,
  oneOf,
  stringArg,
  tokenArg,
} from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX } from '../errors.js';
import { takeSteps } from '../long-steps.js';
import { isLong, type LongWork, replyElements, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { By, range, readBounds, resolveRange } from './sorted-set-bounds.js';
import {
  beginElements,
  notifyRemoved,
  openSortedSet,
  openSortedSetToRead,
  replyElement,
} from './sorted-set-members.js';
import { isLongRemoval, openedSet, removeMembers } from './sorted-set-removal.js';
import { result, storeResult } from './sorted-set-result.js';

const LIMIT_OF_RANKS = 'ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX';
const SCORES_OF_MEMBERS = 'ERR syntax error, WITHSCORES not supported in combination with BYLEX';

/** What the running command asks for. */
const asked = { by: By.RANK, isReversed: false, withScores: false, offset: 0, limit: -1 };

/** Reads options from argument `i` on; `isFree` allows those that ZRANGE alone has. False after an error reply. */
function readOptions(context: Context, i: number, isFree: boolean): boolean {
  asked.withScores = false;
  asked.offset = 0;
  asked.limit = -1;
  for (; i < context.argc; i++) {
    if (context.argIs(i, 'WITHSCORES')) {
      asked.withScores = true;
    } else if (context.argIs(i, 'LIMIT') && i + 2 < context.argc) {
      asked.offset = context.argInteger(++i);
      asked.limit = context.argInteger(++i);
      if (Number.isNaN(asked.offset) || Number.isNaN(asked.limit)) return fail(context, NOT_INTEGER);
    } else if (isFree && context.argIs(i, 'REV')) {
      asked.isReversed = true;
    } else if (isFree && asked.by === By.RANK && context.argIs(i, 'BYSCORE')) {
      asked.by = By.SCORE;
    } else if (isFree && asked.by === By.RANK && context.argIs(i, 'BYLEX')) {
      asked.by = By.MEMBER;
    } else {
      return fail(context, SYNTAX);
    }
  }
  if (asked.limit !== -1 && asked.by === By.RANK) return fail(context, LIMIT_OF_RANKS);
  return !(asked.withScores && asked.by === By.MEMBER) || fail(context, SCORES_OF_MEMBERS);
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/** Narrows `range` by what LIMIT says. */
function applyLimit(): void {
  if (asked.by === By.RANK) return;
  const size = range.to - range.from;
  const skipped = asked.offset < 0 ? size : Math.min(asked.offset, size);
  const taken = asked.limit < 0 ? size - skipped : Math.min(asked.limit, size - skipped);
  if (asked.isReversed) {
    range.to -= skipped;
    range.from = range.to - taken;
  } else {
    range.from += skipped;
    range.to = range.from + taken;
  }
}

function replyRange(context: Context, by: By, isReversed: boolean, isFree: boolean): void {
  asked.by = by;
  asked.isReversed = isReversed;
  if (!readOptions(context, 4, isFree)) return;
  const { withScores } = asked;
  const isSwapped = asked.isReversed && asked.by !== By.RANK;
  const lower = isSwapped ? 3 : 2;
  const upper = isSwapped ? 2 : 3;
  if (!readBounds(context, asked.by, lower, upper)) return;
  const set = openSortedSetToRead(context);
  if (set === null) return;
  resolveRange(context, set, asked.by, lower, upper, asked.isReversed);
  applyLimit();
  let left = range.to - range.from;
  const first = asked.isReversed ? range.to - 1 : range.from;
  if (isLong(left)) {
    return replyElements(context, set, first, left, asked.isReversed, ReplyType.ARRAY, visitElement);
  }
  beginElements(context, left, withScores);
  if (left === 0) return;
  set.seekRank(first);
  while (true) {
    replyElement(context, set, withScores);
    if (--left === 0) return;
    if (asked.isReversed) set.previous();
    else set.next();
  }
}

function visitElement(context: Context, set: Collection): number {
  const { withScores } = asked;
  replyElement(context, set, withScores);
  return withScores && context.reply.protocol < 3 ? 2 : 1;
}

function zrangeStore(context: Context): void {
  asked.by = By.RANK;
  asked.isReversed = false;
  if (!readOptions(context, 5, true)) return;
  if (asked.withScores) return context.reply.error(SYNTAX);
  const isSwapped = asked.isReversed && asked.by !== By.RANK;
  const lower = isSwapped ? 4 : 3;
  const upper = isSwapped ? 3 : 4;
  if (!readBounds(context, asked.by, lower, upper)) return;
  const set = openSortedSet(context, 0, context.keyHashes[1], 2);
  if (set === null) return;
  if (set.exists) context.hit();
  else context.miss();
  resolveRange(context, set, asked.by, lower, upper, asked.isReversed);
  applyLimit();
  result.clear();
  set.seekRank(range.from);
  for (let left = range.to - range.from; left > 0; left--, set.next()) result.keepElement(set);
  storeResult(context, 'zrangestore');
}

function zrange(context: Context): void {
  replyRange(context, By.RANK, false, true);
}

function zrevRange(context: Context): void {
  replyRange(context, By.RANK, true, false);
}

function zrangeByScore(context: Context): void {
  replyRange(context, By.SCORE, false, false);
}

function zrevRangeByScore(context: Context): void {
  replyRange(context, By.SCORE, true, false);
}

function zrangeByLex(context: Context): void {
  replyRange(context, By.MEMBER, false, false);
}

function zrevRangeByLex(context: Context): void {
  replyRange(context, By.MEMBER, true, false);
}

function countRange(context: Context, by: By): void {
  if (!readBounds(context, by, 2, 3)) return;
  const set = openSortedSetToRead(context);
  if (set === null) return;
  resolveRange(context, set, by, 2, 3, false);
  context.reply.integer(range.to - range.from);
}

function zcount(context: Context): void {
  countRange(context, By.SCORE);
}

function zlexCount(context: Context): void {
  countRange(context, By.MEMBER);
}

function removeRange(context: Context, by: By, event: string): void {
  const { reply } = context;
  if (!readBounds(context, by, 2, 3)) return;
  const set = openSortedSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (set.exists) context.use();
  resolveRange(context, set, by, 2, 3, false);
  const { from, to } = range;
  const size = to - from;
  if (isLongRemoval(set, size)) {
    return takeSteps(context, 0, 1, (work) => removeInSteps(context, work, from, to, event));
  }
  if (size > 0 && size === set.count) {
    set.removeKey();
  } else {
    set.seekRank(from);
    for (let i = 0; i < size; i++) if (set.remove() !== Change.DONE) return reply.error(NO_MEMORY);
  }
  if (size > 0) notifyRemoved(context, set, event, 1);
  reply.integer(size);
}

function* removeInSteps(context: Context, work: LongWork, from: number, to: number, event: string): Steps {
  if (!(yield* removeMembers(context, work, 0, from, to))) return;
  notifyRemoved(context, openedSet(context, 0), event, 1);
  context.reply.integer(to - from);
}

function zremRangeByRank(context: Context): void {
  removeRange(context, By.RANK, 'zremrangebyrank');
}

function zremRangeByScore(context: Context): void {
  removeRange(context, By.SCORE, 'zremrangebyscore');
}

function zremRangeByLex(context: Context): void {
  removeRange(context, By.MEMBER, 'zremrangebylex');
}

const KEY = keyArg('key');
const WITHSCORES = tokenArg('WITHSCORES', { optional: true });
const LIMIT = blockArg('limit', [integerArg('offset'), integerArg('count')], { token: 'LIMIT', optional: true });
const bounds = (of: (name: string) => ArgumentSpec): ArgumentSpec[] => [of('min'), of('max')];
const SCORES = bounds(doubleArg);
const MEMBERS = bounds(stringArg);
const RANKS = [integerArg('start'), integerArg('stop')];
const COMMON = { categories: Category.SORTEDSET, group: 'sorted-set' } as const;
const RANGE = {
  ...COMMON,
  arity: -4,
  flags: Flag.READONLY,
  keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
  complexity: 'O(log(N)+M) for M members returned of N',
} as const;
const COUNT = {
  ...COMMON,
  arity: 4,
  flags: Flag.READONLY | Flag.FAST,
  keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
  complexity: 'O(log(N)) for N members of the sorted set',
} as const;
const REMOVE = {
  ...COMMON,
  arity: 4,
  flags: Flag.WRITE,
  keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
  complexity: 'O(M*log(N)) for M members removed from N',
} as const;

export const sortedSetRanges: readonly CommandSpec[] = [
  {
    ...RANGE,
    name: 'zrange',
    since: '1.2.0',
    summary: 'Returns a range of members: by rank, by score or by member.',
    history: [['6.2.0', 'The options REV, BYSCORE, BYLEX and LIMIT.']],
    args: [
      KEY,
      stringArg('start'),
      stringArg('stop'),
      oneOf('sortby', [tokenArg('BYSCORE'), tokenArg('BYLEX')], { optional: true, since: '6.2.0' }),
      tokenArg('REV', { optional: true, since: '6.2.0' }),
      LIMIT,
      WITHSCORES,
    ],
    run: zrange,
  },
  {
    ...COMMON,
    name: 'zrangestore',
    arity: -5,
    flags: Flag.WRITE | Flag.DENYOOM,
    keys: [keyAt(1, KeyUse.OW | KeyUse.UPDATE), keyAt(2, KeyUse.RO | KeyUse.ACCESS)],
    since: '6.2.0',
    summary: 'Stores a range of members as a sorted set.',
    complexity: 'O(log(N)+M) for M members stored of N',
    args: [
      keyArg('dst'),
      keyArg('src', { keySpec: 1 }),
      stringArg('min'),
      stringArg('max'),
      oneOf('sortby', [tokenArg('BYSCORE'), tokenArg('BYLEX')], { optional: true }),
      tokenArg('REV', { optional: true }),
      LIMIT,
    ],
    run: zrangeStore,
  },
  {
    ...RANGE,
    name: 'zrevrange',
    since: '1.2.0',
    summary: 'Returns a range of members by rank, counted from the highest score.',
    deprecated: { since: '6.2.0', replacedBy: '`ZRANGE` with the `REV` argument' },
    args: [KEY, ...RANKS, WITHSCORES],
    run: zrevRange,
  },
  {
    ...RANGE,
    name: 'zrangebyscore',
    since: '1.0.5',
    summary: 'Returns the members whose scores are in a range.',
    deprecated: { since: '6.2.0', replacedBy: '`ZRANGE` with the `BYSCORE` argument' },
    history: [['2.0.0', 'The option WITHSCORES.']],
    args: [KEY, ...SCORES, WITHSCORES, LIMIT],
    run: zrangeByScore,
  },
  {
    ...RANGE,
    name: 'zrevrangebyscore',
    since: '2.2.0',
    summary: 'Returns the members whose scores are in a range, the highest first.',
    deprecated: { since: '6.2.0', replacedBy: '`ZRANGE` with the `REV` and `BYSCORE` arguments' },
    args: [KEY, doubleArg('max'), doubleArg('min'), WITHSCORES, LIMIT],
    run: zrevRangeByScore,
  },
  {
    ...RANGE,
    name: 'zrangebylex',
    since: '2.8.9',
    summary: 'Returns the members in a range of byte order, all scores being equal.',
    deprecated: { since: '6.2.0', replacedBy: '`ZRANGE` with the `BYLEX` argument' },
    args: [KEY, ...MEMBERS, LIMIT],
    run: zrangeByLex,
  },
  {
    ...RANGE,
    name: 'zrevrangebylex',
    since: '2.8.9',
    summary: 'Returns the members in a range of byte order, the last first, all scores being equal.',
    deprecated: { since: '6.2.0', replacedBy: '`ZRANGE` with the `REV` and `BYLEX` arguments' },
    args: [KEY, stringArg('max'), stringArg('min'), LIMIT],
    run: zrevRangeByLex,
  },
  {
    ...COUNT,
    name: 'zcount',
    since: '2.0.0',
    summary: 'Returns how many members have scores in a range.',
    args: [KEY, ...SCORES],
    run: zcount,
  },
  {
    ...COUNT,
    name: 'zlexcount',
    since: '2.8.9',
    summary: 'Returns how many members are in a range of byte order, all scores being equal.',
    args: [KEY, ...MEMBERS],
    run: zlexCount,
  },
  {
    ...REMOVE,
    name: 'zremrangebyrank',
    since: '2.0.0',
    summary: 'Removes the members in a range of ranks.',
    args: [KEY, ...RANKS],
    repeatable: true,
    run: zremRangeByRank,
  },
  {
    ...REMOVE,
    name: 'zremrangebyscore',
    since: '1.2.0',
    summary: 'Removes the members whose scores are in a range.',
    args: [KEY, ...SCORES],
    repeatable: true,
    run: zremRangeByScore,
  },
  {
    ...REMOVE,
    name: 'zremrangebylex',
    since: '2.8.9',
    summary: 'Removes the members in a range of byte order, all scores being equal.',
    args: [KEY, ...MEMBERS],
    repeatable: true,
    run: zremRangeByLex,
  },
];
