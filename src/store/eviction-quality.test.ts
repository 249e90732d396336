/**
 * How well eviction chooses: against a plain LRU of the same number of items, and after the sizes of values have shifted
 * (slab calcification), against a fresh store.
 */
import { describe, expect, it } from 'vitest';
import { openTestStore } from '../../test/helpers/store.js';
import { Bytes } from '../layout/bytes.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';
import type { PolicyName } from './policy.js';

const MIB = 1024 * 1024;
/** Operations in a second of the controlled clock. */
const RATE = 20_000;

/** Repeatable numbers, and Zipf-distributed ranks by inversion of the cumulative sums. */
class Load {
  #state = 12345;
  readonly #sums: Float64Array;

  constructor(keys: number, skew: number) {
    this.#sums = new Float64Array(keys);
    let sum = 0;
    for (let i = 0; i < keys; i++) {
      sum += 1 / (i + 1) ** skew;
      this.#sums[i] = sum;
    }
  }

  random(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) | 0;
    return (this.#state >>> 0) / 0x1_0000_0000;
  }

  next(): number {
    const wanted = this.random() * this.#sums[this.#sums.length - 1];
    let low = 0;
    let high = this.#sums.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#sums[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

class Cache {
  #ops = 0;
  readonly #key = Bytes.allocate(8);

  constructor(readonly keyspace: Keyspace) {
    keyspace.enterBatch();
  }

  /** Reads a key and stores it after a miss, as a cache in front of a database does. True = hit. */
  touch(key: number, valueBytes: number): boolean {
    const { keyspace } = this;
    if (++this.#ops % 200 === 0) {
      keyspace.setClock(1_700_000_000_000 + (this.#ops / RATE) * 1000);
      keyspace.background(20);
    }
    this.#key.i32[0] = key;
    this.#key.i32[1] = 7;
    const hash = keyspace.hash(0, this.#key, 0, 8);
    keyspace.lock(hash);
    const hit = keyspace.find(hash, 0, this.#key, 0, 8);
    if (hit) keyspace.access();
    keyspace.unlock(hash);
    if (hit) return true;
    if (!keyspace.stage(hash, 0, this.#key, 0, 8, valueBytes)) throw new Error('refused');
    keyspace.lock(hash);
    keyspace.commit(1, 0, 0, 0);
    keyspace.unlock(hash);
    return false;
  }

  ratio(load: Load, ops: number, offset: number, valueBytes: number): number {
    let hits = 0;
    for (let i = 0; i < ops; i++) if (this.touch(offset + load.next(), valueBytes)) hits++;
    return hits / ops;
  }
}

/** Hit ratio of a plain LRU of so many items on the same load. */
function lruRatio(load: Load, warm: number, ops: number, items: number): number {
  const map = new Map<number, number>();
  let hits = 0;
  for (let i = 0; i < warm + ops; i++) {
    const key = load.next();
    if (map.delete(key)) {
      if (i >= warm) hits++;
    } else if (map.size >= items) {
      map.delete(map.keys().next().value as number);
    }
    map.set(key, 1);
  }
  return hits / ops;
}

describe('hit ratio on a Zipf load', () => {
  const policies: readonly PolicyName[] = ['allkeys-lru', 'allkeys-lfu'];
  it.each(policies)('%s is not below 0.95 of a plain LRU', (policy) => {
    const cache = new Cache(openTestStore({ dramBytes: 20 * MIB, policy }));
    const load = new Load(150_000, 0.9);
    cache.ratio(load, 200_000, 0, 300);
    const ratio = cache.ratio(load, 150_000, 0, 300);
    const items = cache.keyspace.size(0);
    const lru = lruRatio(new Load(150_000, 0.9), 200_000, 150_000, items);
    console.log(`${policy}: ${ratio.toFixed(3)}, plain LRU of ${items} items ${lru.toFixed(3)}`);
    expect(ratio).toBeGreaterThan(lru * 0.95);
    checkInvariants(cache.keyspace);
    cache.keyspace.leaveBatch();
  });

  it('is higher with a capacity tier', () => {
    const cache = new Cache(openTestStore({ dramBytes: 20 * MIB, capacityBytes: 20 * MIB, policy: 'allkeys-lru' }));
    const load = new Load(150_000, 0.9);
    cache.ratio(load, 250_000, 0, 300);
    const ratio = cache.ratio(load, 150_000, 0, 300);
    const items = cache.keyspace.size(0);
    const lru = lruRatio(new Load(150_000, 0.9), 250_000, 150_000, items);
    console.log(`two tiers: ${ratio.toFixed(3)}, plain LRU of ${items} items ${lru.toFixed(3)}`);
    expect(ratio).toBeGreaterThan(lru * 0.95);
    const stats = cache.keyspace.stats();
    expect(stats.usedBytes).toBeLessThanOrEqual(stats.dramBytes + stats.capacityBytes);
    checkInvariants(cache.keyspace);
    cache.keyspace.leaveBatch();
  });
});

describe('slab calcification', () => {
  it('sizes that shift from 100 bytes to 1 KiB to 300 bytes keep the hit ratio', () => {
    const cache = new Cache(openTestStore({ dramBytes: 32 * MIB, policy: 'allkeys-lru' }));
    const sizes = [100, 1024, 300];
    for (const [phase, size] of sizes.entries()) {
      const keys = Math.floor((60 * MIB) / (size + 64));
      const load = new Load(keys, 0.9);
      cache.ratio(load, keys * 3, phase * 10_000_000, size);
      const ratio = cache.ratio(load, 60_000, phase * 10_000_000, size);
      const fresh = new Cache(openTestStore({ dramBytes: 32 * MIB, policy: 'allkeys-lru' }));
      const freshLoad = new Load(keys, 0.9);
      fresh.ratio(freshLoad, keys * 3, phase * 10_000_000, size);
      const freshRatio = fresh.ratio(freshLoad, 60_000, phase * 10_000_000, size);
      const [aged, young] = [cache.keyspace.stats(), fresh.keyspace.stats()];
      console.log(
        `${size} bytes: ${ratio.toFixed(3)}, ${aged.metadataBytes / MIB} MiB metadata; fresh store ${freshRatio.toFixed(3)}, ${young.metadataBytes / MIB} MiB`,
      );
      // The index keeps the pages that it needed for the smallest items: here a sixth of DRAM, which is what the difference is.
      expect(ratio).toBeGreaterThan(freshRatio - 0.05);
      fresh.keyspace.leaveBatch();
    }
    checkInvariants(cache.keyspace);
    cache.keyspace.leaveBatch();
    // Ten seconds of work: a busy machine needs more.
  }, 240_000);

  it('under noeviction, what deletes have freed serves items of any other size', () => {
    const keyspace = openTestStore({ dramBytes: 24 * MIB, policy: 'noeviction' });
    const key = Bytes.allocate(8);
    const put = (i: number, valueBytes: number): boolean => {
      key.i32[0] = i;
      const hash = keyspace.hash(0, key, 0, 8);
      if (!keyspace.stage(hash, 0, key, 0, 8, valueBytes)) return false;
      keyspace.lock(hash);
      const stored = keyspace.commit(1, 0, 0, 0);
      keyspace.unlock(hash);
      return stored;
    };
    let items = 0;
    while (put(items, 100)) items++;
    let kept = 0;
    for (let i = 0; i < items; i++) {
      if (i % 10 === 0) {
        kept++;
        continue;
      }
      key.i32[0] = i;
      const hash = keyspace.hash(0, key, 0, 8);
      keyspace.lock(hash);
      keyspace.find(hash, 0, key, 0, 8);
      keyspace.remove();
      keyspace.unlock(hash);
    }
    let more = 0;
    while (put(1_000_000 + more, 1000)) more++;
    console.log(`${items} items of 100 bytes; 9 of 10 deleted; then ${more} of 1000 bytes`);
    // Of the bytes that the deleted ones took (144 each), most.
    expect(more * 1040).toBeGreaterThan((items - kept) * 144 * 0.75);
    expect(keyspace.size(0)).toBe(kept + more);
    checkInvariants(keyspace);
  });
});

describe('policies that do not look at use', () => {
  /** Stores items until a good part has been evicted; the share of each of two groups that is left. */
  function survivors(policy: PolicyName, expiryOf: (i: number) => number, reads: (i: number) => boolean): number[] {
    const keyspace = openTestStore({ dramBytes: 18 * MIB, policy });
    keyspace.setClock(1_700_000_000_000);
    const key = Bytes.allocate(8);
    const find = (i: number): boolean => {
      key.i32[0] = i;
      const hash = keyspace.hash(0, key, 0, 8);
      keyspace.lock(hash);
      const found = keyspace.find(hash, 0, key, 0, 8);
      if (found && reads(i)) keyspace.access();
      keyspace.unlock(hash);
      return found;
    };
    const count = 20_000;
    for (let i = 0; i < count; i++) {
      key.i32[0] = i;
      const hash = keyspace.hash(0, key, 0, 8);
      if (!keyspace.stage(hash, 0, key, 0, 8, 1000)) throw new Error('refused');
      keyspace.lock(hash);
      keyspace.commit(1, 0, 0, expiryOf(i));
      keyspace.unlock(hash);
      find(i);
    }
    const left = [0, 0];
    for (let i = 0; i < count; i++) if (find(i)) left[i % 2]++;
    checkInvariants(keyspace);
    return left;
  }

  it('volatile-ttl prefers the items that have the least time left', () => {
    const [soon, late] = survivors(
      'volatile-ttl',
      (i) => 1_700_000_100_000 + (i % 2) * 1_000_000,
      () => false,
    );
    expect(late).toBeGreaterThan(soon * 2);
  });

  it('allkeys-random spares nobody for being read', () => {
    const isOdd = (i: number): boolean => i % 2 === 1;
    const random = survivors('allkeys-random', () => 0, isOdd);
    expect(Math.abs(random[1] - random[0])).toBeLessThan(random[0] * 0.2);
  });
});
