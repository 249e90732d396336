/**
 * List commands that wait: BLPOP BRPOP BLMPOP BLMOVE BRPOPLPUSH. A handler runs again for a waiting client whenever one of its keys has
 * changed (messaging/blocked).
 */
import { ItemType } from '../../layout/item.js';
import { doubleArg, integerArg, keyArg, oneOf } from '../arguments.js';
import type { Context } from '../context.js';
import { WaitReply } from '../messaging/blocked.js';
import { timeoutSecondsArg } from '../messaging/wait.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted, keysFrom } from '../spec.js';
import { End, readEnd } from './list-elements.js';
import { moveFromSource, popFirst, popping, readPop, SIDES } from './list-move.js';

function popOrWait(context: Context, end: End, count: number, asArray: boolean, timeoutArgument: number): void {
  const timeoutMs = timeoutSecondsArg(context, timeoutArgument);
  if (timeoutMs < 0 || popFirst(context, end, count, asArray)) return;
  context.block({ type: ItemType.LIST, timeoutMs, onTimeout: WaitReply.NIL_ARRAY });
}

function blpop(context: Context): void {
  popOrWait(context, End.LEFT, 1, false, context.argc - 1);
}

function brpop(context: Context): void {
  popOrWait(context, End.RIGHT, 1, false, context.argc - 1);
}

function blmpop(context: Context): void {
  if (readPop(context, 2)) popOrWait(context, popping.end, popping.count, true, 1);
}

function blmove(context: Context): void {
  const from = readEnd(context, 3);
  const to = from === End.NONE ? End.NONE : readEnd(context, 4);
  if (to !== End.NONE) moveOrWait(context, from, to, 5);
}

function brpopLpush(context: Context): void {
  moveOrWait(context, End.RIGHT, End.LEFT, 3);
}

function moveOrWait(context: Context, from: End, to: End, timeoutArgument: number): void {
  const timeoutMs = timeoutSecondsArg(context, timeoutArgument);
  if (timeoutMs < 0) return;
  // A source that has become something else leaves the client waiting; a destination that has is an error.
  const mayMove = !context.isRetry || isListOrNothing(context);
  if (mayMove && moveFromSource(context, from, to)) return;
  // At once it is no element, after a wait no array, as in Redis.
  if (!context.isRetry && !context.canBlock) return context.reply.nil();
  context.block({
    type: ItemType.LIST,
    timeoutMs,
    onTimeout: WaitReply.NIL_ARRAY,
    keys: [0],
    alone: true,
    untilGone: true,
  });
}

function isListOrNothing(context: Context): boolean {
  return !context.find(context.keyHashes[0], 1) || context.keyspace.type === ItemType.LIST;
}

const COMMON = { categories: Category.LIST, group: 'list' } as const;
const TIMEOUT = doubleArg('timeout');
const POP = {
  ...COMMON,
  arity: -3,
  flags: Flag.WRITE | Flag.BLOCKING,
  keys: [keysFrom(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE, -2)],
  since: '2.0.0',
  complexity: 'O(N) for N keys',
  history: [['6.0.0', 'The time-out is a double.']] as const,
  args: [keyArg('key', { multiple: true }), TIMEOUT],
} as const;
const MOVE = {
  ...COMMON,
  flags: Flag.WRITE | Flag.DENYOOM | Flag.BLOCKING,
  keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE), keyAt(2, KeyUse.RW | KeyUse.INSERT)],
  complexity: 'O(1)',
} as const;
const SOURCE = keyArg('source');
const DESTINATION = keyArg('destination', { keySpec: 1 });

export const blockingLists: readonly CommandSpec[] = [
  {
    ...POP,
    name: 'blpop',
    summary: 'Removes the first element of the first of several lists that has some; waits for one.',
    run: blpop,
  },
  {
    ...POP,
    name: 'brpop',
    summary: 'Removes the last element of the first of several lists that has some; waits for one.',
    run: brpop,
  },
  {
    ...COMMON,
    name: 'blmpop',
    arity: -5,
    flags: Flag.WRITE | Flag.BLOCKING | Flag.MOVABLE_KEYS,
    keys: [keysCounted(2, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
    since: '7.0.0',
    summary: 'Removes elements from the first of several lists that has some; waits for one.',
    complexity: 'O(N+M) for N keys and M elements returned',
    args: [
      TIMEOUT,
      integerArg('numkeys'),
      keyArg('key', { multiple: true }),
      oneOf('where', SIDES),
      integerArg('count', { token: 'COUNT', optional: true }),
    ],
    run: blmpop,
  },
  {
    ...MOVE,
    name: 'blmove',
    arity: 6,
    since: '6.2.0',
    summary: 'Moves an element from an end of a list to an end of another; waits for one.',
    args: [SOURCE, DESTINATION, oneOf('wherefrom', SIDES), oneOf('whereto', SIDES), TIMEOUT],
    run: blmove,
  },
  {
    ...MOVE,
    name: 'brpoplpush',
    arity: 4,
    since: '2.2.0',
    summary: 'Moves the last element of a list before the first of another; waits for one.',
    history: [['6.0.0', 'The time-out is a double.']],
    deprecated: { since: '6.2.0', replacedBy: '`BLMOVE` with the `RIGHT` and `LEFT` arguments' },
    args: [SOURCE, DESTINATION, TIMEOUT],
    run: brpopLpush,
  },
];
