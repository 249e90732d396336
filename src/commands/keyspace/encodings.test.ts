/** OBJECT ENCODING of sets and lists at Redis 7.2's limits, which the redis-server of the compat tests does not know. */
import { describe, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { testStore } from '../../../test/helpers/store.js';

const range = (count: number, prefix = ''): string[] => Array.from({ length: count }, (_, i) => prefix + i);

function start(): { session: Session; encoding: () => string } {
  const session = new Session(testStore());
  return { session, encoding: () => session.send('OBJECT ENCODING k').split('\r\n')[1] };
}

describe('encodings of sets', () => {
  it('integers, then words', () => {
    const { session, encoding } = start();
    session.send('SADD k 1 2');
    expect(encoding()).toBe('intset');
    session.send('SADD k word');
    expect(encoding()).toBe('listpack');
    expect(session.send('SMEMBERS k')).toBe('*3\r\n$1\r\n1\r\n$1\r\n2\r\n$4\r\nword\r\n');
    session.send('SREM k word');
    expect(encoding()).toBe('listpack');
  });

  it('a word among more integers than fit a listpack', () => {
    const { session, encoding } = start();
    session.send(['SADD', 'k', ...range(128)]);
    session.send('SADD k word');
    expect(encoding()).toBe('hashtable');
    expect(session.send('SCARD k')).toBe(':129\r\n');
    for (const member of [...range(128), 'word']) expect(session.send(`SISMEMBER k ${member}`)).toBe(':1\r\n');
  });

  it('words up to 128, members up to 64 bytes', () => {
    const { session, encoding } = start();
    session.send(['SADD', 'k', ...range(128, 'm')]);
    expect(encoding()).toBe('listpack');
    session.send('SADD k m0 more');
    expect(encoding()).toBe('hashtable');
    session.send('DEL k');
    session.send(['SADD', 'k', 'x'.repeat(64)]);
    expect(encoding()).toBe('listpack');
    session.send(['SADD', 'k', 'x'.repeat(65)]);
    expect(encoding()).toBe('hashtable');
  });

  it('what brings more members than fit is a hash table at once', () => {
    const { session, encoding } = start();
    session.send(['SADD', 'k', ...range(129, 'm')]);
    expect(encoding()).toBe('hashtable');
    session.send('DEL k');
    session.send(['SADD', 'k', 'm', ...range(128, 'n').fill('m')]);
    expect(encoding()).toBe('hashtable');
    session.send('DEL k');
    session.send(['SADD', 'k', ...range(513).fill('1')]);
    expect(encoding()).toBe('hashtable');
  });

  it('results: integers are intsets again', () => {
    const { session, encoding } = start();
    session.send('SADD a 3 x 1');
    session.send('SADD b 1 3 y');
    session.send('SINTERSTORE k a b');
    expect(encoding()).toBe('intset');
    expect(session.send('SMEMBERS k')).toBe('*2\r\n$1\r\n1\r\n$1\r\n3\r\n');
    session.send('SUNIONSTORE k a b');
    expect(encoding()).toBe('listpack');
  });

  it('follow the settings', () => {
    const { session, encoding } = start();
    session.settings.setMaxIntsetEntries = 2;
    session.settings.setMaxListpackEntries = 4;
    session.settings.setMaxListpackValue = 3;
    session.send('SADD k 1 2');
    expect(encoding()).toBe('intset');
    session.send('SADD k 3');
    expect(encoding()).toBe('hashtable');
    session.send('DEL k');
    session.send('SADD k 1 2 3');
    expect(encoding()).toBe('listpack');
    session.send('SADD k a b');
    expect(encoding()).toBe('hashtable');
    session.send('DEL k');
    session.send('SADD k 12345 1');
    session.send('SADD k abc');
    expect(encoding()).toBe('hashtable');
  });
});

describe('encodings of lists', () => {
  it('by bytes, by the longest element, by the setting', () => {
    const { session, encoding } = start();
    session.send('RPUSH k a b');
    expect(encoding()).toBe('listpack');
    session.send(['RPUSH', 'k', 'x'.repeat(1001)]);
    expect(encoding()).toBe('quicklist');
    session.send('DEL k');
    session.send(['RPUSH', 'k', ...range(10).fill('x'.repeat(500))]);
    expect(encoding()).toBe('quicklist');
    session.send('DEL k');
    session.settings.listMaxListpackSize = 2;
    session.send('RPUSH k a b');
    expect(encoding()).toBe('listpack');
    session.send('LPUSH k c');
    expect(encoding()).toBe('quicklist');
    expect(session.send('LRANGE k 0 -1')).toBe('*3\r\n$1\r\nc\r\n$1\r\na\r\n$1\r\nb\r\n');
  });
});
