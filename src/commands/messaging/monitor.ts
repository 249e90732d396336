/**
 * MONITOR: from here on the connection gets a line for every command that any worker executes (messaging/monitors).
 */
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';
import { Category, type CommandSpec, Flag } from '../spec.js';

function monitor(context: Context): void {
  const { client, reply, executor } = context;
  if (!executor.hub.listen()) return reply.error(NO_MEMORY);
  executor.hub.monitors.add(client);
  executor.hub.attentionChanged(client);
  reply.ok();
}

export const monitorCommands: readonly CommandSpec[] = [
  {
    name: 'monitor',
    arity: 1,
    flags: Flag.ADMIN | Flag.NOSCRIPT | Flag.LOADING | Flag.STALE,
    categories: Category.NONE,
    since: '1.0.0',
    group: 'server',
    summary: 'Shows every command that the server executes, as it does.',
    complexity: 'O(1)',
    run: monitor,
  },
];
