/**
 * Reclaims pages of the capacity log in FIFO order, a few items at a time.
 *
 * Items of the oldest page that were used since are appended again, the rest are evicted; the page is then free. Under
 * `noeviction` nothing may be lost, so the page with the fewest live units is compacted instead. Invariant: one participant at a time
 * works on the log (reclaim lock), and a page is freed only when no entry points into it and no pin holds it.
 */
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { PageInfo, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import type { Eviction } from './eviction.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';
import { Stat } from './statistics.js';

/** Items looked at in one slice: about 50 microseconds. */
const SLICE_ITEMS = 64;
/** Under noeviction a page is worth compacting when at least this share of it is dead, as a divisor. */
const WORTH_DIVISOR = 12;

export class Reclaim {
  readonly #keyspace: Keyspace;
  readonly #eviction: Eviction;
  readonly #memory: Memory;
  readonly #ctl: Int32Array;

  constructor(keyspace: Keyspace, eviction: Eviction) {
    this.#keyspace = keyspace;
    this.#eviction = eviction;
    this.#memory = keyspace.memory;
    this.#ctl = keyspace.memory.ctl;
  }

  /** One slice of work if the capacity tier is short of free pages. True when there is more to do. */
  keepUp(): boolean {
    if (!this.#keyspace.log.isShort) return false;
    return this.#slice(SLICE_ITEMS);
  }

  /** Works until one log page is free; false when none can be freed. */
  freePage(): boolean {
    const before = this.#ctl[Super.CAPACITY_FREE_WORD];
    for (let slices = 0; slices < 4 * (Page.UNITS / SLICE_ITEMS); slices++) {
      if (this.#ctl[Super.CAPACITY_FREE_WORD] > before) return true;
      if (!this.#slice(SLICE_ITEMS)) return this.#ctl[Super.CAPACITY_FREE_WORD] > before;
    }
    return false;
  }

  #slice(itemCount: number): boolean {
    const ctl = this.#ctl;
    if (!this.#memory.tryLock(Super.RECLAIM_LOCK_WORD)) return true;
    let page = ctl[Super.RECLAIM_PAGE_WORD];
    if (page === NO_PAGE) {
      page = this.#choosePage();
      ctl[Super.RECLAIM_UNIT_WORD] = 0;
      ctl[Super.RECLAIM_PAGE_WORD] = page;
    }
    const more = page !== NO_PAGE && this.#work(page, itemCount);
    this.#memory.unlock(Super.RECLAIM_LOCK_WORD);
    return more;
  }

  #choosePage(): number {
    const ctl = this.#ctl;
    if (this.#eviction.policy !== Policy.NO_EVICTION) return ctl[Super.LOG_HEAD_WORD];
    let best = NO_PAGE;
    let bestLive = Page.UNITS - Page.UNITS / WORTH_DIVISOR;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    for (
      let page = ctl[Super.LOG_HEAD_WORD];
      page !== NO_PAGE;
      page = ctl[this.#memory.pageInfo(page) + PageInfo.NEXT_WORD]
    ) {
      const live = ctl[this.#memory.pageInfo(page) + PageInfo.FREE_COUNT_WORD];
      if (live < bestLive) {
        bestLive = live;
        best = page;
      }
    }
    this.#memory.unlock(Super.PAGE_LOCK_WORD);
    return best;
  }

  /** Looks at the page's next items; frees the page at its end. False when it cannot be finished now. */
  #work(page: number, itemCount: number): boolean {
    const ctl = this.#ctl;
    const memory = this.#memory;
    const info = memory.pageInfo(page);
    const end = ctl[info + PageInfo.FREE_HEAD_WORD];
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    let unit = ctl[Super.RECLAIM_UNIT_WORD];
    if (ctl[info + PageInfo.FREE_COUNT_WORD] === 0) unit = end;
    for (let i = 0; i < itemCount && unit < end; i++) {
      const header = locationOffset(page, unit) >>> 2;
      const units = unitsOf(
        itemBytes(i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, i32[header + Item.VALUE_LENGTH_WORD]),
      );
      if (!this.#settleItem(i32[header + Item.HASH_WORD], page, unit)) return false;
      unit += units;
      ctl[Super.RECLAIM_UNIT_WORD] = unit;
    }
    if (unit < end) return true;
    if (ctl[info + PageInfo.FREE_COUNT_WORD] !== 0 || this.#keyspace.pins.isPagePinned(page)) {
      // Somebody still holds an item of it unlinked but not freed, or sends from it: look again later.
      ctl[Super.RECLAIM_UNIT_WORD] = end;
      return false;
    }
    ctl[Super.RECLAIM_PAGE_WORD] = NO_PAGE;
    this.#keyspace.pool.freeLog(page);
    return true;
  }

  /** Re-appends or evicts one item if it is live. False when its shard is busy or it can neither move nor go. */
  #settleItem(hash: number, page: number, unit: number): boolean {
    const memory = this.#memory;
    const keyspace = this.#keyspace;
    const { index, log, statistics } = keyspace;
    const lockWord = index.shardWord(hash);
    const mine = memory.holds(lockWord);
    if (!mine && !memory.tryLock(lockWord)) return false;
    let done = true;
    if (index.findLocation(hash, page, unit)) {
      const expired = index.hasExpiry && index.expiryMs <= keyspace.nowMs;
      const evictable = expired || this.#eviction.isFlushed(page, unit) || this.#eviction.mayEvict();
      const used = index.frequency > 0;
      if (keyspace.isProtected(page, unit) && mine) {
        done = false;
      } else if (evictable && (expired || !used)) {
        keyspace.removeEntry();
        statistics[expired ? Stat.EXPIRED : Stat.EVICTED]++;
        statistics[Stat.RECLAIM_DROPPED]++;
      } else if (log.append(page, unit)) {
        index.setFrequency(Math.max(0, index.frequency - 1));
        keyspace.moveEntry(hash, log.page, log.unit);
        statistics[Stat.RECLAIM_KEPT]++;
      } else if (evictable) {
        keyspace.removeEntry();
        statistics[Stat.EVICTED]++;
      } else {
        done = false;
      }
    }
    keyspace.settle();
    if (!mine) memory.unlock(lockWord);
    keyspace.freeUnlinked();
    return done;
  }
}
