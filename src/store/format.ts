/**
 * Formats a pool and checks the superblock of one that exists.
 *
 * Owns: where the tables lie behind the superblock. Invariant: READY_WORD is the last word written.
 */

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

/** Reserves both files and writes an empty store. `random`: identity (4 words) and hash seed (2). */
export function format(fd: number, handle: StoreHandle, geometry: Geometry, random: Int32Array): void {
  const tables = layTables(geometry);
  if (tables.metaPages + 4 > geometry.dramPages || tables.metaPages > Page.ARENA_PAGES) {
    throw new PoolError(
      'POOL_SIZE',
      handle.dramPath,
      `${geometry.dramPages} MiB of DRAM cannot hold the metadata of ${geometry.capacityPages} MiB of capacity (${tables.metaPages} MiB)`,
    );
  }
  reserve(fd, handle.dramPath, geometry.dramPages * Page.BYTES);
  const arenaBytes = Math.min(geometry.dramPages, Page.ARENA_PAGES) * Page.BYTES;
  const arena = addon.mapArena(fd, 0, arenaBytes, {});
  const ctl = new Int32Array(addon.wrapArena(arena));
  ctl[Super.READY_WORD] = 0;
  ctl.fill(0, 0, (tables.metaPages * Page.BYTES) / 4);
  writeSuperblock(ctl, geometry, tables, random);
  ctl[Super.TIER_WORD] = TIER_NAMES.indexOf(handle.tier);
  ctl[Super.NUMA_NODE_WORD] = handle.numaNode;
  writeTables(ctl, geometry, tables);
  if (handle.capacityPath !== null) formatCapacity(handle.capacityPath, geometry.capacityPages, random);
  Atomics.store(ctl, Super.READY_WORD, 1);
  addon.releaseArena(arena);
}

function reserve(fd: number, path: string, bytes: number): void {
  try {
    addon.reserve(fd, 0, bytes);
  } catch (error) {
    throw PoolError.from(error, path, `cannot reserve ${bytes / Page.BYTES} MiB`);
  }
}

/** The capacity file carries the pool's identity in one page behind its last. */
function formatCapacity(path: string, pages: number, identity: Int32Array): void {
  const fd = addon.openFile(path, true, false);
  try {
    reserve(fd, path, (pages + 1) * Page.BYTES);
    const arena = addon.mapArena(fd, pages * Page.BYTES, Page.BYTES, {});
    new Int32Array(addon.wrapArena(arena)).set(identity.subarray(0, 4));
    addon.releaseArena(arena);
  } finally {
    addon.closeFile(fd);
  }
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

/** Reads a superblock and refuses what is not ours, not this version, or not whole. */
export function checkSuperblock(fd: number, path: string, fileBytes: number): Existing {
  if (fileBytes < Page.BYTES)
    throw new PoolError('POOL_CORRUPT', path, `the file has ${fileBytes} bytes: too short for a pool`);
  const arena = addon.mapArena(fd, 0, Page.BYTES, {});
  const words = new Int32Array(addon.wrapArena(arena)).slice(0, Super.WORDS);
  addon.releaseArena(arena);
  if (words[Super.MAGIC_WORD] !== Super.MAGIC) {
    throw new PoolError('POOL_FOREIGN', path, 'this is not an Entresol pool; remove it or name another pool');
  }
  if (words[Super.BYTE_ORDER_WORD] !== Super.BYTE_ORDER) {
    throw new PoolError('POOL_FOREIGN', path, 'the pool was made on a machine of the other byte order');
  }
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
    ready: words[Super.READY_WORD] === 1,
    tier: TIER_NAMES[words[Super.TIER_WORD]] ?? 'none',
    numaNode: words[Super.NUMA_NODE_WORD],
  };
}
