/**
 * Sorted set commands that wait: BZPOPMIN BZPOPMAX BZMPOP. A handler runs again for a waiting client whenever one of its keys has changed
 * (messaging/blocked).
 */
import { ItemType } from '../../layout/item.js';
import { doubleArg, integerArg, keyArg, oneOf, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { WaitReply } from '../messaging/blocked.js';
import { timeoutSecondsArg } from '../messaging/wait.js';
import { Category, type CommandSpec, Flag, KeyUse, keysCounted, keysFrom } from '../spec.js';
import { popFirst, popping, readPop } from './sorted-set-pop.js';

function popOrWait(context: Context, isMax: boolean, count: number, asArray: boolean, timeoutArgument: number): void {
  const timeoutMs = timeoutSecondsArg(context, timeoutArgument);
  if (timeoutMs < 0 || popFirst(context, isMax, count, asArray)) return;
  context.block({ type: ItemType.ZSET, timeoutMs, onTimeout: WaitReply.NIL_ARRAY });
}

function bzpopMin(context: Context): void {
  popOrWait(context, false, 1, false, context.argc - 1);
}

function bzpopMax(context: Context): void {
  popOrWait(context, true, 1, false, context.argc - 1);
}

function bzmpop(context: Context): void {
  if (readPop(context, 2)) popOrWait(context, popping.isMax, popping.count, true, 1);
}

const COMMON = { categories: Category.SORTEDSET, group: 'sorted-set' } as const;
const TIMEOUT = doubleArg('timeout');
const POP = {
  ...COMMON,
  arity: -3,
  flags: Flag.WRITE | Flag.BLOCKING | Flag.FAST,
  keys: [keysFrom(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE, -2)],
  since: '5.0.0',
  complexity: 'O(K)+O(log(N)) for K keys and N members of the sorted set',
  history: [['6.0.0', 'The time-out is a double.']] as const,
  args: [keyArg('key', { multiple: true }), TIMEOUT],
} as const;

export const blockingSortedSets: readonly CommandSpec[] = [
  {
    ...POP,
    name: 'bzpopmin',
    summary: 'Removes the member with the lowest score from the first sorted set that has some; waits for one.',
    run: bzpopMin,
  },
  {
    ...POP,
    name: 'bzpopmax',
    summary: 'Removes the member with the highest score from the first sorted set that has some; waits for one.',
    run: bzpopMax,
  },
  {
    ...COMMON,
    name: 'bzmpop',
    arity: -5,
    flags: Flag.WRITE | Flag.BLOCKING | Flag.MOVABLE_KEYS,
    keys: [keysCounted(2, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
    since: '7.0.0',
    summary: 'Removes members from an end of the first sorted set that has some; waits for one.',
    complexity: 'O(K)+O(M*log(N)) for K keys and M members removed from N',
    args: [
      TIMEOUT,
      integerArg('numkeys'),
      keyArg('key', { multiple: true }),
      oneOf('where', [tokenArg('MIN'), tokenArg('MAX')]),
      integerArg('count', { token: 'COUNT', optional: true }),
    ],
    run: bzmpop,
  },
];
