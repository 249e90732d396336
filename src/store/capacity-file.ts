/**
 * The capacity tier's file beyond its pages: the trailer that says whose it is, and what a warm pool needs after a reboot.
 *
 *     page 0 .. n-1   what the capacity tier can become; a hole in the file where it is smaller now
 *     page n          0 trailer (layout: Trailer)   4096, 8192 two copies of the warm state (layout: WarmState), written in turn
 *
 * The warm state is which physical database each logical one means: a flushed database is one that none means any more; and the epoch
 * of a rebuild that is not at its end: what it has not scanned when the next power cut comes is lost, since nobody knows any more what of
 * it was written meanwhile. Owns
 * both layouts. Invariant: of the two copies one is whole at any time, and the one with the higher counter is the newer.
 */
import { existsSync, fdatasyncSync, ftruncateSync, readSync, writeSync } from 'node:fs';
import { Page } from '../layout/location.js';
import { identitySalt, isKeptSince, LogPage, mix, readPageKey } from '../layout/log-record.js';
import { Database, Durability, Super } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { PoolError } from './errors.js';

const enum Trailer {
  IDENTITY_WORD = 0,
  MAGIC_WORD = 4,
  VERSION_WORD = 5,
  BYTE_ORDER_WORD = 6,
  /** A Durability; what follows is of warm pools only. */
  DURABILITY_WORD = 7,
  SEED_LOW_WORD = 8,
  SEED_HIGH_WORD = 9,
  CHECK_WORD = 10,
  WORDS = 16,
}

const enum WarmState {
  MAGIC = 0x4d52_4157, // 'WARM'
  MAGIC_WORD = 0,
  COUNTER_WORD = 1,
  MAP_WORD = 2,
  REBUILD_EPOCH_WORD = 18,
  CHECK_WORD = 19,
  WORDS = 32,
  FIRST_BYTE = 4096,
  STRIDE_BYTES = 4096,
}

/** What the capacity file of a warm pool says of it. */
export interface WarmFile {
  /** Identity (4 words) and hash seed (2), as `format` takes them. */
  readonly random: Int32Array;
  /** Logical databases -> physical ones. */
  readonly databases: Int32Array;
  /** Of the rebuild that was under way; 0 = none. */
  readonly rebuildEpoch: number;
  /** Pages that the file has room for. */
  readonly room: number;
}

export function readWords(fd: number, offset: number, count: number): Int32Array {
  const words = new Int32Array(count);
  readSync(fd, new Uint8Array(words.buffer), 0, count * 4, offset);
  return words;
}

function writeWords(fd: number, offset: number, words: Int32Array): void {
  writeSync(fd, new Uint8Array(words.buffer, words.byteOffset, words.byteLength), 0, words.byteLength, offset);
}

function checkOf(words: Int32Array, end: number): number {
  let check = 0;
  for (let word = 0; word < end; word++) check = mix(check, words[word]);
  return check;
}

/** Reserves the file and makes it this pool's. One that has no trailer and is not empty is somebody's. */
export function formatCapacity(
  path: string,
  pages: number,
  room: number,
  random: Int32Array,
  durability: Durability,
): void {
  const fd = addon.openFile(path, true, false);
  try {
    const oldBytes = addon.fileBytes(fd);
    if (oldBytes > 0 && !isOwnCapacity(fd, oldBytes)) {
      throw new PoolError('POOL_FOREIGN', path, 'this is not the capacity file of an Entresol pool');
    }
    try {
      addon.reserve(fd, 0, pages * Page.BYTES);
      addon.reserve(fd, room * Page.BYTES, Page.BYTES);
      if (oldBytes > pages * Page.BYTES && room > pages) punchOut(fd, pages, room);
    } catch (error) {
      throw PoolError.from(error, path, `cannot reserve ${pages + 1} MiB`);
    }
    if (durability === Durability.WARM) writeWarmState(fd, room, 0, sameDatabases(), 0);
    writeTrailer(fd, room, random, durability);
    // Up to here the last page says whose file it is, as it was before.
    if (oldBytes > (room + 1) * Page.BYTES) ftruncateSync(fd, (room + 1) * Page.BYTES);
    if (durability === Durability.WARM) fdatasyncSync(fd);
  } finally {
    addon.closeFile(fd);
  }
}

function writeTrailer(fd: number, room: number, random: Int32Array, durability: Durability): void {
  const trailer = new Int32Array(Trailer.WORDS);
  trailer.set(random.subarray(0, 4));
  trailer[Trailer.MAGIC_WORD] = Super.MAGIC;
  trailer[Trailer.VERSION_WORD] = Super.VERSION;
  trailer[Trailer.BYTE_ORDER_WORD] = Super.BYTE_ORDER;
  trailer[Trailer.DURABILITY_WORD] = durability;
  trailer[Trailer.SEED_LOW_WORD] = random[4];
  trailer[Trailer.SEED_HIGH_WORD] = random[5];
  trailer[Trailer.CHECK_WORD] = checkOf(trailer, Trailer.CHECK_WORD);
  writeWords(fd, room * Page.BYTES, trailer);
}

/**
 * For a repair: makes a capacity file that is missing or was cut short as long as the pool's, with zeros where something was lost. Without a trailer:
 * it is not the pool's before `adoptCapacity`. Throws PoolError for one of another pool.
 */
export function lengthenCapacity(path: string, pages: number, room: number): void {
  const fd = addon.openFile(path, true, false);
  try {
    const bytes = addon.fileBytes(fd);
    const trailer = bytes === 0 ? null : readWords(fd, lastPage(bytes), Trailer.WORDS);
    if (bytes > (room + 1) * Page.BYTES || trailer?.[Trailer.MAGIC_WORD] === Super.MAGIC) {
      throw new PoolError('POOL_FOREIGN', path, 'this is the capacity file of another pool: put the right one back');
    }
    addon.reserve(fd, 0, pages * Page.BYTES);
    addon.reserve(fd, room * Page.BYTES, Page.BYTES);
  } catch (error) {
    throw error instanceof PoolError ? error : PoolError.from(error, path, `cannot reserve ${pages + 1} MiB`);
  } finally {
    addon.closeFile(fd);
  }
}

/** `random`: as `format` takes it. */
export function adoptCapacity(path: string, room: number, random: Int32Array, durability: Durability): void {
  const fd = addon.openFile(path, false, false);
  writeTrailer(fd, room, random, durability);
  fdatasyncSync(fd);
  addon.closeFile(fd);
}

/** Gives back what an earlier, larger tier has left behind the new one; where the file system cannot, it stays and does no harm. */
function punchOut(fd: number, pages: number, room: number): void {
  try {
    addon.punchHole(fd, pages * Page.BYTES, (room - pages) * Page.BYTES);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EOPNOTSUPP') throw error;
  }
}

function sameDatabases(): Int32Array {
  return Int32Array.from({ length: Database.LOGICAL }, (_, db) => db);
}

/** True for a capacity file of ours, or one whose formatting was cut short (still all zeros where it would tell). */
function isOwnCapacity(fd: number, bytes: number): boolean {
  const trailer = readWords(fd, lastPage(bytes), Trailer.WORDS);
  if (trailer[Trailer.MAGIC_WORD] === Super.MAGIC) return true;
  return trailer.every((word) => word === 0) && readWords(fd, 0, Super.WORDS).every((word) => word === 0);
}

function lastPage(bytes: number): number {
  return Math.floor((bytes - 1) / Page.BYTES) * Page.BYTES;
}

/** The identity in a capacity file that has room for so many pages; '' when it has no trailer there. */
export function capacityIdentity(fd: number, pages: number): string {
  if (addon.fileBytes(fd) < pages * Page.BYTES + Trailer.WORDS * 4) return '';
  const trailer = readWords(fd, pages * Page.BYTES, Trailer.WORDS);
  return trailer[Trailer.MAGIC_WORD] === Super.MAGIC ? trailer.subarray(0, Trailer.MAGIC_WORD).join(':') : '';
}

/**
 * What can be brought back from a capacity file; null when that is nothing: it is new, or a volatile pool's, or its state is
 * damaged. Throws PoolError for a warm pool's of another version, or one without room for so many pages.
 */
export function readWarmFile(fd: number, path: string, pages: number): WarmFile | null {
  const bytes = addon.fileBytes(fd);
  if (bytes === 0) return null;
  const trailer = readWords(fd, lastPage(bytes), Trailer.WORDS);
  if (trailer[Trailer.MAGIC_WORD] !== Super.MAGIC || trailer[Trailer.DURABILITY_WORD] !== Durability.WARM) return null;
  if (trailer[Trailer.CHECK_WORD] !== checkOf(trailer, Trailer.CHECK_WORD)) return null;
  if (trailer[Trailer.VERSION_WORD] !== Super.VERSION) {
    const has = trailer[Trailer.VERSION_WORD];
    throw new PoolError(
      'POOL_VERSION',
      path,
      `the file has layout version ${has}, this program knows ${Super.VERSION}`,
    );
  }
  const room = lastPage(bytes) / Page.BYTES;
  if (room < pages) throw keepsSize(path, `it has room for ${room} MiB at most`);
  const state = newestState(fd, room);
  if (state === null) return null;
  const random = new Int32Array(6);
  random.set(trailer.subarray(Trailer.IDENTITY_WORD, Trailer.IDENTITY_WORD + 4));
  random[4] = trailer[Trailer.SEED_LOW_WORD];
  random[5] = trailer[Trailer.SEED_HIGH_WORD];
  return {
    random,
    databases: state.slice(WarmState.MAP_WORD, WarmState.MAP_WORD + Database.LOGICAL),
    rebuildEpoch: state[WarmState.REBUILD_EPOCH_WORD],
    room,
  };
}

/**
 * Lets the trailer of a capacity file say the present version, where it says `old`: in one piece, so it says one or the other. Returns the version that
 * it had; 0 = the file is not there, or no pool's, or, with `mustBeWarm`, none that outlives a reboot.
 */
export function renewTrailer(path: string, old: number, mustBeWarm: boolean): number {
  if (!existsSync(path)) return 0;
  const fd = addon.openFile(path, false, false);
  try {
    const bytes = addon.fileBytes(fd);
    if (bytes === 0) return 0;
    const trailer = readWords(fd, lastPage(bytes), Trailer.WORDS);
    const isWhole = trailer[Trailer.CHECK_WORD] === checkOf(trailer, Trailer.CHECK_WORD);
    if (trailer[Trailer.MAGIC_WORD] !== Super.MAGIC || !isWhole) return 0;
    if (mustBeWarm && trailer[Trailer.DURABILITY_WORD] !== Durability.WARM) return 0;
    const version = trailer[Trailer.VERSION_WORD];
    if (version !== old) return version;
    trailer[Trailer.VERSION_WORD] = Super.VERSION;
    trailer[Trailer.CHECK_WORD] = checkOf(trailer, Trailer.CHECK_WORD);
    writeWords(fd, lastPage(bytes), trailer);
    fdatasyncSync(fd);
    return version;
  } finally {
    addon.closeFile(fd);
  }
}

function keepsSize(path: string, why: string): PoolError {
  return new PoolError(
    'POOL_SIZE',
    path,
    `the file holds what survived a reboot, and ${why}; ask for such a capacity, or remove it to begin with an empty pool`,
  );
}

function readState(fd: number, pages: number, copy: number): Int32Array | null {
  const offset = pages * Page.BYTES + WarmState.FIRST_BYTE + copy * WarmState.STRIDE_BYTES;
  const state = readWords(fd, offset, WarmState.WORDS);
  const isWhole =
    state[WarmState.MAGIC_WORD] === WarmState.MAGIC &&
    state[WarmState.CHECK_WORD] === checkOf(state, WarmState.CHECK_WORD) &&
    state
      .subarray(WarmState.MAP_WORD, WarmState.REBUILD_EPOCH_WORD)
      .every((physical) => physical >= 0 && physical < Database.DRAFTS);
  return isWhole ? state : null;
}

function newestState(fd: number, pages: number): Int32Array | null {
  const states = [readState(fd, pages, 0), readState(fd, pages, 1)].filter((state) => state !== null);
  states.sort((a, b) => b[WarmState.COUNTER_WORD] - a[WarmState.COUNTER_WORD]);
  return states[0] ?? null;
}

/** Writes one of the two copies; the caller makes it persistent. */
function writeWarmState(fd: number, pages: number, counter: number, databases: Int32Array, rebuildEpoch: number): void {
  const state = new Int32Array(WarmState.WORDS);
  state[WarmState.MAGIC_WORD] = WarmState.MAGIC;
  state[WarmState.COUNTER_WORD] = counter;
  state.set(databases, WarmState.MAP_WORD);
  state[WarmState.REBUILD_EPOCH_WORD] = rebuildEpoch;
  state[WarmState.CHECK_WORD] = checkOf(state, WarmState.CHECK_WORD);
  writeWords(fd, pages * Page.BYTES + WarmState.FIRST_BYTE + (counter & 1) * WarmState.STRIDE_BYTES, state);
}

/** Keeps the warm state of a pool up to date. */
export class WarmStateFile {
  readonly #fd: number;
  readonly #pages: number;
  #counter: number;
  #written: Int32Array;

  /** `pages`: that the file has room for. */
  constructor(path: string, pages: number) {
    this.#fd = addon.openFile(path, false, false);
    // Writing behind its end would make it whole again, with holes where items were.
    if (addon.fileBytes(this.#fd) <= pages * Page.BYTES) {
      addon.closeFile(this.#fd);
      throw new PoolError('POOL_CORRUPT', path, 'the file has been cut short while it is in use');
    }
    this.#pages = pages;
    this.#written = newestState(this.#fd, pages) ?? new Int32Array(WarmState.WORDS);
    this.#counter = this.#written[WarmState.COUNTER_WORD];
  }

  /** Writes the map of databases and the epoch of the rebuild under way (0 = none), durably, if they are others. */
  save(databases: Int32Array, rebuildEpoch: number): void {
    const written = this.#written;
    const isSame = databases.every((physical, db) => physical === written[WarmState.MAP_WORD + db]);
    if (isSame && written[WarmState.REBUILD_EPOCH_WORD] === rebuildEpoch) return;
    this.#counter++;
    writeWarmState(this.#fd, this.#pages, this.#counter, databases, rebuildEpoch);
    fdatasyncSync(this.#fd);
    written.set(databases, WarmState.MAP_WORD);
    written[WarmState.REBUILD_EPOCH_WORD] = rebuildEpoch;
  }

  close(): void {
    addon.closeFile(this.#fd);
  }
}

/**
 * Notes durably that a rebuild begins, and returns the numbers of the pages that it is to scan: those with a log page of this pool. Those
 * that a rebuild before has not come to, when it was cut off, are voided. Throws PoolError when the tier, of `pages` pages, would not hold them.
 */
export function beginRebuild(path: string, pages: number, warm: WarmFile, epoch: number): number[] {
  const fd = addon.openFile(path, false, false);
  try {
    const salt = identitySalt(warm.random, 0);
    const found: number[] = [];
    const none = new Int32Array(LogPage.HEADER_WORDS);
    for (let number = 0; number < warm.room; number++) {
      const header = readWords(fd, number * Page.BYTES, LogPage.HEADER_WORDS);
      const key = readPageKey(header, 0, salt, number);
      if (key === 0) continue;
      if (warm.rebuildEpoch === 0 || isKeptSince(header, 0, key, warm.rebuildEpoch)) found.push(number);
      else writeWords(fd, number * Page.BYTES, none);
    }
    if (found.length > pages) throw keepsSize(path, `that takes ${found.length} MiB of capacity`);
    addon.reserve(fd, 0, pages * Page.BYTES);
    fdatasyncSync(fd);
    const state = new WarmStateFile(path, warm.room);
    state.save(warm.databases, found.length === 0 ? 0 : epoch);
    state.close();
    return found;
  } finally {
    addon.closeFile(fd);
  }
}
