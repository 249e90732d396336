/**
 * Sorted sets, member by member: ZADD ZINCRBY ZREM ZSCORE ZMSCORE ZCARD ZRANK ZREVRANK.
 */
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import { blockArg, doubleArg, integerArg, keyArg, oneOf, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_FLOAT, SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { findMember, notifyRemoved, openSortedSet, openSortedSetToRead } from './sorted-set-members.js';

const NX_AND_XX = 'ERR XX and NX options at the same time are not compatible';
const GT_LT_NX = 'ERR GT, LT, and/or NX options at the same time are not compatible';
const ONE_PAIR = 'ERR INCR option supports a single increment-element pair';
const NOT_A_NUMBER = 'ERR resulting score is not a number (NaN)';

/** Options of ZADD. */
export const enum Add {
  NX = 1,
  XX = 2,
  GT = 4,
  LT = 8,
  CH = 16,
  INCR = 32,
}

/** What has become of one pair. */
export const enum Outcome {
  NOTHING = 0,
  SAME = 1,
  UPDATED = 2,
  ADDED = 3,
  NOT_A_NUMBER = 4,
  NO_MEMORY = 5,
}

/** Score of the pair handled last. */
let scoreNow = 0;

function option(context: Context, i: number): number {
  if (context.argIs(i, 'NX')) return Add.NX;
  if (context.argIs(i, 'XX')) return Add.XX;
  if (context.argIs(i, 'GT')) return Add.GT;
  if (context.argIs(i, 'LT')) return Add.LT;
  if (context.argIs(i, 'CH')) return Add.CH;
  if (context.argIs(i, 'INCR')) return Add.INCR;
  return 0;
}

function zadd(context: Context): void {
  let options = 0;
  let first = 2;
  for (; first < context.argc; first++) {
    const given = option(context, first);
    if (given === 0) break;
    options |= given;
  }
  add(context, options, first);
}

function zincrBy(context: Context): void {
  add(context, Add.INCR, 2);
}

function add(context: Context, options: number, first: number): void {
  const { reply, argc } = context;
  const words = argc - first;
  if (words === 0 || words % 2 === 1) return reply.error(SYNTAX);
  if ((options & Add.NX) !== 0 && (options & Add.XX) !== 0) return reply.error(NX_AND_XX);
  const bounds = options & (Add.NX | Add.GT | Add.LT);
  if ((bounds & (Add.GT | Add.LT)) !== 0 && (bounds & (bounds - 1)) !== 0) return reply.error(GT_LT_NX);
  if ((options & Add.INCR) !== 0 && words > 2) return reply.error(ONE_PAIR);
  for (let i = first; i < argc; i += 2) if (Number.isNaN(context.argDouble(i))) return reply.error(NOT_FLOAT);
  const set = openSortedSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (set.exists) context.use();
  let added = 0;
  let updated = 0;
  let outcome = Outcome.NOTHING;
  for (let i = first; i < argc; i += 2) {
    outcome = addMember(context, set, options, context.argDouble(i), i + 1);
    if (outcome === Outcome.NOT_A_NUMBER) return reply.error(NOT_A_NUMBER);
    if (outcome === Outcome.NO_MEMORY) {
      notifyAdded(context, options, added + updated);
      return reply.error(NO_MEMORY);
    }
    if (outcome === Outcome.ADDED) added++;
    if (outcome === Outcome.UPDATED) updated++;
  }
  notifyAdded(context, options, added + updated);
  if ((options & Add.INCR) === 0) reply.integer((options & Add.CH) !== 0 ? added + updated : added);
  else if (outcome === Outcome.NOTHING) reply.nil();
  else reply.double(scoreNow);
}

export function notifyAdded(context: Context, options: number, changed: number): void {
  if (changed > 0) context.notify(Notify.ZSET, (options & Add.INCR) !== 0 ? 'zincr' : 'zadd', 1);
}

/** Adds or updates the member in argument `i` with a score. */
export function addMember(context: Context, set: Collection, options: number, score: number, i: number): Outcome {
  const { input } = context;
  const offset = context.argOffset(i);
  const length = context.argLength(i);
  if (!findMember(context, set, i)) {
    if ((options & Add.XX) !== 0) return Outcome.NOTHING;
    scoreNow = score;
    return set.insertScored(score, input, offset, length) === Change.DONE ? Outcome.ADDED : Outcome.NO_MEMORY;
  }
  if ((options & Add.NX) !== 0) return Outcome.NOTHING;
  if ((options & Add.INCR) !== 0) {
    score += set.score;
    if (Number.isNaN(score)) return Outcome.NOT_A_NUMBER;
  }
  if ((options & Add.GT) !== 0 && score <= set.score) return Outcome.NOTHING;
  if ((options & Add.LT) !== 0 && score >= set.score) return Outcome.NOTHING;
  scoreNow = score;
  if (score === set.score) return Outcome.SAME;
  return set.changeScore(score, input, offset, length) === Change.DONE ? Outcome.UPDATED : Outcome.NO_MEMORY;
}

function zrem(context: Context): void {
  const { reply } = context;
  const set = openSortedSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (set.exists) context.use();
  let removed = 0;
  for (let i = 2; i < context.argc && set.exists; i++) {
    if (!findMember(context, set, i)) continue;
    // The first removal alone can fail: it brings the set to where it can be changed.
    if (set.remove() !== Change.DONE) return reply.error(NO_MEMORY);
    removed++;
  }
  if (removed > 0) notifyRemoved(context, set, 'zrem', 1);
  reply.integer(removed);
}

function zscore(context: Context): void {
  const set = openSortedSetToRead(context);
  if (set === null) return;
  if (findMember(context, set, 2)) context.reply.double(set.score);
  else context.reply.nil();
}

function zmscore(context: Context): void {
  const set = openSortedSetToRead(context);
  if (set === null) return;
  context.reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) {
    if (findMember(context, set, i)) context.reply.double(set.score);
    else context.reply.nil();
  }
}

function zcard(context: Context): void {
  const set = openSortedSetToRead(context);
  if (set !== null) context.reply.integer(set.count);
}

function replyRank(context: Context, isReversed: boolean): void {
  const { reply } = context;
  const withScore = context.argc > 3;
  if (context.argc > 4 || (withScore && !context.argIs(3, 'WITHSCORE'))) return reply.error(SYNTAX);
  const set = openSortedSetToRead(context);
  if (set === null) return;
  if (!findMember(context, set, 2)) return withScore ? reply.nilArray() : reply.nil();
  if (withScore) reply.array(2);
  reply.integer(isReversed ? set.count - 1 - set.rank : set.rank);
  if (withScore) reply.double(set.score);
}

function zrank(context: Context): void {
  replyRank(context, false);
}

function zrevRank(context: Context): void {
  replyRank(context, true);
}

const KEY = keyArg('key');
const MEMBER = stringArg('member');
const COMMON = { categories: Category.SORTEDSET, group: 'sorted-set' } as const;
const READ = { ...COMMON, flags: Flag.READONLY | Flag.FAST, keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)] } as const;
const OF_LOG = 'O(log(N)) for N members of the sorted set';
const RANK = {
  ...READ,
  arity: -3,
  since: '2.0.0',
  complexity: OF_LOG,
  history: [['7.2.0', 'The option WITHSCORE.']],
  args: [KEY, MEMBER, tokenArg('WITHSCORE', { optional: true, since: '7.2.0' })],
} as const;

export const sortedSets: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'zadd',
    arity: -4,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    since: '1.2.0',
    summary: 'Adds members to a sorted set, or gives them other scores.',
    complexity: 'O(log(N)) for each member, N being the members of the sorted set',
    history: [
      ['2.4.0', 'Several members.'],
      ['3.0.2', 'The options XX, NX, CH and INCR.'],
      ['6.2.0', 'The options GT and LT.'],
    ],
    args: [
      KEY,
      oneOf('condition', [tokenArg('NX'), tokenArg('XX')], { optional: true, since: '3.0.2' }),
      oneOf('comparison', [tokenArg('GT'), tokenArg('LT')], { optional: true, since: '6.2.0' }),
      tokenArg('CH', { optional: true, since: '3.0.2' }),
      tokenArg('INCR', { optional: true, since: '3.0.2' }),
      blockArg('data', [doubleArg('score'), MEMBER], { multiple: true }),
    ],
    repeatable: true,
    run: zadd,
  },
  {
    ...COMMON,
    name: 'zincrby',
    arity: 4,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE)],
    since: '1.2.0',
    summary: 'Adds to the score of a member; a missing one counts as 0.',
    complexity: OF_LOG,
    args: [KEY, integerArg('increment'), MEMBER],
    repeatable: true,
    run: zincrBy,
  },
  {
    ...COMMON,
    name: 'zrem',
    arity: -3,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    since: '1.2.0',
    summary: 'Removes members from a sorted set; the sorted set goes with the last of them.',
    complexity: 'O(M*log(N)) for M members removed from N',
    history: [['2.4.0', 'Several members.']],
    args: [KEY, stringArg('member', { multiple: true })],
    repeatable: true,
    run: zrem,
  },
  {
    ...READ,
    name: 'zscore',
    arity: 3,
    since: '1.2.0',
    summary: 'Returns the score of a member.',
    complexity: OF_LOG,
    args: [KEY, MEMBER],
    run: zscore,
  },
  {
    ...READ,
    name: 'zmscore',
    arity: -3,
    since: '6.2.0',
    summary: 'Returns the scores of members.',
    complexity: 'O(M*log(N)) for M members asked for of N',
    args: [KEY, stringArg('member', { multiple: true })],
    run: zmscore,
  },
  {
    ...READ,
    name: 'zcard',
    arity: 2,
    keys: [keyAt(1, KeyUse.RO)],
    since: '1.2.0',
    summary: 'Returns the number of members of a sorted set.',
    complexity: 'O(1)',
    args: [KEY],
    run: zcard,
  },
  { ...RANK, name: 'zrank', summary: 'Returns how many members stand before one, by ascending score.', run: zrank },
  {
    ...RANK,
    name: 'zrevrank',
    summary: 'Returns how many members stand before one, by descending score.',
    run: zrevRank,
  },
];
