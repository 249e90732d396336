/**
 * Formats a pool and checks the superblock of one that exists.
 *
 * Owns: where the tables lie behind the superblock. Invariant: READY_WORD is the last word written.
 */

import { ftruncateSync, readSync, writeSync } from 'node:fs';
import { Bucket } from '../layout/bucket.js';
import { Page } from '../layout/location.js';
import {
  Database,
  DatabaseState,
  PageInfo,
  PageKind,
  Participant,
  Pin,
  Shard,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { PoolError } from './errors.js';
import type { StoreHandle } from './open.js';
import { TIER_NAMES, type TierName } from './tier.js';

export interface Geometry {
  readonly dramPages: number;
  readonly capacityPages: number;
  readonly shardShift: number;
}

/** Smallest DRAM tier: metadata, one index page, a participant, and some pages for items. */
const MIN_DRAM_PAGES = 16;
/** Buckets of each shard at the start. */
const FIRST_BUCKETS = 8;
/** DRAM that index pages may take at most, as a divisor: bounds the directory. */
const DIRECTORY_DIVISOR = 1;

export function planGeometry(dramBytes: number, capacityBytes: number, shards: number): Geometry {
  const dramPages = Math.floor(dramBytes / Page.BYTES);
  const capacityPages = Math.floor(capacityBytes / Page.BYTES);
  if (dramPages < MIN_DRAM_PAGES) {
    throw new PoolError(
      'POOL_SIZE',
      '',
      `the DRAM tier needs at least ${MIN_DRAM_PAGES} MiB, ${dramPages} MiB were asked for`,
    );
  }
  const shardShift = Math.log2(shards);
  if (!Number.isInteger(shardShift) || shardShift < 5 || shardShift > 12) {
    throw new PoolError('POOL_SIZE', '', `shards must be a power of two from 32 to 4096, not ${shards}`);
  }
  return { dramPages, capacityPages, shardShift };
}

interface Tables {
  readonly shard: number;
  readonly participant: number;
  readonly slabClass: number;
  readonly pin: number;
  readonly database: number;
  readonly directory: number;
  readonly directoryLength: number;
  readonly page: number;
  readonly pageTableLength: number;
  readonly metaPages: number;
}

function layTables({ dramPages, capacityPages, shardShift }: Geometry): Tables {
  const shards = 1 << shardShift;
  const shard = Super.WORDS;
  const participant = shard + shards * Shard.WORDS;
  const slabClass = participant + Participant.MAX * Participant.WORDS;
  const pin = slabClass + SlabClass.MAX * SlabClass.WORDS;
  const database = pin + Pin.SLOTS * Pin.WORDS;
  const directory = database + Database.COUNTS_WORD + shards * Database.SHARD_WORDS;
  const directoryLength = Math.ceil(dramPages / DIRECTORY_DIVISOR);
  // Page table entries on 32-byte boundaries, two to a cache line.
  const page = (directory + directoryLength + PageInfo.WORDS - 1) & ~(PageInfo.WORDS - 1);
  const pageTableLength = capacityBase(dramPages) + capacityPages;
  const bytes = (page + pageTableLength * PageInfo.WORDS) * 4;
  const metaPages = Math.ceil(bytes / Page.BYTES);
  return { shard, participant, slabClass, pin, database, directory, directoryLength, page, pageTableLength, metaPages };
}

function capacityBase(dramPages: number): number {
  return Math.ceil(dramPages / Page.ARENA_PAGES) * Page.ARENA_PAGES;
}

/**
 * Reserves both files and writes an empty store. `random`: identity (4 words) and hash seed (2). `isInUse` is asked once the old content
 * has been marked as void: whoever attaches looks at that mark after it has taken its seat.
 */
export function format(
  fd: number,
  handle: StoreHandle,
  geometry: Geometry,
  random: Int32Array,
  isInUse: () => boolean,
): void {
  const tables = layTables(geometry);
  if (tables.metaPages + 4 > geometry.dramPages || tables.metaPages > Page.ARENA_PAGES) {
    throw new PoolError(
      'POOL_SIZE',
      handle.dramPath,
      `${geometry.dramPages} MiB of DRAM cannot hold the metadata of ${geometry.capacityPages} MiB of capacity (${tables.metaPages} MiB)`,
    );
  }
  const oldBytes = addon.fileBytes(fd);
  reserve(fd, handle.dramPath, Math.max(oldBytes, geometry.dramPages * Page.BYTES));
  const arenaBytes = Math.min(geometry.dramPages, Page.ARENA_PAGES) * Page.BYTES;
  const arena = addon.mapArena(fd, 0, arenaBytes, {});
  const ctl = new Int32Array(addon.wrapArena(arena));
  const wasReady = Atomics.exchange(ctl, Super.READY_WORD, 0);
  if (isInUse()) {
    ctl[Super.READY_WORD] = wasReady;
    addon.releaseArena(arena);
    throw new PoolError('POOL_BUSY', handle.dramPath, 'another process has begun to use the pool');
  }
  if (handle.capacityPath !== null) formatCapacity(handle.capacityPath, geometry.capacityPages, random);
  ctl.fill(0, 0, (tables.metaPages * Page.BYTES) / 4);
  writeSuperblock(ctl, geometry, tables, random);
  ctl[Super.TIER_WORD] = TIER_NAMES.indexOf(handle.tier);
  ctl[Super.NUMA_NODE_WORD] = handle.numaNode;
  writeTables(ctl, geometry, tables);
  ctl[Super.CHECK_WORD] = checkWord(ctl);
  Atomics.store(ctl, Super.READY_WORD, 1);
  addon.releaseArena(arena);
  if (oldBytes > geometry.dramPages * Page.BYTES) ftruncateSync(fd, geometry.dramPages * Page.BYTES);
}

/** FNV-1a over the words that formatting writes and nothing changes. */
function checkWord(words: Int32Array): number {
  let check = 0x811c9dc5;
  const mix = (word: number): void => {
    check = Math.imul(check ^ words[word], 0x01000193);
    check ^= check >>> 15;
  };
  for (let word = Super.MAGIC_WORD; word < Super.READY_WORD; word++) mix(word);
  for (let word = Super.DRAM_PAGES_WORD; word < Super.POLICY_WORD; word++) mix(word);
  mix(Super.TIER_WORD);
  mix(Super.NUMA_NODE_WORD);
  return check | 0;
}

function reserve(fd: number, path: string, bytes: number): void {
  try {
    addon.reserve(fd, 0, bytes);
  } catch (error) {
    throw PoolError.from(error, path, `cannot reserve ${bytes / Page.BYTES} MiB`);
  }
}

/**
 * The capacity file carries a trailer in one page behind its last: the pool's identity, then magic, version and byte order.
 * A file that has none and is not empty is somebody's.
 */
function formatCapacity(path: string, pages: number, identity: Int32Array): void {
  const fd = addon.openFile(path, true, false);
  try {
    const oldBytes = addon.fileBytes(fd);
    if (oldBytes > 0 && !isOwnCapacity(fd, oldBytes)) {
      throw new PoolError('POOL_FOREIGN', path, 'this is not the capacity file of an Entresol pool');
    }
    reserve(fd, path, (pages + 1) * Page.BYTES);
    if (oldBytes > (pages + 1) * Page.BYTES) ftruncateSync(fd, (pages + 1) * Page.BYTES);
    const trailer = new Int32Array(Trailer.WORDS);
    trailer.set(identity.subarray(0, 4));
    trailer[Trailer.MAGIC_WORD] = Super.MAGIC;
    trailer[Trailer.VERSION_WORD] = Super.VERSION;
    trailer[Trailer.BYTE_ORDER_WORD] = Super.BYTE_ORDER;
    writeSync(fd, new Uint8Array(trailer.buffer), 0, trailer.byteLength, pages * Page.BYTES);
  } finally {
    addon.closeFile(fd);
  }
}

const enum Trailer {
  IDENTITY_WORD = 0,
  MAGIC_WORD = 4,
  VERSION_WORD = 5,
  BYTE_ORDER_WORD = 6,
  WORDS = 8,
}

function readWords(fd: number, offset: number, count: number): Int32Array {
  const words = new Int32Array(count);
  readSync(fd, new Uint8Array(words.buffer), 0, count * 4, offset);
  return words;
}

/** True for a capacity file of ours, or one whose formatting was cut short (still all zeros where it would tell). */
function isOwnCapacity(fd: number, bytes: number): boolean {
  const last = Math.floor((bytes - 1) / Page.BYTES) * Page.BYTES;
  const trailer = readWords(fd, last, Trailer.WORDS);
  if (trailer[Trailer.MAGIC_WORD] === Super.MAGIC) return true;
  return trailer.every((word) => word === 0) && readWords(fd, 0, Super.WORDS).every((word) => word === 0);
}

/** The identity in a capacity file of so many pages; '' when it has no trailer there. */
export function capacityIdentity(fd: number, pages: number): string {
  if (addon.fileBytes(fd) < pages * Page.BYTES + Trailer.WORDS * 4) return '';
  const trailer = readWords(fd, pages * Page.BYTES, Trailer.WORDS);
  return trailer[Trailer.MAGIC_WORD] === Super.MAGIC ? trailer.subarray(0, Trailer.MAGIC_WORD).join(':') : '';
}

/** Items in a pool whose superblock has been checked. */
export function countItems(fd: number, geometry: Geometry): number {
  const shards = readWords(fd, Super.WORDS * 4, (1 << geometry.shardShift) * Shard.WORDS);
  let items = 0;
  for (let word = Shard.ITEMS_WORD; word < shards.length; word += Shard.WORDS) items += shards[word];
  return items;
}

function writeSuperblock(ctl: Int32Array, geometry: Geometry, tables: Tables, random: Int32Array): void {
  ctl[Super.MAGIC_WORD] = Super.MAGIC;
  ctl[Super.VERSION_WORD] = Super.VERSION;
  ctl[Super.BYTE_ORDER_WORD] = Super.BYTE_ORDER;
  ctl[Super.DRAM_PAGES_WORD] = geometry.dramPages;
  ctl[Super.CAPACITY_PAGES_WORD] = geometry.capacityPages;
  ctl[Super.CAPACITY_BASE_WORD] = capacityBase(geometry.dramPages);
  ctl[Super.SHARD_SHIFT_WORD] = geometry.shardShift;
  ctl.set(random.subarray(0, 4), Super.IDENTITY_WORD);
  ctl[Super.SEED_LOW_WORD] = random[4];
  ctl[Super.SEED_HIGH_WORD] = random[5];
  ctl[Super.META_PAGES_WORD] = tables.metaPages;
  ctl[Super.SHARD_TABLE_WORD] = tables.shard;
  ctl[Super.PARTICIPANT_TABLE_WORD] = tables.participant;
  ctl[Super.CLASS_TABLE_WORD] = tables.slabClass;
  ctl[Super.PIN_TABLE_WORD] = tables.pin;
  ctl[Super.DATABASE_TABLE_WORD] = tables.database;
  ctl[Super.DIRECTORY_WORD] = tables.directory;
  ctl[Super.DIRECTORY_LENGTH_WORD] = tables.directoryLength;
  ctl[Super.PAGE_TABLE_WORD] = tables.page;
  ctl[Super.PAGE_TABLE_LENGTH_WORD] = tables.pageTableLength;
  ctl[Super.LFU_LOG_FACTOR_WORD] = 10;
  ctl[Super.LFU_DECAY_MINUTES_WORD] = 1;
  ctl[Super.DRAM_HINT_WORD] = tables.metaPages;
  ctl[Super.CAPACITY_HINT_WORD] = capacityBase(geometry.dramPages);
}

function writeTables(ctl: Int32Array, geometry: Geometry, tables: Tables): void {
  const shards = 1 << geometry.shardShift;
  const indexPages = Math.ceil((shards * FIRST_BUCKETS) / Bucket.PER_PAGE);
  for (let page = 0; page < tables.metaPages; page++) ctl[tables.page + page * PageInfo.WORDS] = PageKind.META;
  for (let i = 0; i < indexPages; i++) {
    const page = tables.metaPages + i;
    ctl[tables.page + page * PageInfo.WORDS] = PageKind.INDEX;
    ctl[tables.directory + i] = page;
    const first = (page * Page.BYTES) / 4;
    ctl.fill(0, first, first + Page.BYTES / 4);
  }
  ctl[Super.DRAM_FREE_WORD] = geometry.dramPages - tables.metaPages - indexPages;
  ctl[Super.CAPACITY_FREE_WORD] = geometry.capacityPages;
  for (let shard = 0; shard < shards; shard++)
    ctl[tables.shard + shard * Shard.WORDS + Shard.BUCKETS_WORD] = FIRST_BUCKETS;
  for (let db = 0; db < Database.LOGICAL; db++) {
    ctl[tables.database + Database.MAP_WORD + db] = db;
    ctl[tables.database + Database.STATE_WORD + db] = DatabaseState.LIVE;
  }
}

export interface Existing {
  readonly geometry: Geometry;
  readonly identity: string;
  readonly ready: boolean;
  readonly tier: TierName;
  readonly numaNode: number;
}

/** The 32-bit number with its bytes in the other order. */
function swapped(word: number): number {
  return ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}

/**
 * Reads a superblock and refuses what is not ours, not this version, or not whole. `ready` is false for a pool whose formatting
 * was cut short: it holds nothing.
 */
export function checkSuperblock(fd: number, path: string, fileBytes: number): Existing {
  const words = readWords(fd, 0, Super.WORDS);
  const magic = words[Super.MAGIC_WORD];
  if (magic === swapped(Super.MAGIC)) {
    throw new PoolError('POOL_FOREIGN', path, 'the pool was made on a machine of the other byte order');
  }
  // Reserved and not yet written: formatting was cut short before its first word.
  const isBlank = magic === 0 && fileBytes % Page.BYTES === 0 && words.every((word) => word === 0);
  if (magic !== Super.MAGIC && !isBlank) {
    throw new PoolError('POOL_FOREIGN', path, 'this is not an Entresol pool; remove it or name another pool');
  }
  if (words[Super.READY_WORD] !== 1) return UNFINISHED;
  if (words[Super.VERSION_WORD] !== Super.VERSION) {
    throw new PoolError(
      'POOL_VERSION',
      path,
      `the pool has layout version ${words[Super.VERSION_WORD]}, this program knows version ${Super.VERSION}`,
    );
  }
  const geometry: Geometry = {
    dramPages: words[Super.DRAM_PAGES_WORD],
    capacityPages: words[Super.CAPACITY_PAGES_WORD],
    shardShift: words[Super.SHARD_SHIFT_WORD],
  };
  if (words[Super.BYTE_ORDER_WORD] !== Super.BYTE_ORDER || words[Super.CHECK_WORD] !== checkWord(words)) {
    throw new PoolError('POOL_CORRUPT', path, 'the header is damaged; remove the file to begin with an empty pool');
  }
  if (fileBytes < geometry.dramPages * Page.BYTES) {
    throw new PoolError(
      'POOL_CORRUPT',
      path,
      `the file has ${fileBytes} bytes, its header says ${geometry.dramPages * Page.BYTES}`,
    );
  }
  const identity = words.slice(Super.IDENTITY_WORD, Super.IDENTITY_WORD + 4).join(':');
  return {
    geometry,
    identity,
    ready: true,
    tier: TIER_NAMES[words[Super.TIER_WORD]] ?? 'none',
    numaNode: words[Super.NUMA_NODE_WORD],
  };
}

const UNFINISHED: Existing = {
  geometry: { dramPages: 0, capacityPages: 0, shardShift: 0 },
  identity: '',
  ready: false,
  tier: 'none',
  numaNode: 0,
};
