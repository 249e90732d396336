/**
 * A large capacity tier has room for more items than DRAM for their entries: the index took the last page of DRAM, and no value could be
 * stored any more, not even after FLUSHALL, since it does not shrink.
 */
import { expect, it } from 'vitest';
import { checkInvariants } from '../../src/store/invariants.js';
import { Session } from '../helpers/session.js';
import { openTestStore } from '../helpers/store.js';

const MIB = 1024 * 1024;
const OOM = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
const BATCH = 1000;
/** More than the index has room for beside data. */
const ITEMS = 300_000;

/** Stores so many small values; returns how many of them were refused. */
function fill(session: Session, count: number): number {
  let refused = 0;
  for (let i = 0; i < count; i += BATCH) {
    const requests = Array.from({ length: BATCH }, (_, n) => `SET key:${i + n} v\r\n`).join('');
    refused += session.raw(requests).split(OOM).length - 1;
  }
  return refused;
}

it('when entries run out, items go', () => {
  const keyspace = openTestStore({ dramBytes: 16 * MIB, capacityBytes: 64 * MIB, policy: 'allkeys-lru' });
  const session = new Session(keyspace);
  expect(fill(session, ITEMS)).toBe(0);
  const { items, evicted } = keyspace.stats();
  expect(items + evicted).toBe(ITEMS);
  expect(evicted).toBeGreaterThan(0);
  expect(session.send(['SET', 'larger', 'x'.repeat(30_000)])).toBe('+OK\r\n');
  checkInvariants(keyspace);
  expect(session.send('FLUSHALL')).toBe('+OK\r\n');
  expect(session.send('SET key v')).toBe('+OK\r\n');
});
