/**
 * Staging: a value is written by stage + fill + commit.
 *
 * Owns: the staged item, which nobody else can see until `commit` links it under its key's lock. Invariant: at most one
 * item is staged in a participant; those of values that arrive over several turns are parked in slots of their own.
 */
import type { Bytes } from '../layout/bytes.js';
import { Item, itemBytes, shapeWord } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { Database, PageKind, Shard } from '../layout/superblock.js';
import { STAGED_SLOT } from '../memory/held.js';
import { DRAM_RESERVE_PAGES, NO_PAGE } from '../memory/page-pool.js';
import { CLASS_COUNT, CLASS_OF_UNITS, CLASS_UNITS, MAX_CHUNK_UNITS } from '../memory/slab-classes.js';
import { copyBytes } from '../native/copy.js';
import type { Eviction } from './eviction.js';
import { ItemCursor, type KeyspaceParts, LINKED } from './item-cursor.js';
import { Stat } from './statistics.js';

/** Where a connection keeps a staged item whose value is still arriving. `page` is 0 when nothing is parked. */
export interface StageSlot {
  held: number;
  page: number;
  unit: number;
  database: number;
}

export abstract class Staging extends ItemCursor {
  staged: Bytes;
  stagedOffset = 0;
  stagedLength = 0;

  abstract readonly eviction: Eviction;

  readonly #largeDramBytes: number;
  #stagedPage = NO_PAGE;
  #stagedUnit = 0;
  #stagedHash = 0;
  #stagedDatabase = 0;
  #stagedKeyLength = 0;
  #stagedKeyBytes: Bytes;
  #stagedKeyOffset = 0;
  /** Hash of a shard that wants to grow once the journal is empty; one a lock scope is enough. */
  protected growHash = -1;
  protected growPending = false;

  constructor(parts: KeyspaceParts) {
    super(parts);
    const { memory } = parts;
    this.#largeDramBytes = Math.floor((memory.dramPages * Page.BYTES) / 100);
    this.staged = memory.arenas[0];
    this.#stagedKeyBytes = memory.arenas[0];
  }

  /**
   * Allocates an item with the key in place and room for `valueLength` bytes at staged/stagedOffset. False = no memory
   * under the policy. With or without the key's lock.
   */
  stage(hash: number, db: number, bytes: Bytes, offset: number, length: number, valueLength: number): boolean {
    this.#clearStagedSlot();
    const size = itemBytes(length, valueLength);
    if (!this.allocate(size)) {
      this.statistics[Stat.OUT_OF_MEMORY]++;
      return false;
    }
    const database = this.ctl[this.databaseTable + db];
    const page = this.#stagedPage;
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
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

  /** Makes the staged slot free for another item. */
  #clearStagedSlot(): void {
    if (this.#stagedPage !== NO_PAGE) this.dropStaged();
    if (!this.linkedInSlot) return;
    this.makeHeldRoom();
    // Settling, which makes room, forgets it.
    if (!this.linkedInSlot) return;
    this.held.defer(this.held.page(STAGED_SLOT), this.held.unit(STAGED_SLOT) | LINKED);
    this.linkedCount++;
    this.linkedInSlot = false;
  }

  protected allocate(size: number): boolean {
    const units = unitsOf(size);
    if (units > MAX_CHUNK_UNITS) return this.allocateLarge(size);
    const slabClass = CLASS_OF_UNITS[units];
    const { slabs } = this;
    if (!slabs.take(slabClass) && !this.#takeWithRoom(slabClass)) return false;
    this.#stagedPage = slabs.page;
    this.#stagedUnit = slabs.unit;
    return true;
  }

  /** Makes room in the class; while it has no page of its own, a chunk of a somewhat larger one does mostly. */
  #takeWithRoom(slabClass: number): boolean {
    const { slabs, eviction } = this;
    if (eviction.mayMakeRoom(slabClass) && eviction.makeRoom(slabClass) && slabs.take(slabClass)) return true;
    const limit = CLASS_UNITS[slabClass] + Math.max(1, CLASS_UNITS[slabClass] >>> 1);
    for (let c = slabClass + 1; c < CLASS_COUNT && CLASS_UNITS[c] <= limit; c++) {
      if (slabs.take(c) || (eviction.hasPages(c) && eviction.makeRoom(c) && slabs.take(c))) return true;
    }
    return eviction.makeRoom(slabClass) && slabs.take(slabClass);
  }

  protected allocateLarge(size: number): boolean {
    const pageCount = Math.ceil(size / Page.BYTES);
    if (pageCount > Page.ARENA_PAGES) return false;
    const capacityFirst = this.memory.capacityPages > 0 && size > this.#largeDramBytes;
    let page = this.takeRun(pageCount, capacityFirst);
    while (page === NO_PAGE && this.eviction.makeRunRoom(pageCount)) page = this.takeRun(pageCount, capacityFirst);
    if (page === NO_PAGE) return false;
    this.#stagedPage = page;
    this.#stagedUnit = 0;
    this.held.set(STAGED_SLOT, page, 0);
    return true;
  }

  protected takeRun(pageCount: number, capacityFirst: boolean): number {
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
    this.nextVersion(index.shardWord(hash), item, header);

    if (this.findStagedKey(hash, database, item, itemOffset)) {
      this.restore();
      this.makeHeldRoom();
      this.held.defer(this.page, this.unit);
      this.countExpiring(hash, database, index.hasExpiry, expiryMs !== 0);
      index.setLocation(hash, page, unit);
      index.setExpiry(hash, expiryMs);
      index.setAccess(this.accessNow);
      index.clearFetched();
    } else {
      this.makeHeldRoom();
      const inserted =
        index.insert(hash, page, unit, this.accessNow) ||
        (this.eviction.refillReserve() && index.insert(hash, page, unit, this.accessNow));
      if (!inserted) {
        this.dropStaged();
        this.statistics[Stat.OUT_OF_MEMORY]++;
        return false;
      }
      if (expiryMs !== 0) index.setExpiry(hash, expiryMs);
      const counts = this.counts(hash, database);
      this.ctl[counts]++;
      if (expiryMs !== 0) this.ctl[counts + Database.EXPIRING_OFFSET]++;
      this.growHash = hash;
      this.growPending = true;
    }
    this.linkedInSlot = true;
    // A large item's pages are no longer this participant's to lose.
    if (unit === 0 && this.memory.pageKind(page) === PageKind.LARGE)
      this.ctl[this.memory.pageInfo(page)] = PageKind.LARGE;
    this.#stagedPage = NO_PAGE;
    this.statistics[Stat.STORED]++;
    this.setCursor(hash, item, itemOffset, page, unit, shape);
    this.foundOffset = -1;
    return true;
  }

  /** The cursor of a find for the same key serves; else looks the key up by the bytes in the staged item. */
  protected findStagedKey(hash: number, database: number, item: Bytes, itemOffset: number): boolean {
    if (
      this.foundOffset === this.#stagedKeyOffset &&
      this.foundBytes === this.#stagedKeyBytes &&
      this.foundLength === this.#stagedKeyLength &&
      this.foundDatabase === database
    ) {
      return this.found;
    }
    return this.findKey(hash, database, item, itemOffset + Item.HEADER_BYTES, this.#stagedKeyLength);
  }

  get hasStaged(): boolean {
    return this.#stagedPage !== NO_PAGE;
  }

  /** Gives the staged item back. */
  dropStaged(): void {
    const page = this.#stagedPage;
    if (page === NO_PAGE) return;
    this.#stagedPage = NO_PAGE;
    this.freeChunk(page, this.#stagedUnit, STAGED_SLOT);
  }

  /** Sets the staged item aside for a value that arrives over several turns. False when too many are. */
  parkStaged(slot: StageSlot): boolean {
    const held = this.held.takeParked();
    if (held < 0) return false;
    this.held.set(held, this.#stagedPage, this.#stagedUnit);
    this.held.clear(STAGED_SLOT);
    slot.held = held;
    slot.page = this.#stagedPage;
    slot.unit = this.#stagedUnit;
    slot.database = this.#stagedDatabase;
    this.#stagedPage = NO_PAGE;
    return true;
  }

  /** Makes a parked item the staged one again, in the database that `db` means by now (it may have been flushed or swapped). */
  unparkStaged(slot: StageSlot, db: number): void {
    this.#clearStagedSlot();
    const item = this.arenas[slot.page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(slot.page, slot.unit);
    const header = itemOffset >>> 2;
    this.held.set(STAGED_SLOT, slot.page, slot.unit);
    this.held.giveParked(slot.held);
    this.#stagedPage = slot.page;
    this.#stagedUnit = slot.unit;
    this.#stagedHash = item.i32[header + Item.HASH_WORD];
    this.#stagedDatabase = slot.database;
    this.#stagedKeyLength = item.i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    this.#stagedKeyBytes = item;
    this.#stagedKeyOffset = itemOffset + Item.HEADER_BYTES;
    this.staged = item;
    this.stagedOffset = itemOffset + Item.HEADER_BYTES + this.#stagedKeyLength;
    this.stagedLength = item.i32[header + Item.VALUE_LENGTH_WORD];
    slot.page = NO_PAGE;
    const database = this.ctl[this.databaseTable + db];
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

  protected nextVersion(shard: number, item: Bytes, header: number): void {
    const low = (this.ctl[shard + Shard.VERSION_LOW_WORD] + 1) | 0;
    if (low === 0) this.ctl[shard + Shard.VERSION_HIGH_WORD]++;
    this.ctl[shard + Shard.VERSION_LOW_WORD] = low;
    item.i32[header + Item.VERSION_LOW_WORD] = low;
    item.i32[header + Item.VERSION_HIGH_WORD] = this.ctl[shard + Shard.VERSION_HIGH_WORD];
  }
}
