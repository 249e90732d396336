/**
 * Transaction commands: MULTI EXEC DISCARD WATCH UNWATCH.
 *
 * The executor queues commands and runs the queue (it owns the locks); the handlers here change the client's state only.
 * Invariant: client.transaction is set exactly between MULTI and EXEC, DISCARD or RESET.
 */
import { Bytes } from '../../layout/bytes.js';
import { keyArg } from '../arguments.js';
import { charge, endTransaction, endWatch, WATCHED_KEY_BYTES } from '../clients/client-memory.js';
import type { Context } from '../context.js';
import { Category, type CommandSpec, Flag, KeyUse, keysFrom } from '../spec.js';

const TRANSACTION = Flag.NOSCRIPT | Flag.LOADING | Flag.STALE | Flag.FAST | Flag.ALLOW_BUSY;

function multi(context: Context): void {
  if (context.client.transaction !== null) return context.reply.error('ERR MULTI calls can not be nested');
  const transaction = context.executor.transactions.take();
  context.client.transaction = transaction;
  charge(context.client, context.environment.counters.values, transaction.memoryBytes);
  context.reply.ok();
}

function exec(context: Context): void {
  if (context.client.transaction === null) return context.reply.error('ERR EXEC without MULTI');
  context.executor.executeTransaction();
}

function discard(context: Context): void {
  const { client } = context;
  if (client.transaction === null) return context.reply.error('ERR DISCARD without MULTI');
  endTransaction(client, context.environment.counters.values);
  context.reply.ok();
}

/** Keys are locked: each one's state is remembered, by a signature that changes whenever the key does. */
function watch(context: Context): void {
  const { client, keyspace } = context;
  if (client.transaction !== null) return context.reply.error('ERR WATCH inside MULTI is not allowed');
  client.watched ??= new Map();
  for (let k = 0; k < context.keyCount; k++) {
    const argument = context.keyArguments[k];
    const id = `${client.db}:${context.argString(argument)}`;
    if (client.watched.has(id)) continue;
    const key = Bytes.from(context.argBytes(argument));
    const signature = keyspace.watchSignature(context.keyHashes[k], client.db, key, 0, key.length);
    charge(client, context.environment.counters.values, WATCHED_KEY_BYTES + key.length);
    client.watched.set(id, { db: client.db, physical: keyspace.physical(client.db), key, signature });
  }
  context.reply.ok();
}

function unwatch(context: Context): void {
  endWatch(context.client, context.environment.counters.values);
  context.reply.ok();
}

export const transactions: readonly CommandSpec[] = [
  {
    name: 'multi',
    arity: 1,
    flags: TRANSACTION | Flag.NOT_QUEUED,
    categories: Category.TRANSACTION,
    since: '1.2.0',
    group: 'transactions',
    summary: 'Begins a transaction: the commands that follow are queued until EXEC.',
    complexity: 'O(1)',
    run: multi,
  },
  {
    name: 'exec',
    arity: 1,
    flags: Flag.NOSCRIPT | Flag.LOADING | Flag.STALE | Flag.SKIP_SLOWLOG | Flag.NOT_QUEUED,
    categories: Category.TRANSACTION,
    since: '1.2.0',
    group: 'transactions',
    summary: 'Runs the queued commands as one atomic step, unless a watched key has changed.',
    complexity: 'Depends on the commands in the transaction',
    run: exec,
  },
  {
    name: 'discard',
    arity: 1,
    flags: TRANSACTION | Flag.NOT_QUEUED,
    categories: Category.TRANSACTION,
    since: '2.0.0',
    group: 'transactions',
    summary: 'Ends a transaction without running its commands.',
    complexity: 'O(N), N being the number of queued commands',
    run: discard,
  },
  {
    name: 'watch',
    arity: -2,
    flags: TRANSACTION | Flag.NOT_QUEUED,
    categories: Category.TRANSACTION,
    keys: [keysFrom(1, KeyUse.RO)],
    since: '2.2.0',
    group: 'transactions',
    summary: 'Makes the next EXEC depend on these keys being unchanged until then.',
    complexity: 'O(1) for each key',
    args: [keyArg('key', { multiple: true })],
    run: watch,
  },
  {
    name: 'unwatch',
    arity: 1,
    flags: TRANSACTION,
    categories: Category.TRANSACTION,
    since: '2.2.0',
    group: 'transactions',
    summary: 'Forgets all watched keys of the connection.',
    complexity: 'O(1)',
    run: unwatch,
  },
];
