/**
 * What holds for clients with an Attention bit: which commands are refused to them, and what follows from one that has run.
 *
 * The executor asks here only when a bit is set, or when somebody monitors.
 */
import { Super } from '../../layout/superblock.js';
import { Attention, type Client } from '../clients/client.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { Category, Flag } from '../spec.js';

/** Flags of commands that MONITOR does not show; and of those that touch keys. */
const UNMONITORED = (Flag.ADMIN | Flag.SKIP_MONITOR) as Flag;
const KEYSPACE = (Flag.READONLY | Flag.WRITE | Flag.MAY_REPLICATE) as Flag;

const FOR_SUBSCRIBERS = new Set([
  'ping',
  'quit',
  'reset',
  'subscribe',
  'psubscribe',
  'ssubscribe',
  'unsubscribe',
  'punsubscribe',
  'sunsubscribe',
]);

/** The error for a command that this client may not send: subscribers of RESP2 and monitors may do little else. '' = it may. */
export function refusal(client: Client, command: Command): string {
  const { attention, protocol } = client;
  if ((attention & Attention.SUBSCRIBED) !== 0 && protocol === 2 && !FOR_SUBSCRIBERS.has(command.fullName)) {
    return `ERR Can't execute '${command.fullName}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`;
  }
  if ((attention & Attention.MONITOR) !== 0 && command.has(KEYSPACE))
    return "ERR Replica can't interact with the keyspace";
  return '';
}

/** CLIENT CACHING holds for one command, or one transaction: this one was it. */
export function endCaching({ tracking, transaction }: Client, command: Command): void {
  if (tracking !== null && transaction === null && command.parent?.spec.name !== 'client') tracking.caching = false;
}

/** True when the keys that the command has read must be remembered for its client. Of a script's keys those count that it reads. */
export function isTracked(client: Client, command: Command): boolean {
  if ((client.attention & Attention.TRACKING) === 0) return false;
  return command.has(Flag.READONLY) && (command.categories & Category.SCRIPTING) === 0;
}

/** Somebody monitors, and the bound request has run. */
export function tellMonitors(context: Context, command: Command): void {
  if (!command.has(UNMONITORED)) context.executor.hub.monitors.tell(context);
}

/** A script is about to run: its line comes before those of its commands. */
export function tellMonitorsOfScript(context: Context): void {
  if (context.keyspace.memory.ctl[Super.MONITORS_WORD] !== 0) context.executor.hub.monitors.tell(context);
}
