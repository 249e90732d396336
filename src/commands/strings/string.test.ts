/** What redis-server cannot tell about string commands: the store under them. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { openTestStore, testStore } from '../../../test/helpers/store.js';
import { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import { checkInvariants } from '../../store/invariants.js';
import type { Keyspace } from '../../store/keyspace.js';

const OOM = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

let keyspace: Keyspace;
let session: Session;

beforeEach(() => {
  keyspace = testStore();
  session = new Session(keyspace);
});

const send = (request: string | readonly string[]): string => session.send(request);

describe('WATCH', () => {
  const changes: readonly (readonly [string, string])[] = [
    ['SET k w', 'v'],
    ['APPEND k x', 'v'],
    ['SETRANGE k 0 w', 'v'],
    ['SETRANGE k 9 w', 'v'],
    ['INCR k', '1'],
    ['DECRBY k 5', '1'],
    ['INCRBYFLOAT k 1', '1'],
    ['SETBIT k 3 0', 'v'],
    ['SETBIT k 300 0', 'v'],
    ['BITFIELD k INCRBY u4 0 1', 'v'],
    ['BITOP NOT k k', 'v'],
    ['MSET k 1 j 2', 'v'],
    ['GETSET k v', 'v'],
    ['GETDEL k', 'v'],
    ['GETEX k EX 100', 'v'],
    ['EXPIRE k 100', 'v'],
    ['DEL k', 'v'],
    ['RENAME k j', 'v'],
    ['RENAME j k', 'v'],
    ['COPY j k REPLACE', 'v'],
    ['MOVE k 1', 'v'],
  ];
  it.each(changes)('sees %s', (change, value) => {
    send(['MSET', 'k', value, 'j', '0']);
    const watcher = session.client;
    send('WATCH k');
    session.client = session.connect();
    expect(send(change)).not.toMatch(/^-/);
    session.client = watcher;
    expect(send('MULTI')).toBe('+OK\r\n');
    send('GET j');
    expect(send('EXEC')).toBe('*-1\r\n');
  });

  const reads = [
    'GET k',
    'STRLEN k',
    'GETRANGE k 0 1',
    'GETEX k',
    'GETEX k PERSIST',
    'SETNX k w',
    'SET k w NX',
    'MSETNX k 1 z 2',
    'SETRANGE j 0 x',
    'PERSIST k',
    'EXPIRE k 10 XX',
    'TTL k',
    'BITCOUNT k',
    'BITFIELD k GET u8 0',
    'COPY k y',
    'RENAMENX k j',
    'TOUCH k',
    'OBJECT ENCODING k',
    'SCAN 0',
  ];
  it.each(reads)('does not see %s', (read) => {
    send('MSET k v j 0');
    send('WATCH k');
    expect(send(read)).not.toMatch(/^-/);
    send('MULTI');
    expect(send('EXEC')).toBe('*0\r\n');
  });

  it('does not see a SETBIT that changes nothing', () => {
    send('SETBIT k 3 1');
    send('WATCH k');
    expect(send('SETBIT k 3 1')).toBe(':1\r\n');
    send('MULTI');
    expect(send('EXEC')).toBe('*0\r\n');
  });
});

describe('client flags of memcached', () => {
  /** Stores as memcached's `set k 7 0` does. */
  function storeWithFlags(value: string): void {
    const key = Bytes.from('k');
    const bytes = Bytes.from(value);
    const hash = keyspace.hash(0, key, 0, 1);
    keyspace.enterBatch();
    keyspace.stage(hash, 0, key, 0, 1, bytes.length);
    copyBytes(keyspace.staged, keyspace.stagedOffset, bytes, 0, bytes.length);
    keyspace.lock(hash);
    keyspace.commit(ItemType.STRING, 0, 7, 0);
    keyspace.unlock(hash);
    keyspace.leaveBatch();
  }

  function flags(): number {
    const key = Bytes.from('k');
    const hash = keyspace.hash(0, key, 0, 1);
    keyspace.enterBatch();
    keyspace.lock(hash);
    keyspace.find(hash, 0, key, 0, 1);
    const found = keyspace.clientFlags;
    keyspace.unlock(hash);
    keyspace.leaveBatch();
    return found;
  }

  it.each([
    'APPEND k 1',
    'INCR k',
    'INCRBYFLOAT k 1',
    'SETRANGE k 3000 x',
    'SETBIT k 0 1',
    'EXPIRE k 100',
    'RENAME k k',
  ])('stay after %s', (command) => {
    storeWithFlags('5');
    send(command);
    expect(flags()).toBe(7);
  });

  it.each(['SET k v', 'GETSET k v', 'MSET k v', 'SETEX k 10 v', 'BITOP NOT k k'])('go with %s', (command) => {
    storeWithFlags('5');
    send(command);
    expect(flags()).toBe(0);
  });
});

describe('a full store', () => {
  const MIB = 1024 * 1024;

  /** Fills a store until nothing of `valueBytes` fits any more; returns how many keys it took. */
  function fill(full: Session, valueBytes: number): number {
    const value = 'f'.repeat(valueBytes);
    for (let i = 0; ; i++) if (full.send(['SET', `f${i}`, value]) === OOM) return i;
  }

  it('changes nothing when a command does not fit', () => {
    const store = openTestStore({ dramBytes: 16 * MIB });
    const full = new Session(store);
    full.send('MSET a old b 12 c 1');
    full.send(['SET', 'l', 'x'.repeat(2000)]);
    fill(full, 300_000);
    fill(full, 3000);
    const big = 'y'.repeat(100_000);
    for (const request of [
      ['SET', 'a', big],
      ['MSET', 'c', '2', 'a', 'new', 'b', big, 'd', '4'],
      ['MSETNX', 'd', '4', 'e', big],
      ['APPEND', 'a', big],
      ['SETRANGE', 'a', '100000', 'x'],
      ['SETRANGE', 'none', '100000', 'x'],
      ['SETBIT', 'a', '900000', '1'],
      ['SETBIT', 'none', '900000', '1'],
      ['BITFIELD', 'a', 'SET', 'u8', '900000', '1'],
      ['GETSET', 'a', big],
      ['SETNX', 'none', big],
    ]) {
      expect(full.send(request), request[0]).toBe(OOM);
    }
    expect(full.send('MGET a b c d e none')).toBe('*6\r\n$3\r\nold\r\n$2\r\n12\r\n$1\r\n1\r\n$-1\r\n$-1\r\n$-1\r\n');
    checkInvariants(store);
    // What needs no memory goes on.
    expect(full.send('INCR b')).toBe(':13\r\n');
    expect(full.send('SETRANGE a 0 n')).toBe(':3\r\n');
    expect(full.send('EXPIRE a 100')).toBe(':1\r\n');
    expect(full.send('DEL a b l')).toBe(':3\r\n');
  });
});

describe('a value that grows', () => {
  it('evicts nobody from a store that is all but empty', () => {
    const store = openTestStore({ dramBytes: 24 * 1024 * 1024, policy: 'allkeys-lru' });
    const growing = new Session(store);
    growing.send('MSET a 1 b 2 c 3');
    const step = 'x'.repeat(90);
    for (let length = 90; length <= 400_000; length += 90) {
      expect(growing.send(['APPEND', 'k', step])).toBe(`:${length}\r\n`);
    }
    expect(growing.send('EXISTS a b c k')).toBe(':4\r\n');
    expect(store.stats().evicted).toBe(0);
  });
});

describe('large values', () => {
  const large = 'x'.repeat(100_000);

  it('come straight into the store with every command that stores one value', () => {
    for (const [head, tail] of [
      [
        ['SET', 'k'],
        ['EX', '100'],
      ],
      [['SETEX', 'k', '100'], []],
      [['PSETEX', 'k', '100000'], []],
      [['GETSET', 'k'], []],
    ]) {
      session.raw(
        `*${head.length + 1 + tail.length}\r\n${head.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}$${large.length}\r\n`,
      );
      expect(session.client.large).not.toBeNull();
      session.driver.resumeInto(session.client);
      const reply = session.raw(`\r\n${tail.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`);
      expect(reply, head[0]).toMatch(/^(\+OK|\$100000)/);
      expect(send('STRLEN k')).toBe(':100000\r\n');
      expect(send('TTL k')).toBe(head[0] === 'GETSET' ? ':-1\r\n' : ':100\r\n');
    }
  });

  it('are given back when the rest of the command is wrong', () => {
    send('SET k v');
    session.raw(`*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$${large.length}\r\n`);
    session.driver.resumeInto(session.client);
    expect(session.raw('\r\n$2\r\nEX\r\n$1\r\n0\r\n')).toBe("-ERR invalid expire time in 'set' command\r\n");
    expect(send('GET k')).toBe('$1\r\nv\r\n');
    checkInvariants(keyspace);
  });
});
