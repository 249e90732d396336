/**
 * Requests that would change a key which a long one reads over several turns (store/holds): they wait, and are executed later as if they had
 * just come.
 *
 * Invariant: nothing of such a request is done yet, and its client is fed nothing more until it is tried again.
 */
import { Counter } from '../layout/counters.js';
import { ReplyMode } from './clients/client.js';
import type { Context } from './context.js';
import { extractKeys } from './keys.js';
import { Flag, KeyUse } from './spec.js';
import type { Transaction } from './transactions/transaction.js';

/** True when the bound request may wait: its client can be told to, and it is no long one itself. */
export function mayHoldBack(context: Context): boolean {
  const { client } = context;
  if (client.work !== null || context.largeStaged || client.replyMode !== ReplyMode.ON) return false;
  return !context.isInScript && context.environment.control !== null;
}

/** True when one of the request's keys that it does more to than read is held; they have been hashed. */
export function changesHeld({ keyspace, keyHashes, keyUses, keyCount }: Context): boolean {
  for (let k = 0; k < keyCount; k++) {
    if ((keyUses[k] & KeyUse.RO) === 0 && keyspace.holds.isHeld(keyHashes[k])) return true;
  }
  return false;
}

/** The same for what EXEC, the bound request, is about to run; false too when it may not wait. */
export function execIsHeld(context: Context): boolean {
  const { transaction } = context.client;
  return transaction !== null && mayHoldBack(context) && transactionChangesHeld(context, transaction);
}

function transactionChangesHeld(context: Context, transaction: Transaction): boolean {
  const { client, input, argPairs, argPairsFrom, argc, keyspace } = context;
  let isHeld = false;
  for (let i = 0; i < transaction.count && !isHeld; i++) {
    const command = transaction.commands[i];
    if (!command.has(Flag.WRITE)) continue;
    context.bind(client, transaction.bytes, transaction.args, transaction.start(i), transaction.argc(i));
    const count = extractKeys(context, command);
    for (let k = 0; k < count; k++) {
      const argument = context.keyArguments[k];
      const length = context.argLength(argument);
      context.keyHashes[k] = keyspace.hash(client.db, context.input, context.argOffset(argument), length);
    }
    isHeld = changesHeld(context);
  }
  context.bind(client, input, argPairs, argPairsFrom, argc);
  return isHeld;
}

export function holdBack(context: Context): void {
  comeAgain(context);
  context.environment.control!.waitForHold(context.client);
}

/** The bound request is not consumed: once its client is resumed, it is executed as if it had just come. */
export function comeAgain({ client, environment }: Context): void {
  client.commands--;
  environment.counters.values[Counter.commands]--;
  client.isHeldBack = true;
}
