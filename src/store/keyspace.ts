/**
 * The only door to data: one Keyspace a participant (a worker thread, an embedding thread).
 *
 * Owns: the item cursor, the staged item, and the order of steps that makes every change atomic. Invariant: between lock and
 * unlock, each changed word is in the undo journal and each chunk taken or unlinked is in a held slot, so that whoever
 * finds this participant dead can put all of it back.
 *
 * A key is (bytes, offset, length); `db` a logical database 0..15. Executors lock, handlers do not. Nothing here allocates
 * JavaScript memory on the paths of a request.
 */

import { Bucket } from '../layout/bucket.js';
import { type Bytes, bytesEqual } from '../layout/bytes.js';
import { Encoding, Item, itemBytes, shapeWord } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { Database, ParticipantPage as P, PageInfo, PageKind, Shard, Super } from '../layout/superblock.js';
import type { CapacityLog } from '../memory/capacity-log.js';
import { type Held, STAGED_SLOT, UNPINNED_SLOT } from '../memory/held.js';
import type { Journal } from '../memory/journal.js';
import type { Memory } from '../memory/memory.js';
import { DRAM_RESERVE_PAGES, NO_PAGE, type PagePool } from '../memory/page-pool.js';
import type { Pins } from '../memory/pins.js';
import { CLASS_OF_UNITS, CLASS_UNITS, MAX_CHUNK_UNITS } from '../memory/slab-classes.js';
import type { Slabs } from '../memory/slabs.js';
import { addon } from '../native/addon.js';
import { copyBytes } from '../native/copy.js';
import { Databases } from './databases.js';
import { Eviction } from './eviction.js';
import { Gate } from './gate.js';
import { hashKey } from './hash.js';
import { Index } from './index.js';
import { LockSet } from './lock-set.js';
import { collectDead, restoreParticipant } from './repair.js';
import { randomKey, scanBucket } from './scan.js';
import { collectStats, Stat, type StoreStats } from './statistics.js';
import { Sweep } from './sweep.js';

/** Longer values are sent from the region, under a pin, instead of being copied out. */
export const INLINE_VALUE_BYTES = 16384;
/** Found items that staging never evicts. */
const PROTECTED_FINDS = 4;
/** In held slots, marks a chunk that was linked (not unlinked) by the running command. */
const LINKED = 0x10000;

/** Where a connection keeps a staged item whose value is still arriving. */
export interface StageSlot {
  held: number;
  page: number;
  unit: number;
  hash: number;
  database: number;
}

export interface KeyspaceParts {
  readonly memory: Memory;
  readonly journal: Journal;
  readonly held: Held;
  readonly pool: PagePool;
  readonly slabs: Slabs;
  readonly log: CapacityLog;
  readonly pins: Pins;
}

export class Keyspace {
  /** Wall clock in ms and the access clock (seconds modulo 2^24) derived from it: see refreshClock. */
  nowMs = 0;
  accessNow = 0;

  // ---- the item cursor, set by find
  type = 0;
  encoding = 0;
  value: Bytes;
  valueOffset = 0;
  valueLength = 0;
  page = NO_PAGE;
  unit = 0;
  keyLength = 0;
  /** Byte offset of the item's header within `value`'s arena. */
  itemOffset = 0;

  // ---- the staged item
  staged: Bytes;
  stagedOffset = 0;
  stagedLength = 0;

  readonly memory: Memory;
  readonly journal: Journal;
  readonly pool: PagePool;
  readonly slabs: Slabs;
  readonly log: CapacityLog;
  readonly pins: Pins;
  readonly index: Index;
  readonly lockSet: LockSet;
  readonly gate: Gate;
  readonly eviction: Eviction;
  readonly sweep: Sweep;
  readonly databases: Databases;
  readonly statistics: Float64Array;

  readonly #held: Held;
  readonly #ctl: Int32Array;
  readonly #arenas: Bytes[];
  readonly #databases: number;
  readonly #seedLow: number;
  readonly #seedHigh: number;
  readonly #largeDramBytes: number;

  #cursorHash = 0;
  /** The index position of the cursor: `find` leaves it here, since staging moves the index's own. */
  #cursorWords: Int32Array;
  #cursorBase = 0;
  #cursorSlot = 0;
  #cursorArena = 0;
  /** The key of the last find, to tell whether commit may use the cursor; offset -1 = no. */
  #foundBytes: Bytes;
  #foundOffset = -1;
  #foundLength = 0;
  #foundDatabase = 0;
  #found = false;

  #stagedPage = NO_PAGE;
  #stagedUnit = 0;
  #stagedHash = 0;
  #stagedDatabase = 0;
  #stagedKeyLength = 0;
  #stagedKeyBytes: Bytes;
  #stagedKeyOffset = 0;

  readonly #protectedPages = new Int32Array(PROTECTED_FINDS);
  readonly #protectedUnits = new Int32Array(PROTECTED_FINDS);
  #protectedNext = 0;
  /** Hash of a shard that wants to grow once the journal is empty; one a lock scope is enough. */
  #growHash = -1;
  #growPending = false;
  #lastLookForDeadMs = 0;

  constructor(parts: KeyspaceParts) {
    const { memory } = parts;
    this.memory = memory;
    this.journal = parts.journal;
    this.#held = parts.held;
    this.pool = parts.pool;
    this.slabs = parts.slabs;
    this.log = parts.log;
    this.pins = parts.pins;
    this.#ctl = memory.ctl;
    this.#arenas = memory.arenas;
    this.#databases = memory.databaseTable;
    this.#seedLow = memory.ctl[Super.SEED_LOW_WORD];
    this.#seedHigh = memory.ctl[Super.SEED_HIGH_WORD];
    this.#largeDramBytes = Math.floor((memory.dramPages * Page.BYTES) / 100);
    this.value = memory.arenas[0];
    this.staged = memory.arenas[0];
    this.#foundBytes = memory.arenas[0];
    this.#stagedKeyBytes = memory.arenas[0];
    this.#cursorWords = memory.ctl;
    this.index = new Index(memory, parts.journal, parts.pool);
    this.lockSet = new LockSet(this, memory);
    this.gate = new Gate(memory);
    this.statistics = new Float64Array(memory.own.buffer, (memory.ownBase + P.STATS_WORD) * 4, P.STATS_COUNT);
    this.eviction = new Eviction(this);
    this.sweep = new Sweep(this);
    this.databases = new Databases(memory, this.sweep);
    this.refreshClock();
  }

  // ---- clock and hash

  refreshClock(): void {
    this.setClock(addon.realtimeMs());
  }

  setClock(ms: number): void {
    this.nowMs = Math.floor(ms);
    this.accessNow = Math.floor(ms / 1000) & Bucket.ACCESS_MASK;
  }

  hash(db: number, bytes: Bytes, offset: number, length: number): number {
    const physical = this.#ctl[this.#databases + db];
    return hashKey(this.#seedLow ^ physical, this.#seedHigh, bytes, offset, length);
  }

  physical(db: number): number {
    return this.#ctl[this.#databases + db];
  }

  // ---- locks

  lock(hash: number): void {
    this.memory.lock(this.index.shardWord(hash));
  }

  unlock(hash: number): void {
    this.settle();
    if (this.#growPending) this.grow();
    this.memory.unlock(this.index.shardWord(hash));
    if (this.#held.count !== 0) this.freeUnlinked();
  }

  /** The changes of the running command stand: from here a crash does not undo them. Locks are still held. */
  settle(): void {
    this.journal.commit();
    this.#foundOffset = -1;
    const held = this.#held;
    // What was linked is other people's from the unlock on: forget it before.
    for (let i = 0; i < held.count; i++) {
      const slot = held.deferredSlot(i);
      if ((held.unit(slot) & LINKED) !== 0) held.clear(slot);
    }
  }

  /** Lets the shard of the last insert split a bucket. The journal is empty; cursors are lost. */
  grow(): void {
    if (!this.#growPending) return;
    this.#growPending = false;
    this.index.growIfNeeded(this.#growHash);
    this.journal.commit();
  }

  /** Frees what the command unlinked. After settle; locks may or may not be held. */
  freeUnlinked(): void {
    const held = this.#held;
    for (let i = 0; i < held.count; i++) {
      const slot = held.deferredSlot(i);
      const page = held.page(slot);
      if (page !== NO_PAGE) this.freeItem(page, held.unit(slot), slot);
    }
    held.count = 0;
  }

  enterBatch(): void {
    this.gate.enter();
  }

  leaveBatch(): void {
    this.gate.leave();
  }

  closeGate(): void {
    this.gate.close();
  }

  openGate(): void {
    this.settle();
    this.grow();
    if (this.#held.count !== 0) this.freeUnlinked();
    this.gate.open();
  }

  // ---- find

  /** Positions the cursor on the live item of a key. Its lock is held. An expired item is removed and is a miss. */
  find(hash: number, db: number, bytes: Bytes, offset: number, length: number): boolean {
    const database = this.#ctl[this.#databases + db];
    this.#foundBytes = bytes;
    this.#foundOffset = offset;
    this.#foundLength = length;
    this.#foundDatabase = database;
    this.#found = this.#findKey(hash, database, bytes, offset, length);
    return this.#found;
  }

  #findKey(hash: number, database: number, bytes: Bytes, offset: number, length: number): boolean {
    const { index } = this;
    const tag = hash >>> 16;
    const identity = length | (database << Item.DB_SHIFT);
    index.locate(hash);
    do {
      const { words, base } = index;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        const word = words[base + Bucket.SLOT_WORD + slot * 2];
        if (word >>> 16 !== tag) continue;
        const page = words[base + Bucket.SLOT_WORD + 1 + slot * 2];
        if (page === NO_PAGE) continue;
        const item = this.#arenas[page >>> Page.ARENA_SHIFT];
        const itemOffset = ((page & Page.ARENA_MASK) << Page.SHIFT) + ((word & 0xffff) << Page.UNIT_SHIFT);
        const header = itemOffset >>> 2;
        if (item.i32[header] !== hash) continue;
        const shape = item.i32[header + Item.SHAPE_WORD];
        if ((shape & 0xff00ffff) !== identity) continue;
        if (!bytesEqual(item, itemOffset + Item.HEADER_BYTES, bytes, offset, length)) continue;
        index.slot = slot;
        if (index.hasExpiry && index.expiryMs <= this.nowMs) {
          this.#setCursor(hash, item, itemOffset, page, word & 0xffff, shape);
          this.statistics[Stat.EXPIRED]++;
          this.#unlink();
          return false;
        }
        this.#setCursor(hash, item, itemOffset, page, word & 0xffff, shape);
        return true;
      }
    } while (index.next());
    return false;
  }

  #setCursor(hash: number, item: Bytes, itemOffset: number, page: number, unit: number, shape: number): void {
    const { index } = this;
    const keyLength = shape & Item.KEY_LENGTH_MASK;
    this.#cursorHash = hash;
    this.#cursorWords = index.words;
    this.#cursorBase = index.base;
    this.#cursorSlot = index.slot;
    this.#cursorArena = index.arena;
    this.value = item;
    this.itemOffset = itemOffset;
    this.page = page;
    this.unit = unit;
    this.keyLength = keyLength;
    this.type = (shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
    this.encoding = (shape >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK;
    this.valueLength = item.i32[(itemOffset >>> 2) + Item.VALUE_LENGTH_WORD];
    this.valueOffset = itemOffset + Item.HEADER_BYTES + keyLength;
    const next = this.#protectedNext;
    this.#protectedPages[next] = page;
    this.#protectedUnits[next] = unit;
    this.#protectedNext = (next + 1) & (PROTECTED_FINDS - 1);
  }

  /** Positions the cursor on the entry that the index stands on (scans, eviction). False when the slot is empty. */
  openEntry(): boolean {
    const { index } = this;
    const { page, unit } = index;
    if (page === NO_PAGE) return false;
    const item = this.#arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, unit);
    this.#foundOffset = -1;
    const header = itemOffset >>> 2;
    this.#setCursor(item.i32[header], item, itemOffset, page, unit, item.i32[header + Item.SHAPE_WORD]);
    return true;
  }

  /** Moves the index back to the cursor's entry. */
  #restore(): void {
    const { index } = this;
    index.words = this.#cursorWords;
    index.base = this.#cursorBase;
    index.slot = this.#cursorSlot;
    index.arena = this.#cursorArena;
  }

  isProtected(page: number, unit: number): boolean {
    for (let i = 0; i < PROTECTED_FINDS; i++) {
      if (this.#protectedPages[i] === page && this.#protectedUnits[i] === unit) return true;
    }
    return false;
  }

  // ---- fields of the found item that few commands read

  get cursorHash(): number {
    return this.#cursorHash;
  }

  get clientFlags(): number {
    return this.value.i32[(this.itemOffset >>> 2) + Item.CLIENT_FLAGS_WORD] >>> 0;
  }

  get version(): number {
    const header = this.itemOffset >>> 2;
    return (
      this.value.i32[header + Item.VERSION_HIGH_WORD] * 0x1_0000_0000 +
      (this.value.i32[header + Item.VERSION_LOW_WORD] >>> 0)
    );
  }

  /** Absolute expiry in ms, 0 = none. */
  get expiryMs(): number {
    this.#restore();
    return this.index.expiryMs;
  }

  get isFetched(): boolean {
    this.#restore();
    return this.index.isFetched;
  }

  /** Seconds since the item was last used. */
  get accessAgeS(): number {
    this.#restore();
    return (this.accessNow - this.index.access) & Bucket.ACCESS_MASK;
  }

  get frequency(): number {
    this.#restore();
    return this.index.frequency;
  }

  get keyBytes(): Bytes {
    return this.value;
  }

  get keyOffset(): number {
    return this.itemOffset + Item.HEADER_BYTES;
  }

  /** Physical database of the item. */
  get itemDatabase(): number {
    return this.value.i32[(this.itemOffset >>> 2) + Item.SHAPE_WORD] >>> Item.DB_SHIFT;
  }

  /** Bytes that the item takes: its chunk or pages and its index entry. */
  get memoryUsage(): number {
    return this.#capacityBytes() + Math.ceil(Bucket.BYTES / Bucket.SLOTS);
  }

  /** Counts a read of the found item: hit statistics, frequency, access clock. */
  access(): void {
    this.#restore();
    this.index.use(this.accessNow);
    this.statistics[Stat.HITS]++;
    if (this.page >= this.memory.capacityBase) this.statistics[Stat.CAPACITY_HITS]++;
  }

  miss(): void {
    this.statistics[Stat.MISSES]++;
  }

  // ---- stage, fill, commit

  /**
   * Allocates an item with the key in place and room for `valueLength` bytes at staged/stagedOffset. False = no memory
   * under the policy. With or without the key's lock.
   */
  stage(hash: number, db: number, bytes: Bytes, offset: number, length: number, valueLength: number): boolean {
    if (this.#stagedPage !== NO_PAGE) this.dropStaged();
    const size = itemBytes(length, valueLength);
    if (!this.#allocate(size)) {
      this.statistics[Stat.OUT_OF_MEMORY]++;
      return false;
    }
    const database = this.#ctl[this.#databases + db];
    const page = this.#stagedPage;
    const item = this.#arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, this.#stagedUnit);
    const header = itemOffset >>> 2;
    item.i32[header + Item.SHAPE_WORD] = shapeWord(length, 0, 0, database);
    item.i32[header + Item.VALUE_LENGTH_WORD] = valueLength;
    item.i32[header + Item.HASH_WORD] = hash;
    copyBytes(item, itemOffset + Item.HEADER_BYTES, bytes, offset, length);
    this.#stagedHash = hash;
    this.#stagedDatabase = database;
    this.#stagedKeyLength = length;
    this.#stagedKeyBytes = bytes;
    this.#stagedKeyOffset = offset;
    this.staged = item;
    this.stagedOffset = itemOffset + Item.HEADER_BYTES + length;
    this.stagedLength = valueLength;
    return true;
  }

  #allocate(size: number): boolean {
    const units = unitsOf(size);
    if (units > MAX_CHUNK_UNITS) return this.#allocateLarge(size);
    const slabClass = CLASS_OF_UNITS[units];
    const { slabs } = this;
    if (!slabs.take(slabClass) && !(this.eviction.makeRoom(slabClass) && slabs.take(slabClass))) return false;
    this.#stagedPage = slabs.page;
    this.#stagedUnit = slabs.unit;
    return true;
  }

  #allocateLarge(size: number): boolean {
    const pageCount = Math.ceil(size / Page.BYTES);
    if (pageCount > Page.ARENA_PAGES) return false;
    const capacityFirst = this.memory.capacityPages > 0 && size > this.#largeDramBytes;
    let page = this.#takeRun(pageCount, capacityFirst);
    while (page === NO_PAGE && this.eviction.makeRunRoom(pageCount)) page = this.#takeRun(pageCount, capacityFirst);
    if (page === NO_PAGE) return false;
    this.#stagedPage = page;
    this.#stagedUnit = 0;
    this.#held.set(STAGED_SLOT, page, 0);
    return true;
  }

  #takeRun(pageCount: number, capacityFirst: boolean): number {
    const { pool } = this;
    if (capacityFirst) {
      const page = pool.takeRun(pageCount, true, 0);
      // Not into DRAM what would fill it: a tenth is the most.
      if (page !== NO_PAGE || pageCount * 10 > this.memory.dramPages) return page;
      return pool.takeRun(pageCount, false, DRAM_RESERVE_PAGES);
    }
    const page = pool.takeRun(pageCount, false, DRAM_RESERVE_PAGES);
    return page === NO_PAGE ? pool.takeRun(pageCount, true, 0) : page;
  }

  /** Shortens the staged value before it is committed. */
  shrinkStaged(valueLength: number): void {
    const header = locationOffset(this.#stagedPage, this.#stagedUnit) >>> 2;
    this.staged.i32[header + Item.VALUE_LENGTH_WORD] = valueLength;
    this.stagedLength = valueLength;
  }

  /**
   * Links the staged item in place of whatever its key had, under the key's lock, and positions the cursor on it. False when the
   * index cannot take one more entry (the staged item is dropped then).
   */
  commit(type: number, encoding: number, clientFlags: number, expiryMs: number): boolean {
    const hash = this.#stagedHash;
    const database = this.#stagedDatabase;
    const page = this.#stagedPage;
    const unit = this.#stagedUnit;
    const item = this.staged;
    const itemOffset = locationOffset(page, unit);
    const header = itemOffset >>> 2;
    const { index } = this;
    const shape = shapeWord(this.#stagedKeyLength, type, encoding, database);
    item.i32[header + Item.SHAPE_WORD] = shape;
    item.i32[header + Item.CLIENT_FLAGS_WORD] = clientFlags;
    this.#nextVersion(index.shardWord(hash), item, header);

    if (this.#findStagedKey(hash, database, item, itemOffset)) {
      this.#restore();
      this.#makeHeldRoom();
      this.#held.defer(this.page, this.unit);
      this.#countExpiring(hash, database, index.hasExpiry, expiryMs !== 0);
      index.setLocation(hash, page, unit);
      index.setExpiry(hash, expiryMs);
      index.setAccess(this.accessNow);
      index.clearFetched();
    } else {
      this.#makeHeldRoom();
      if (!index.insert(hash, page, unit, this.accessNow)) {
        this.dropStaged();
        this.statistics[Stat.OUT_OF_MEMORY]++;
        return false;
      }
      if (expiryMs !== 0) index.setExpiry(hash, expiryMs);
      const counts = this.#counts(hash, database);
      this.#ctl[counts]++;
      if (expiryMs !== 0) this.#ctl[counts + Database.EXPIRING_OFFSET]++;
      this.#growHash = hash;
      this.#growPending = true;
    }
    this.#held.defer(page, unit | LINKED);
    this.#held.clear(STAGED_SLOT);
    // A large item's pages are no longer this participant's to lose.
    if (unit === 0 && this.memory.pageKind(page) === PageKind.LARGE)
      this.#ctl[this.memory.pageInfo(page)] = PageKind.LARGE;
    this.#stagedPage = NO_PAGE;
    this.statistics[Stat.STORED]++;
    this.#setCursor(hash, item, itemOffset, page, unit, shape);
    this.#foundOffset = -1;
    return true;
  }

  /** The cursor of a find for the same key serves; else looks the key up by the bytes in the staged item. */
  #findStagedKey(hash: number, database: number, item: Bytes, itemOffset: number): boolean {
    if (
      this.#foundOffset === this.#stagedKeyOffset &&
      this.#foundBytes === this.#stagedKeyBytes &&
      this.#foundLength === this.#stagedKeyLength &&
      this.#foundDatabase === database
    ) {
      return this.#found;
    }
    return this.#findKey(hash, database, item, itemOffset + Item.HEADER_BYTES, this.#stagedKeyLength);
  }

  /** The held stack has room for what one step adds; a command that unlinks thousands settles in between. */
  #makeHeldRoom(): void {
    if (this.#held.isNearlyFull) {
      this.settle();
      this.freeUnlinked();
    }
  }

  #nextVersion(shard: number, item: Bytes, header: number): void {
    const low = (this.#ctl[shard + Shard.VERSION_LOW_WORD] + 1) | 0;
    if (low === 0) this.#ctl[shard + Shard.VERSION_HIGH_WORD]++;
    this.#ctl[shard + Shard.VERSION_LOW_WORD] = low;
    item.i32[header + Item.VERSION_LOW_WORD] = low;
    item.i32[header + Item.VERSION_HIGH_WORD] = this.#ctl[shard + Shard.VERSION_HIGH_WORD];
  }

  get hasStaged(): boolean {
    return this.#stagedPage !== NO_PAGE;
  }

  /** Gives the staged item back. */
  dropStaged(): void {
    const page = this.#stagedPage;
    if (page === NO_PAGE) return;
    this.#stagedPage = NO_PAGE;
    this.#freeChunk(page, this.#stagedUnit, STAGED_SLOT);
  }

  /** Sets the staged item aside for a value that arrives over several turns. False when too many are. */
  parkStaged(slot: StageSlot): boolean {
    const held = this.#held.takeParked();
    if (held < 0) return false;
    this.#held.set(held, this.#stagedPage, this.#stagedUnit);
    this.#held.clear(STAGED_SLOT);
    slot.held = held;
    slot.page = this.#stagedPage;
    slot.unit = this.#stagedUnit;
    slot.hash = this.#stagedHash;
    slot.database = this.#stagedDatabase;
    this.#stagedPage = NO_PAGE;
    return true;
  }

  /** Makes a parked item the staged one again, in the database that `db` means by now (it may have been flushed or swapped). */
  unparkStaged(slot: StageSlot, db: number): void {
    if (this.#stagedPage !== NO_PAGE) this.dropStaged();
    const item = this.#arenas[slot.page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(slot.page, slot.unit);
    const header = itemOffset >>> 2;
    this.#held.set(STAGED_SLOT, slot.page, slot.unit);
    this.#held.giveParked(slot.held);
    this.#stagedPage = slot.page;
    this.#stagedUnit = slot.unit;
    this.#stagedHash = slot.hash;
    this.#stagedDatabase = slot.database;
    this.#stagedKeyLength = item.i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    this.#stagedKeyBytes = item;
    this.#stagedKeyOffset = itemOffset + Item.HEADER_BYTES;
    this.staged = item;
    this.stagedOffset = itemOffset + Item.HEADER_BYTES + this.#stagedKeyLength;
    this.stagedLength = item.i32[header + Item.VALUE_LENGTH_WORD];
    slot.page = NO_PAGE;
    const database = this.#ctl[this.#databases + db];
    if (database !== slot.database) {
      this.#stagedDatabase = database;
      this.#stagedHash = this.hash(db, item, this.#stagedKeyOffset, this.#stagedKeyLength);
      item.i32[header + Item.HASH_WORD] = this.#stagedHash;
    }
  }

  /** Gives a parked item back (its connection is gone). */
  dropParked(slot: StageSlot): void {
    this.unparkStaged(slot, 0);
    this.dropStaged();
  }

  // ---- changes in place

  /** Journals `length` value bytes at `offset` and gives the item its next version; false when it must be staged anew. */
  edit(offset: number, length: number): boolean {
    if (!this.#isEditable()) return false;
    const from = (this.valueOffset + offset) >>> 2;
    const end = (this.valueOffset + offset + length + 3) >>> 2;
    if (!this.journal.hasRoom(end - from + 16)) return false;
    this.journal.saveRange(this.page >>> Page.ARENA_SHIFT, this.value.i32, from, end - from);
    this.#bumpVersion();
    return true;
  }

  /** Changes the value's length within its chunk; new bytes hold garbage. False when it does not fit or the item is immutable. */
  resize(newLength: number): boolean {
    if (!this.#isEditable() || itemBytes(this.keyLength, newLength) > this.#capacityBytes()) return false;
    const at = (this.itemOffset >>> 2) + Item.VALUE_LENGTH_WORD;
    this.journal.save(this.page >>> Page.ARENA_SHIFT, this.value.i32, at);
    this.value.i32[at] = newLength;
    this.valueLength = newLength;
    this.#bumpVersion();
    return true;
  }

  setEncoding(encoding: number): boolean {
    if (!this.#isEditable()) return false;
    const at = (this.itemOffset >>> 2) + Item.SHAPE_WORD;
    this.journal.save(this.page >>> Page.ARENA_SHIFT, this.value.i32, at);
    const shape = this.value.i32[at] & ~(Item.ENCODING_MASK << Item.ENCODING_SHIFT);
    this.value.i32[at] = shape | (encoding << Item.ENCODING_SHIFT);
    this.encoding = encoding;
    return true;
  }

  setClientFlags(flags: number): boolean {
    return this.#setHeader(Item.CLIENT_FLAGS_WORD, flags | 0);
  }

  /** memcached meta E: an explicit version below 2^53. The shard's counter moves past it so that it is not given twice. */
  setVersion(version: number): boolean {
    const high = Math.floor(version / 0x1_0000_0000);
    const low = (version - high * 0x1_0000_0000) | 0;
    if (!this.#setHeader(Item.VERSION_LOW_WORD, low) || !this.#setHeader(Item.VERSION_HIGH_WORD, high)) return false;
    const shard = this.index.shardWord(this.#cursorHash);
    const current =
      this.#ctl[shard + Shard.VERSION_HIGH_WORD] * 0x1_0000_0000 + (this.#ctl[shard + Shard.VERSION_LOW_WORD] >>> 0);
    if (version > current) {
      this.#ctl[shard + Shard.VERSION_HIGH_WORD] = high;
      this.#ctl[shard + Shard.VERSION_LOW_WORD] = low;
    }
    return true;
  }

  #setHeader(word: number, value: number): boolean {
    if (!this.#isEditable()) return false;
    const at = (this.itemOffset >>> 2) + word;
    this.journal.save(this.page >>> Page.ARENA_SHIFT, this.value.i32, at);
    this.value.i32[at] = value;
    return true;
  }

  /** memcached meta: STALE and WIN_SENT bits; rewrites an item of a log page. False = out of memory. */
  setStateFlags(flags: number): boolean {
    const encoding = (this.encoding & Encoding.RAW) | flags;
    return this.setEncoding(encoding) || this.rewrite(encoding);
  }

  get stateFlags(): number {
    return this.encoding & (Encoding.STALE | Encoding.WIN_SENT);
  }

  /** Copies the found item to a fresh DRAM chunk, where it can be changed in place. Expiry and client flags stay; the version moves on. */
  rewrite(encoding: number): boolean {
    const { value, valueOffset, valueLength, keyLength, type, clientFlags, expiryMs } = this;
    const hash = this.#cursorHash;
    const database = this.itemDatabase;
    if (!this.#stagePhysical(hash, database, value, this.keyOffset, keyLength, valueLength)) return false;
    copyBytes(this.staged, this.stagedOffset, value, valueOffset, valueLength);
    return this.commit(type, encoding, clientFlags, expiryMs);
  }

  #stagePhysical(
    hash: number,
    database: number,
    bytes: Bytes,
    offset: number,
    length: number,
    valueLength: number,
  ): boolean {
    for (let db = 0; db < Database.LOGICAL; db++) {
      if (this.#ctl[this.#databases + db] === database) return this.stage(hash, db, bytes, offset, length, valueLength);
    }
    return false;
  }

  #isEditable(): boolean {
    const kind = this.memory.pageKind(this.page);
    if (kind === PageKind.SLAB)
      return this.valueLength <= INLINE_VALUE_BYTES || !this.pins.isPinned(this.page, this.unit);
    return kind === PageKind.LARGE && !this.pins.isPinned(this.page, this.unit);
  }

  #capacityBytes(): number {
    const info = this.memory.pageInfo(this.page);
    const kind = this.#ctl[info];
    if ((kind & 0xff) === PageKind.SLAB) return CLASS_UNITS[(kind >>> 8) & 0xff] << Page.UNIT_SHIFT;
    if ((kind & 0xff) === PageKind.LARGE) return this.#ctl[info + PageInfo.FREE_HEAD_WORD] * Page.BYTES;
    return unitsOf(itemBytes(this.keyLength, this.valueLength)) << Page.UNIT_SHIFT;
  }

  #bumpVersion(): void {
    const header = this.itemOffset >>> 2;
    const arena = this.page >>> Page.ARENA_SHIFT;
    this.journal.save(arena, this.value.i32, header + Item.VERSION_LOW_WORD);
    this.journal.save(arena, this.value.i32, header + Item.VERSION_HIGH_WORD);
    this.#nextVersion(this.index.shardWord(this.#cursorHash), this.value, header);
  }

  setExpiry(expiryMs: number): void {
    this.#restore();
    const hash = this.#cursorHash;
    this.#countExpiring(hash, this.itemDatabase, this.index.hasExpiry, expiryMs !== 0);
    this.index.setExpiry(hash, expiryMs);
  }

  /** Deletes the found item. */
  remove(): void {
    this.#unlink();
    this.#foundOffset = -1;
  }

  #unlink(): void {
    this.#restore();
    this.removeEntry();
  }

  /** Deletes the item of the entry that the index stands on (eviction, expiry, purge). The cursor is left alone. */
  removeEntry(): void {
    this.#makeHeldRoom();
    const { index } = this;
    const { page, unit } = index;
    const header = locationOffset(page, unit) >>> 2;
    const { i32 } = this.#arenas[page >>> Page.ARENA_SHIFT];
    const hash = i32[header + Item.HASH_WORD];
    const counts = this.#counts(hash, i32[header + Item.SHAPE_WORD] >>> Item.DB_SHIFT);
    this.#ctl[counts]--;
    if (index.hasExpiry) this.#ctl[counts + Database.EXPIRING_OFFSET]--;
    this.#held.defer(page, unit);
    index.remove(hash);
  }

  /** Lets the entry that the index stands on point to a copy of its item, and frees the old one. */
  moveEntry(hash: number, page: number, unit: number): void {
    this.#makeHeldRoom();
    this.#held.defer(this.index.page, this.index.unit);
    this.index.setLocation(hash, page, unit);
  }

  #counts(hash: number, database: number): number {
    const shard = hash & (this.memory.shardCount - 1);
    return this.#databases + Database.COUNTS_WORD + shard * Database.SHARD_WORDS + database;
  }

  #countExpiring(hash: number, database: number, had: boolean, has: boolean): void {
    if (had === has) return;
    this.#ctl[this.#counts(hash, database) + Database.EXPIRING_OFFSET] += has ? 1 : -1;
  }

  /** A number that changes whenever the key's value or expiry does (WATCH): 0 when it does not exist. */
  watchSignature(hash: number, db: number, bytes: Bytes, offset: number, length: number): number {
    return this.find(hash, db, bytes, offset, length) ? this.version + (this.expiryMs % 0x10_0000) / 0x20_0000 : 0;
  }

  // ---- pins and freeing

  /** Keeps the found item's bytes in place until unpin; 0 = the table is full, copy out instead. */
  pin(): number {
    return this.pins.pin(this.page, this.unit);
  }

  unpin(token: number): void {
    const page = this.pins.unpin(token);
    if (page !== NO_PAGE) this.#freeChunk(page, this.pins.freedUnit, UNPINNED_SLOT);
  }

  /** Frees an unlinked item and clears its held slot; a pinned one is freed by its last unpin. */
  freeItem(page: number, unit: number, heldSlot: number): void {
    const header = locationOffset(page, unit) >>> 2;
    const valueLength = this.#arenas[page >>> Page.ARENA_SHIFT].i32[header + Item.VALUE_LENGTH_WORD];
    if (valueLength > INLINE_VALUE_BYTES && this.pins.doom(page, unit)) this.#held.clear(heldSlot);
    else this.#freeChunk(page, unit, heldSlot);
  }

  #freeChunk(page: number, unit: number, heldSlot: number): void {
    const kind = this.memory.pageKind(page);
    if (kind === PageKind.SLAB) {
      this.slabs.give(page, unit, heldSlot);
    } else if (kind === PageKind.LARGE) {
      this.pool.freeRun(page);
      this.#held.clear(heldSlot);
    } else {
      const header = locationOffset(page, unit) >>> 2;
      const { i32 } = this.#arenas[page >>> Page.ARENA_SHIFT];
      const size = itemBytes(
        i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK,
        i32[header + Item.VALUE_LENGTH_WORD],
      );
      this.log.drop(page, unitsOf(size));
      this.#held.clear(heldSlot);
    }
  }

  // ---- databases, iteration, background

  /** Items of a database; expired ones that nothing has touched yet count, as in Redis. */
  size(db: number): number {
    return this.databases.size(db);
  }

  /** Items of a database that have an expiry. */
  expiring(db: number): number {
    return this.databases.expiring(db);
  }

  /** Empties a database. The gate is closed. */
  flush(db: number): void {
    this.databases.flush(db);
  }

  flushAll(): void {
    this.databases.flushAll();
  }

  swapDatabases(a: number, b: number): void {
    this.databases.swap(a, b);
  }

  /** See databases.scheduleFlush. */
  scheduleFlush(db: number, atMs: number): void {
    this.databases.scheduleFlush(db, atMs);
  }

  /** See scan.scanBucket. */
  scan(db: number, cursor: number, visit: (keyspace: Keyspace) => void): number {
    return scanBucket(this, db, cursor, visit);
  }

  randomKey(db: number): Uint8Array | null {
    return randomKey(this, db, this.databases.size(db));
  }

  /**
   * Background work for about `budgetUs` microseconds: expiry, purge of flushed databases, log reclaim, scheduled flush. Called inside a
   * batch, without locks. True when there is more to do soon.
   */
  background(budgetUs: number): boolean {
    const end = addon.monotonicMs() + budgetUs / 1000;
    this.slabs.drainIfAsked();
    if (this.databases.flushAtMs !== 0 && this.databases.flushAtMs <= this.nowMs) {
      this.closeGate();
      this.databases.runScheduled(this.nowMs);
      this.openGate();
    }
    if (this.nowMs - this.#lastLookForDeadMs > LOOK_FOR_DEAD_MS) {
      this.#lastLookForDeadMs = this.nowMs;
      collectDead(this);
    }
    let removed = 0;
    let steps = 0;
    do {
      const reclaiming = this.eviction.reclaim.keepUp();
      removed += this.sweep.step();
      steps++;
      if (!reclaiming && steps >= BACKGROUND_STEPS && removed === 0) break;
    } while (addon.monotonicMs() < end);
    if (removed === 0) this.sweep.freeDatabases();
    return removed > 0;
  }

  /** Rolls a dead participant's changes back and releases its locks (see repair). */
  restoreDead(dead: number): void {
    restoreParticipant(this.memory, dead);
  }

  stats(): StoreStats {
    return collectStats(this);
  }

  // ---- prefetch

  /** True when the index is large enough that the batch passes pay. */
  get prefetchWorthwhile(): boolean {
    return this.#ctl[this.memory.shardTable + Shard.BUCKETS_WORD] * this.memory.shardCount > PREFETCH_MIN_BUCKETS;
  }

  prefetchBucket(hash: number): void {
    this.index.prefetchBucket(hash);
  }

  prefetchItem(hash: number): void {
    this.index.prefetchItem(hash);
  }
}

/** How often the background looks for participants that died without holding anything anybody waits for. */
const LOOK_FOR_DEAD_MS = 1000;
/** Sweep steps of a turn in which nothing was found: 64 buckets each. */
const BACKGROUND_STEPS = 4;
/** Below this many buckets the index sits in the CPU's caches. */
const PREFETCH_MIN_BUCKETS = 16384;
