/**
 * Lists, at their ends and by index: LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LINDEX LSET LRANGE LTRIM.
 */
import { ReplyType } from '../../protocol/resp/reply.js';
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import { integerArg, keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NO_SUCH_KEY, NOT_INTEGER, NOT_POSITIVE, OUT_OF_RANGE, wrongArity } from '../errors.js';
import { beginReply, replyInSteps, STEP_ELEMENTS, takeSteps } from '../long-steps.js';
import { isLong, isSliceOver, type LongWork, replyElements, type Steps } from '../long-work.js';
import { MemberTable } from '../sets/member-table.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import {
  End,
  notifyPopped,
  notifyPushed,
  openListToChange,
  openListToRead,
  push,
  replyElement,
  replyTaken,
  seekEnd,
  take,
} from './list-elements.js';
import { openedList } from './list-steps.js';

function pushAll(context: Context, end: End, onlyIfThere: boolean): void {
  const { reply } = context;
  const list = openListToChange(context);
  if (list === null) return;
  if (onlyIfThere && !list.exists) return reply.integer(0);
  for (let i = 2; i < context.argc; i++) {
    if (push(list, end, context.input, context.argOffset(i), context.argLength(i)) === Change.DONE) continue;
    // All or none.
    for (; i > 2; i--) {
      seekEnd(list, end);
      list.remove();
    }
    return reply.error(NO_MEMORY);
  }
  notifyPushed(context, end, 1);
  reply.integer(list.count);
}

function lpush(context: Context): void {
  pushAll(context, End.LEFT, false);
}

function rpush(context: Context): void {
  pushAll(context, End.RIGHT, false);
}

function lpushX(context: Context): void {
  pushAll(context, End.LEFT, true);
}

function rpushX(context: Context): void {
  pushAll(context, End.RIGHT, true);
}

function pop(context: Context, end: End): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error(wrongArity(context.command.fullName));
  const hasCount = context.argc === 3;
  const count = hasCount ? context.argInteger(2) : 1;
  if (!(count >= 0)) return reply.error(NOT_POSITIVE);
  const list = openListToChange(context);
  if (list === null) return;
  if (!list.exists) return hasCount ? reply.nilArray() : reply.nil();
  if (count === 0) return reply.array(0);
  if (hasCount) {
    const taken = Math.min(count, list.count);
    if (isLong(taken)) return takeSteps(context, 0, 1, (work) => popInSteps(context, work, end, taken));
    if (!take(list, end, taken)) return reply.error(NO_MEMORY);
    notifyPopped(context, list, end, 1);
    return replyTaken(context);
  }
  // From where it lies: once the list can be changed, the removal does not fail.
  if (list.makeChangeable() !== Change.DONE) return reply.error(NO_MEMORY);
  seekEnd(list, end);
  replyElement(context, list);
  list.remove();
  notifyPopped(context, list, end, 1);
}

/** Of many. */
function* popInSteps(context: Context, work: LongWork, end: End, count: number): Steps {
  const { reply } = context;
  context.keyspace.collections[1].close();
  const own = new MemberTable();
  const size = openedList(context).count;
  for (let i = 0; i < count; ) {
    const list = openedList(context);
    list.seekRank(end === End.LEFT ? i : size - 1 - i);
    for (const stop = Math.min(i + STEP_ELEMENTS, count); i < stop; i++) {
      list.load();
      own.push(list.key, list.keyOffset, list.keyLength);
      if (end === End.LEFT) list.next();
      else list.previous();
    }
    if (isSliceOver()) yield;
  }
  const list = openedList(context);
  const from = end === End.LEFT ? 0 : size - count;
  if (list.removeRange(from, from + count) !== Change.DONE) return reply.error(NO_MEMORY);
  notifyPopped(context, list, end, 1);
  beginReply(context, work);
  reply.array(count);
  yield* replyInSteps(count, (i) => reply.bulk(own.bytes, own.offsets[i], own.lengths[i]));
}

function lpop(context: Context): void {
  pop(context, End.LEFT);
}

function rpop(context: Context): void {
  pop(context, End.RIGHT);
}

function llen(context: Context): void {
  const list = openListToRead(context);
  if (list !== null) context.reply.integer(list.count);
}

function lindex(context: Context): void {
  const { reply } = context;
  const list = openListToRead(context);
  if (list === null) return;
  if (!list.exists) return reply.nil();
  const index = context.argInteger(2);
  if (Number.isNaN(index)) return reply.error(NOT_INTEGER);
  const rank = index < 0 ? index + list.count : index;
  if (rank >= 0 && rank < list.count && list.seekRank(rank)) replyElement(context, list);
  else reply.nil();
}

function lset(context: Context): void {
  const { reply } = context;
  const list = openListToChange(context);
  if (list === null) return;
  if (!list.exists) return reply.error(NO_SUCH_KEY);
  const index = context.argInteger(2);
  if (Number.isNaN(index)) return reply.error(NOT_INTEGER);
  const rank = index < 0 ? index + list.count : index;
  if (rank < 0 || rank >= list.count || !list.seekRank(rank)) return reply.error(OUT_OF_RANGE);
  if (list.replace(context.input, context.argOffset(3), context.argLength(3)) !== Change.DONE) {
    return reply.error(NO_MEMORY);
  }
  context.notify(Notify.LIST, 'lset', 1);
  reply.ok();
}

/** The range in arguments 2 and 3 of a list of `count` elements: first rank and how many there are. */
const range = { first: 0, length: 0 };

function clampRange(start: number, end: number, count: number): void {
  const first = Math.max(start < 0 ? start + count : start, 0);
  const last = Math.min(end < 0 ? end + count : end, count - 1);
  range.first = first;
  range.length = Math.max(last - first + 1, 0);
}

function lrange(context: Context): void {
  const { reply } = context;
  const start = context.argInteger(2);
  const end = context.argInteger(3);
  if (Number.isNaN(start) || Number.isNaN(end)) return reply.error(NOT_INTEGER);
  const list = openListToRead(context);
  if (list === null) return;
  clampRange(start, end, list.count);
  const { length } = range;
  if (isLong(length)) return replyElements(context, list, range.first, length, false, ReplyType.ARRAY, visitElement);
  reply.array(length);
  if (length === 0) return;
  list.seekRank(range.first);
  for (let i = 0; i < length; i++, list.next()) replyElement(context, list);
}

function visitElement(context: Context, list: Collection): number {
  replyElement(context, list);
  return 1;
}

function ltrim(context: Context): void {
  const { reply } = context;
  const start = context.argInteger(2);
  const end = context.argInteger(3);
  if (Number.isNaN(start) || Number.isNaN(end)) return reply.error(NOT_INTEGER);
  const list = openListToChange(context);
  if (list === null) return;
  if (!list.exists) return reply.ok();
  clampRange(start, end, list.count);
  const { first, length } = range;
  if (length === 0) {
    list.removeKey();
    context.notify(Notify.LIST, 'ltrim', 1);
    context.notify(Notify.GENERIC, 'del', 1);
    return reply.ok();
  }
  // The first removal alone can fail; then nothing has been removed.
  if (first + length < list.count && list.removeRange(first + length, list.count) !== Change.DONE) {
    return reply.error(NO_MEMORY);
  }
  if (first > 0 && list.removeRange(0, first) !== Change.DONE) return reply.error(NO_MEMORY);
  context.notify(Notify.LIST, 'ltrim', 1);
  reply.ok();
}

const KEY = keyArg('key');
const ELEMENTS = stringArg('element', { multiple: true });
const COMMON = { categories: Category.LIST, group: 'list', since: '1.0.0' } as const;
const PUSH = {
  ...COMMON,
  arity: -3,
  flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
  keys: [keyAt(1, KeyUse.RW | KeyUse.INSERT)],
  complexity: 'O(N) for N elements',
  args: [KEY, ELEMENTS],
} as const;
const POP = {
  ...COMMON,
  arity: -2,
  flags: Flag.WRITE | Flag.FAST,
  keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
  complexity: 'O(N) for N elements returned',
  history: [['6.2.0', 'The count.']],
  args: [KEY, integerArg('count', { optional: true, since: '6.2.0' })],
  repeatable: true,
} as const;
const SEVERAL: CommandSpec['history'] = [['2.4.0', 'Several elements.']];
const SEVERAL_X: CommandSpec['history'] = [['4.0.0', 'Several elements.']];
const BY_RANK = 'O(log N) for N elements of the list';

export const lists: readonly CommandSpec[] = [
  {
    ...PUSH,
    name: 'lpush',
    summary: 'Adds elements before the first of a list; returns its length.',
    history: SEVERAL,
    repeatable: true,
    run: lpush,
  },
  {
    ...PUSH,
    name: 'rpush',
    summary: 'Adds elements behind the last of a list; returns its length.',
    history: SEVERAL,
    repeatable: true,
    run: rpush,
  },
  {
    ...PUSH,
    name: 'lpushx',
    since: '2.2.0',
    summary: 'Adds elements before the first of a list, if there is one.',
    history: SEVERAL_X,
    repeatable: true,
    run: lpushX,
  },
  {
    ...PUSH,
    name: 'rpushx',
    since: '2.2.0',
    summary: 'Adds elements behind the last of a list, if there is one.',
    history: SEVERAL_X,
    repeatable: true,
    run: rpushX,
  },
  { ...POP, name: 'lpop', summary: 'Removes the first elements of a list and returns them.', run: lpop },
  { ...POP, name: 'rpop', summary: 'Removes the last elements of a list and returns them.', run: rpop },
  {
    ...COMMON,
    name: 'llen',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    summary: 'Returns the length of a list.',
    complexity: 'O(1)',
    args: [KEY],
    run: llen,
  },
  {
    ...COMMON,
    name: 'lindex',
    arity: 3,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    summary: 'Returns an element of a list by its index, negative ones from the end.',
    complexity: BY_RANK,
    args: [KEY, integerArg('index')],
    run: lindex,
  },
  {
    ...COMMON,
    name: 'lset',
    arity: 4,
    flags: Flag.WRITE | Flag.DENYOOM,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Puts another element in the place of one.',
    complexity: BY_RANK,
    args: [KEY, integerArg('index'), stringArg('element')],
    repeatable: true,
    run: lset,
  },
  {
    ...COMMON,
    name: 'lrange',
    arity: 4,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    summary: 'Returns the elements of a range of indices.',
    complexity: 'O(log N + M) for M of N elements',
    args: [KEY, integerArg('start'), integerArg('stop')],
    run: lrange,
  },
  {
    ...COMMON,
    name: 'ltrim',
    arity: 4,
    flags: Flag.WRITE,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    summary: 'Removes what is outside of a range of indices.',
    complexity: 'O(N) for N elements removed',
    args: [KEY, integerArg('start'), integerArg('stop')],
    repeatable: true,
    run: ltrim,
  },
];
