/**
 * Commands and the effect log of a durable pool: which command is its own effect, and when writes are refused.
 *
 * The store notes what changes by itself (store/effects); what stands here only spares it writing down a large value for a small change.
 */
import { getSystemErrorMap } from 'node:util';
import type { Effects } from '../store/effects/effects.js';
import type { Command } from './command.js';
import type { Context } from './context.js';
import { Flag } from './spec.js';

/** Before a command runs. A value that was received straight into the store does not stand among its words. */
export function beginEffect(effects: Effects, context: Context, command: Command): void {
  const { repeatable } = command;
  if (repeatable === false || context.largeStaged || (repeatable !== true && !repeatable(context))) return;
  effects.begin(context.keyHash, context.client.db);
}

export function endEffect(effects: Effects, context: Context): void {
  effects.end(context.client.db, context.input, context.args, context.first, context.argc);
}

/** The error for a command that writes while the log cannot be written; '' = it may run. */
export function writeRefusal({ refusal }: Effects, { client }: Context, command: Command): string {
  if (refusal === 0) return '';
  const flags = command.spec.name === 'exec' ? (client.transaction?.flags ?? 0) : command.flags;
  return (flags & Flag.WRITE) === 0 ? '' : `MISCONF Errors writing to the AOF file: ${textOf(refusal)}`;
}

/** What the C library says of an errno. */
export function textOf(errno: number): string {
  const text = getSystemErrorMap().get(-errno)?.[1] ?? `error ${errno}`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** INFO persistence of a durable pool; the numbers are counts modulo 2^32. */
export function durableFields({ keyspace }: Context): readonly (readonly [name: string, value: number])[] {
  const { effects } = keyspace.feed;
  if (effects === null) return [];
  const { nextNumber, persistentNumber } = effects;
  return [
    ['durable_records', nextNumber >>> 0],
    ['durable_pending_records', (nextNumber - persistentNumber) >>> 0],
    ['durable_in_doubt', effects.isInDoubt ? 1 : 0],
  ];
}
