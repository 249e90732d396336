/**
 * The item cursor: unlinking the found item, moving it, and freeing what was unlinked.
 *
 * Owns: the notes of what the running command has linked and unlinked. Invariant: between lock and unlock, each changed word is in the undo
 * journal and each chunk taken or unlinked is in a held slot, so that whoever finds this participant dead can put all of it back.
 */
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, pageOffset, unitsOf } from '../layout/location.js';
import { Database, PageKind, Shard, Super } from '../layout/superblock.js';
import { MOVING_SLOT, STAGED_SLOT, UNPINNED_SLOT } from '../memory/held.js';
import { NO_PAGE } from '../memory/page-pool.js';
import type { Notify } from './change-feed.js';
import { Graveyard } from './collections/graveyard.js';
import { ItemFinder, type KeyspaceParts } from './item-finder.js';

/** Longer values are sent from the region, under a pin, instead of being copied out. */
export const INLINE_VALUE_BYTES = 16384;
/** In held slots, marks a chunk that was linked (not unlinked) by the running command. */
export const LINKED = 0x10000;
/** Bits of the page of keys written during a rebuild: one for each of so many hashes. A collision costs a key its coming back. */
export const WRITTEN_BITS = Page.BYTES * 8;

export abstract class ItemCursor extends ItemFinder {
  /** The staged slot holds an item that the running command has linked; a second one moves it to the deferred slots. */
  protected linkedInSlot = false;
  protected linkedCount = 0;

  constructor(parts: KeyspaceParts) {
    super(parts);
    parts.journal.settle = () => this.settle();
  }

  /** The changes of the running command stand: from here a crash does not undo them. Locks are still held. */
  settle(): void {
    this.journal.commit();
    if (this.held.count !== 0) this.held.noteSettled();
    this.foundOffset = -1;
    // What was linked is other people's from the unlock on: forget it before.
    if (this.linkedInSlot) {
      this.held.clear(STAGED_SLOT);
      this.linkedInSlot = false;
    }
    if (this.linkedCount !== 0) this.#forgetLinked();
  }

  #forgetLinked(): void {
    const { held } = this;
    for (let i = 0; i < held.count; i++) {
      const slot = held.deferredSlot(i);
      if ((held.unit(slot) & LINKED) !== 0) held.clear(slot);
    }
    this.linkedCount = 0;
  }

  /** Frees what the command unlinked. After settle; locks may or may not be held. */
  freeUnlinked(): void {
    const held = this.held;
    for (let i = 0; i < held.count; i++) {
      const slot = held.deferredSlot(i);
      const page = held.page(slot);
      if (page !== NO_PAGE) this.freeItem(page, held.unit(slot), slot);
    }
    held.reset();
  }

  /** The held stack has room for what one step adds; a command that unlinks thousands settles in between. */
  protected makeHeldRoom(): void {
    if (this.held.isNearlyFull) {
      this.settle();
      this.freeUnlinked();
    }
  }

  protected unlink(event: Notify): void {
    this.restore();
    this.removeEntry(event);
  }

  /** Deletes the item of the entry that the index stands on (eviction, expiry, purge), for the reason `event`. The cursor is left alone. */
  removeEntry(event: Notify): void {
    this.makeHeldRoom();
    const { index } = this;
    const { page, unit } = index;
    const header = locationOffset(page, unit) >>> 2;
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
    const { i32 } = item;
    const hash = i32[header + Item.HASH_WORD];
    if (this.isRebuilding) this.noteWritten(hash);
    const counts = this.counts(hash, i32[header + Item.SHAPE_WORD] >>> Item.DB_SHIFT);
    if (this.ctl[index.shardWord(hash) + Shard.INTERESTS_WORD] !== 0) this.feed.noteRemoval(item, header, event);
    if ((this.feed.notifies & event) !== 0) this.feed.noteEvent(event, item, header);
    this.ctl[counts]--;
    if (index.hasExpiry) this.ctl[counts + Database.EXPIRING_OFFSET]--;
    this.discard(page, unit);
    index.remove(hash);
  }

  /** Log pages from before a reboot are still to be scanned (store/rebuild). */
  get isRebuilding(): boolean {
    return this.ctl[Super.REBUILD_STATE_WORD] !== 0;
  }

  /** A command that changes a key has run, found or not: what the rebuild still finds of it is too old. Its lock is held. */
  noteWritten(hash: number): void {
    const page = this.ctl[Super.REBUILD_WRITTEN_WORD];
    if (page === NO_PAGE) return;
    const bit = (hash >>> 0) & (WRITTEN_BITS - 1);
    const { i32 } = this.arenas[page >>> Page.ARENA_SHIFT];
    Atomics.or(i32, (pageOffset(page) >>> 2) + (bit >>> 5), 1 << (bit & 31));
  }

  /** Lets the entry that the index stands on point to a copy of its item, and frees the old one. */
  moveEntry(hash: number, page: number, unit: number): void {
    this.makeHeldRoom();
    this.#unlinkPlace(this.index.page, this.index.unit);
    this.index.setLocation(hash, page, unit);
  }

  /** The chunk in MOVING_SLOT is linked by moveEntry: it is no longer this participant's to lose. */
  linkMoved(): void {
    const { held } = this;
    held.defer(held.page(MOVING_SLOT), held.unit(MOVING_SLOT) | LINKED);
    this.linkedCount++;
    held.clear(MOVING_SLOT);
  }

  /** An item that is being unlinked for good, and its copy. */
  protected discard(page: number, unit: number): void {
    if (this.copies.areKept) this.copies.forget(page, unit);
    this.#unlinkPlace(page, unit);
  }

  /** Where an item no longer lies: a chunk or run is freed when the command has settled; a log page only counts. */
  #unlinkPlace(page: number, unit: number): void {
    if (page < this.memory.capacityBase || this.memory.pageKind(page) === PageKind.LARGE) {
      this.held.defer(page, unit);
      return;
    }
    const header = locationOffset(page, unit) >>> 2;
    const { i32 } = this.arenas[page >>> Page.ARENA_SHIFT];
    const keyLength = i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    this.log.drop(page, unit, unitsOf(itemBytes(keyLength, i32[header + Item.VALUE_LENGTH_WORD])));
  }

  protected counts(hash: number, database: number): number {
    const shard = hash & (this.memory.shardCount - 1);
    return this.databaseTable + Database.COUNTS_WORD + shard * Database.SHARD_WORDS + database;
  }

  protected countExpiring(hash: number, database: number, had: boolean, has: boolean): void {
    if (had === has) return;
    this.ctl[this.counts(hash, database) + Database.EXPIRING_OFFSET] += has ? 1 : -1;
  }

  /** Keeps the found item's bytes in place until unpin; 0 = the table is full or the value short: copy out instead. */
  pin(): number {
    return this.valueLength > INLINE_VALUE_BYTES ? this.pins.pin(this.page, this.unit) : 0;
  }

  unpin(token: number): void {
    const page = this.pins.unpin(token);
    if (page !== NO_PAGE) this.freeChunk(page, this.pins.freedUnit, UNPINNED_SLOT);
  }

  /** Frees an unlinked item and clears its held slot; a pinned one is freed by its last unpin, a tree bit by bit. */
  freeItem(page: number, unit: number, heldSlot: number): void {
    if (Graveyard.isRoot(this.memory, page, unit)) {
      this.graveyard.bury(page, unit, this.memory.ownArena, this.held.word(heldSlot));
      return;
    }
    const header = locationOffset(page, unit) >>> 2;
    const valueLength = this.arenas[page >>> Page.ARENA_SHIFT].i32[header + Item.VALUE_LENGTH_WORD];
    if (valueLength > INLINE_VALUE_BYTES && this.pins.doom(page, unit, this.memory.ownArena, this.held.word(heldSlot)))
      return;
    this.freeChunk(page, unit, heldSlot);
  }

  protected freeChunk(page: number, unit: number, heldSlot: number): void {
    const kind = this.memory.pageKind(page);
    if (kind === PageKind.SLAB) this.slabs.give(page, unit, heldSlot);
    else if (kind === PageKind.LARGE) this.pool.freeRun(page, this.memory.ownArena, this.held.word(heldSlot));
    else throw new Error(`page ${page} of kind ${kind} holds no chunk to free`);
  }
}
