/** Tiers that grow and shrink under several participants: nothing is lost that may not be, every step leaves a sound pool, memory goes back. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { Bytes } from '../layout/bytes.js';
import { PageKind, Super } from '../layout/superblock.js';
import { attach, detach } from './attach.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';
import { openStore, type StoreHandle, type StoreOptions } from './open.js';

const MIB = 1024 * 1024;
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

/** A pool and so many participants of it. */
function open(count: number, options: Partial<StoreOptions>): { handle: StoreHandle; all: Keyspace[] } {
  const pool = options.pool ?? mkdtempSync(join(tmpdir(), 'entresol-resize-'));
  const handle = openStore({
    pool,
    dramBytes: 24 * MIB,
    capacityBytes: 16 * MIB,
    policy: 'noeviction',
    tier: 'file',
    shards: 32,
    ...options,
  });
  const all = Array.from({ length: count }, () => attach(handle));
  closers.push(() => {
    check(all[0]);
    for (const keyspace of all) detach(keyspace);
    rmSync(handle.dramPath, { force: true });
    rmSync(pool, { recursive: true, force: true });
  });
  return { handle, all };
}

function check(keyspace: Keyspace): number {
  keyspace.enterBatch();
  keyspace.closeGate();
  try {
    return checkInvariants(keyspace);
  } finally {
    keyspace.openGate();
    keyspace.leaveBatch();
  }
}

function set(keyspace: Keyspace, key: string, value: string): boolean {
  const bytes = Bytes.from(key);
  const hash = keyspace.hash(0, bytes, 0, bytes.length);
  keyspace.enterBatch();
  const staged = keyspace.stage(hash, 0, bytes, 0, bytes.length, value.length);
  if (staged) {
    keyspace.staged.u8.set(Buffer.from(value), keyspace.stagedOffset);
    keyspace.lock(hash);
    expect(keyspace.commit(1, 0, 0, 0)).toBe(true);
    keyspace.unlock(hash);
  }
  keyspace.leaveBatch();
  return staged;
}

function get(keyspace: Keyspace, key: string): string | null {
  const bytes = Bytes.from(key);
  const hash = keyspace.hash(0, bytes, 0, bytes.length);
  keyspace.enterBatch();
  keyspace.lock(hash);
  const found = keyspace.find(hash, 0, bytes, 0, bytes.length);
  const { valueOffset, valueLength } = keyspace;
  const value = found ? Buffer.from(keyspace.value.u8.slice(valueOffset, valueOffset + valueLength)).toString() : null;
  keyspace.unlock(hash);
  keyspace.leaveBatch();
  return value;
}

function work(keyspace: Keyspace, slices = 1): void {
  for (let i = 0; i < slices; i++) {
    keyspace.refreshClock();
    keyspace.enterBatch();
    keyspace.background(2000);
    keyspace.leaveBatch();
  }
}

/** Works until the tiers have these sizes, in MiB. */
function settle(all: readonly Keyspace[], dram: number, capacity: number): void {
  const { memory } = all[0];
  const end = Date.now() + 60_000;
  while ((memory.dramSize !== dram || memory.capacitySize !== capacity) && Date.now() < end) {
    for (const keyspace of all) work(keyspace);
  }
  expect([memory.dramSize, memory.capacitySize]).toEqual([dram, capacity]);
}

const mibOf = (path: string): number => Math.round((statSync(path).blocks * 512) / MIB);
/**
 * Absent pages of the capacity tier that share 2 MiB with a page that is there. A file system with large folios (ext4 of Linux 6.16 on) may
 * keep both in one: a write to the other page then takes memory for the hole as well, though nothing is written there.
 */
function besidePresent({ memory }: Keyspace): number {
  const isThere = (at: number): boolean => memory.pageKind(memory.capacityBase + at) !== PageKind.ABSENT;
  let count = 0;
  for (let at = 0; at < memory.capacityPages; at++) if (!isThere(at) && isThere(at ^ 1)) count++;
  return count;
}
const contentOf = (i: number): string => `${i}:`.padEnd(900 + (i % 7) * 300, 'v');

describe('a tier', () => {
  it('grows and shrinks, keeps what it holds, and gives its memory back', () => {
    const { handle, all } = open(2, {});
    const capacityPath = handle.capacityPath as string;
    const [one, two] = all;
    expect(mibOf(handle.dramPath)).toBe(24);
    let written = 0;
    while (set(one, `key:${written}`, contentOf(written))) written++;
    one.sizes.set(36 * MIB, 48 * MIB);
    settle(all, 36, 48);
    expect(mibOf(handle.dramPath)).toBe(36);
    expect(mibOf(capacityPath)).toBe(49);
    const before = written;
    while (set(two, `key:${written}`, contentOf(written))) written++;
    expect(written).toBeGreaterThan(1.5 * before);
    for (let i = 0; i < written; i++) expect(get(one, `key:${i}`)).toBe(contentOf(i));
    check(one);

    expect(one.sizes.problem(24 * MIB, 48 * MIB)).toMatchObject({ setting: 'dram', reason: /does not fit/ });
    expect(one.sizes.problem(36 * MIB, 16 * MIB)).toMatchObject({ setting: 'capacity', reason: /does not fit/ });
    expect(one.sizes.problem(36 * MIB, 65 * MIB)).toMatchObject({ setting: 'capacity', reason: /at most 64 MiB/ });

    for (let i = before; i < written; i++) remove(one, `key:${i}`);
    work(one, 5);
    expect(one.sizes.problem(26 * MIB, 42 * MIB)).toBeNull();
    one.sizes.set(26 * MIB, 42 * MIB);
    settle(all, 26, 42);
    expect(mibOf(handle.dramPath)).toBe(26);
    expect(mibOf(capacityPath)).toBeGreaterThanOrEqual(43);
    expect(mibOf(capacityPath)).toBeLessThanOrEqual(43 + besidePresent(one));
    for (let i = 0; i < before; i++) expect(get(two, `key:${i}`)).toBe(contentOf(i));
    check(one);
  });

  it('evicts what does not fit, large items among it, where the policy allows', () => {
    const { handle, all } = open(2, { policy: 'allkeys-lru', dramBytes: 32 * MIB, capacityBytes: 48 * MIB });
    const [one] = all;
    for (let i = 0; i < 20; i++) expect(set(one, `large:${i}`, 'x'.repeat(1_500_000))).toBe(true);
    for (let i = 0; i < 15_000; i++) set(one, `key:${i}`, contentOf(i));
    expect(one.sizes.problem(18 * MIB, 4 * MIB)).toBeNull();
    one.sizes.set(18 * MIB, 4 * MIB);
    settle(all, 18, 4);
    expect(mibOf(handle.dramPath)).toBe(18);
    let kept = 0;
    for (let i = 0; i < 15_000; i++) {
      const value = get(one, `key:${i}`);
      if (value !== null) expect(value).toBe(contentOf(i));
      if (value !== null) kept++;
    }
    expect(kept).toBeGreaterThan(2000);
    expect(one.sizes.problem(5 * MIB, 4 * MIB)).toMatchObject({ setting: 'dram', reason: /metadata/ });
  });

  it('any sequence of sizes keeps every item of a pool that may lose none', () => {
    const { all } = open(3, { dramBytes: 20 * MIB });
    const [one] = all;
    const step = fc.record({
      who: fc.nat(2),
      dram: fc.integer({ min: 16, max: 80 }),
      capacity: fc.integer({ min: 4, max: 64 }),
      keys: fc.nat(400),
      slices: fc.nat(4),
    });
    let next = 0;
    const kept = new Map<string, string>();
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        for (const { who, dram, capacity, keys, slices } of steps) {
          const keyspace = all[who];
          if (keyspace.sizes.problem(dram * MIB, capacity * MIB) === null)
            keyspace.sizes.set(dram * MIB, capacity * MIB);
          for (let i = 0; i < keys; i++) {
            const key = `key:${next++ % 5000}`;
            const value = contentOf(next % 97);
            if (set(keyspace, key, value)) kept.set(key, value);
          }
          work(all[(who + 1) % 3], slices);
        }
        check(one);
      }),
      { numRuns: 12 },
    );
    for (const [key, value] of kept) expect(get(one, key)).toBe(value);
  }, 120_000);
});

function remove(keyspace: Keyspace, key: string): void {
  const bytes = Bytes.from(key);
  const hash = keyspace.hash(0, bytes, 0, bytes.length);
  keyspace.enterBatch();
  keyspace.lock(hash);
  if (keyspace.find(hash, 0, bytes, 0, bytes.length)) keyspace.remove();
  keyspace.unlock(hash);
  keyspace.leaveBatch();
}

describe('a restart', () => {
  it('takes other sizes where all fits, and refuses others with what is there', () => {
    const { handle, all } = open(1, {});
    const [one] = all;
    let written = 0;
    while (written < 8000 && set(one, `key:${written}`, contentOf(written))) written++;
    const pool = join(handle.capacityPath as string, '..');
    const again = (dram: number, capacity: number): StoreHandle =>
      openStore({
        pool,
        dramBytes: dram * MIB,
        capacityBytes: capacity * MIB,
        tier: 'file',
        shards: 32,
        mayResize: true,
      });
    expect(() => again(16, 4)).toThrow(/cannot get 16 MiB of DRAM.*does not fit/);
    expect(() => again(200, 16)).toThrow(/at most 96 MiB/);
    expect(again(40, 40)).toMatchObject({ isNew: false });
    expect(one.memory.ctl[Super.DRAM_TARGET_WORD]).toBe(24);
  });
});

describe.skipIf(process.getuid?.() !== 0)('a full file system', () => {
  it('keeps the tier from growing until there is room, and loses nothing', () => {
    const base = mkdtempSync(join(tmpdir(), 'entresol-resize-'));
    closers.push(() => rmSync(base, { recursive: true, force: true }));
    const mount = join(base, 'mount');
    mkdirSync(mount);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', mount], { stdio: 'ignore' });
    } catch {
      return; // a container without the right to mount
    }
    closers.push(() => execFileSync('umount', ['-l', mount]));
    const pool = join(mount, 'pool');
    const { all } = open(1, { pool });
    const [one] = all;
    const { memory } = one;
    for (let i = 0; i < 5000; i++) expect(set(one, `key:${i}`, contentOf(i))).toBe(true);
    expect(one.sizes.problem(24 * MIB, 60 * MIB)).toMatchObject({
      setting: 'capacity',
      reason: /no space left: 44 MiB/,
    });
    writeFileSync(join(mount, 'other'), Buffer.alloc(15 * MIB));
    one.sizes.set(24 * MIB, 36 * MIB);
    work(one, 50);
    expect(memory.capacitySize).toBeLessThan(36);
    expect(one.stats().resizeErrno).toBeGreaterThan(0);
    check(one);
    for (let i = 0; i < 5000; i++) expect(get(one, `key:${i}`)).toBe(contentOf(i));
    rmSync(join(mount, 'other'));
    settle(all, 24, 36);
    expect(one.stats().resizeErrno).toBe(0);
  });
});
