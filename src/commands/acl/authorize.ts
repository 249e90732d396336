/**
 * The slow side of the rights check: for clients that have not logged in, and for users who may not do everything.
 *
 * The executor comes here when client.unrestrictedAt is not Users.epoch. Invariant: what is refused is counted, logged for
 * ACL LOG, and answered with exactly one error.
 */
import { Counter } from '../../layout/counters.js';
import type { Client } from '../clients/client.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import type { Environment } from '../environment.js';
import { NO_AUTH } from '../errors.js';
import { Flag } from '../spec.js';
import type { AccessContext, AccessReason } from './access.js';
import { type Decision, decide, Verdict } from './check.js';
import type { User } from './user.js';

/** True when the bound request may go on; else an error has been written. */
export function authorize(context: Context, command: Command): boolean {
  const { client, executor } = context;
  if (!isLoggedIn(context.environment, client)) {
    if (command.has(Flag.NO_AUTH)) return true;
    executor.reject(command, NO_AUTH);
    return false;
  }
  if (mayDoEverything(context.environment, client)) return true;
  // Refused for another reason later, which comes first in Redis.
  if (client.transaction !== null && command.has(Flag.NO_MULTI)) return true;
  const decision = decide(client.user, command, context);
  if (decision.verdict === Verdict.ALLOWED) return true;
  recordRefusal(context, command, decision, client.transaction === null ? 'toplevel' : 'multi');
  executor.reject(command, `NOPERM ${refusalText(context, client.user, command, decision)}`);
  return false;
}

/** A blocked client's request, after its user's rights have changed. Null = it may go on waiting, else the reply. */
export function refusedWhileBlocked(context: Context, command: Command): string | null {
  const { client } = context;
  if (mayDoEverything(context.environment, client)) return null;
  const decision = decide(client.user, command, context);
  if (decision.verdict === Verdict.ALLOWED) return null;
  recordRefusal(context, command, decision, 'toplevel');
  return `NOPERM ${refusalText(context, client.user, command, decision)}`;
}

/** EXEC: the rights may have changed since the command was queued. Null = it may run, else the reply. */
export function refusedInTransaction(context: Context, command: Command): string | null {
  const { client } = context;
  if (mayDoEverything(context.environment, client)) return null;
  const decision = decide(client.user, command, context);
  if (decision.verdict === Verdict.ALLOWED) return null;
  recordRefusal(context, command, decision, 'multi');
  return (
    'NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. ' +
    `This command is no longer allowed for the following reason: ${EXEC_REASONS[decision.verdict]}`
  );
}

/** A script's command: it may do what `caller` may. Null = it may run, else the reply. */
export function refusedInScript(context: Context, command: Command, caller: Client): string | null {
  const { user } = context.client;
  if (user.isUnrestricted) return null;
  const decision = decide(user, command, context);
  if (decision.verdict === Verdict.ALLOWED) return null;
  recordRefusal(context, command, decision, 'lua', caller);
  return `ERR ACL failure in script: ${refusalText(context, user, command, decision)}`;
}

/** True when commands may run at all: the default user needs no password, or the client has given one. */
export function isLoggedIn(environment: Environment, client: Client): boolean {
  return client.authenticated || !environment.users.needAuthentication;
}

/** True, and remembered until users change, when the client is logged in and nothing is refused to its user. */
export function mayDoEverything(environment: Environment, client: Client): boolean {
  const { epoch } = environment.users;
  if (client.unrestrictedAt === epoch) return true;
  if (!client.user.isUnrestricted || !isLoggedIn(environment, client)) return false;
  client.unrestrictedAt = epoch;
  return true;
}

/** Counts a refusal and hands it to ACL LOG. */
export function recordRefusal(
  context: Context,
  command: Command,
  { verdict, argument }: Readonly<Decision>,
  where: AccessContext,
  asker: Client = context.client,
): void {
  const { values } = context.environment.counters;
  if (verdict === Verdict.COMMAND) values[Counter.deniedCommands]++;
  else if (verdict === Verdict.KEY) values[Counter.deniedKeys]++;
  else values[Counter.deniedChannels]++;
  context.environment.control?.recordAccess(asker, {
    reason: REASONS[verdict],
    context: where,
    object: verdict === Verdict.COMMAND ? command.fullName : context.argString(argument),
    username: context.client.user.name,
  });
}

function refusalText(context: Context, user: User, command: Command, decision: Readonly<Decision>): string {
  if (decision.verdict === Verdict.KEY) return 'No permissions to access a key';
  if (decision.verdict === Verdict.CHANNEL) return 'No permissions to access a channel';
  return fullRefusalText(context, user, command, decision);
}

/** With the names in it: for who may know them (ACL DRYRUN). */
export function fullRefusalText(
  context: Context,
  user: User,
  command: Command,
  { verdict, argument }: Readonly<Decision>,
): string {
  const start = `User ${user.name} has no permissions to`;
  if (verdict === Verdict.COMMAND) return `${start} run the '${command.fullName}' command`;
  return `${start} access the '${context.argString(argument)}' ${REASONS[verdict]}`;
}

const REASONS: readonly AccessReason[] = ['auth', 'command', 'key', 'channel'];
const EXEC_REASONS = [
  '',
  'no permission to execute the command or subcommand',
  'no permission to touch the specified keys',
  'no permission to access one of the channels used as arguments',
];
