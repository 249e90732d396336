/**
 * A pipeline hashes its keys ahead of executing them, and the hash depends on which database stands behind the client's
 * number; FLUSHALL or SWAPDB in the middle of the pipeline changes that.
 */
import { expect, test } from 'vitest';
import { Session } from '../helpers/session.js';
import { openTestStore } from '../helpers/store.js';

test('requests behind a FLUSHALL or SWAPDB in one pipeline meet the new database', () => {
  const store = openTestStore({ dramBytes: 64 * 1024 * 1024 });
  const session = new Session(store);
  for (let at = 0; !store.prefetchWorthwhile; at += 1000) {
    session.raw(Array.from({ length: 1000 }, (_, i) => `SET key:${at + i} v\r\n`).join(''));
  }
  expect(session.raw('SET a 1\r\nFLUSHALL\r\nSET a 2\r\nSET b 3\r\nGET a\r\n')).toBe(
    '+OK\r\n+OK\r\n+OK\r\n+OK\r\n$1\r\n2\r\n',
  );
  expect(session.raw('GET a\r\nGET b\r\n')).toBe('$1\r\n2\r\n$1\r\n3\r\n');

  expect(session.raw('SET a 4\r\nSWAPDB 0 1\r\nGET a\r\nSET a 5\r\nSWAPDB 0 1\r\nGET a\r\n')).toBe(
    '+OK\r\n+OK\r\n$-1\r\n+OK\r\n+OK\r\n$1\r\n4\r\n',
  );
  expect(session.raw('MULTI\r\nFLUSHDB\r\nEXEC\r\nSET a 6\r\nGET a\r\n')).toBe(
    '+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n+OK\r\n$1\r\n6\r\n',
  );
  expect(session.raw('GET a\r\n')).toBe('$1\r\n6\r\n');
});
