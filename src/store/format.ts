/**
 * Formats a pool and checks the superblock of one that exists.
 *
 * Owns: where the tables lie behind the superblock. Invariant: READY_WORD is the last word written.
 */

import { ftruncateSync } from 'node:fs';
import { Bucket } from '../layout/bucket.js';
import { ChunkTail } from '../layout/chunk-tail.js';
import { Ghost } from '../layout/ghost.js';
import { Page } from '../layout/location.js';
import {
  Database,
  DatabaseState,
  Durability,
  PageInfo,
  PageKind,
  Participant,
  Pin,
  Shard,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { beginRebuild, formatCapacity, readWords, type WarmFile } from './capacity-file.js';
import { PoolError } from './errors.js';
import type { StoreHandle } from './open.js';
import { TIER_NAMES, type TierName } from './tier.js';

export interface Geometry {
  /** Pages with memory behind them. */
  readonly dramPages: number;
  readonly capacityPages: number;
  /** How many they can become (CONFIG SET dram, capacity): what the page table has room for. */
  readonly dramRoom: number;
  readonly capacityRoom: number;
  readonly shardShift: number;
  readonly durability: Durability;
}

/** Smallest DRAM tier: metadata, one index page, a participant, and some pages for items. */
const MIN_DRAM_PAGES = 16;
/** Buckets of each shard at the start. */
export const FIRST_BUCKETS = 8;
/** 1 TiB and 16 TiB: what the settings dram and capacity may be. */
const DRAM_ROOM_MAX = 1 << 20;
const CAPACITY_ROOM_MAX = 1 << 24;
/** DRAM that index pages may take at most, as a divisor: bounds the directory. */
const DIRECTORY_DIVISOR = 1;

export function planGeometry(
  dramBytes: number,
  capacityBytes: number,
  shards: number,
  durability: Durability,
  growth: number,
): Geometry {
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
  const dramRoom = Math.min(DRAM_ROOM_MAX, dramPages * growth);
  const capacityRoom = Math.min(CAPACITY_ROOM_MAX, capacityPages * growth);
  return {
    dramPages,
    capacityPages,
    dramRoom: Math.max(dramPages, dramRoom),
    capacityRoom: Math.max(capacityPages, capacityRoom),
    shardShift,
    durability,
  };
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
  readonly ghost: number;
  readonly ghostBuckets: number;
  readonly wear: number;
  readonly metaPages: number;
}

function layTables({ dramPages, capacityPages, dramRoom, capacityRoom, shardShift }: Geometry): Tables {
  const shards = 1 << shardShift;
  const shard = Super.WORDS;
  const participant = shard + shards * Shard.WORDS;
  const slabClass = participant + Participant.MAX * Participant.WORDS;
  const pin = slabClass + SlabClass.MAX * SlabClass.WORDS;
  const database = pin + Pin.SLOTS * Pin.WORDS;
  const directory = database + Database.COUNTS_WORD + shards * Database.SHARD_WORDS;
  const directoryLength = Math.ceil(dramRoom / DIRECTORY_DIVISOR);
  // Page table entries on 32-byte boundaries, two to a cache line.
  const page = (directory + directoryLength + PageInfo.WORDS - 1) & ~(PageInfo.WORDS - 1);
  const pageTableLength = capacityBase(dramRoom) + capacityRoom;
  const ghost = page + pageTableLength * PageInfo.WORDS;
  const ghostBuckets = Ghost.bucketCount(dramPages, capacityPages);
  const wear = ghost + ghostBuckets * Ghost.BUCKET_WORDS;
  const metaPages = Math.ceil(((wear + capacityRoom) * 4) / Page.BYTES);
  return {
    shard,
    participant,
    slabClass,
    pin,
    database,
    directory,
    directoryLength,
    page,
    pageTableLength,
    ghost,
    ghostBuckets,
    wear,
    metaPages,
  };
}

function capacityBase(dramRoom: number): number {
  return Math.ceil(dramRoom / Page.ARENA_PAGES) * Page.ARENA_PAGES;
}

/**
 * Reserves both files and writes an empty store. `random`: identity (4 words), hash seed (2) and epoch (1). `warm`: the capacity tier's file is
 * kept as it is, for the rebuild, and with it identity and seed. `isInUse` is asked once the old content
 * has been marked as void: whoever attaches looks at that mark after it has taken its seat.
 */
export function format(
  fd: number,
  handle: StoreHandle,
  geometry: Geometry,
  random: Int32Array,
  warm: WarmFile | null,
  isInUse: () => boolean,
): void {
  if (warm !== null) random.set(warm.random);
  const { dramRoom, capacityRoom } = geometry;
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
  const { capacityPages, durability } = geometry;
  if (handle.capacityPath !== null && warm === null)
    formatCapacity(handle.capacityPath, capacityPages, capacityRoom, random, durability);
  ctl.fill(0, 0, (tables.metaPages * Page.BYTES) / 4);
  writeSuperblock(ctl, geometry, tables, random);
  ctl[Super.TIER_WORD] = TIER_NAMES.indexOf(handle.tier);
  ctl[Super.NUMA_NODE_WORD] = handle.numaNode;
  writeTables(ctl, geometry, tables);
  if (durability === Durability.WARM) prepareWarm(ctl, tables);
  if (durability === Durability.DURABLE) prepareDurable(ctl, tables);
  if (handle.capacityPath !== null && warm !== null) {
    prepareRebuild(ctl, geometry, tables, warm, beginRebuild(handle.capacityPath, capacityPages, warm, random[6]));
  }
  ctl[Super.CHECK_WORD] = checkWord(ctl);
  Atomics.store(ctl, Super.READY_WORD, 1);
  addon.releaseArena(arena);
  // What lies behind the tier has no memory, whatever was there.
  if (oldBytes > geometry.dramPages * Page.BYTES) ftruncateSync(fd, geometry.dramPages * Page.BYTES);
  ftruncateSync(fd, dramRoom * Page.BYTES);
}

/** FNV-1a over the words that formatting writes and nothing changes. */
export function checkWord(words: Int32Array): number {
  let check = 0x811c9dc5;
  const mix = (word: number): void => {
    check = Math.imul(check ^ words[word], 0x01000193);
    check ^= check >>> 15;
  };
  for (let word = Super.MAGIC_WORD; word < Super.READY_WORD; word++) mix(word);
  for (let word = Super.DRAM_ROOM_WORD; word < Super.POLICY_WORD; word++) mix(word);
  mix(Super.TIER_WORD);
  mix(Super.NUMA_NODE_WORD);
  // Pools of before it was there have 0 in it.
  if (words[Super.DURABILITY_WORD] !== Durability.VOLATILE) mix(Super.DURABILITY_WORD);
  return check | 0;
}

function reserve(fd: number, path: string, bytes: number): void {
  try {
    addon.reserve(fd, 0, bytes);
  } catch (error) {
    throw PoolError.from(error, path, `cannot reserve ${bytes / Page.BYTES} MiB`);
  }
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
  ctl[Super.DRAM_ROOM_WORD] = geometry.dramRoom;
  ctl[Super.CAPACITY_ROOM_WORD] = geometry.capacityRoom;
  ctl[Super.DRAM_EXTENT_WORD] = geometry.dramPages;
  ctl[Super.CAPACITY_EXTENT_WORD] = geometry.capacityPages;
  ctl[Super.DRAM_TARGET_WORD] = geometry.dramPages;
  ctl[Super.CAPACITY_TARGET_WORD] = geometry.capacityPages;
  ctl[Super.CAPACITY_BASE_WORD] = capacityBase(geometry.dramRoom);
  ctl[Super.SHARD_SHIFT_WORD] = geometry.shardShift;
  ctl.set(random.subarray(0, 4), Super.IDENTITY_WORD);
  ctl[Super.SEED_LOW_WORD] = random[4];
  ctl[Super.SEED_HIGH_WORD] = random[5];
  ctl[Super.DURABILITY_WORD] = geometry.durability;
  ctl[Super.LOG_EPOCH_WORD] = random[6];
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
  ctl[Super.GHOST_TABLE_WORD] = tables.ghost;
  ctl[Super.GHOST_BUCKETS_WORD] = tables.ghostBuckets;
  ctl[Super.WEAR_TABLE_WORD] = tables.wear;
  ctl[Super.LFU_LOG_FACTOR_WORD] = 10;
  ctl[Super.LFU_DECAY_MINUTES_WORD] = 1;
  ctl[Super.DRAM_HINT_WORD] = tables.metaPages;
  ctl[Super.CAPACITY_HINT_WORD] = capacityBase(geometry.dramRoom);
}

function firstIndexPages({ shardShift }: Geometry): number {
  return Math.ceil(((1 << shardShift) * FIRST_BUCKETS) / Bucket.PER_PAGE);
}

function writeTables(ctl: Int32Array, geometry: Geometry, tables: Tables): void {
  const shards = 1 << geometry.shardShift;
  const indexPages = firstIndexPages(geometry);
  for (let page = 0; page < tables.metaPages; page++) ctl[tables.page + page * PageInfo.WORDS] = PageKind.META;
  for (let i = 0; i < indexPages; i++) {
    const page = tables.metaPages + i;
    ctl[tables.page + page * PageInfo.WORDS] = PageKind.INDEX;
    ctl[tables.directory + i] = page;
    const first = (page * Page.BYTES) / 4;
    ctl.fill(0, first, first + Page.BYTES / 4);
  }
  const base = capacityBase(geometry.dramRoom);
  for (let page = geometry.dramPages; page < geometry.dramRoom; page++) markAbsent(ctl, tables, page);
  for (let i = geometry.capacityPages; i < geometry.capacityRoom; i++) markAbsent(ctl, tables, base + i);
  ctl[Super.DRAM_FREE_WORD] = geometry.dramPages - tables.metaPages - indexPages;
  ctl[Super.CAPACITY_FREE_WORD] = geometry.capacityPages;
  for (let shard = 0; shard < shards; shard++)
    ctl[tables.shard + shard * Shard.WORDS + Shard.BUCKETS_WORD] = FIRST_BUCKETS;
  for (let db = 0; db < Database.LOGICAL; db++) {
    ctl[tables.database + Database.MAP_WORD + db] = db;
    ctl[tables.database + Database.STATE_WORD + db] = DatabaseState.LIVE;
  }
}

/** Every change is to be noted. */
function prepareDurable(ctl: Int32Array, tables: Tables): void {
  const shards = 1 << ctl[Super.SHARD_SHIFT_WORD];
  for (let shard = 0; shard < shards; shard++) {
    ctl[tables.shard + shard * Shard.WORDS + Shard.INTERESTS_WORD] = Shard.LOGGED;
  }
}

function markAbsent(ctl: Int32Array, tables: Tables, page: number): void {
  ctl[tables.page + page * PageInfo.WORDS] = PageKind.ABSENT;
}

/** Versions go on from the clock, so that none of before the reboot comes back: a shard takes fewer than a million in a second. */
const VERSIONS_A_MS = 1024;

function prepareWarm(ctl: Int32Array, tables: Tables): void {
  ctl[Super.CHUNK_TAIL_WORD] = ChunkTail.BYTES;
  const shards = 1 << ctl[Super.SHARD_SHIFT_WORD];
  const version = Date.now() * VERSIONS_A_MS;
  for (let shard = 0; shard < shards; shard++) {
    ctl[tables.shard + shard * Shard.WORDS + Shard.VERSION_HIGH_WORD] = Math.floor(version / 0x1_0000_0000);
  }
}

/** What the log holds from before the reboot is left to the rebuild (store/rebuild): its pages are neither free nor in the log. */
function prepareRebuild(
  ctl: Int32Array,
  geometry: Geometry,
  tables: Tables,
  warm: WarmFile,
  logPages: readonly number[],
): void {
  for (let physical = 0; physical < Database.DRAFTS; physical++) {
    ctl[tables.database + Database.STATE_WORD + physical] = DatabaseState.FREE;
  }
  for (let db = 0; db < Database.LOGICAL; db++) {
    ctl[tables.database + Database.MAP_WORD + db] = warm.databases[db];
    ctl[tables.database + Database.STATE_WORD + warm.databases[db]] = DatabaseState.LIVE;
  }
  if (logPages.length === 0) return;
  // What was flushed before the reboot, and not yet removed.
  let flushed = ~0;
  for (const physical of warm.databases) flushed &= ~(1 << physical);
  ctl[Super.REBUILD_FLUSHED_WORD] = flushed;
  const base = capacityBase(geometry.dramRoom);
  placeLogPages(ctl, geometry, tables, logPages);
  ctl[Super.REBUILD_NEXT_WORD] = base;
  ctl[Super.REBUILD_LEFT_WORD] = logPages.length;
  ctl[Super.REBUILD_PAGES_WORD] = logPages.length;
  const written = tables.metaPages + firstIndexPages(geometry);
  ctl.fill(0, (written * Page.BYTES) / 4, ((written + 1) * Page.BYTES) / 4);
  ctl[tables.page + written * PageInfo.WORDS] = PageKind.WRITTEN_KEYS;
  ctl[Super.DRAM_FREE_WORD]--;
  ctl[Super.REBUILD_WRITTEN_WORD] = written;
  ctl[Super.REBUILD_STATE_WORD] = 1;
}

/**
 * Log pages of before the reboot may lie beyond the size that the tier shall have, where it was larger: they are there, and as many pages below
 * are to leave.
 */
function placeLogPages(ctl: Int32Array, geometry: Geometry, tables: Tables, logPages: readonly number[]): void {
  const { capacityPages } = geometry;
  const first = tables.page + capacityBase(geometry.dramRoom) * PageInfo.WORDS;
  const extent = Math.max(capacityPages, logPages.length === 0 ? 0 : logPages[logPages.length - 1] + 1);
  for (const number of logPages) ctl[first + number * PageInfo.WORDS] = PageKind.UNSCANNED;
  const absent = extent - capacityPages;
  let left = absent - countAbsent(ctl, first, extent);
  for (let number = capacityPages - 1; number >= 0 && left > 0; number--) {
    const word = first + number * PageInfo.WORDS;
    if (ctl[word] !== PageKind.FREE) continue;
    ctl[word] = PageKind.LEAVING;
    ctl[Super.ORPHANS_WORD]++;
    left--;
  }
  ctl[Super.CAPACITY_EXTENT_WORD] = extent;
  ctl[Super.CAPACITY_ABSENT_WORD] = absent;
  ctl[Super.CAPACITY_FREE_WORD] = extent - absent - logPages.length;
}

function countAbsent(ctl: Int32Array, first: number, pages: number): number {
  let absent = 0;
  for (let i = 0; i < pages; i++) if (ctl[first + i * PageInfo.WORDS] === PageKind.ABSENT) absent++;
  return absent;
}

export interface Existing {
  /** With the sizes that the tiers shall have, where they are on their way to them. */
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

export function readSuperblock(fd: number): Int32Array {
  return readWords(fd, 0, Super.WORDS);
}

/** Reads a superblock and judges it. */
export function checkSuperblock(fd: number, path: string, fileBytes: number): Existing {
  return judgeSuperblock(readSuperblock(fd), path, fileBytes);
}

/** Refuses what is not ours, not this version, or not whole. `ready` is false for a pool whose formatting was cut short: it holds nothing. */
export function judgeSuperblock(words: Int32Array, path: string, fileBytes: number): Existing {
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
    dramPages: sizeOf(words, Super.DRAM_TARGET_WORD, Super.DRAM_EXTENT_WORD, Super.DRAM_ABSENT_WORD),
    capacityPages: sizeOf(words, Super.CAPACITY_TARGET_WORD, Super.CAPACITY_EXTENT_WORD, Super.CAPACITY_ABSENT_WORD),
    dramRoom: words[Super.DRAM_ROOM_WORD],
    capacityRoom: words[Super.CAPACITY_ROOM_WORD],
    shardShift: words[Super.SHARD_SHIFT_WORD],
    durability: words[Super.DURABILITY_WORD],
  };
  if (words[Super.BYTE_ORDER_WORD] !== Super.BYTE_ORDER || words[Super.CHECK_WORD] !== checkWord(words)) {
    throw new PoolError('POOL_CORRUPT', path, 'the header is damaged; remove the file to begin with an empty pool');
  }
  if (fileBytes < geometry.dramRoom * Page.BYTES) {
    throw new PoolError(
      'POOL_CORRUPT',
      path,
      `the file has ${fileBytes} bytes, its header says ${geometry.dramRoom * Page.BYTES}`,
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

function sizeOf(words: Int32Array, targetWord: number, extentWord: number, absentWord: number): number {
  return words[targetWord] !== 0 ? words[targetWord] : words[extentWord] - words[absentWord];
}

const UNFINISHED: Existing = {
  geometry: {
    dramPages: 0,
    capacityPages: 0,
    dramRoom: 0,
    capacityRoom: 0,
    shardShift: 0,
    durability: Durability.VOLATILE,
  },
  identity: '',
  ready: false,
  tier: 'none',
  numaNode: 0,
};
