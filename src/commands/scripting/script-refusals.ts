/**
 * Why a script may not call a command: Redis's refusals, without the checks that only connections have.
 */
import { refusedInScript } from '../acl/authorize.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { writeRefusal } from '../effects.js';
import { NO_MEMORY } from '../errors.js';
import { WRITES_DENIED } from '../persistence/disk-error.js';
import { Flag } from '../spec.js';
import type { ScriptRun } from './script-engine.js';

/** The error for the bound request of a script; '' when it may run. */
export function refusalInScript(context: Context, command: Command, run: ScriptRun): string {
  if (!command.accepts(context.argc) || command.run === null) {
    return 'ERR Wrong number of args calling Redis command from script';
  }
  const asksOthers = command.has(Flag.ASKS) && (context.environment.control?.workerCount ?? 1) !== 1;
  const isDenied = asksOthers || (command.flags & (Flag.NOSCRIPT | Flag.NO_MULTI)) !== 0;
  if (isDenied && !(run.mayDebug && command.spec.name === 'debug')) {
    return 'ERR This Redis command is not allowed from script';
  }
  if (run.isReadOnly && (command.flags & (Flag.WRITE | Flag.MAY_REPLICATE)) !== 0) {
    return 'ERR Write commands are not allowed from read-only scripts.';
  }
  if (run.isDeniedWrites && command.has(Flag.WRITE)) return WRITES_DENIED;
  if (run.isShortOfMemory && !run.hasWritten && command.has(Flag.DENYOOM)) return NO_MEMORY;
  if (context.client.unrestrictedAt !== context.environment.users.epoch) {
    const refused = refusedInScript(context, command, run.outer.context.client);
    if (refused !== null) return refused;
  }
  const { effects } = context.keyspace.feed;
  return effects === null ? '' : writeRefusal(effects, context, command);
}
