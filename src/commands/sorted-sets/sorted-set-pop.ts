/**
 * ZPOPMIN ZPOPMAX ZMPOP ZRANDMEMBER.
 */
import { Change, type Collection } from '../../store/collections/collection.js';
import { blockArg, integerArg, keyArg, oneOf, optional, tokenArg } from '../arguments.js';
import { replyRandom, seekRandom } from '../collections/random-elements.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX } from '../errors.js';
import { beginReply, replyInSteps, STEP_ELEMENTS, takeSteps } from '../long-steps.js';
import { isSliceOver, type LongWork, type Steps } from '../long-work.js';
import { MemberTable } from '../sets/member-table.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted } from '../spec.js';
import {
  beginElements,
  notifyRemoved,
  openSortedSet,
  openSortedSetToRead,
  replyElement,
} from './sorted-set-members.js';
import { isLongRemoval, openedSet, removeMembers } from './sorted-set-removal.js';
import { result, ScoredMembers } from './sorted-set-result.js';

const NOT_POSITIVE = 'ERR value is out of range, must be positive';
const NO_NUMKEYS = 'ERR numkeys should be greater than 0';
const NO_COUNT = 'ERR count should be greater than 0';
const OUT_OF_RANGE = 'ERR value is out of range';
const BEYOND = 'ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807';
/** Counts beyond cannot be doubled, which scores do. */
const COUNT_LIMIT = 0x3fff_ffff_ffff_ffffn;

/** Moves `count` elements from an end of the set of argument `i` to the result; false after an error reply. */
function take(context: Context, set: Collection, count: number, isMax: boolean, i: number): boolean {
  result.clear();
  const isAll = count === set.count;
  if (isMax) set.last();
  else set.first();
  for (let left = count; left > 0; left--) {
    result.keepElement(set);
    if (isAll) {
      if (isMax) set.previous();
      else set.next();
      continue;
    }
    // The first removal alone can fail: it brings the set to where it can be changed.
    if (set.remove() !== Change.DONE) {
      context.reply.error(NO_MEMORY);
      return false;
    }
    if (isMax) set.last();
  }
  if (isAll) set.removeKey();
  notifyRemoved(context, set, isMax ? 'zpopmax' : 'zpopmin', i);
  return true;
}

function pop(context: Context, isMax: boolean): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error(SYNTAX);
  const hasCount = context.argc === 3;
  const count = hasCount ? context.argInteger(2) : 1;
  if (!(count >= 0)) return reply.error(NOT_POSITIVE);
  const set = openSortedSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (!set.exists || count === 0) return reply.array(0);
  context.use();
  const taken = Math.min(count, set.count);
  if (isLongRemoval(set, taken)) return takeSteps(context, 0, 1, (work) => popInSteps(context, work, taken, isMax));
  if (!take(context, set, taken, isMax, 1)) return;
  const isNested = hasCount && reply.protocol > 2;
  reply.array(isNested ? taken : taken * 2);
  for (let i = 0; i < taken; i++) result.reply(context, i, true, isNested);
  result.clear();
}

/** Of many, but not all. */
function* popInSteps(context: Context, work: LongWork, count: number, isMax: boolean): Steps {
  const { reply } = context;
  context.keyspace.collections[1].close();
  const size = openedSet(context, 0).count;
  const own = new ScoredMembers(new MemberTable());
  for (let i = 0; i < count; ) {
    const set = openedSet(context, 0);
    set.seekRank(isMax ? size - 1 - i : i);
    for (const end = Math.min(i + STEP_ELEMENTS, count); i < end; i++) {
      own.keepElement(set);
      if (isMax) set.previous();
      else set.next();
    }
    if (isSliceOver()) yield;
  }
  const from = isMax ? size - count : 0;
  if (!(yield* removeMembers(context, work, 0, from, from + count))) return;
  notifyRemoved(context, openedSet(context, 0), isMax ? 'zpopmax' : 'zpopmin', 1);
  beginReply(context, work);
  const isNested = reply.protocol > 2;
  reply.array(isNested ? count : count * 2);
  yield* replyInSteps(count, (i) => own.reply(context, i, true, isNested));
}

function zpopMin(context: Context): void {
  pop(context, false);
}

function zpopMax(context: Context): void {
  pop(context, true);
}

function zmpop(context: Context): void {
  if (readPop(context, 1) && !popFirst(context, popping.isMax, popping.count, true)) context.reply.nilArray();
}

/** What ZMPOP and BZMPOP have been asked for. */
export const popping = { isMax: false, count: 1 };

/** Reads it from the number of keys in argument `i` on; false after an error reply. */
export function readPop(context: Context, i: number): boolean {
  const keys = context.argInteger(i);
  if (!(keys > 0)) return fail(context, NO_NUMKEYS);
  const where = keys + i + 1;
  if (where >= context.argc) return fail(context, SYNTAX);
  popping.isMax = context.argIs(where, 'MAX');
  if (!popping.isMax && !context.argIs(where, 'MIN')) return fail(context, SYNTAX);
  popping.count = 1;
  if (context.argc === where + 1) return true;
  if (context.argc < where + 3 || !context.argIs(where + 1, 'COUNT')) return fail(context, SYNTAX);
  popping.count = context.argInteger(where + 2);
  if (!(popping.count > 0)) return fail(context, NO_COUNT);
  return context.argc === where + 3 || fail(context, SYNTAX);
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/**
 * Replies the key and up to `count` elements, in an array or beside it the one there is, of the first of the command's sorted sets that
 * exists, or an error. False = none does, nothing is replied.
 */
export function popFirst(context: Context, isMax: boolean, count: number, asArray: boolean): boolean {
  const { reply, keyCount, keyHashes, keyArguments } = context;
  for (let k = 0; k < keyCount; k++) {
    if (!context.mayUse(k)) continue;
    const argument = keyArguments[k];
    const set = openSortedSet(context, 0, keyHashes[k], argument);
    if (set === null) return true;
    if (!set.exists) continue;
    context.use();
    const taken = Math.min(count, set.count);
    if (!take(context, set, taken, isMax, argument)) return true;
    reply.array(asArray ? 2 : 3);
    reply.bulk(context.input, context.argOffset(argument), context.argLength(argument));
    if (asArray) reply.array(taken);
    for (let i = 0; i < taken; i++) result.reply(context, i, true, asArray);
    result.clear();
    return true;
  }
  return false;
}

function zrandMember(context: Context): void {
  const { reply } = context;
  if (context.argc > 2) return randomMembers(context);
  const set = openSortedSetToRead(context);
  if (set === null) return;
  if (!set.exists) return reply.nil();
  seekRandom(set);
  replyElement(context, set, false);
}

function randomMembers(context: Context): void {
  const { reply } = context;
  const exact = context.argInteger64(2);
  if (exact === null) return reply.error(NOT_INTEGER);
  if (exact === -0x8000_0000_0000_0000n) return reply.error(BEYOND);
  if (context.argc > 4 || (context.argc === 4 && !context.argIs(3, 'WITHSCORES'))) return reply.error(SYNTAX);
  const withScores = context.argc === 4;
  if (withScores && (exact > COUNT_LIMIT || exact < -COUNT_LIMIT)) return reply.error(OUT_OF_RANGE);
  const count = Number(exact);
  const set = openSortedSetToRead(context);
  if (set === null) return;
  if (!set.exists || count === 0) return reply.array(0);
  const begin = (wanted: number): void => beginElements(context, wanted, withScores);
  replyRandom(context, openedFirst, count, begin, withScores ? replyWithScore : replyAlone);
}

function openedFirst(context: Context): Collection {
  return openedSet(context, 0);
}

function replyAlone(context: Context, set: Collection): void {
  replyElement(context, set, false);
}

function replyWithScore(context: Context, set: Collection): void {
  replyElement(context, set, true);
}

const KEY = keyArg('key');
const COMMON = { categories: Category.SORTEDSET, group: 'sorted-set' } as const;
const POP = {
  ...COMMON,
  arity: -2,
  flags: Flag.WRITE | Flag.FAST,
  keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
  since: '5.0.0',
  complexity: 'O(M*log(N)) for M members removed from N',
  args: [KEY, integerArg('count', { optional: true })],
  repeatable: true,
} as const;

export const sortedSetPops: readonly CommandSpec[] = [
  { ...POP, name: 'zpopmin', summary: 'Removes the members with the lowest scores and returns them.', run: zpopMin },
  { ...POP, name: 'zpopmax', summary: 'Removes the members with the highest scores and returns them.', run: zpopMax },
  {
    ...COMMON,
    name: 'zmpop',
    arity: -4,
    flags: Flag.WRITE | Flag.MOVABLE_KEYS,
    keys: [keysCounted(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
    since: '7.0.0',
    summary: 'Removes members from an end of the first sorted set that has some, and returns them.',
    complexity: 'O(K)+O(M*log(N)) for K keys and M members removed from N',
    args: [
      integerArg('numkeys'),
      keyArg('key', { multiple: true }),
      oneOf('where', [tokenArg('MIN'), tokenArg('MAX')]),
      integerArg('count', { token: 'COUNT', optional: true }),
    ],
    run: zmpop,
  },
  {
    ...COMMON,
    name: 'zrandmember',
    arity: -2,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '6.2.0',
    summary: 'Returns random members of a sorted set.',
    complexity: 'O(N) for N members returned',
    tips: ['nondeterministic_output'],
    args: [KEY, blockArg('options', [integerArg('count'), optional(tokenArg('WITHSCORES'))], { optional: true })],
    run: zrandMember,
  },
];
