/**
 * WAIT and WAITAOF, and the time-outs of all commands that block.
 *
 * There are no replicas and there is no append-only file, so nothing but the time-out ends a wait.
 */
import { ItemType } from '../../layout/item.js';
import { integerArg } from '../arguments.js';
import type { Context } from '../context.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { WaitReply } from './blocked.js';

const NEGATIVE = 'ERR timeout is negative';
const OUT_OF_RANGE = 'ERR timeout is out of range';
const TIMEOUT_MS_MAX = Number.MAX_SAFE_INTEGER;

/** The time-out in argument `i`, in seconds with a fraction: as whole milliseconds, 0 = for ever; -1 after an error reply. */
export function timeoutSecondsArg(context: Context, i: number): number {
  const seconds = context.argDouble(i);
  if (Number.isNaN(seconds)) return refuse(context, 'ERR timeout is not a float or out of range');
  return checked(context, Math.ceil(seconds * 1000));
}

/** The same for one in whole milliseconds (XREAD BLOCK, WAIT). */
export function timeoutMsArg(context: Context, i: number): number {
  const milliseconds = context.argInteger(i);
  if (Number.isNaN(milliseconds)) return refuse(context, 'ERR timeout is not an integer or out of range');
  return checked(context, milliseconds);
}

function checked(context: Context, milliseconds: number): number {
  if (milliseconds < 0) return refuse(context, NEGATIVE);
  if (milliseconds > TIMEOUT_MS_MAX - context.nowMs) return refuse(context, OUT_OF_RANGE);
  return milliseconds === 0 ? 0 : milliseconds;
}

function refuse(context: Context, text: string): -1 {
  context.reply.error(text);
  return -1;
}

function wait(context: Context): void {
  const replicas = context.argInteger(1);
  if (Number.isNaN(replicas)) return context.reply.error('ERR value is not an integer or out of range');
  const timeoutMs = timeoutMsArg(context, 2);
  if (timeoutMs < 0) return;
  if (replicas <= 0) return context.reply.integer(0);
  context.block({ type: ItemType.NONE, timeoutMs, onTimeout: WaitReply.ZERO });
}

export const waits: readonly CommandSpec[] = [
  {
    name: 'wait',
    arity: 3,
    flags: Flag.BLOCKING,
    categories: Category.CONNECTION,
    since: '3.0.0',
    group: 'generic',
    summary: 'Waits until the writes of this connection have reached so many replicas, or the time-out.',
    complexity: 'O(1)',
    args: [integerArg('numreplicas'), integerArg('timeout')],
    tips: ['request_policy:all_shards', 'response_policy:agg_min'],
    run: wait,
  },
];
