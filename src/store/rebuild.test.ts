/** The rebuild of a warm pool from what a medium may show: whole, damaged, swapped, cut; and what is written while it is under way. */
import { afterEach, describe, expect, it } from 'vitest';
import { WarmStore } from '../../test/helpers/warm-store.js';

const MIB = 1024 * 1024;
const SIZES = { dramMib: 18, capacityMib: 16 };
const KEYS = 6000;

const open: WarmStore[] = [];
afterEach(() => {
  for (const store of open.splice(0)) store.close();
});

function start(medium?: Buffer, sizes = SIZES): WarmStore {
  const store = new WarmStore(sizes, medium);
  open.push(store);
  return store;
}

const valueAt = (i: number): string => `${i}:`.padEnd(2500 + (i % 700), 'v');

/** A store with items in its log, all of them flushed; its medium. */
function filled(): { store: WarmStore; medium: Buffer } {
  const store = start();
  for (let i = 0; i < KEYS; i++) store.session.send(['SET', `key:${i}`, valueAt(i)]);
  store.session.send(['PEXPIREAT', 'key:1', '4000000000001']);
  store.flush();
  return { store, medium: store.powerCut(() => true) };
}

function get(store: WarmStore, key: string): string | null {
  const reply = store.session.send(['GET', key]);
  return reply === '$-1\r\n' ? null : reply.slice(reply.indexOf('\n') + 1, -2);
}

/** Keys that are there, each with the value that it had. */
function present(store: WarmStore): number[] {
  const keys: number[] = [];
  for (let i = 0; i < KEYS; i++) {
    const value = get(store, `key:${i}`);
    if (value === null) continue;
    if (value !== valueAt(i)) throw new Error(`key:${i} is ${value.slice(0, 20)}`);
    keys.push(i);
  }
  return keys;
}

/** Items of the log by key, before the cut. */
function demoted(store: WarmStore): number[] {
  const { keyspace } = store;
  const keys: number[] = [];
  for (let shard = 0; shard < keyspace.memory.shardCount; shard++) {
    const word = keyspace.memory.shardTable + shard * 16;
    for (let bucket = 0; bucket < keyspace.memory.ctl[word + 1]; bucket++) {
      keyspace.index.openBucket(bucket, shard);
      do {
        for (let slot = 0; slot < 7; slot++) {
          keyspace.index.slot = slot;
          if (!keyspace.openEntry() || !keyspace.memory.isCapacity(keyspace.page)) continue;
          const { value, keyOffset, keyLength } = keyspace;
          keys.push(
            Number(
              Buffer.from(value.u8.slice(keyOffset, keyOffset + keyLength))
                .toString()
                .slice(4),
            ),
          );
        }
      } while (keyspace.index.next());
    }
  }
  keyspace.forgetFinds();
  return keys.sort((a, b) => a - b);
}

describe('a rebuild', () => {
  it('brings back all that lay in the log, with its expiry', () => {
    const { store, medium } = filled();
    const expected = demoted(store);
    expect(expected.length).toBeGreaterThan(1000);
    const again = start(medium);
    expect(present(again)).toEqual([]);
    again.rebuildAll();
    again.check();
    expect(present(again)).toEqual(expected);
    expect(again.field('rebuild_items')).toBe(expected.length);
    expect(again.field('rebuild_corrupt')).toBe(0);
    expect(again.field('rebuild_in_progress')).toBe(0);
    if (expected.includes(1)) expect(again.session.send('PEXPIRETIME key:1')).toBe(':4000000000001\r\n');
  });

  it('survives one reboot after the other, also into a DRAM tier of another size', () => {
    const { store, medium } = filled();
    const expected = demoted(store);
    let again = start(medium, { dramMib: 24, capacityMib: 16 });
    again.rebuildAll();
    again.flush();
    again = start(again.powerCut(() => true));
    again.rebuildAll();
    expect(present(again)).toEqual(expected);
  });

  it('leaves alone what is written, removed or flushed meanwhile', () => {
    const { store, medium } = filled();
    const [a, b, c] = demoted(store);
    let again = start(medium);
    again.session.send(['SET', `key:${a}`, 'new']);
    again.session.send(['DEL', `key:${b}`]);
    again.rebuildAll();
    expect(get(again, `key:${a}`)).toBe('new');
    expect(get(again, `key:${b}`)).toBe(null);
    expect(get(again, `key:${c}`)).toBe(valueAt(c));
    again.check();
    again = start(medium);
    again.rebuildStep();
    again.session.send('FLUSHALL');
    again.rebuildAll();
    expect(again.session.send('DBSIZE')).toBe(':0\r\n');
    expect(present(again)).toEqual([]);
    again.check();
  });

  it('that is cut off loses what it has not scanned, and nothing comes back from before', () => {
    const { medium } = filled();
    let again = start(medium);
    again.rebuildStep();
    for (let i = 0; i < KEYS; i++) again.session.send(['DEL', `key:${i}`]);
    again.flush();
    again = start(again.powerCut(() => true));
    again.rebuildAll();
    expect(present(again)).toEqual([]);
    again.check();
  });

  it('never gives an item that was flushed, whatever its database is used for', () => {
    const { store } = filled();
    for (let round = 0; round < 40; round++) {
      store.session.send('FLUSHDB');
      store.session.send(['SET', `late:${round}`, String(round)]);
      store.background();
    }
    store.flush();
    const again = start(store.powerCut(() => true));
    again.rebuildAll();
    expect(present(again)).toEqual([]);
    again.check();
  });
});

describe('a medium that lies', () => {
  let seed = 7;
  const random = (limit: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor((seed / 0x80000000) * limit);
  };

  /** Starts from the medium, and compares each key that is there. */
  function survivors(medium: Buffer): { keys: number[]; corrupt: number } {
    const store = start(medium);
    store.rebuildAll();
    store.check();
    const keys = present(store);
    const corrupt = store.field('rebuild_corrupt');
    open.splice(open.indexOf(store), 1);
    store.close();
    return { keys, corrupt };
  }

  it('changed bytes: those items are dropped and counted', { timeout: 120_000 }, () => {
    const { store, medium } = filled();
    const expected = demoted(store);
    for (let round = 0; round < 10; round++) {
      const damaged = Buffer.from(medium);
      for (let i = 0; i < 100; i++) damaged[random(SIZES.capacityMib * MIB)] ^= 1 << random(8);
      const { keys, corrupt } = survivors(damaged);
      expect(keys.every((key) => expected.includes(key))).toBe(true);
      expect(corrupt).toBeGreaterThan(0);
    }
  });

  it('blocks of zeros, of other blocks, and of noise', { timeout: 120_000 }, () => {
    const { store, medium } = filled();
    const expected = demoted(store);
    for (let round = 0; round < 10; round++) {
      const damaged = Buffer.from(medium);
      for (let i = 0; i < 20; i++) {
        const at = random(SIZES.capacityMib * 256) * 4096;
        if (i % 3 === 0) damaged.fill(0, at, at + 4096);
        else if (i % 3 === 1) medium.subarray(random(SIZES.capacityMib * 256) * 4096).copy(damaged, at, 0, 4096);
        else for (let b = 0; b < 4096; b++) damaged[at + b] = random(256);
      }
      const { keys } = survivors(damaged);
      expect(keys.every((key) => expected.includes(key))).toBe(true);
    }
  });

  it('pages swapped are dropped', () => {
    const { store, medium } = filled();
    const damaged = Buffer.from(medium);
    medium.copy(damaged, 2 * MIB, 3 * MIB, 4 * MIB);
    medium.copy(damaged, 3 * MIB, 2 * MIB, 3 * MIB);
    const { keys } = survivors(damaged);
    expect(keys.length).toBeLessThan(demoted(store).length);
    expect(keys.length).toBeGreaterThan(0);
  });

  it("another pool's pages are dropped", () => {
    const { medium } = filled();
    const other = filled().medium;
    medium.copy(other, 2 * MIB, 2 * MIB, 3 * MIB);
    const before = survivors(Buffer.from(filled().medium)).keys.length;
    expect(survivors(other).keys.length).toBeLessThan(before);
  });

  it('a file cut short, or of another size, is refused', () => {
    const { medium } = filled();
    expect(() => new WarmStore(SIZES, medium.subarray(0, 9 * MIB + 100))).toThrow(/not the capacity file/);
    expect(() => new WarmStore({ dramMib: 18, capacityMib: 20 }, medium)).toThrow(/room for 16 MiB at most/);
  });
});
