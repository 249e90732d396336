/** What is written to the capacity tier, what comes up from it, and what stays in DRAM. */
import { describe, expect, it } from 'vitest';
import { openTestStore } from '../../test/helpers/store.js';
import { Bytes } from '../layout/bytes.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';
import type { PolicyName } from './policy.js';
import { PROMOTION_BYTES_A_SECOND } from './promotion.js';

const MIB = 1024 * 1024;
const VALUE_BYTES = 4000;
/** A chunk of the smallest class that holds it. */
const ITEM_BYTES = 4096;
/** More than DRAM holds. */
const FLOOD = 4000;
const START_MS = 1_700_000_000_000;

class Store {
  readonly keyspace: Keyspace;
  readonly #key = Bytes.allocate(8);

  constructor(policy: PolicyName, dramMib = 18, capacityMib = 12) {
    this.keyspace = openTestStore({ dramBytes: dramMib * MIB, capacityBytes: capacityMib * MIB, policy });
    this.keyspace.setClock(START_MS);
    this.keyspace.enterBatch();
  }

  #hash(key: number): number {
    this.#key.i32[0] = key;
    return this.keyspace.hash(0, this.#key, 0, 8);
  }

  set(key: number): boolean {
    const { keyspace } = this;
    const hash = this.#hash(key);
    if (!keyspace.stage(hash, 0, this.#key, 0, 8, VALUE_BYTES)) return false;
    keyspace.staged.i32[(keyspace.stagedOffset + 3) >>> 2] = key;
    keyspace.lock(hash);
    const stored = keyspace.commit(1, 0, 0, 0);
    keyspace.unlock(hash);
    return stored;
  }

  /** Where the item of a key lies; with `uses` true it is read. */
  place(key: number, uses = false): 'dram' | 'capacity' | 'nowhere' {
    const { keyspace } = this;
    const hash = this.#hash(key);
    keyspace.lock(hash);
    const found = keyspace.find(hash, 0, this.#key, 0, 8);
    const place = !found ? 'nowhere' : keyspace.memory.isCapacity(keyspace.page) ? 'capacity' : 'dram';
    if (found) {
      if (keyspace.value.i32[(keyspace.valueOffset + 3) >>> 2] !== key) throw new Error('another value');
      if (uses) keyspace.access();
    }
    keyspace.unlock(hash);
    return place;
  }

  flood(from: number, count = FLOOD): void {
    for (let key = from; key < from + count; key++) {
      if (!this.set(key)) throw new Error('refused');
      if (key % 64 === 0) this.keyspace.background(50);
    }
  }

  /** Keys below `count` that are gone. */
  lost(count: number): number {
    let lost = 0;
    for (let key = 0; key < count; key++) if (this.place(key) === 'nowhere') lost++;
    return lost;
  }

  close(): void {
    checkInvariants(this.keyspace);
    this.keyspace.leaveBatch();
  }
}

const NEXT = 10_000_000;

describe('writes to the capacity tier', () => {
  it('happen for all that falls out of DRAM while the tier has room', () => {
    const store = new Store('allkeys-lru', 18, 64);
    store.flood(0, 7500);
    expect(store.keyspace.stats().writesAvoided).toBe(0);
    expect(store.lost(7500)).toBe(0);
    store.close();
  });

  it('are not spent on what is never used, once it is full', () => {
    const store = new Store('allkeys-lru');
    store.flood(0, 10_000);
    const before = store.keyspace.stats();
    store.flood(NEXT);
    const after = store.keyspace.stats();
    const written = after.capacityBytesWritten - before.capacityBytesWritten;
    expect(written).toBeLessThan(0.1 * FLOOD * ITEM_BYTES);
    expect(after.writesAvoided - before.writesAvoided).toBeGreaterThan(0.8 * FLOOD);
    store.close();
  });

  it.each<PolicyName>(['allkeys-lru', 'allkeys-lfu'])('happen for what has been used (%s)', (policy) => {
    const store = new Store(policy);
    store.flood(0, 10_000);
    for (let key = NEXT; key < NEXT + 50; key++) store.set(key);
    for (let key = NEXT; key < NEXT + 50; key++) store.place(key, true);
    store.flood(2 * NEXT);
    store.flood(3 * NEXT);
    let left = 0;
    for (let key = NEXT; key < NEXT + 50; key++) if (store.place(key) !== 'nowhere') left++;
    expect(left).toBeGreaterThan(35);
    store.close();
  });

  it('happen for what comes back soon after it was dropped', () => {
    const store = new Store('allkeys-lru');
    store.flood(0, 10_000);
    store.flood(NEXT, 50);
    store.flood(2 * NEXT);
    const gone = [];
    for (let key = NEXT; key < NEXT + 50; key++) if (store.place(key) === 'nowhere') gone.push(key);
    expect(gone.length).toBeGreaterThan(35);
    for (const key of gone) store.set(key);
    store.flood(3 * NEXT);
    const places = gone.map((key) => store.place(key));
    expect(places.filter((place) => place === 'capacity').length).toBeGreaterThan(gone.length / 2);
    store.close();
  });

  it.each<PolicyName>(['noeviction', 'volatile-lru'])('are never left out where nothing may go (%s)', (policy) => {
    const store = new Store(policy);
    let count = 0;
    while (store.set(count)) count++;
    expect(count).toBeGreaterThan(FLOOD);
    expect(store.lost(count)).toBe(0);
    expect(store.keyspace.stats()).toMatchObject({ evicted: 0, writesAvoided: 0 });
    store.close();
  });
});

describe('DRAM', () => {
  it('keeps what is written over again and again', () => {
    const store = new Store('allkeys-lru');
    store.flood(0, 5000);
    for (let round = 0; round < 40; round++) {
      store.set(NEXT);
      store.flood(2 * NEXT + round * 250, 250);
      expect(store.place(NEXT)).toBe('dram');
    }
    store.close();
  });

  it('gets back what is read again and again, so many bytes a second', () => {
    const store = new Store('allkeys-lru', 18, 64);
    const { keyspace } = store;
    store.flood(0, 7500);
    const cold: number[] = [];
    for (let key = 0; cold.length < 1500; key++) if (store.place(key) === 'capacity') cold.push(key);
    keyspace.setClock(START_MS + 60_000);
    const read = (keys: readonly number[]): number => {
      let up = 0;
      for (let i = 0; i < keys.length; i++) {
        for (let uses = 0; uses < 3; uses++) store.place(keys[i], true);
        if (i % 32 === 31) while (keyspace.promotion.step() > 0) up++;
      }
      return up;
    };
    expect(read(cold.slice(0, 160))).toBeGreaterThan(0);
    for (const key of cold.slice(0, 160)) expect(store.place(key)).toBe('dram');
    // Time stands still: the burst, and the item during which it was used up.
    read(cold.slice(160));
    expect(keyspace.stats().promotedBytes).toBeLessThanOrEqual(MIB + ITEM_BYTES);
    keyspace.setClock(START_MS + 60_000 + (1000 * MIB) / PROMOTION_BYTES_A_SECOND);
    read(cold.slice(160, 640));
    expect(keyspace.stats().promotedBytes).toBeLessThanOrEqual(2 * (MIB + ITEM_BYTES));
    store.close();
  });
});
