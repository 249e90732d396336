/**
 * The capacity log: items of mixed sizes appended to 1 MiB pages of the capacity tier, then never changed.
 *
 * Each participant fills an open page of its own, so an append takes no lock. Owns: write positions and live units of log
 * pages, and in a warm pool what makes a record count after a reboot (layout/log-record). Invariant: a page's live units are the units
 * of its items that the index points to, plus appends not linked yet.
 */
import type { Bytes } from '../layout/bytes.js';
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, pageOffset, unitsOf } from '../layout/location.js';
import {
  clearLines,
  expiryCheck,
  LogPage,
  LogRecord,
  markDead,
  mix,
  pageKey,
  readPageKey,
  shapeCheck,
  writePageHeader,
} from '../layout/log-record.js';
import { ParticipantPage as P, PageChange, PageInfo, PageKind, Super } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { copyBytes } from '../native/copy.js';
import type { Memory } from './memory.js';
import { NO_PAGE, type PagePool } from './page-pool.js';

/** Share of the capacity tier that reclaim keeps free, as a divisor: as much as is written while it works. */
const RESERVE_DIVISOR = 48;
/** Called through a variable: see native/copy. */
const { crc32c } = addon;
/** Reclaim frees a page when one is wanting, so a full tier has one or two more: from this many on it has room. */
const FULL_MARGIN_PAGES = 2;
const FULL_MARGIN_DIVISOR = 64;

export class CapacityLog {
  /** Where `append` put the item. */
  page = NO_PAGE;
  unit = 0;
  /** Of the appended item, for `confirm`. */
  check = 0;

  readonly #memory: Memory;
  readonly #pool: PagePool;

  constructor(memory: Memory, pool: PagePool) {
    this.#memory = memory;
    this.#pool = pool;
  }

  /**
   * Copies an item behind the open page's last; false when the tier has no free page. Without a lock the item may change meanwhile: the
   * copy's header is `header`, as it was under the lock, so that the page can be walked even if the copy is of no use.
   */
  append(fromPage: number, fromUnit: number, header: Int32Array): boolean {
    return this.appendFrom(
      this.#memory.arenas[fromPage >>> Page.ARENA_SHIFT],
      locationOffset(fromPage, fromUnit),
      header,
    );
  }

  /** The same for an item that lies anywhere. */
  appendFrom(from: Bytes, fromOffset: number, header: Int32Array): boolean {
    const memory = this.#memory;
    if (memory.isCapacityLost) return false;
    const { ctl } = memory;
    const bytes = itemBytes(header[Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, header[Item.VALUE_LENGTH_WORD]);
    const units = unitsOf(bytes);
    const taken = units + memory.logPrefixUnits;
    let page = memory.own[memory.ownBase + P.LOG_PAGE_WORD];
    let position = page === NO_PAGE ? Page.UNITS : ctl[memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD];
    if (position + taken > memory.logEndUnit) {
      page = this.#turnPage(page);
      if (page === NO_PAGE) return false;
      position = memory.logFirstUnit;
    }
    const info = memory.pageInfo(page);
    const to = memory.arenas[page >>> Page.ARENA_SHIFT];
    const unit = position + memory.logPrefixUnits;
    const toOffset = locationOffset(page, unit);
    copyBytes(to, toOffset, from, fromOffset, bytes);
    for (let i = 0; i < Item.HEADER_WORDS; i++) to.i32[(toOffset >>> 2) + i] = header[i];
    if (memory.isWarm) this.#writeRecord(to.i32, page, unit, to.arena, toOffset, bytes);
    ctl[info + PageInfo.FREE_HEAD_WORD] = position + taken;
    Atomics.add(ctl, info + PageInfo.FREE_COUNT_WORD, units);
    if (memory.charge !== null) memory.charge.write(bytes);
    this.page = page;
    this.unit = unit;
    return true;
  }

  /** An item of a log page is dead: unlinked, or appended in vain. */
  drop(page: number, unit: number, units: number): void {
    const memory = this.#memory;
    Atomics.sub(memory.ctl, memory.pageInfo(page) + PageInfo.FREE_COUNT_WORD, units);
    if (memory.isWarm) this.markDead(page, unit);
  }

  /** Puts this participant's open page into the queue (when it leaves, or for tests). */
  seal(): void {
    const memory = this.#memory;
    const page = memory.own[memory.ownBase + P.LOG_PAGE_WORD];
    if (page === NO_PAGE) return;
    memory.own[memory.ownBase + P.LOG_PAGE_WORD] = NO_PAGE;
    this.#pool.sealLog(page);
  }

  /** True while reclaim must make room. */
  get isShort(): boolean {
    return this.#hasFewer(0);
  }

  /** True when reclaim is at work or will be soon: what is written from now on drives something else out. */
  get isFull(): boolean {
    return this.#hasFewer(FULL_MARGIN_PAGES + Math.floor(this.#memory.capacitySize / FULL_MARGIN_DIVISOR));
  }

  /** True when fewer pages are free than reclaim keeps and `margin` more. */
  #hasFewer(margin: number): boolean {
    const { ctl, capacitySize, capacityWanted, isCapacityLost } = this.#memory;
    if (capacitySize === 0 || isCapacityLost || ctl[Super.LOG_COUNT_WORD] === 0) return false;
    // Pages that are too many are freed in addition, and go.
    const kept = Math.max(2, Math.floor(capacitySize / RESERVE_DIVISOR)) + Math.max(0, -capacityWanted);
    return ctl[Super.CAPACITY_FREE_WORD] < kept + margin;
  }

  #turnPage(old: number): number {
    const memory = this.#memory;
    // Sealed only after the new page is there: a failed append leaves the old one open for smaller items.
    const page = this.#pool.takeCapacity(PageKind.LOG_OPEN);
    if (page === NO_PAGE) return NO_PAGE;
    if (memory.isWarm) this.#preparePage(page);
    memory.own[memory.ownBase + P.LOG_PAGE_WORD] = page;
    if (old !== NO_PAGE) this.#pool.sealLog(old);
    return page;
  }

  // ---- warm pools: what a scan after a reboot goes by

  #preparePage(page: number): void {
    const memory = this.#memory;
    const { ctl } = memory;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const base = pageOffset(page) >>> 2;
    const epoch = ctl[Super.LOG_EPOCH_WORD];
    const generation = Atomics.add(ctl, Super.LOG_GENERATION_WORD, 1);
    const number = page - memory.capacityBase;
    const key = pageKey(memory.logSalt, epoch, generation, number);
    i32.fill(0, base, base + LogPage.HEADER_WORDS);
    clearLines(i32, base, key);
    i32[base + LogPage.NUMBER_WORD] = number;
    writePageHeader(i32, base, key, epoch, generation);
    ctl[memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD] = LogPage.HEADER_UNITS;
    this.noteChange(page);
  }

  #writeRecord(words: Int32Array, page: number, unit: number, arena: number, offset: number, bytes: number): void {
    const header = offset >>> 2;
    const at = header - LogRecord.WORDS;
    const key = this.#keyOf(page);
    words.fill(0, at, header);
    words[at + LogRecord.SHAPE_CHECK_WORD] = shapeCheck(
      key,
      unit,
      words[header + Item.SHAPE_WORD],
      words[header + Item.VALUE_LENGTH_WORD],
    );
    this.check = recordCheck(arena, offset, bytes, key, unit);
    this.noteChange(page);
  }

  /** The appended item is linked, under its lock: from here a scan finds it. */
  confirm(page: number, unit: number, check: number, expiryMs: number): void {
    const memory = this.#memory;
    if (!memory.isWarm) return;
    this.noteExpiry(page, unit, expiryMs);
    const at = (locationOffset(page, unit) >>> 2) - LogRecord.WORDS;
    memory.arenas[page >>> Page.ARENA_SHIFT].i32[at + LogRecord.CHECK_WORD] = check;
  }

  /** The item of a log page expires at another time than its record says: three words on a line that the page's next flush takes along. */
  noteExpiry(page: number, unit: number, expiryMs: number): void {
    const memory = this.#memory;
    if (!memory.isWarm || !memory.isCapacity(page) || memory.pageKind(page) === PageKind.LARGE) return;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const at = (locationOffset(page, unit) >>> 2) - LogRecord.WORDS;
    const high = Math.floor(expiryMs / 0x1_0000_0000);
    const low = (expiryMs - high * 0x1_0000_0000) | 0;
    i32[at + LogRecord.EXPIRY_LOW_WORD] = low;
    i32[at + LogRecord.EXPIRY_HIGH_WORD] = high;
    i32[at + LogRecord.EXPIRY_CHECK_WORD] = expiryCheck(this.#keyOf(page), unit, low, high);
    this.noteChange(page);
  }

  /** A scan shall not take the item at the unit for living. */
  markDead(page: number, unit: number): void {
    const memory = this.#memory;
    const key = this.#keyOf(page);
    if (key === 0) return;
    markDead(memory.arenas[page >>> Page.ARENA_SHIFT].i32, pageOffset(page) >>> 2, key, unit);
    this.noteChange(page);
  }

  #lastPage = NO_PAGE;
  #lastGeneration = 0;
  #lastEpoch = 0;
  #lastKey = 0;

  /** Key of a log page, by its header; 0 when that is damaged. */
  #keyOf(page: number): number {
    const memory = this.#memory;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const base = pageOffset(page) >>> 2;
    const generation = i32[base + LogPage.GENERATION_WORD];
    const epoch = i32[base + LogPage.EPOCH_WORD];
    if (page === this.#lastPage && generation === this.#lastGeneration && epoch === this.#lastEpoch)
      return this.#lastKey;
    const key = readPageKey(i32, base, memory.logSalt, page - memory.capacityBase);
    this.#lastPage = page;
    this.#lastGeneration = generation;
    this.#lastEpoch = epoch;
    this.#lastKey = key;
    return key;
  }

  /** A page's bytes have changed: they are to be made persistent. */
  noteChange(page: number): void {
    const word = this.#memory.pageInfo(page) + PageInfo.CHANGED_WORD;
    // After the change: whoever clears the mark makes persistent what was there before it.
    Atomics.compareExchange(this.#memory.ctl, word, PageChange.NONE, PageChange.CHANGED);
  }
}

/** Check word of the item of `bytes` at `offset`; never 0. */
export function recordCheck(arena: number, offset: number, bytes: number, key: number, unit: number): number {
  return crc32c(arena, offset, bytes, mix(key, unit) >>> 0) | 0 || 1;
}
