/**
 * Elements from list to list, or from the first of several: LMOVE RPOPLPUSH LMPOP, and what their blocking forms do when there is something.
 */
import { Change, type Collection } from '../../store/collections/collection.js';
import { integerArg, keyArg, oneOf, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NO_NUMKEYS, SYNTAX } from '../errors.js';
import { isSameKey } from '../keyspace/generic.js';
import { members } from '../sets/member-table.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted } from '../spec.js';
import {
  End,
  notifyPopped,
  notifyPushed,
  openList,
  push,
  readEnd,
  replyTaken,
  seekEnd,
  take,
} from './list-elements.js';

const NO_COUNT = 'ERR count should be greater than 0';

function lmove(context: Context): void {
  const from = readEnd(context, 3);
  const to = from === End.NONE ? End.NONE : readEnd(context, 4);
  if (to !== End.NONE) moveElement(context, from, to);
}

function rpopLpush(context: Context): void {
  moveElement(context, End.RIGHT, End.LEFT);
}

function moveElement(context: Context, from: End, to: End): void {
  if (!moveFromSource(context, from, to)) context.reply.nil();
}

/** Moves an element from the list in argument 1 to that in argument 2, or replies an error; false = there is none, nothing is replied. */
export function moveFromSource(context: Context, from: End, to: End): boolean {
  const source = openList(context, 0, context.keyHashes[0], 1);
  if (source === null) return true;
  if (!source.exists) return false;
  context.use();
  moveFrom(context, source, from, to);
  return true;
}

function moveFrom(context: Context, source: Collection, from: End, to: End): void {
  const { reply, keyHashes } = context;
  const target = isSameKey(context, 1, 2) ? source : openList(context, 1, keyHashes[1], 2);
  if (target === null) return;
  if (target.exists) context.use();
  seekEnd(source, from);
  source.load();
  members.clear();
  members.push(source.key, source.keyOffset, source.keyLength);
  if (!move(source, from, target, to)) return reply.error(NO_MEMORY);
  if (source !== target || from !== to) context.keyspace.countAsOne(keyHashes[0]);
  notifyPushed(context, to, 2);
  notifyPopped(context, source, from, 1);
  reply.bulk(members.bytes, 0, members.lengths[0]);
}

/** Moves the element that `members` has a copy of; false = no memory, nothing has changed. */
function move(source: Collection, from: End, target: Collection, to: End): boolean {
  // Round and round at one end: the list stays as it is.
  if (source === target && from === to) return true;
  if (push(target, to, members.bytes, 0, members.lengths[0]) !== Change.DONE) return false;
  seekEnd(source, from);
  if (source.remove() === Change.DONE) return true;
  seekEnd(target, to);
  target.remove();
  return false;
}

function lmpop(context: Context): void {
  if (readPop(context, 1) && !popFirst(context, popping.end, popping.count, true)) context.reply.nilArray();
}

/** What LMPOP and BLMPOP have been asked for. */
export const popping = { end: End.LEFT, count: 1 };

/** Reads it from the number of keys in argument `i` on; false after an error reply. */
export function readPop(context: Context, i: number): boolean {
  const keys = context.argInteger(i);
  if (!(keys > 0)) return fail(context, NO_NUMKEYS);
  const where = keys + i + 1;
  if (where >= context.argc) return fail(context, SYNTAX);
  popping.end = readEnd(context, where);
  if (popping.end === End.NONE) return false;
  let count = 0;
  for (let k = where + 1; k < context.argc; k += 2) {
    if (count > 0 || !context.argIs(k, 'COUNT') || k + 1 === context.argc) return fail(context, SYNTAX);
    count = context.argInteger(k + 1);
    if (!(count > 0)) return fail(context, NO_COUNT);
  }
  popping.count = Math.max(count, 1);
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/**
 * Replies the key and up to `count` elements, as an array or as the one there is, of the first of the command's lists that exists, or
 * an error. False = none does, nothing is replied.
 */
export function popFirst(context: Context, end: End, count: number, asArray: boolean): boolean {
  const { reply, keyCount, keyHashes, keyArguments } = context;
  for (let k = 0; k < keyCount; k++) {
    if (!context.mayUse(k)) continue;
    const argument = keyArguments[k];
    const list = openList(context, 0, keyHashes[k], argument);
    if (list === null) return true;
    if (!list.exists) continue;
    context.use();
    if (!take(list, end, Math.min(count, list.count))) return !fail(context, NO_MEMORY);
    notifyPopped(context, list, end, argument);
    reply.array(2);
    reply.bulk(context.input, context.argOffset(argument), context.argLength(argument));
    if (asArray) replyTaken(context);
    else reply.bulk(members.bytes, 0, members.lengths[0]);
    return true;
  }
  return false;
}

export const SIDES = [tokenArg('LEFT'), tokenArg('RIGHT')];
const COMMON = { categories: Category.LIST, group: 'list' } as const;
const MOVE = {
  ...COMMON,
  flags: Flag.WRITE | Flag.DENYOOM,
  keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE), keyAt(2, KeyUse.RW | KeyUse.INSERT)],
  complexity: 'O(1)',
} as const;
const SOURCE = keyArg('source');
const DESTINATION = keyArg('destination', { keySpec: 1 });

export const listMoves: readonly CommandSpec[] = [
  {
    ...MOVE,
    name: 'lmove',
    arity: 5,
    since: '6.2.0',
    summary: 'Moves an element from an end of a list to an end of another, or of the same, and returns it.',
    args: [SOURCE, DESTINATION, oneOf('wherefrom', SIDES), oneOf('whereto', SIDES)],
    run: lmove,
  },
  {
    ...MOVE,
    name: 'rpoplpush',
    arity: 3,
    since: '1.2.0',
    summary: 'Moves the last element of a list before the first of another, and returns it.',
    deprecated: { since: '6.2.0', replacedBy: '`LMOVE` with the `RIGHT` and `LEFT` arguments' },
    args: [SOURCE, DESTINATION],
    run: rpopLpush,
  },
  {
    ...COMMON,
    name: 'lmpop',
    arity: -4,
    flags: Flag.WRITE | Flag.MOVABLE_KEYS,
    keys: [keysCounted(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
    since: '7.0.0',
    summary: 'Removes elements from the first of several lists that has some, and returns them.',
    complexity: 'O(N+M) for N keys and M elements returned',
    args: [
      integerArg('numkeys'),
      keyArg('key', { multiple: true }),
      oneOf('where', SIDES),
      integerArg('count', { token: 'COUNT', optional: true }),
    ],
    run: lmpop,
  },
];
