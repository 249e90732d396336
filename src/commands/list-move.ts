/**
 * Elements from list to list, or from the first of several: LMOVE RPOPLPUSH LMPOP.
 */
import { Change, type Collection } from '../store/collections/collection.js';
import { integerArg, keyArg, oneOf, tokenArg } from './arguments.js';
import type { Context } from './context.js';
import { NO_MEMORY, NO_NUMKEYS, SYNTAX } from './errors.js';
import { isSameKey } from './generic.js';
import { End, openList, push, readEnd, replyTaken, seekEnd, take } from './list-elements.js';
import { members } from './member-table.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted } from './spec.js';

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
  const { reply, keyHashes } = context;
  const source = openList(context, 0, keyHashes[0], 1);
  if (source === null) return;
  if (!source.exists) return reply.nil();
  context.use();
  const target = isSameKey(context, 1, 2) ? source : openList(context, 1, keyHashes[1], 2);
  if (target === null) return;
  if (target.exists) context.use();
  seekEnd(source, from);
  source.load();
  members.clear();
  members.push(source.key, source.keyOffset, source.keyLength);
  if (move(source, from, target, to)) reply.bulk(members.bytes, 0, members.lengths[0]);
  else reply.error(NO_MEMORY);
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
  const { reply } = context;
  const keys = context.argInteger(1);
  if (!(keys > 0)) return reply.error(NO_NUMKEYS);
  const where = keys + 2;
  if (where >= context.argc) return reply.error(SYNTAX);
  const end = readEnd(context, where);
  if (end === End.NONE) return;
  let count = 0;
  for (let i = where + 1; i < context.argc; i += 2) {
    if (count > 0 || !context.argIs(i, 'COUNT') || i + 1 === context.argc) return reply.error(SYNTAX);
    count = context.argInteger(i + 1);
    if (!(count > 0)) return reply.error(NO_COUNT);
  }
  popFirst(context, end, Math.max(count, 1));
}

/** Replies the key and up to `count` elements of the first of the command's lists that exists. */
function popFirst(context: Context, end: End, count: number): void {
  const { reply, keyCount, keyHashes, keyArguments } = context;
  for (let k = 0; k < keyCount; k++) {
    const argument = keyArguments[k];
    const list = openList(context, 0, keyHashes[k], argument);
    if (list === null) return;
    if (!list.exists) continue;
    context.use();
    if (!take(list, end, Math.min(count, list.count))) return reply.error(NO_MEMORY);
    reply.array(2);
    reply.bulk(context.input, context.argOffset(argument), context.argLength(argument));
    return replyTaken(context);
  }
  reply.nilArray();
}

const SIDES = [tokenArg('LEFT'), tokenArg('RIGHT')];
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
