/**
 * Commands that store a collection over another one, without the memory for it: the old one was removed first, and lost.
 */
import { expect, it } from 'vitest';
import { checkInvariants } from '../../src/store/invariants.js';
import { Session } from '../helpers/session.js';
import { openTestStore } from '../helpers/store.js';

const MIB = 1024 * 1024;
const OOM = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
const MEMBERS = 20_000;

it.each([
  ['SUNIONSTORE', 'SADD', (i: number) => [`m${i}`], ['SUNIONSTORE', 'd', 'big'], ['SMEMBERS', 'd']],
  [
    'ZUNIONSTORE',
    'ZADD',
    (i: number) => [String(i), `m${i}`],
    ['ZUNIONSTORE', 'd', '1', 'big'],
    ['ZRANGE', 'd', '0', '-1'],
  ],
  [
    'GEOSEARCHSTORE',
    'GEOADD',
    (i: number) => [String(i % 180), '10', `m${i}`],
    ['GEOSEARCHSTORE', 'd', 'big', 'FROMLONLAT', '0', '0', 'BYRADIUS', '30000', 'km'],
    ['ZRANGE', 'd', '0', '-1'],
  ],
  ['SORT', 'RPUSH', (i: number) => [`m${i}`], ['SORT', 'big', 'ALPHA', 'STORE', 'd'], ['LRANGE', 'd', '0', '-1']],
  ['COPY', 'RPUSH', (i: number) => [`m${i}`], ['COPY', 'big', 'd', 'REPLACE'], ['LRANGE', 'd', '0', '-1']],
  ['COPY', 'HSET', (i: number) => [`m${i}`, 'v'], ['COPY', 'big', 'd', 'REPLACE'], ['HKEYS', 'd']],
])('%s of what %s has made keeps the destination', (_, add, words, request, read) => {
  const keyspace = openTestStore({ dramBytes: 24 * MIB });
  const session = new Session(keyspace);
  for (let i = 0; i < MEMBERS; i += 100) {
    session.send([add, 'big', ...Array.from({ length: 100 }, (_, n) => words(i + n)).flat()]);
  }
  const small = Array.from({ length: 3 }, (_, n) => words(n)).flat();
  session.send([add, 'd', ...small]);
  const before = session.send(read);
  expect(before).toMatch(/^\*3\r\n/);
  // With memory it is stored.
  session.send(['COPY', 'd', 'other']);
  expect(session.send(request.map((word) => (word === 'd' ? 'other' : word)))).toMatch(/^:(1|20000)\r\n/);
  session.send('DEL other');
  for (let rounds = 0; rounds < 200; rounds++) {
    keyspace.enterBatch();
    keyspace.background(1000);
    keyspace.leaveBatch();
  }
  const value = 'x'.repeat(900);
  for (let i = 0; session.send(['SET', `fill${i}`, value]) !== OOM; i++);
  expect(session.send(request)).toBe(OOM);
  expect(session.send(read)).toBe(before);
  expect(session.send('EXISTS d big')).toBe(':2\r\n');
  // Of what was begun nothing stays.
  session.send('DEL big');
  session.send(['EVAL', "return 'a pause'", '0']);
  expect(session.send('KEYS d*')).toBe('*1\r\n$1\r\nd\r\n');
  checkInvariants(keyspace);
});
