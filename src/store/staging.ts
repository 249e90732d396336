/**
 * Staged items: a value is written into a chunk of its own first, without a lock, and then linked in one step under its key's lock.
 *
 * Owns: the one staged item and the parking of items whose values arrive over several turns. Invariant: a chunk that is
 * staged or parked is in a held slot until the index points to it.
 */
import { Bucket } from '../layout/bucket.js';
import type { Bytes } from '../layout/bytes.js';
import { ClassCounter } from '../layout/class-counters.js';
import { Item, itemBytes, shapeWord } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { Database, ParticipantPage as P, PageKind, Shard } from '../layout/superblock.js';
import { STAGED_SLOT } from '../memory/held.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_COUNT, CLASS_OF_UNITS, CLASS_UNITS, MAX_CHUNK_UNITS } from '../memory/slab-classes.js';
import { copyBytes } from '../native/copy.js';
import { Notify } from './change-feed.js';
import type { Eviction } from './eviction.js';
import { ItemCursor, LINKED } from './item-cursor.js';
import type { KeyspaceParts } from './item-finder.js';
import { Stat } from './statistics.js';

/** Where a connection keeps a staged item whose value is still arriving. `page` is 0 when nothing is parked. */
export interface StageSlot {
  held: number;
  page: number;
  unit: number;
}

/** Times that an allocation makes room before it gives up. */
const ROOM_TRIES = 4;
/** Chunks this many times as large as its own serve a class without pages. */
const ROOMY_RATIO = 2;

/** Words of a version, the low one first. */
const VERSION_WORDS = 2;
/** What one step of a collection links and unlinks, and the words that it journals, at most. */
const STEP_CHUNKS = 128;
const STEP_JOURNAL_WORDS = 32768;

/** From a word of an arena to its page and unit. */
const PAGE_WORDS_SHIFT = Page.SHIFT - 2;
const PAGE_WORDS_MASK = (1 << PAGE_WORDS_SHIFT) - 1;
const UNIT_WORDS_SHIFT = Page.UNIT_SHIFT - 2;

export abstract class Staging extends ItemCursor {
  staged: Bytes;
  stagedOffset = 0;
  stagedLength = 0;

  abstract readonly eviction: Eviction;

  #stagedPage = NO_PAGE;
  #stagedUnit = 0;
  #stagedHash = 0;
  #stagedDatabase = 0;
  #stagedKeyLength = 0;
  #stagedKeyBytes: Bytes;
  #stagedKeyOffset = 0;
  /** Chunks of `reserve`, as parked slots; the first `#reservedCount` count. */
  readonly #reserved: StageSlot[] = [];
  #reservedCount = 0;
  /** Something was inserted: shards may want to grow once the journal is empty. */
  protected growPending = false;

  constructor(parts: KeyspaceParts) {
    super(parts);
    const { memory } = parts;
    this.staged = memory.arenas[0];
    this.#stagedKeyBytes = memory.arenas[0];
  }

  /**
   * Allocates an item with the key in place and room for `valueLength` bytes at staged/stagedOffset. False = no memory
   * under the policy. With or without the key's lock.
   */
  stage(hash: number, db: number, bytes: Bytes, offset: number, length: number, valueLength: number): boolean {
    return this.stageIn(hash, this.ctl[this.databaseTable + db], bytes, offset, length, valueLength);
  }

  /** The same for a physical database. */
  stageIn(hash: number, database: number, bytes: Bytes, offset: number, length: number, valueLength: number): boolean {
    this.#clearStagedSlot();
    const size = itemBytes(length, valueLength);
    if (!this.allocate(size + this.memory.chunkTailBytes)) {
      this.#countOutOfMemory(size);
      return false;
    }
    const page = this.#stagedPage;
    if (this.copies.areKept) this.copies.begin(page, this.#stagedUnit);
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
    if (this.#stagedKeyBytes !== bytes) this.#stagedKeyBytes = bytes;
    this.#stagedKeyOffset = offset;
    if (this.staged !== item) this.staged = item;
    this.stagedOffset = itemOffset + Item.HEADER_BYTES + length;
    this.stagedLength = valueLength;
    return true;
  }

  #countOutOfMemory(size: number): void {
    this.statistics[Stat.OUT_OF_MEMORY]++;
    this.countForSize(size, ClassCounter.outOfMemory);
  }

  /** Makes the staged slot free for another item. */
  #clearStagedSlot(): void {
    if (this.#stagedPage !== NO_PAGE) this.dropStaged();
    if (!this.linkedInSlot) return;
    this.makeHeldRoom();
    // Settling, which makes room, forgets it.
    if (!this.linkedInSlot) return;
    this.held.defer(this.held.page(STAGED_SLOT), this.held.unit(STAGED_SLOT) | LINKED);
    // The next item may find no room, and then nothing else would clear the slot.
    this.held.clear(STAGED_SLOT);
    this.linkedCount++;
    this.linkedInSlot = false;
  }

  protected allocate(size: number): boolean {
    const units = unitsOf(size);
    if (units > MAX_CHUNK_UNITS) return this.allocateLarge(size);
    const slabClass = CLASS_OF_UNITS[units];
    if (this.#reservedCount !== 0 && this.#takeReserved(slabClass)) return true;
    const { slabs } = this;
    if (!slabs.take(slabClass) && !this.#takeOther(slabClass)) return false;
    this.#stagedPage = slabs.page;
    this.#stagedUnit = slabs.unit;
    return true;
  }

  // ---- room taken beforehand

  /**
   * Sets a chunk for an item of so many bytes aside, which later allocations use: making room for them then would end what the command
   * has journaled so far, and a crash leave a part of it. Before anything is linked; false = no room.
   */
  reserve(size: number): boolean {
    if (this.memory.chunkUnits(size) > MAX_CHUNK_UNITS) return true;
    const count = this.#reservedCount;
    this.#clearStagedSlot();
    // What is set aside already must not be what this one gets.
    this.#reservedCount = 0;
    const isAllocated = this.allocate(size + this.memory.chunkTailBytes);
    this.#reservedCount = count;
    if (!isAllocated) return false;
    if (count === this.#reserved.length) this.#reserved.push({ held: 0, page: NO_PAGE, unit: 0 });
    if (!this.parkStaged(this.#reserved[count])) {
      this.dropStaged();
      return false;
    }
    this.#reservedCount++;
    return true;
  }

  /** Lets the index have pages for so many more entries; false = there are none. Before anything is linked. */
  reserveIndex(entries: number): boolean {
    const { pool } = this;
    const wanted = pool.indexReserve + Math.ceil(entries / Bucket.PER_PAGE);
    for (let i = 0; i < ROOM_TRIES && pool.dramFree <= wanted; i++) if (!this.eviction.moves.freeOne(-1, true)) break;
    return pool.dramFree > wanted;
  }

  /** Gives back what was set aside and not used. */
  releaseReserved(): void {
    while (this.#reservedCount > 0) this.dropParked(this.#reserved[--this.#reservedCount]);
  }

  /** Stages the smallest chunk set aside that an item of the class fits in. */
  #takeReserved(slabClass: number): boolean {
    let best = -1;
    let bestClass = CLASS_COUNT;
    for (let i = 0; i < this.#reservedCount && bestClass !== slabClass; i++) {
      const own = (this.ctl[this.memory.pageInfo(this.#reserved[i].page)] >>> 8) & 0xff;
      if (own < slabClass || own >= bestClass) continue;
      best = i;
      bestClass = own;
    }
    if (best < 0) return false;
    const slot = this.#reserved[best];
    this.#reserved[best] = this.#reserved[--this.#reservedCount];
    this.#reserved[this.#reservedCount] = slot;
    this.#stagedPage = slot.page;
    this.#stagedUnit = slot.unit;
    this.held.set(STAGED_SLOT, slot.page, slot.unit);
    this.held.giveParked(slot.held);
    slot.page = NO_PAGE;
    return true;
  }

  /** A chunk for a class that has none and gets no page: free ones of larger classes, or after making room. */
  #takeOther(slabClass: number): boolean {
    const { slabs, eviction } = this;
    const mayFree = eviction.mayFreeAny();
    // A class that can replace its own items does; else a small store would fill up with small items in large chunks.
    if (!(mayFree && eviction.hasPages(slabClass)) && slabs.takeLarger(slabClass, ROOMY_RATIO, STAGED_SLOT))
      return true;
    if (mayFree && !eviction.mayMakeRoom(slabClass) && this.#takeBorrowed(slabClass)) return true;
    for (let tries = 0; tries < ROOM_TRIES && eviction.makeRoom(slabClass); tries++) {
      // What was freed, another may take first.
      if (slabs.take(slabClass)) return true;
    }
    if (slabs.takeLarger(slabClass, MAX_CHUNK_UNITS, STAGED_SLOT)) return true;
    // Others give their spares back at their next turn, or finish a page; until then the reserve stands in, which the background fills again.
    return eviction.moves.waitsForOthers && slabs.takeFromReserve(slabClass);
  }

  /** While a class has no page of its own, one of the somewhat larger ones makes room for its items. */
  #takeBorrowed(slabClass: number): boolean {
    const { slabs, eviction } = this;
    const limit = CLASS_UNITS[slabClass] * ROOMY_RATIO;
    for (let c = slabClass + 1; c < CLASS_COUNT && CLASS_UNITS[c] <= limit; c++) {
      if (eviction.hasPages(c) && eviction.makeRoom(c) && slabs.take(c)) return true;
    }
    return false;
  }

  protected allocateLarge(size: number): boolean {
    const pageCount = Math.ceil(size / Page.BYTES);
    if (pageCount > Page.ARENA_PAGES) return false;
    const capacityFirst = this.memory.capacityPages > 0 && size * 100 > this.memory.dramSize * Page.BYTES;
    let page = this.takeRun(pageCount, capacityFirst);
    while (page === NO_PAGE && this.eviction.moves.makeRunRoom(pageCount))
      page = this.takeRun(pageCount, capacityFirst);
    if (page === NO_PAGE) return false;
    // Filled by whoever stages it, before it takes the lock: so is the time for that charged.
    const { charge } = this.memory;
    if (charge !== null && this.memory.isCapacity(page)) charge.write(size);
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
      if (page !== NO_PAGE || pageCount * 10 > this.memory.dramSize) return page;
      return pool.takeRun(pageCount, false, pool.dataReserve);
    }
    const page = pool.takeRun(pageCount, false, pool.dataReserve);
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
    this.nextVersion(hash, item, header);

    if (this.findStagedKey(hash, database, item, itemOffset)) {
      this.restore();
      this.makeHeldRoom();
      this.discard(this.page, this.unit);
      this.countExpiring(hash, database, index.hasExpiry, expiryMs !== 0);
      index.setLocation(hash, page, unit);
      index.setExpiry(hash, expiryMs);
      this.noteOverwrite();
    } else {
      this.makeHeldRoom();
      if (!index.insert(hash, page, unit, this.accessNow) && !this.insertInNewRoom(hash, page, unit)) {
        this.dropStaged();
        this.statistics[Stat.OUT_OF_MEMORY]++;
        return false;
      }
      if (expiryMs !== 0) index.setExpiry(hash, expiryMs);
      if ((this.feed.notifies & Notify.NEW) !== 0) this.feed.noteEvent(Notify.NEW, item, header);
      const counts = this.counts(hash, database);
      this.ctl[counts]++;
      if (expiryMs !== 0) this.ctl[counts + Database.EXPIRING_OFFSET]++;
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

  /** The index has no room for one more entry: gets a page of the data's, or, where it has its share, loses an entry, if the policy allows. */
  protected insertInNewRoom(hash: number, page: number, unit: number): boolean {
    const { eviction, index } = this;
    if (this.pool.hasRoomForIndex && eviction.moves.freeOne(-1, true) && index.insert(hash, page, unit, this.accessNow))
      return true;
    return eviction.evictOfChain(hash) && index.insert(hash, page, unit, this.accessNow);
  }

  /** The cursor of a find for the same key serves; else looks the key up by the bytes in the staged item. */
  protected findStagedKey(hash: number, database: number, item: Bytes, itemOffset: number): boolean {
    if (
      this.foundOffset === this.#stagedKeyOffset &&
      this.foundBytes === this.#stagedKeyBytes &&
      this.foundLength === this.#stagedKeyLength &&
      this.foundHash === hash &&
      this.foundDatabase === database
    ) {
      return this.found;
    }
    const isFound = this.findKey(hash, database, item, itemOffset + Item.HEADER_BYTES, this.#stagedKeyLength);
    // An overwritten item stays as used as it was, and once more; a command that has looked for itself has counted its look.
    if (isFound && this.isLfu) this.useLfu();
    return isFound;
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
    this.#stagedKeyLength = item.i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    this.#stagedKeyBytes = item;
    this.#stagedKeyOffset = itemOffset + Item.HEADER_BYTES;
    this.staged = item;
    this.stagedOffset = itemOffset + Item.HEADER_BYTES + this.#stagedKeyLength;
    this.stagedLength = item.i32[header + Item.VALUE_LENGTH_WORD];
    slot.page = NO_PAGE;
    this.#stagedDatabase = this.ctl[this.databaseTable + db];
  }

  /** Gives a parked item back (its connection is gone). */
  dropParked(slot: StageSlot): void {
    if (slot.page === NO_PAGE) return;
    this.unparkStaged(slot, 0);
    this.dropStaged();
  }

  // ---- chunks for nodes of collections

  /** Where takeChunk found room, and the held slot that names it. */
  chunkPage = NO_PAGE;
  chunkUnit = 0;
  chunkSlot = 0;

  /**
   * Takes a chunk or a run of pages and notes it in a held slot of its own, until linkChunk or dropChunk. `mayMakeRoom`: others may be
   * evicted for it, and what the running command has changed so far is then settled.
   */
  takeChunk(size: number, mayMakeRoom: boolean): boolean {
    this.#clearStagedSlot();
    if (!(mayMakeRoom ? this.allocate(size) : this.#takeFree(size))) {
      if (mayMakeRoom) this.#countOutOfMemory(size);
      return false;
    }
    const slot = this.held.takeParked();
    if (slot < 0) {
      this.dropStaged();
      return false;
    }
    this.chunkPage = this.#stagedPage;
    this.chunkUnit = this.#stagedUnit;
    this.chunkSlot = slot;
    this.held.set(slot, this.chunkPage, this.chunkUnit);
    this.held.clear(STAGED_SLOT);
    this.#stagedPage = NO_PAGE;
    return true;
  }

  #takeFree(size: number): boolean {
    const units = unitsOf(size);
    if (units > MAX_CHUNK_UNITS) return false;
    const slabClass = CLASS_OF_UNITS[units];
    const { slabs } = this;
    if (!slabs.take(slabClass) && !slabs.takeLarger(slabClass, ROOMY_RATIO, STAGED_SLOT)) return false;
    this.#stagedPage = slabs.page;
    this.#stagedUnit = slabs.unit;
    return true;
  }

  /** A taken chunk is being linked by the running command: it stays when the command settles. */
  linkChunk(page: number, unit: number, slot: number): void {
    this.#openJournal();
    this.held.defer(page, unit | LINKED);
    this.linkedCount++;
    this.held.giveParked(slot);
    // A run of pages is no longer this participant's to lose.
    if (this.memory.pageKind(page) === PageKind.LARGE) this.ctl[this.memory.pageInfo(page)] = PageKind.LARGE;
  }

  /** An open journal says that what the held slots name from here on is not settled (see repair), whatever was settled for want of room. */
  #openJournal(): void {
    const { journal, memory } = this;
    if (!journal.isOpen) journal.save(memory.ownArena, memory.own, memory.ownBase + P.UNSETTLED_WORD);
  }

  dropChunk(page: number, unit: number, slot: number): void {
    this.freeChunk(page, unit, slot);
    this.held.giveParked(slot);
  }

  /** A node is being unlinked: freed when the command has settled. */
  retireChunk(page: number, unit: number): void {
    this.#openJournal();
    this.held.defer(page, unit);
  }

  /** Journal and held slots have room for what so many steps of a collection change; else what was done so far is settled. */
  makeChangeRoom(steps = 1): void {
    if (this.held.hasRoom(STEP_CHUNKS * steps) && this.journal.hasRoom(STEP_JOURNAL_WORDS * steps)) return;
    this.settle();
    this.freeUnlinked();
  }

  /** Gives an item, whose first word is `header`, its next version; journaled. */
  renewVersion(hash: number, arena: number, item: Bytes, header: number): void {
    if (this.copies.areKept) {
      const page = (arena << Page.ARENA_SHIFT) | (header >>> PAGE_WORDS_SHIFT);
      this.copies.forget(page, (header & PAGE_WORDS_MASK) >>> UNIT_WORDS_SHIFT);
    }
    this.journal.saveRange(arena, item.i32, header + Item.VERSION_LOW_WORD, VERSION_WORDS);
    this.nextVersion(hash, item, header);
  }

  /** Gives an item the shard's next version. Its low bits are the shard's number: no two items of a pool ever have the same. */
  protected nextVersion(hash: number, item: Bytes, header: number): void {
    const { shardCount } = this.memory;
    const shard = this.index.shardWord(hash);
    const next = ((this.ctl[shard + Shard.VERSION_LOW_WORD] & -shardCount) + shardCount) | 0;
    if (next === 0) this.ctl[shard + Shard.VERSION_HIGH_WORD]++;
    const low = next | (hash & (shardCount - 1));
    this.ctl[shard + Shard.VERSION_LOW_WORD] = low;
    item.i32[header + Item.VERSION_LOW_WORD] = low;
    item.i32[header + Item.VERSION_HIGH_WORD] = this.ctl[shard + Shard.VERSION_HIGH_WORD];
    if (this.ctl[shard + Shard.INTERESTS_WORD] !== 0) this.feed.noteChange(item, header, true);
  }
}
