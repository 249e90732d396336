/**
 * repairPool against random damage: afterwards the pool is sound, and every key that can be read has the value that it had; and against each kind
 * of damage by name: what had to go, and nothing else.
 */
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Session } from '../../test/helpers/session.js';
import { Bucket } from '../layout/bucket.js';
import { Bytes } from '../layout/bytes.js';
import { Item } from '../layout/item.js';
import { locationOffset, Page } from '../layout/location.js';
import {
  Database,
  PageInfo,
  PageKind,
  Participant,
  ParticipantPage,
  Shard,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import { attach, detach } from './attach.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';
import { openStore, type StoreHandle } from './open.js';
import { openPoolCopy } from './pool-copy.js';
import { repairPool } from './pool-repair.js';
import { forEachEntry } from './walks.js';

const MIB = 1024 * 1024;
const STRINGS = 1200;
const COLLECTIONS = 40;
const CHANGING = 'key:2';
/** More than what the index has of them. */
const BUCKETS_USED = 600;
/** Beyond everything: what is not damaged in a test must not expire meanwhile. */
const FAR_MS = 4_000_000_000_000;
const RUNS = process.env.ENTRESOL_CRASH_ROUNDS === undefined ? 4 : 500;

let pool: string;
let handle: StoreHandle;
let capacityPath: string;
let soundDram: Buffer;
let soundCapacity: Buffer;
/** The DRAM tier as a participant leaves it that dies while it changes CHANGING, and where its page is. */
let dyingDram: Buffer;
let dyingPage = 0;
/** Word offsets that make up the page table, the index and so on. */
let words: Int32Array;
/** First words of the items in DRAM. */
const headers: number[] = [];
let total = 0;

const valueAt = (i: number): string => `${i}:`.padEnd(200 + ((i * 37) % 14_000), String.fromCharCode(97 + (i % 26)));
const elementsAt = (i: number): string[] => Array.from({ length: 3 + ((i * 13) % 400) }, (_, k) => `${i} element ${k}`);

beforeAll(() => {
  pool = mkdtempSync(join(tmpdir(), 'entresol-repair-'));
  handle = openStore({
    pool,
    dramBytes: 18 * MIB,
    capacityBytes: 16 * MIB,
    growth: 1,
    policy: 'noeviction',
    shards: 32,
    tier: 'file',
  });
  capacityPath = handle.capacityPath!;
  const keyspace = attach(handle);
  const session = new Session(keyspace);
  for (let i = 0; i < STRINGS; i++) session.send(['SET', `key:${i}`, valueAt(i), 'PXAT', String(FAR_MS + i)]);
  for (let i = 0; i < COLLECTIONS; i++) session.send(['RPUSH', `list:${i}`, ...elementsAt(i)]);
  session.send(['SET', 'large', 'L'.repeat(700_000)]);
  session.send(['SELECT', '3']);
  session.send(['SET', 'other', 'database']);
  for (let i = 0; i < STRINGS; i += 9) session.send(['SELECT', '0']) && session.send(['DEL', `key:${i}`]);
  // Now it lies in DRAM.
  session.send(['SET', CHANGING, valueAt(2), 'PXAT', String(FAR_MS + 2)]);
  for (let shard = 0; shard < keyspace.memory.shardCount; shard++) {
    forEachEntry(keyspace.memory, shard, (bucket, base, slot) => {
      const page = bucket[base + Bucket.SLOT_WORD + 1 + slot * 2];
      const unit = bucket[base + Bucket.SLOT_WORD + slot * 2] & 0xffff;
      if (!keyspace.memory.isCapacity(page)) headers.push(locationOffset(page, unit) >>> 2);
    });
  }
  dyingDram = changeHalf(keyspace);
  dyingPage = keyspace.memory.ctl[keyspace.memory.participantWord(keyspace.memory.self) + Participant.PAGE_WORD];
  detach(keyspace);
  soundDram = readFileSync(handle.dramPath);
  soundCapacity = readFileSync(capacityPath);
  words = new Int32Array(soundDram.buffer, soundDram.byteOffset, soundDram.length / 4);
  total = contents().size;
});
afterAll(() => {
  rmSync(handle.dramPath, { force: true });
  rmSync(pool, { recursive: true, force: true });
});
beforeEach(() => restore());

/** Begins to change a string in place, and takes the change back once the memory has been looked at. */
function changeHalf(keyspace: Keyspace): Buffer {
  const key = Bytes.from(CHANGING);
  const hash = keyspace.hash(0, key, 0, key.length);
  keyspace.enterBatch();
  keyspace.lock(hash);
  expect(keyspace.find(hash, 0, key, 0, key.length)).toBe(true);
  expect(keyspace.edit(0, 100)).toBe(true);
  keyspace.value.u8.fill(0x21, keyspace.valueOffset, keyspace.valueOffset + 50);
  const image = readFileSync(handle.dramPath);
  keyspace.journal.rollback();
  keyspace.unlock(hash);
  keyspace.leaveBatch();
  return image;
}

function restore(dram = soundDram): void {
  writeFileSync(handle.dramPath, dram);
  writeFileSync(capacityPath, soundCapacity);
}

function damage(word: number, value: number): void {
  const fd = openSync(handle.dramPath, 'r+');
  writeSync(fd, new Uint8Array(Int32Array.of(value).buffer), 0, 4, word * 4);
  closeSync(fd);
}

/** All keys with what they hold; throws for one that holds what it never did. */
function contents(): Set<string> {
  const copy = openPoolCopy(pool);
  const keys = new Set<string>();
  try {
    const keyspace = copy.attach();
    checkInvariants(keyspace);
    const session = new Session(keyspace);
    for (let i = 0; i < STRINGS; i++) {
      const value = session.send(['GET', `key:${i}`]);
      if (value === '$-1\r\n') continue;
      if (i % 9 === 0) throw new Error(`key:${i} has come back`);
      if (value !== `$${valueAt(i).length}\r\n${valueAt(i)}\r\n`) throw new Error(`key:${i} is ${value.slice(0, 30)}`);
      if (session.send(['PEXPIRETIME', `key:${i}`]) !== `:${FAR_MS + i}\r\n`) throw new Error(`key:${i}: expiry`);
      keys.add(`key:${i}`);
    }
    for (let i = 0; i < COLLECTIONS; i++) {
      const elements = session.send(['LRANGE', `list:${i}`, '0', '-1']);
      if (elements === '*0\r\n') continue;
      const all = elementsAt(i);
      const wanted = `*${all.length}\r\n${all.map((text) => `$${text.length}\r\n${text}\r\n`).join('')}`;
      if (elements !== wanted) throw new Error(`list:${i} is ${elements.slice(0, 50)}`);
      keys.add(`list:${i}`);
    }
    if (session.send('STRLEN large') === ':700000\r\n') keys.add('large');
    session.send('SELECT 3');
    if (session.send('GET other') === '$8\r\ndatabase\r\n') keys.add('other');
    return keys;
  } finally {
    copy.close();
  }
}

const wordOf = (name: number): number => words[name];
const pageInfo = (page: number): number => wordOf(Super.PAGE_TABLE_WORD) + page * PageInfo.WORDS;

function pagesOf(kind: number): number[] {
  const pages: number[] = [];
  for (let page = 1; page < 18; page++) if ((words[pageInfo(page)] & 0xff) === kind) pages.push(page);
  return pages;
}

describe('a repair', () => {
  it('leaves a sound pool alone', () => {
    expect(repairPool(pool, false)).toMatchObject({ state: 'sound', items: total });
    expect(readFileSync(handle.dramPath).equals(soundDram)).toBe(true);
  });

  it('loses nothing with the counts, the free lists and the directory', () => {
    const shard = wordOf(Super.SHARD_TABLE_WORD) + 7 * Shard.WORDS;
    damage(shard + Shard.ITEMS_WORD, 12_345);
    damage(shard + Shard.LOCK_WORD, 77);
    damage(shard + Shard.BUCKETS_WORD, 1);
    damage(wordOf(Super.DIRECTORY_WORD), 3);
    damage(wordOf(Super.CLASS_TABLE_WORD) + 5 * SlabClass.WORDS + SlabClass.FIRST_WORD, 999);
    damage(wordOf(Super.DATABASE_TABLE_WORD) + Database.MAP_WORD + 3, -1);
    damage(pageInfo(pagesOf(PageKind.SLAB)[0]) + PageInfo.FREE_HEAD_WORD, 70_000);
    damage(Super.DRAM_FREE_WORD, -5);
    damage(Super.DRAM_EXTENT_WORD, 99_999);
    damage(Super.GATE_WORD, 0x7fff_ffff);
    expect(repairPool(pool, false)).toMatchObject({ state: 'repaired', items: total, torn: 0, broken: 0 });
    expect(contents().size).toBe(total);
  });

  it('drops the item whose key is damaged, and no other', () => {
    damage(headers[3] + Item.HEADER_WORDS, 0x2121_2121);
    expect(repairPool(pool, false)).toMatchObject({ state: 'repaired', items: total - 1, torn: 1 });
    expect(contents().size).toBe(total - 1);
  });

  it('drops an item of no type, which was once taken for sound', () => {
    const shape = headers[5] + Item.SHAPE_WORD;
    damage(shape, words[shape] & Item.KEY_LENGTH_MASK);
    expect(repairPool(pool, false)).toMatchObject({ state: 'repaired', items: total - 1, torn: 1 });
    expect(contents().size).toBe(total - 1);
  });

  it('gets over a damaged header in a page of the log', () => {
    const at = soundCapacity.indexOf('key:') - Item.HEADER_BYTES;
    const fd = openSync(capacityPath, 'r+');
    writeSync(fd, Buffer.alloc(Item.HEADER_BYTES, 0xff), 0, Item.HEADER_BYTES, at);
    closeSync(fd);
    const { state, items } = repairPool(pool, false);
    expect(state).toBe('repaired');
    expect(items).toBeGreaterThanOrEqual(total - 1);
    expect(contents().size).toBe(items);
  });

  it('keeps what lay before the end of files that were cut short, and what lies in DRAM when the capacity file is gone', () => {
    truncateSync(capacityPath, 5 * MIB + 1000);
    const short = repairPool(pool, false);
    expect(short).toMatchObject({ state: 'repaired', broken: 0, problem: expect.stringContaining('too short') });
    expect(contents().size).toBe(short.items);
    expect(short.items).toBeGreaterThan(headers.length);
    expect(statSync(capacityPath).size).toBe(soundCapacity.length);
    restore();
    rmSync(capacityPath);
    expect(repairPool(pool, false)).toMatchObject({ state: 'repaired', items: headers.length });
    expect(contents().size).toBe(headers.length);
    restore();
    truncateSync(handle.dramPath, 13 * MIB);
    const cut = repairPool(pool, false);
    expect(cut).toMatchObject({ state: 'repaired', problem: expect.stringContaining('its header says') });
    expect(contents().size).toBe(cut.items);
    expect(repairPool(pool, false)).toMatchObject({ state: 'sound', items: cut.items });
  });

  it("refuses another pool's capacity file, and a damaged header, and changes nothing", () => {
    const other = Buffer.from(soundCapacity);
    other.writeInt32LE(4711, 16 * MIB);
    writeFileSync(capacityPath, other);
    expect(() => repairPool(pool, false)).toThrow(expect.objectContaining({ code: 'POOL_FOREIGN' }));
    expect(readFileSync(capacityPath).equals(other)).toBe(true);
    expect(readFileSync(handle.dramPath).equals(soundDram)).toBe(true);
    restore();
    damage(Super.SHARD_SHIFT_WORD, 9);
    expect(() => repairPool(pool, false)).toThrow(expect.objectContaining({ code: 'POOL_CORRUPT' }));
  });

  it('undoes what a dead participant was changing, also where it cannot be mended', () => {
    restore(dyingDram);
    expect(repairPool(pool, false)).toMatchObject({ state: 'sound', items: total });
    // A lock of nobody: who took a seat to mend it would wait for ever.
    damage(Super.GRAVE_LOCK_WORD, 77);
    expect(repairPool(pool, false)).toMatchObject({ state: 'repaired', items: total });
    expect(contents().size).toBe(total);
    // Nor can it be undone without a journal: its shard goes.
    restore(dyingDram);
    damage((dyingPage * Page.BYTES) / 4 + ParticipantPage.UNDO_COUNT_WORD, 5);
    const { state, items } = repairPool(pool, false);
    expect(state).toBe('repaired');
    const left = contents();
    expect(left.size).toBe(items);
    expect(left.has(CHANGING)).toBe(false);
    expect(items).toBeGreaterThan(total * 0.9);
  });

  it('goes on working afterwards', () => {
    damage(wordOf(Super.DIRECTORY_WORD), 0);
    expect(repairPool(pool, false)).toMatchObject({ state: 'repaired' });
    const keyspace = attach(handle);
    const session = new Session(keyspace);
    for (let i = 0; i < STRINGS; i += 2) session.send(['SET', `key:${i}`, 'changed']);
    for (let i = 0; i < 2000; i++) session.send(['SET', `new:${i}`, 'x'.repeat(i % 500)]);
    for (let i = 1; i < STRINGS; i += 2) session.send(['DEL', `key:${i}`]);
    session.send(['RPUSH', 'list:3', 'more']);
    checkInvariants(keyspace);
    detach(keyspace);
  });

  it('holds against random damage', { timeout: 600_000 }, () => {
    const index = pagesOf(PageKind.INDEX);
    // Words by what they belong to; the superblock's first words have a check word, without which nothing can be told.
    const areas = [
      fc.integer({ min: Super.GATE_WORD, max: Super.WORDS - 1 }),
      fc.integer({ min: Super.WORDS, max: (wordOf(Super.META_PAGES_WORD) * Page.BYTES) / 4 - 1 }),
      fc.integer({ min: wordOf(Super.SHARD_TABLE_WORD), max: wordOf(Super.PARTICIPANT_TABLE_WORD) - 1 }),
      fc.integer({ min: wordOf(Super.PAGE_TABLE_WORD), max: pageInfo(18) }),
      // Of the buckets what leads to items: an expiry has no check word.
      fc
        .tuple(
          fc.constantFrom(...index),
          fc.integer({ min: 0, max: BUCKETS_USED }),
          fc.constantFrom(
            Bucket.OVERFLOW_WORD,
            ...Array.from({ length: 2 * Bucket.SLOTS }, (_, i) => Bucket.SLOT_WORD + i),
          ),
        )
        .map(([page, bucket, word]) => (page * Page.BYTES) / 4 + bucket * Bucket.WORDS + word),
      // Nor has a value.
      fc
        .tuple(fc.constantFrom(...headers), fc.constantFrom(Item.HASH_WORD, Item.SHAPE_WORD))
        .map(([at, word]) => at + word),
    ];
    const value = fc.oneof(fc.integer(), fc.integer({ min: -2, max: 20 }), fc.constant(0), fc.constant(0x7fff_ffff));
    const one = fc.tuple(fc.oneof(...areas), value);
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 12 }), fc.boolean(), (damages, isDying) => {
        restore(isDying ? dyingDram : soundDram);
        for (const [word, to] of damages) damage(word, to);
        const { state, items, problem } = repairPool(pool, false);
        if (state === 'damaged') throw new Error(problem);
        expect(contents().size).toBeLessThanOrEqual(items);
      }),
      { numRuns: RUNS },
    );
  });
});
