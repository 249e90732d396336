/**
 * What the commands of a transaction ask of other workers (CLIENT LIST, SLOWLOG ...): none can wait for an answer while it runs, so EXEC asks
 * before.
 *
 * The commands are shown to a context that notes their questions and does nothing else. When the others have answered, EXEC comes again as if
 * it had just come, and its commands find the answers; this worker's own are those of the moment. Invariant: a transaction asks once, and not
 * at all when a key that its client watches has changed already.
 */
import { Bytes } from '../../layout/bytes.js';
import { Send } from '../../native/addon.js';
import { MAX_RESERVE_BYTES, Output } from '../../protocol/output.js';
import { Reply } from '../../protocol/resp/reply.js';
import { Context } from '../context.js';
import type { WorkerQuestion, WorkerTopics } from '../control.js';
import { comeAgain, execIsHeld, holdBack } from '../hold-back.js';
import { Flag } from '../spec.js';
import type { Transaction } from './transaction.js';
import { areUnchanged, hashWatched } from './watched-key.js';

/** Commands run here say what they would ask. What they reply (they may refuse their words) reaches nobody. */
class Asking extends Context {
  asked: WorkerQuestion | null = null;

  override askWorkers<T extends keyof WorkerTopics>(topic: T, question: WorkerTopics[T][0]): void {
    this.asked = { topic, question };
  }
}

/** EXEC, the bound request, is not to run yet: it will come again. */
export function execWaits(context: Context): boolean {
  if (!context.keyspace.holds.any || !execIsHeld(context)) return asksFirst(context);
  holdBack(context);
  return true;
}

/** True = other workers are being asked. */
function asksFirst(context: Context): boolean {
  const { client, environment } = context;
  const { control } = environment;
  const transaction = client.transaction as Transaction;
  if ((transaction.flags & Flag.ASKS) === 0 || transaction.answers !== null || transaction.broken) return false;
  if (control === null || control.workerCount === 1 || hasWatchedInVain(context)) return false;
  const questions = questionsOf(context, transaction);
  if (questions.size === 0) return false;
  comeAgain(context);
  control.askOthers(client, [...questions.values()], (answers) => {
    const commands = [...questions.keys()];
    transaction.answers = new Map(commands.map((command, i) => [command, answers[i]]));
  });
  return true;
}

/** A key under WATCH has changed, so that EXEC will do nothing. */
function hasWatchedInVain({ client, keyspace }: Context): boolean {
  const { watched } = client;
  if (watched === null) return false;
  const { lockSet } = keyspace;
  lockSet.clear();
  for (const key of watched.values()) lockSet.add(hashWatched(keyspace, key));
  lockSet.acquire();
  const isInVain = !areUnchanged(keyspace, watched);
  lockSet.release();
  return isInVain;
}

/** By the number of the command that asks. */
function questionsOf(context: Context, transaction: Transaction): Map<number, WorkerQuestion> {
  const output = new Output(Bytes.allocate(2 * MAX_RESERVE_BYTES), new Int32Array(Send.WORDS), () => undefined, false);
  const asking = new Asking(context.environment, new Reply(output), context.executor);
  const questions = new Map<number, WorkerQuestion>();
  for (let i = 0; i < transaction.count; i++) {
    const command = transaction.commands[i];
    if (!command.has(Flag.ASKS)) continue;
    asking.bind(context.client, transaction.bytes, transaction.args, transaction.start(i), transaction.argc(i));
    asking.command = command;
    asking.asked = null;
    output.restart();
    (command.spec.asks ?? command.run!)(asking);
    if (asking.asked !== null) questions.set(i, asking.asked);
  }
  return questions;
}
