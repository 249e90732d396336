/**
 * Copies that items in DRAM have in the capacity log: what comes back of them after a reboot, and what they go down to without a write.
 *
 * Owns the tails of slab chunks (layout/chunk-tail), and the units of each log page that are copies. Invariant: a copy holds what its item does,
 * in bytes and expiry; whatever changes the item says so here first, under the item's lock, and the copy is dead from then on.
 * The tail is not journaled: a change that is undone leaves an item without a copy, which is as good as any that is new.
 */
import { Bucket } from '../layout/bucket.js';
import { Checkpoint } from '../layout/checkpoint.js';
import { ChunkTail, chunkTail } from '../layout/chunk-tail.js';
import { Item, ItemType, itemBytes } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { PageInfo, PageKind } from '../layout/superblock.js';
import type { CapacityLog } from './capacity-log.js';
import type { Memory } from './memory.js';
import { NO_PAGE } from './page-pool.js';
import { CLASS_UNITS } from './slab-classes.js';

/** What is needed of the index (store/index-cursor). */
export interface CopyIndex {
  slot: number;
  readonly page: number;
  readonly unit: number;
  locate(hash: number): void;
  next(): boolean;
  hasTag(hash: number): boolean;
}

export class LogCopies {
  /** Where `find` found one. */
  page = NO_PAGE;
  unit = 0;

  /** Chunks of this pool have a tail. */
  readonly areKept: boolean;
  readonly #memory: Memory;
  readonly #log: CapacityLog;

  constructor(memory: Memory, log: CapacityLog) {
    this.#memory = memory;
    this.#log = log;
    this.areKept = memory.chunkTailBytes !== 0;
  }

  /** First word of the tail of the item's chunk; -1 = it lies in none. */
  #tailOf(page: number, unit: number): number {
    const kind = this.#memory.ctl[this.#memory.pageInfo(page)];
    return (kind & 0xff) === PageKind.SLAB ? chunkTail(page, unit, CLASS_UNITS[(kind >>> 8) & 0xff]) : -1;
  }

  #words(page: number): Int32Array {
    return this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32;
  }

  /** An item has been put into the chunk. */
  begin(page: number, unit: number): void {
    const tail = this.#tailOf(page, unit);
    if (tail < 0) return;
    const words = this.#words(page);
    words[tail + ChunkTail.PAGE_WORD] = NO_PAGE;
    words[tail + ChunkTail.SEEN_WORD] = 0;
  }

  /** True when the item has a copy: at `page` and `unit`. */
  find(page: number, unit: number): boolean {
    if (!this.areKept) return false;
    const tail = this.#tailOf(page, unit);
    if (tail < 0) return false;
    const words = this.#words(page);
    this.page = words[tail + ChunkTail.PAGE_WORD];
    this.unit = words[tail + ChunkTail.UNIT_WORD];
    return this.page !== NO_PAGE;
  }

  /** An item without a copy is what it was when this was last asked, and has been since. */
  isSettled(page: number, unit: number): boolean {
    const words = this.#words(page);
    const seen = this.#tailOf(page, unit) + ChunkTail.SEEN_WORD;
    const version = words[(locationOffset(page, unit) >>> 2) + Item.VERSION_LOW_WORD];
    if (words[seen] === version) return true;
    words[seen] = version;
    return false;
  }

  /** The record at the second location is the copy of the item at the first from now on. */
  attach(page: number, unit: number, logPage: number, logUnit: number): void {
    const tail = this.#tailOf(page, unit);
    const words = this.#words(page);
    // The page last: it says that there is one.
    words[tail + ChunkTail.UNIT_WORD] = logUnit;
    words[tail + ChunkTail.PAGE_WORD] = logPage;
    this.forEachPart(logPage, logUnit, (partPage, partUnit) =>
      this.#count(partPage, this.#unitsAt(partPage, partUnit)),
    );
  }

  /** The item is about to change, or to go. */
  forget(page: number, unit: number): void {
    const tail = this.#tailOf(page, unit);
    if (tail < 0) return;
    const words = this.#words(page);
    const logPage = words[tail + ChunkTail.PAGE_WORD];
    if (logPage === NO_PAGE) return;
    this.forEachPart(logPage, words[tail + ChunkTail.UNIT_WORD], this.#drop);
    words[tail + ChunkTail.PAGE_WORD] = NO_PAGE;
    words[tail + ChunkTail.SEEN_WORD] = 0;
  }

  /** The copy's page is lost: the item has none from now on, and nothing is done to the page. */
  abandon(page: number, unit: number): void {
    const tail = this.#tailOf(page, unit);
    this.#words(page).fill(0, tail, tail + ChunkTail.BYTES / 4);
  }

  readonly #drop = (page: number, unit: number): void => {
    const units = this.#unitsAt(page, unit);
    this.#count(page, -units);
    this.#log.drop(page, unit, units);
  };

  /** Visits the records that a copy consists of, the last part of a checkpoint first: an item's copy is one. A visited record may be dropped. */
  forEachPart(logPage: number, logUnit: number, visit: (page: number, unit: number) => void): void {
    let page = logPage;
    let unit = logUnit;
    while (page !== NO_PAGE) {
      const { i32, view } = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
      const offset = locationOffset(page, unit);
      const shape = i32[(offset >>> 2) + Item.SHAPE_WORD];
      const isPart = ((shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK) === ItemType.CHECKPOINT;
      const value = offset + Item.HEADER_BYTES + (shape & Item.KEY_LENGTH_MASK);
      const before = isPart ? view.getUint32(value + Checkpoint.PAGE_BYTE, true) : 0;
      const unitBefore = isPart ? view.getUint16(value + Checkpoint.UNIT_BYTE, true) : 0;
      visit(page, unit);
      page = before === 0 ? NO_PAGE : this.#memory.capacityBase + before - 1;
      unit = unitBefore;
    }
  }

  /** The copy that was just found is the item itself from now on: its chunk is being unlinked. Returns what it takes, in units. */
  detach(): number {
    const units = this.#unitsAt(this.page, this.unit);
    this.#count(this.page, -units);
    return units;
  }

  /** The item has moved to another chunk. */
  carry(fromPage: number, fromUnit: number, toPage: number, toUnit: number): void {
    const from = this.#tailOf(fromPage, fromUnit);
    const to = this.#tailOf(toPage, toUnit);
    if (from < 0 || to < 0) return;
    const words = this.#words(toPage);
    words[to + ChunkTail.UNIT_WORD] = this.#words(fromPage)[from + ChunkTail.UNIT_WORD];
    words[to + ChunkTail.PAGE_WORD] = this.#words(fromPage)[from + ChunkTail.PAGE_WORD];
  }

  /** The item in DRAM whose copy lies there, if there is one, has none any more. Its shard is locked. */
  release(index: CopyIndex, hash: number, logPage: number, logUnit: number): void {
    if (this.findOwner(index, hash, logPage, logUnit)) this.forget(index.page, index.unit);
  }

  /** Positions the index on the item in DRAM whose copy lies there; false when there is none. Its shard is locked. */
  findOwner(index: CopyIndex, hash: number, logPage: number, logUnit: number): boolean {
    if (!this.areKept) return false;
    index.locate(hash);
    do {
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        index.slot = slot;
        const { page, unit } = index;
        if (page === NO_PAGE || !index.hasTag(hash) || !this.find(page, unit)) continue;
        let isOwner = false;
        this.forEachPart(this.page, this.unit, (partPage, partUnit) => {
          isOwner ||= partPage === logPage && partUnit === logUnit;
        });
        if (isOwner) return true;
      }
    } while (index.next());
    return false;
  }

  noteExpiry(page: number, unit: number, expiryMs: number): void {
    if (this.find(page, unit)) this.#log.noteExpiry(this.page, this.unit, expiryMs);
  }

  #unitsAt(logPage: number, logUnit: number): number {
    const header = locationOffset(logPage, logUnit) >>> 2;
    const words = this.#words(logPage);
    return unitsOf(
      itemBytes(words[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, words[header + Item.VALUE_LENGTH_WORD]),
    );
  }

  #count(logPage: number, units: number): void {
    Atomics.add(this.#memory.ctl, this.#memory.pageInfo(logPage) + PageInfo.COPY_UNITS_WORD, units);
  }
}
