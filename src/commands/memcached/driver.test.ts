import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemcachedSession } from '../../../test/helpers/memcached-session.js';
import { openTestStore, testStore } from '../../../test/helpers/store.js';
import { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { LISTS } from '../../store/collections/collection.js';
import type { Keyspace } from '../../store/keyspace.js';

const LARGE = 'v'.repeat(100_000);

function session(): MemcachedSession {
  return new MemcachedSession(testStore());
}

/** Stores a value of another type, as a Redis command would. */
function putList(keyspace: Keyspace, key: string): void {
  const bytes = Bytes.from(key);
  keyspace.enterBatch();
  const h = keyspace.hash(0, bytes, 0, bytes.length);
  keyspace.lock(h);
  const list = keyspace.collections[0];
  list.open(LISTS, h, 0, bytes, 0, bytes.length);
  list.insert(bytes, 0, bytes.length);
  keyspace.unlock(h);
  keyspace.leaveBatch();
}

describe('a memcached connection', () => {
  it('answers a pipeline in order, however long', () => {
    const s = session();
    const sets = Array.from({ length: 300 }, (_, i) => `set k${i} ${i} 0 3\r\nv${i % 10}x\r\n`).join('');
    expect(s.send(sets)).toBe('STORED\r\n'.repeat(300));
    const gets = Array.from({ length: 300 }, (_, i) => `get k${i}\r\n`).join('');
    expect(s.send(gets)).toBe(
      Array.from({ length: 300 }, (_, i) => `VALUE k${i} ${i} 3\r\nv${i % 10}x\r\nEND\r\n`).join(''),
    );
  });

  it('does bounded work in one turn', () => {
    const s = session();
    expect(s.send('mn\r\n'.repeat(5000))).toBe('MN\r\n'.repeat(5000));
    expect(s.counters.values[Counter.connectionYields]).toBeGreaterThan(3);
  });

  it('answers a get of any number of keys', () => {
    const s = session();
    for (let i = 0; i < 400; i++) s.send(`set key${i} 0 0 2 noreply\r\nok\r\n`);
    const keys = Array.from({ length: 400 }, (_, i) => `key${i}`);
    const request = `get ${keys.join(' ')}\r\n`;
    let reply = '';
    for (let at = 0; at < request.length; at += 700) reply += s.send(request.slice(at, at + 700));
    expect(reply).toBe(`${keys.map((key) => `VALUE ${key} 0 2\r\nok\r\n`).join('')}END\r\n`);
    expect(s.send(`get ${keys.join(' ')} ${'k'.repeat(251)}\r\n`)).toBe('CLIENT_ERROR bad command line format\r\n');
  });

  it('answers a get of thousands of keys, or of a megabyte of values, in several turns', () => {
    const s = session();
    s.send('set key 1 0 2 noreply\r\nok\r\n');
    const one = 'VALUE key 1 2\r\nok\r\n';
    const count = 10_000;
    const request = `mn\r\nget ${'key '.repeat(count)}\r\nmn\r\n`;
    expect(s.send(request) === `MN\r\n${one.repeat(count)}END\r\nMN\r\n`).toBe(true);
    expect(s.counters.values[Counter.connectionYields]).toBeGreaterThanOrEqual(9);
    let reply = '';
    for (let at = 0; at < request.length; at += 1500) reply += s.send(request.slice(at, at + 1500));
    expect(reply === `MN\r\n${one.repeat(count)}END\r\nMN\r\n`).toBe(true);

    s.send(`set big 0 0 ${LARGE.length}\r\n${LARGE}\r\n`);
    const yields = s.counters.values[Counter.connectionYields];
    const big = `VALUE big 0 ${LARGE.length}\r\n${LARGE}\r\n`;
    expect(s.send(`gat 0${' big'.repeat(50)}\r\n`) === `${big.repeat(50)}END\r\n`).toBe(true);
    expect(s.send('get big\r\n'.repeat(50)) === `${big}END\r\n`.repeat(50)).toBe(true);
    expect(s.counters.values[Counter.connectionYields]).toBeGreaterThanOrEqual(yields + 5);
  });

  it('answers alike when it looks ahead in a large index', () => {
    const store = testStore();
    const s = new MemcachedSession(store);
    const keys = Array.from({ length: 150 }, (_, i) => `ahead${i}`);
    s.send(keys.map((key, i) => `set ${key} ${i} 0 1 noreply\r\n${i % 10}\r\n`).join(''));
    const requests = `get ${keys.join(' ')}\r\ngets a b c d e f\r\n${keys.map((key) => `mg ${key} v\r\n`).join('')}`;
    const flushed = `get ahead1\r\nget ahead2\r\nget ahead3\r\nflush_all\r\nget ahead1\r\nadd ahead1 0 0 1\r\nx\r\nget ahead1\r\n`;
    const plain = s.send(requests);
    Object.defineProperty(store, 'prefetchWorthwhile', { get: () => true, configurable: true });
    expect(s.send(requests)).toBe(plain);
    expect(s.send(flushed)).toMatch(
      /ahead3 3 1\r\n3\r\nEND\r\nOK\r\nEND\r\nSTORED\r\nVALUE ahead1 0 1\r\nx\r\nEND\r\n$/,
    );
    Reflect.deleteProperty(store, 'prefetchWorthwhile');
  });

  it('closes after a line that never ends', () => {
    const s = session();
    expect(s.send('x'.repeat(3000))).toBe('CLIENT_ERROR line too long\r\n');
    expect(s.isClosed).toBe(true);
  });

  it('closes on HTTP without a word, and on quit', () => {
    const s = session();
    expect(s.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')).toBe('');
    expect(s.isClosed).toBe(true);
    s.client = s.connect();
    expect(s.send('mn\r\nquit\r\nmn\r\n')).toBe('MN\r\n');
    expect(s.isClosed).toBe(true);
  });

  it('gives the same replies however the input is cut', () => {
    const script =
      'set a 1 0 5\r\nhello\r\nget a\r\nms b 3 T0 c k Ox\r\nabc\r\nmg b v t f\r\nset a 0 0 x\r\nset c 0 0 3\r\nabcd\r\n' +
      `append a 0 0 6\r\n world\r\nget a b\r\nset big 7 0 ${LARGE.length}\r\n${LARGE}\r\nincr n 1\r\nget big\r\n` +
      `set ${'k'.repeat(251)} 0 0 3\r\nabc\r\nma n N0 v\r\nset big 0 0 9999999\r\n${'x'.repeat(9999999)}\r\nget big\r\nmn\r\n`;
    const replies = (cuts: readonly number[]): string => {
      const s = session();
      let reply = '';
      for (const [i, at] of [0, ...cuts].entries()) reply += s.send(script.slice(at, cuts[i] ?? script.length));
      return reply.replace(/ c\d+/, ' cN');
    };
    const whole = replies([]);
    expect(whole.endsWith('MN\r\n')).toBe(true);
    fc.assert(
      fc.property(fc.array(fc.nat(script.length), { maxLength: 8 }), (cuts) => {
        expect(replies(cuts.sort((a, b) => a - b)) === whole).toBe(true);
      }),
      { numRuns: 15 },
    );
  });
});

describe('large values', () => {
  it('are received in place, whatever the storage command', () => {
    const s = session();
    const put = (line: string): string => {
      s.send(`${line}\r\n${LARGE.slice(0, 1000)}`);
      expect(s.client.large).not.toBe(null);
      s.send(LARGE.slice(1000, 50_000));
      expect(s.send(LARGE.slice(50_000))).toBe('');
      return s.send('\r\n');
    };
    const n = LARGE.length;
    expect(put(`set a 5 0 ${n}`)).toBe('STORED\r\n');
    expect(put(`add a 0 0 ${n}`)).toBe('NOT_STORED\r\n');
    expect(put(`add b 0 0 ${n} noreply`)).toBe('');
    expect(put(`replace b 6 0 ${n}`)).toBe('STORED\r\n');
    expect(put(`cas b 0 0 ${n} 1`)).toBe('EXISTS\r\n');
    expect(put(`ms Yw== ${n} b k Oq`)).toBe('HD kYw== b Oq\r\n');
    expect(s.send('get a b c\r\n')).toBe(
      `VALUE a 5 ${n}\r\n${LARGE}\r\nVALUE b 6 ${n}\r\n${LARGE}\r\nVALUE c 0 ${n}\r\n${LARGE}\r\nEND\r\n`,
    );
  });

  it('are dropped without their CR LF, and with their connection', () => {
    const s = session();
    s.send(`set a 0 0 ${LARGE.length}\r\n${LARGE}`);
    expect(s.send('xxmn\r\n')).toBe('CLIENT_ERROR bad data chunk\r\nMN\r\n');
    expect(s.send('get a\r\n')).toBe('END\r\n');
    s.send(`set a 0 0 ${LARGE.length}\r\n${LARGE.slice(0, 20_000)}`);
    s.close();
    s.client = s.connect();
    expect(s.send('get a\r\n')).toBe('END\r\n');
  });

  it('may be appended and prepended', () => {
    const s = session();
    s.send('set a 0 0 1\r\n-\r\n');
    for (const line of [`append a 0 0 ${LARGE.length}`, `ms a ${LARGE.length} MP`]) {
      s.send(`${line}\r\n${LARGE.slice(0, 30_000)}`);
      s.send(`${LARGE.slice(30_000)}\r\n`);
    }
    expect(s.send('get a\r\n')).toBe(`VALUE a 0 200001\r\n${LARGE}-${LARGE}\r\nEND\r\n`);
  });

  it('that are announced and do not come take a bounded part of the store', () => {
    const store = testStore();
    const s = new MemcachedSession(store);
    const clients = Array.from({ length: 40 }, (_, i) => {
      s.client = s.connect();
      s.send(`set big${i} 0 0 1000000\r\nx`);
      return s.client;
    });
    const staged = clients.filter((client) => client.large !== null).length;
    expect(staged).toBe(8);
    const other = new MemcachedSession(store);
    expect(other.send('set small 0 0 1\r\n1\r\nget small\r\n')).toBe('STORED\r\nVALUE small 0 1\r\n1\r\nEND\r\n');
    for (const client of clients) {
      s.client = client;
      s.close();
    }
    s.client = s.connect();
    s.send('set big 0 0 1000000\r\nx');
    expect(s.client.large).not.toBe(null);
    s.close();
  });

  it('that are too large are refused at once and swallowed; a set that fails takes the old value with it', () => {
    const s = session();
    s.send('set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\n');
    expect(s.send('set a 0 0 2000000\r\n')).toBe('SERVER_ERROR object too large for cache\r\n');
    expect(s.send('x'.repeat(1_999_999))).toBe('');
    expect(s.send('x\r\nget a\r\n')).toBe('END\r\n');
    expect(s.send('add b 0 0 2000000 noreply\r\n')).toBe('');
    expect(s.send(`${'x'.repeat(2_000_000)}\r\nget b\r\n`)).toBe('VALUE b 0 1\r\n1\r\nEND\r\n');
    expect(s.send('ms b 2000000 q\r\n')).toBe('SERVER_ERROR object too large for cache\r\n');
    expect(s.send(`${'x'.repeat(2_000_000)}\r\nget b\r\n`)).toBe('END\r\n');
    expect(s.counters.values[Counter.storeTooLarge]).toBe(3);
  });
});

describe('values of other types', () => {
  it('miss on reads and are an error on writes', () => {
    const store = testStore();
    const s = new MemcachedSession(store);
    putList(store, 'l');
    const wrong = 'SERVER_ERROR key holds a value that is not a string\r\n';
    for (const line of ['get l', 'gets l', 'gat 0 l']) expect(s.send(`${line}\r\n`), line).toBe('END\r\n');
    expect(s.send('mg l v\r\n')).toBe('EN\r\n');
    expect(s.send('mg l v N30\r\n')).toBe(wrong);
    for (const name of ['set', 'add', 'replace', 'append', 'prepend']) {
      expect(s.send(`${name} l 0 0 1\r\nx\r\n`), name).toBe(wrong);
    }
    expect(s.send('cas l 0 0 1 1\r\nx\r\n')).toBe(wrong);
    for (const line of ['delete l', 'incr l 1', 'decr l 1', 'touch l 0', 'md l', 'md l I', 'ma l', 'ma l N0']) {
      expect(s.send(`${line}\r\n`), line).toBe(wrong);
    }
    expect(s.send('ms l 1 q\r\nx\r\n')).toBe(wrong);
    expect(s.send('me l\r\n')).toMatch(/^ME l exp=-1 /);
  });
});

describe('out of memory', () => {
  it('is an error, swallows the data block, and leaves no old value behind a set', () => {
    const store = openTestStore({ dramBytes: 16 * 1024 * 1024 });
    const s = new MemcachedSession(store);
    s.send('set old 0 0 1\r\n1\r\nset n 0 0 1\r\n9\r\n');
    let stored = 0;
    const value = 'x'.repeat(500_000);
    while (s.send(`set k${stored} 0 0 ${value.length}\r\n${value}\r\n`) === 'STORED\r\n') stored++;
    expect(stored).toBeGreaterThan(3);
    expect(s.send(`set old 0 0 ${value.length}\r\n`)).toBe('SERVER_ERROR out of memory storing object\r\n');
    expect(s.send(`${value}\r\nget old\r\n`)).toBe('END\r\n');
    expect(s.send(`ms old ${value.length} q\r\n${value}\r\n`)).toBe('SERVER_ERROR out of memory storing object\r\n');
    expect(s.send(`append n 0 0 ${value.length}\r\n${value}\r\n`)).toBe(
      'SERVER_ERROR out of memory storing object\r\n',
    );
    expect(s.send('get n\r\n')).toBe('VALUE n 0 1\r\n9\r\nEND\r\n');
    expect(s.counters.values[Counter.storeNoMemory]).toBe(4);
  });
});
