import { fstatSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openTestStore } from '../../test/helpers/store.js';
import { Bytes } from '../layout/bytes.js';
import { ItemType } from '../layout/item.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';

const MIB = 1 << 20;
const VALUE_BYTES = 4000;

/** Stores an item; false = no memory. */
function put(keyspace: Keyspace, id: number): boolean {
  const key = Bytes.allocate(8);
  key.view.setInt32(0, id);
  const hash = keyspace.hash(0, key, 0, 8);
  keyspace.enterBatch();
  const isStaged = keyspace.stage(hash, 0, key, 0, 8, VALUE_BYTES);
  if (isStaged) {
    keyspace.staged.u8.fill(id, keyspace.stagedOffset, keyspace.stagedOffset + VALUE_BYTES);
    keyspace.lock(hash);
    keyspace.commit(ItemType.STRING, 0, 0, 0);
    keyspace.unlock(hash);
  }
  keyspace.leaveBatch();
  return isStaged;
}

/** The item is whole, or is not there. */
function isIntact(keyspace: Keyspace, id: number): boolean {
  const key = Bytes.allocate(8);
  key.view.setInt32(0, id);
  const hash = keyspace.hash(0, key, 0, 8);
  keyspace.lock(hash);
  const isFound = keyspace.find(hash, 0, key, 0, 8);
  const value = isFound ? keyspace.value.u8.slice(keyspace.valueOffset, keyspace.valueOffset + VALUE_BYTES) : null;
  keyspace.unlock(hash);
  return value === null || value.every((byte) => byte === (id & 0xff));
}

function background(keyspace: Keyspace): void {
  keyspace.enterBatch();
  for (let i = 0; i < 200 && keyspace.background(1000); i++);
  keyspace.leaveBatch();
}

function reservedBytes(keyspace: Keyspace): number {
  return fstatSync(keyspace.memory.controlFd).blocks * 512;
}

describe('memory of clients', () => {
  it('takes pages from the data, gives them back to the system, and reserves them again', () => {
    const keyspace = openTestStore({ dramBytes: 16 * MIB, policy: 'allkeys-lru' });
    const reserved = reservedBytes(keyspace);
    for (let id = 0; id < 5000; id++) put(keyspace, id);
    keyspace.chargeClients(6.5 * MIB);
    background(keyspace);
    expect(keyspace.stats().lentBytes).toBe(6 * MIB);
    expect(reservedBytes(keyspace)).toBe(reserved - 6 * MIB);
    expect(keyspace.stats().usedBytes).toBeLessThanOrEqual(10 * MIB);
    checkInvariants(keyspace);
    for (let id = 0; id < 3000; id++) put(keyspace, id);
    for (let id = 0; id < 5000; id++) expect(isIntact(keyspace, id)).toBe(true);
    keyspace.chargeClients(0);
    background(keyspace);
    expect(keyspace.stats().lentBytes).toBe(0);
    expect(reservedBytes(keyspace)).toBe(reserved);
    checkInvariants(keyspace);
  });

  it('moves items to the capacity tier, where there is one, and loses none', () => {
    const keyspace = openTestStore({ dramBytes: 16 * MIB, capacityBytes: 64 * MIB, policy: 'noeviction' });
    for (let id = 0; id < 2500; id++) expect(put(keyspace, id)).toBe(true);
    keyspace.chargeClients(5 * MIB);
    background(keyspace);
    expect(keyspace.stats().lentBytes).toBe(5 * MIB);
    expect(keyspace.stats().demoted).toBeGreaterThan(0);
    expect(keyspace.size(0)).toBe(2500);
    expect(keyspace.isOutOfMemory).toBe(false);
  });

  it('is what refuses writes when nothing may go', () => {
    const keyspace = openTestStore({ dramBytes: 16 * MIB, policy: 'noeviction' });
    let count = 0;
    while (put(keyspace, count)) count++;
    expect(keyspace.isOutOfMemory).toBe(false);
    keyspace.chargeClients(12 * MIB);
    background(keyspace);
    expect(keyspace.isOutOfMemory).toBe(true);
    expect(keyspace.size(0)).toBe(count);
    keyspace.chargeClients(0);
    expect(keyspace.isOutOfMemory).toBe(false);
    // More than there is.
    keyspace.chargeClients(2 ** 42);
    background(keyspace);
    expect(keyspace.isOutOfMemory).toBe(true);
    checkInvariants(keyspace);
  });

  it('may go up and down at any time', () => {
    const keyspace = openTestStore({ dramBytes: 16 * MIB, policy: 'allkeys-lru' });
    const step = fc.oneof(
      fc.record({ charge: fc.nat({ max: 12 * MIB }) }),
      fc.record({ put: fc.nat({ max: 4000 }), count: fc.nat({ max: 300 }) }),
      fc.constant({ background: true }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        for (const one of steps) {
          if ('charge' in one) keyspace.chargeClients(one.charge);
          else if ('put' in one) for (let i = 0; i < one.count; i++) put(keyspace, one.put + i);
          else background(keyspace);
        }
        background(keyspace);
        checkInvariants(keyspace);
        for (let id = 0; id < 4300; id += 7) if (!isIntact(keyspace, id)) return false;
        return true;
      }),
      { numRuns: 30 },
    );
  });
});
