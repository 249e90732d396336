/**
 * The capacity log: items of mixed sizes appended to 1 MiB pages of the capacity tier, then never changed.
 *
 * Each participant fills an open page of its own, so an append takes no lock. Owns: write positions and live units of log
 * pages. Invariant: a page's live units are the units of its items that the index points to, plus appends not linked yet.
 */
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { ParticipantPage as P, PageInfo, PageKind, Super } from '../layout/superblock.js';
import { copyBytes } from '../native/copy.js';
import type { Memory } from './memory.js';
import { NO_PAGE, type PagePool } from './page-pool.js';

/** Share of the capacity tier that reclaim keeps free, as a divisor (1/12 = 8 %). */
const RESERVE_DIVISOR = 12;

export class CapacityLog {
  /** Where `append` put the item. */
  page = NO_PAGE;
  unit = 0;

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
    const memory = this.#memory;
    const { ctl } = memory;
    const from = memory.arenas[fromPage >>> Page.ARENA_SHIFT];
    const fromOffset = locationOffset(fromPage, fromUnit);
    const bytes = itemBytes(header[Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, header[Item.VALUE_LENGTH_WORD]);
    const units = unitsOf(bytes);
    let page = memory.own[memory.ownBase + P.LOG_PAGE_WORD];
    let position = page === NO_PAGE ? Page.UNITS : ctl[memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD];
    if (position + units > Page.UNITS) {
      page = this.#turnPage(page);
      if (page === NO_PAGE) return false;
      position = 0;
    }
    const info = memory.pageInfo(page);
    const to = memory.arenas[page >>> Page.ARENA_SHIFT];
    const toOffset = locationOffset(page, position);
    copyBytes(to, toOffset, from, fromOffset, bytes);
    for (let i = 0; i < Item.HEADER_WORDS; i++) to.i32[(toOffset >>> 2) + i] = header[i];
    ctl[info + PageInfo.FREE_HEAD_WORD] = position + units;
    Atomics.add(ctl, info + PageInfo.FREE_COUNT_WORD, units);
    if (memory.charge !== null) memory.charge.write(bytes);
    this.page = page;
    this.unit = position;
    return true;
  }

  /** An item of a log page is dead: unlinked, or appended in vain. */
  drop(page: number, units: number): void {
    const memory = this.#memory;
    Atomics.sub(memory.ctl, memory.pageInfo(page) + PageInfo.FREE_COUNT_WORD, units);
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
    const { ctl, capacityPages } = this.#memory;
    if (capacityPages === 0 || ctl[Super.LOG_COUNT_WORD] === 0) return false;
    return ctl[Super.CAPACITY_FREE_WORD] < Math.max(2, Math.floor(capacityPages / RESERVE_DIVISOR));
  }

  #turnPage(old: number): number {
    const memory = this.#memory;
    // Sealed only after the new page is there: a failed append leaves the old one open for smaller items.
    const page = this.#pool.takeCapacity(PageKind.LOG_OPEN);
    if (page === NO_PAGE) return NO_PAGE;
    memory.own[memory.ownBase + P.LOG_PAGE_WORD] = page;
    if (old !== NO_PAGE) this.#pool.sealLog(old);
    return page;
  }
}
