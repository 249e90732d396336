/** Checkpoints and transactions at moments that matter, one by one; random ones: replay.test. */
import { expect, it } from 'vitest';
import { contentOf, LoggedStore, replayFiles } from '../../../test/helpers/logged-store.js';
import type { Context } from '../../commands/context.js';
import { hashes } from '../../commands/hashes/hash.js';
import { lists } from '../../commands/lists/list.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../../commands/spec.js';
import { strings } from '../../commands/strings/string.js';
import { CommandTable } from '../../commands/table.js';
import { transactions } from '../../commands/transactions/transactions.js';
import type { Keyspace } from '../../store/keyspace.js';

/** Evicts its key as if room had been needed while it ran. */
function evict(context: Context): void {
  const { keyspace } = context;
  if (context.findKey()) keyspace.eviction.evict(keyspace.page, keyspace.unit);
  context.reply.ok();
}

const eviction: readonly CommandSpec[] = [
  {
    name: 'evict',
    arity: 2,
    flags: Flag.WRITE,
    categories: Category.KEYSPACE,
    keys: [keyAt(1, KeyUse.RM)],
    since: '1.0.0',
    group: 'generic',
    summary: 'Evicts a key.',
    complexity: 'O(1)',
    run: evict,
  },
];

function transaction({ session }: LoggedStore, ...requests: readonly string[]): void {
  for (const request of ['MULTI', ...requests]) expect(session.send(request)).toMatch(/^\+(OK|QUEUED)/);
  expect(session.send('EXEC')).toMatch(/^\*/);
}

function shown(keyspace: Keyspace, keys: readonly string[]): Record<string, string> {
  return contentOf(keyspace, keys);
}

it('a checkpoint is not read before the log holds all that it shows: no transaction is there in part', async () => {
  const store = new LoggedStore();
  const { writer } = store;
  const step = (): void => transaction(store, 'INCR counter', 'RPUSH list element');
  const keys = ['counter', 'list'];
  const before = Array.from({ length: 3 }, () => {
    step();
    return shown(store.keyspace, keys);
  });
  writer.beginCheckpoint();
  step();
  writer.turn();
  before.push(shown(store.keyspace, keys));
  // What the walk sees of these is in no file yet.
  step();
  step();
  store.writeDraft();
  writer.endCheckpoint(1);
  expect(shown((await replayFiles(store.copyFiles())).keyspace, keys)).toEqual(before.at(-1));

  writer.turn();
  const files = store.copyFiles();
  expect(shown((await replayFiles(files)).keyspace, keys)).toEqual(shown(store.keyspace, keys));
  step();
  writer.close();
  expect(shown((await replayFiles(store.folder)).keyspace, keys)).toEqual(shown(store.keyspace, keys));
});

it('a key that is evicted within a transaction which has changed it is what the transaction makes of it then', async () => {
  const store = new LoggedStore(1, new CommandTable([strings, lists, hashes, transactions, eviction]));
  store.session.send('RPUSH list a b');
  store.session.send('HSET hash f v');
  store.session.send('SET string v');
  store.session.send('RPUSH gone a');
  transaction(store, 'RPUSH list c', 'SET other 1', 'EVICT list', 'RPUSH list d', 'LPUSH list e');
  // What comes behind the eviction would fail on what was there before.
  transaction(store, 'HSET hash g v', 'RPUSH list f', 'EVICT hash', 'RPUSH hash element', 'EVICT string');
  transaction(store, 'LSET gone 0 b', 'SET string w', 'EVICT gone');
  store.writer.close();
  const { keyspace } = await replayFiles(store.folder);
  const keys = ['list', 'hash', 'string', 'other', 'gone'];
  expect(shown(keyspace, keys)).toEqual(shown(store.keyspace, keys));
  expect(store.session.send('LLEN list')).toBe(':3\r\n');
});

it('a command that changes more keys than most is written down whole', async () => {
  const store = new LoggedStore();
  const keys = Array.from({ length: 300 }, (_, i) => `key:${i}`);
  store.session.send(['MSET', ...keys.flatMap((key) => [key, `value of ${key}`])]);
  store.writer.close();
  const { keyspace } = await replayFiles(store.folder);
  expect(shown(keyspace, keys)).toEqual(shown(store.keyspace, keys));
  expect(Object.keys(shown(keyspace, keys))).toHaveLength(300);
});
