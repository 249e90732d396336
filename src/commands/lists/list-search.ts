/**
 * Lists, by value: LINSERT LREM LPOS.
 */

import { ReplyType } from '../../protocol/resp/reply.js';
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import { integerArg, keyArg, oneOf, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { BEYOND, NO_MEMORY, NOT_INTEGER, SYNTAX } from '../errors.js';
import { replyInSteps, takeSteps } from '../long-steps.js';
import { isLong, type LongWork, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { isElement, openListToChange, openListToRead } from './list-elements.js';
import { ALL, FIRST, findMatches, openedList, removeRanks } from './list-steps.js';

const INT64_MIN = -0x8000_0000_0000_0000n;
const NO_RANK =
  "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list";
const NEGATIVE_COUNT = "ERR COUNT can't be negative";
const NEGATIVE_MAXLEN = "ERR MAXLEN can't be negative";

function linsert(context: Context): void {
  const { reply } = context;
  const isAfter = context.argIs(2, 'AFTER');
  if (!isAfter && !context.argIs(2, 'BEFORE')) return reply.error(SYNTAX);
  const list = openListToChange(context);
  if (list === null) return;
  if (!list.exists) return reply.integer(0);
  if (isLong(list.count)) return takeSteps(context, 0, 1, () => insertInSteps(context, isAfter));
  for (let more = list.first(); more; more = list.next()) {
    if (!isElement(context, list, 3)) continue;
    if (isAfter) list.next();
    const change = list.insert(context.input, context.argOffset(4), context.argLength(4));
    if (change !== Change.DONE) return reply.error(NO_MEMORY);
    context.notify(Notify.LIST, 'linsert', 1);
    return reply.integer(list.count);
  }
  reply.integer(-1);
}

function* insertInSteps(context: Context, isAfter: boolean): Steps {
  const { reply } = context;
  const [rank] = yield* findMatches(context, { ...FIRST, argument: 3 });
  if (rank === undefined) return reply.integer(-1);
  const list = openedList(context);
  list.seekRank(isAfter ? rank + 1 : rank);
  const change = list.insert(context.input, context.argOffset(4), context.argLength(4));
  if (change !== Change.DONE) return reply.error(NO_MEMORY);
  context.notify(Notify.LIST, 'linsert', 1);
  reply.integer(list.count);
}

function lrem(context: Context): void {
  const { reply } = context;
  const exact = context.argInteger64(2);
  if (exact === null) return reply.error(NOT_INTEGER);
  if (exact === INT64_MIN) return reply.error(BEYOND);
  const list = openListToChange(context);
  if (list === null) return;
  const count = Number(exact);
  const wanted = count === 0 ? Number.POSITIVE_INFINITY : Math.abs(count);
  if (isLong(list.count)) {
    return takeSteps(context, 0, 1, (work) => removeInSteps(context, work, count < 0, wanted));
  }
  const removed = count < 0 ? removeFromEnd(context, list, wanted) : removeFromStart(context, list, wanted);
  if (removed < 0) return reply.error(NO_MEMORY);
  if (removed > 0) context.notify(Notify.LIST, 'lrem', 1);
  if (removed > 0 && !list.exists) context.notify(Notify.GENERIC, 'del', 1);
  reply.integer(removed);
}

function* removeInSteps(context: Context, work: LongWork, isReversed: boolean, wanted: number): Steps {
  const { reply } = context;
  const ranks = yield* findMatches(context, { ...ALL, argument: 3, isReversed, wanted });
  const removed = ranks.length;
  if (removed === 0) return reply.integer(0);
  const list = openedList(context);
  const isAll = removed === list.count;
  if (isAll) list.removeKey();
  else if (!(yield* removeRanks(context, work, isReversed ? ranks.reverse() : ranks))) return;
  context.notify(Notify.LIST, 'lrem', 1);
  if (isAll) context.notify(Notify.GENERIC, 'del', 1);
  reply.integer(removed);
}

/** Returns how many have been removed, -1 = no memory: none. */
function removeFromStart(context: Context, list: Collection, wanted: number): number {
  let removed = 0;
  list.first();
  while (removed < wanted && !list.atEnd) {
    if (!isElement(context, list, 3)) {
      list.next();
      continue;
    }
    // Behind it the cursor stands on the next.
    if (list.remove() !== Change.DONE) return -1;
    removed++;
  }
  return removed;
}

function removeFromEnd(context: Context, list: Collection, wanted: number): number {
  let removed = 0;
  for (let more = list.last(); more && removed < wanted; more = list.previous()) {
    if (!isElement(context, list, 3)) continue;
    if (list.remove() !== Change.DONE) return -1;
    removed++;
  }
  return removed;
}

/** The options of LPOS; `count` -1 = not given, `maxLength` 0 = all. */
const options = { rank: 1, count: -1, maxLength: 0 };

/** Reads them from argument 3 on; false after an error reply. */
function readOptions(context: Context): boolean {
  options.rank = 1;
  options.count = -1;
  options.maxLength = 0;
  for (let i = 3; i < context.argc; i += 2) {
    if (i + 1 === context.argc) return fail(context, SYNTAX);
    if (context.argIs(i, 'RANK')) {
      const rank = context.argInteger64(i + 1);
      if (rank === null) return fail(context, NOT_INTEGER);
      if (rank === INT64_MIN) return fail(context, BEYOND);
      if (rank === 0n) return fail(context, NO_RANK);
      options.rank = Number(rank);
    } else if (context.argIs(i, 'COUNT')) {
      options.count = context.argInteger(i + 1);
      if (!(options.count >= 0)) return fail(context, NEGATIVE_COUNT);
    } else if (context.argIs(i, 'MAXLEN')) {
      options.maxLength = context.argInteger(i + 1);
      if (!(options.maxLength >= 0)) return fail(context, NEGATIVE_MAXLEN);
    } else {
      return fail(context, SYNTAX);
    }
  }
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

function lpos(context: Context): void {
  const { reply } = context;
  if (!readOptions(context)) return;
  const list = openListToRead(context);
  if (list === null) return;
  const { count } = options;
  if (isLong(list.count)) return takeSteps(context, 0, 1, () => findInSteps(context));
  if (count < 0) {
    const rank = nextMatch(context, list, true);
    if (rank < 0) reply.nil();
    else reply.integer(rank);
    return;
  }
  let found = 0;
  reply.deferred();
  for (let rank = nextMatch(context, list, true); rank >= 0; rank = nextMatch(context, list, false)) {
    reply.integer(rank);
    if (++found === count) break;
  }
  reply.endDeferred(ReplyType.ARRAY, found);
}

function* findInSteps(context: Context): Steps {
  const { reply } = context;
  const { rank, count, maxLength } = options;
  const ranks = yield* findMatches(context, {
    argument: 2,
    isReversed: rank < 0,
    skip: Math.abs(rank) - 1,
    wanted: count < 0 ? 1 : count || Number.POSITIVE_INFINITY,
    elements: maxLength || Number.POSITIVE_INFINITY,
  });
  if (count < 0) return ranks.length === 0 ? reply.nil() : reply.integer(ranks[0]);
  reply.array(ranks.length);
  yield* replyInSteps(ranks.length, (i) => reply.integer(ranks[i]));
}

/** Where the walk of LPOS is. */
const walk = { rank: 0, left: 0, skip: 0 };

/** Rank of the next match that counts; -1 = there is none. `isFirst` begins the walk. */
function nextMatch(context: Context, list: Collection, isFirst: boolean): number {
  const isForward = options.rank > 0;
  if (isFirst) {
    walk.rank = isForward ? 0 : list.count - 1;
    walk.left = options.maxLength === 0 ? list.count : Math.min(options.maxLength, list.count);
    walk.skip = Math.abs(options.rank) - 1;
    if (isForward) list.first();
    else list.last();
  }
  while (walk.left > 0) {
    walk.left--;
    const { rank } = walk;
    const isMatch = isElement(context, list, 2);
    walk.rank += isForward ? 1 : -1;
    if (isForward) list.next();
    else list.previous();
    if (!isMatch) continue;
    if (walk.skip === 0) return rank;
    walk.skip--;
  }
  return -1;
}

const KEY = keyArg('key');
const ELEMENT = stringArg('element');
const COMMON = { categories: Category.LIST, group: 'list', complexity: 'O(N) for N elements walked' } as const;

export const listSearches: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'linsert',
    arity: 5,
    flags: Flag.WRITE | Flag.DENYOOM,
    keys: [keyAt(1, KeyUse.RW | KeyUse.INSERT)],
    since: '2.2.0',
    summary: 'Adds an element before or after another one; returns the length of the list.',
    args: [KEY, oneOf('where', [tokenArg('BEFORE'), tokenArg('AFTER')]), stringArg('pivot'), ELEMENT],
    repeatable: true,
    run: linsert,
  },
  {
    ...COMMON,
    name: 'lrem',
    arity: 4,
    flags: Flag.WRITE,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    since: '1.0.0',
    summary: 'Removes elements of a value, the first ones, the last ones or all; returns how many.',
    args: [KEY, integerArg('count'), ELEMENT],
    repeatable: true,
    run: lrem,
  },
  {
    ...COMMON,
    name: 'lpos',
    arity: -3,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '6.0.6',
    summary: 'Returns the index of elements of a value.',
    args: [
      KEY,
      ELEMENT,
      integerArg('rank', { token: 'RANK', optional: true }),
      integerArg('num-matches', { token: 'COUNT', optional: true }),
      integerArg('len', { token: 'MAXLEN', optional: true }),
    ],
    run: lpos,
  },
];
