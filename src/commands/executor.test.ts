import { beforeEach, describe, expect, it } from 'vitest';
import { Session } from '../../test/helpers/session.js';
import { openTestStore, testStore } from '../../test/helpers/store.js';
import type { Keyspace } from '../store/keyspace.js';

let keyspace: Keyspace;
let session: Session;

beforeEach(() => {
  keyspace = testStore();
  session = new Session(keyspace);
});

describe('executor', () => {
  it('runs commands', () => {
    expect(session.send('SET k v')).toBe('+OK\r\n');
    expect(session.send(['get', 'k'])).toBe('$1\r\nv\r\n');
    expect(session.send('GET other')).toBe('$-1\r\n');
  });

  it('answers pipelined requests in order', () => {
    expect(session.raw('SET a 1\r\nGET a\r\nGET b\r\nSET a 2\r\nGET a\r\n')).toBe(
      '+OK\r\n$1\r\n1\r\n$-1\r\n+OK\r\n$1\r\n2\r\n',
    );
  });

  it('gives the same answers when it looks ahead', () => {
    Object.defineProperty(keyspace, 'prefetchWorthwhile', { value: true, configurable: true });
    expect(session.raw('SET a 1\r\nGET a\r\nGET b\r\nnope\r\nGET a x\r\nGET a\r\n')).toBe(
      "+OK\r\n$1\r\n1\r\n$-1\r\n-ERR unknown command 'nope', with args beginning with: \r\n" +
        "-ERR wrong number of arguments for 'get' command\r\n$1\r\n1\r\n",
    );
    Reflect.deleteProperty(keyspace, 'prefetchWorthwhile');
  });

  it('refuses what it does not know in the known words', () => {
    expect(session.send(['FOO', 'bar', 'b\r\nz'])).toBe(
      "-ERR unknown command 'FOO', with args beginning with: 'bar' 'b  z' \r\n",
    );
    expect(session.send('SET k')).toBe("-ERR wrong number of arguments for 'set' command\r\n");
  });

  it('closes after a protocol error, with the replies before it', () => {
    expect(session.raw('GET k\r\n*1\r\n+PING\r\n')).toBe("$-1\r\n-ERR Protocol error: expected '$', got '+'\r\n");
    expect(session.client.closing).toBe(1);
  });

  it('refuses a key that is too long', () => {
    expect(session.send(['GET', 'k'.repeat(65_536)])).toMatch(/^-ERR key is too long/);
    expect(session.send(['GET', 'k'.repeat(65_535)])).toBe('$-1\r\n');
  });

  it('bounds the work of one feed', () => {
    expect(session.raw('GET k\r\n'.repeat(3000))).toBe('$-1\r\n'.repeat(3000));
  });

  it('says when memory is full', () => {
    const full = new Session(fullStore());
    expect(full.send(['SET', 'k', 'x'.repeat(10_000)])).toBe(FULL);
    expect(full.send('GET k')).toBe('$-1\r\n');
  });
});

const FULL = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/** A store of 16 MiB under noeviction in which nothing more fits. */
function fullStore(): Keyspace {
  const store = openTestStore({ dramBytes: 16 * 1024 * 1024 });
  const session = new Session(store);
  for (let i = 0; i < 10_000; i++) if (session.send(['SET', `fill${i}`, 'x'.repeat(10_000)]) === FULL) return store;
  throw new Error('the store did not fill');
}

describe('large values', () => {
  const value = 'x'.repeat(100_000);

  it('are received in place and executed with what follows', () => {
    expect(session.raw(`*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$${value.length}\r\n`)).toBe('');
    const { client } = session;
    expect(client.intoLength).toBe(value.length);
    expect(client.large?.slot).not.toBeNull();
    // What the server does: the value's bytes go straight into the arena.
    const arena = keyspace.memory.arenas.find((bytes) => bytes.arena === client.intoArena);
    arena?.u8.fill(0x78, client.intoOffset, client.intoOffset + client.intoLength);
    session.driver.resumeInto(client);
    expect(session.raw('\r\n$2\r\nEX\r\n')).toBe('');
    expect(session.raw('$3\r\n100\r\nGET k\r\n')).toBe(`+OK\r\n$${value.length}\r\n${value}\r\n`);
  });

  it('are given back when the client goes or breaks the protocol', () => {
    session.raw(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$${value.length}\r\n`);
    session.driver.closed(session.client);
    expect(session.client.large).toBeNull();
  });

  it('take a part of the store at most before their bytes come', () => {
    const announce = `*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$${6 * 1024 * 1024}\r\n`;
    const clients = [session.client, session.connect(), session.connect()];
    const received = clients.map((client) => {
      session.client = client;
      session.raw(announce);
      session.takePending();
      return client.intoLength > 0;
    });
    // A quarter of 32 MiB holds one of 6 MiB; the others are received as they come.
    expect(received).toEqual([true, false, false]);
    for (const client of clients) session.driver.closed(client);
    session.client = session.connect();
    session.raw(announce);
    expect(session.client.intoLength).toBeGreaterThan(0);
    session.driver.closed(session.client);
  });

  it('are skipped when there is no memory', () => {
    const full = new Session(fullStore());
    full.raw(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$${value.length}\r\n`);
    expect(full.client.intoLength).toBe(0);
    full.raw(value.slice(0, 40_000));
    expect(full.raw(`${value.slice(40_000)}\r\nGET k\r\n`)).toBe(`${FULL}$-1\r\n`);
  });

  it('that come whole are ordinary arguments', () => {
    expect(session.send(['SET', 'k', value])).toBe('+OK\r\n');
    expect(session.send('GET k')).toBe(`$${value.length}\r\n${value}\r\n`);
  });
});
