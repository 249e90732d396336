/**
 * Reclaims pages of the capacity log in FIFO order, a few items at a time.
 *
 * Items of the oldest page that were used since are appended again, the rest are evicted; copies of items in DRAM are let go, which may be
 * written behind again (write-behind); the page is then free. Under
 * `noeviction` nothing may be lost, so the page with the fewest live units is compacted instead. Invariant: one participant at a time
 * works on the log (reclaim lock), and a page is freed only when no entry points into it and no pin holds it.
 */
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { PageInfo, Shard, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { Notify } from './change-feed.js';
import type { Eviction } from './eviction.js';
import type { Index } from './index.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';
import { Stat } from './statistics.js';

/** Items looked at in one slice: about 50 microseconds. */
const SLICE_ITEMS = 64;
const enum Settled {
  DONE = 0,
  /** Its shard is locked, or the running command has just found it: another pass will do. */
  BUSY = 1,
  /** It may not go, and the tier has no room for a copy. */
  STUCK = 2,
  /** It is to be appended again. */
  KEEP = 3,
}

/** Under noeviction a page is worth compacting when at least this share of it is dead, as a divisor. */
const WORTH_DIVISOR = 12;

export class Reclaim {
  readonly #keyspace: Keyspace;
  readonly #eviction: Eviction;
  readonly #memory: Memory;
  readonly #ctl: Int32Array;
  readonly #index: Index;

  constructor(keyspace: Keyspace, eviction: Eviction) {
    this.#keyspace = keyspace;
    this.#eviction = eviction;
    this.#memory = keyspace.memory;
    this.#ctl = keyspace.memory.ctl;
    this.#index = keyspace.index;
  }

  /** One slice of work if the capacity tier is short of free pages. True when there is more to do. */
  keepUp(): boolean {
    if (!this.#keyspace.log.isShort) return false;
    return this.#slice(SLICE_ITEMS);
  }

  /** Works until one log page is free; false when none can be freed. */
  freePage(): boolean {
    if (this.#memory.isCapacityLost) return false;
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
      ctl[Super.RECLAIM_UNIT_WORD] = this.#memory.logFirstUnit;
      ctl[Super.RECLAIM_LEFT_WORD] = 0;
      ctl[Super.RECLAIM_PAGE_WORD] = page;
    }
    const more = page !== NO_PAGE && this.#work(page, itemCount);
    this.#memory.unlock(Super.RECLAIM_LOCK_WORD);
    return more;
  }

  #choosePage(): number {
    const ctl = this.#ctl;
    const { policy } = this.#eviction;
    if (policy !== Policy.NO_EVICTION && policy < Policy.VOLATILE_LRU) return ctl[Super.LOG_HEAD_WORD];
    let best = NO_PAGE;
    let bestLive = Page.UNITS - Page.UNITS / WORTH_DIVISOR;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    for (
      let page = ctl[Super.LOG_HEAD_WORD];
      page !== NO_PAGE;
      page = ctl[this.#memory.pageInfo(page) + PageInfo.NEXT_WORD]
    ) {
      const info = this.#memory.pageInfo(page);
      // Copies of what lies in DRAM are not kept.
      const copies = this.#memory.chunkTailBytes === 0 ? 0 : ctl[info + PageInfo.COPY_UNITS_WORD];
      const live = ctl[info + PageInfo.FREE_COUNT_WORD] - copies;
      if (live < bestLive) {
        bestLive = live;
        best = page;
      }
    }
    this.#memory.unlock(Super.PAGE_LOCK_WORD);
    // Where only items with an expiry may go, the oldest page yields something only if there are such.
    const yields = policy !== Policy.NO_EVICTION && this.#hasExpiring();
    return best === NO_PAGE && yields ? ctl[Super.LOG_HEAD_WORD] : best;
  }

  #hasExpiring(): boolean {
    const { shardCount, shardTable } = this.#memory;
    for (let shard = 0; shard < shardCount; shard++) {
      if (this.#ctl[shardTable + shard * Shard.WORDS + Shard.EXPIRING_WORD] > 0) return true;
    }
    return false;
  }

  /** Looks at the page's next items; frees the page at its end. False when it cannot be finished now. */
  #work(page: number, itemCount: number): boolean {
    const ctl = this.#ctl;
    const memory = this.#memory;
    const info = memory.pageInfo(page);
    const end = ctl[info + PageInfo.FREE_HEAD_WORD];
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const prefix = memory.logPrefixUnits;
    let position = ctl[Super.RECLAIM_UNIT_WORD];
    for (let i = 0; i < itemCount && position < end; i++) {
      const unit = position + prefix;
      const header = locationOffset(page, unit) >>> 2;
      for (let word = 0; word < Item.HEADER_WORDS; word++) this.#header[word] = i32[header + word];
      const keyLength = i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
      const bytes = itemBytes(keyLength, i32[header + Item.VALUE_LENGTH_WORD]);
      const settled = this.#settleItem(i32[header + Item.HASH_WORD], page, unit, bytes);
      if (settled === Settled.STUCK) return false;
      if (settled === Settled.BUSY) ctl[Super.RECLAIM_LEFT_WORD]++;
      position = unit + unitsOf(bytes);
      ctl[Super.RECLAIM_UNIT_WORD] = position;
    }
    if (position < end) return true;
    if (ctl[Super.RECLAIM_LEFT_WORD] > 0) {
      // Once more from the start: most of it is dead by now.
      ctl[Super.RECLAIM_LEFT_WORD] = 0;
      ctl[Super.RECLAIM_UNIT_WORD] = memory.logFirstUnit;
      return false;
    }
    // Every item was seen dead, under its shard's lock: nothing but a pin can still mean this page.
    ctl[Super.RECLAIM_PAGE_WORD] = NO_PAGE;
    if (this.#keyspace.pins.isPagePinned(page)) {
      this.#keyspace.pool.requeueLog(page);
      return ctl[Super.LOG_HEAD_WORD] !== page;
    }
    this.#keyspace.pool.freeLog(page);
    return true;
  }

  /** Re-appends or evicts one item if it is live. */
  #settleItem(hash: number, page: number, unit: number, bytes: number): Settled {
    const { log, statistics } = this.#keyspace;
    if (!this.#lock(hash)) return Settled.BUSY;
    let settled = Settled.DONE;
    if (this.#index.findLocation(hash, page, unit)) settled = this.#judge(page, unit);
    else this.#keyspace.copies.release(this.#index, hash, page, unit);
    this.#unlock(hash);
    if (settled !== Settled.KEEP) return settled;
    // Without the lock: items of the log never change, and only who holds the reclaim lock frees their page.
    const isCopied = log.append(page, unit, this.#header);
    if (isCopied) statistics[Stat.CAPACITY_BYTES_WRITTEN] += unitsOf(bytes) << Page.UNIT_SHIFT;
    if (!this.#lock(hash)) {
      if (isCopied) log.drop(log.page, log.unit, unitsOf(bytes));
      return Settled.BUSY;
    }
    const isLive = this.#index.findLocation(hash, page, unit);
    const kept = isLive ? this.#keep(hash, page, unit, isCopied) : Settled.DONE;
    if (!isLive) {
      if (isCopied) log.drop(log.page, log.unit, unitsOf(bytes));
      // It may have come up meanwhile, with this record as its copy.
      this.#keyspace.copies.release(this.#index, hash, page, unit);
    }
    this.#unlock(hash);
    return kept;
  }

  /** Of the item in hand. */
  readonly #header = new Int32Array(Item.HEADER_WORDS);
  #lockedHere = false;

  #lock(hash: number): boolean {
    const lockWord = this.#index.shardWord(hash);
    this.#lockedHere = !this.#memory.holds(lockWord);
    return !this.#lockedHere || this.#keyspace.gate.tryLockShard(lockWord);
  }

  #unlock(hash: number): void {
    this.#keyspace.settle();
    if (this.#lockedHere) this.#memory.unlock(this.#index.shardWord(hash));
    this.#keyspace.freeUnlinked();
  }

  #isExpired(): boolean {
    return this.#index.hasExpiry && this.#index.expiryMs <= this.#keyspace.nowMs;
  }

  /** The index stands on a live item of the page, its shard is locked: evicts it, or says that it is to be kept. */
  #judge(page: number, unit: number): Settled {
    const keyspace = this.#keyspace;
    const { statistics } = keyspace;
    if (keyspace.isProtected(page, unit)) return Settled.BUSY;
    const isExpired = this.#isExpired();
    const isEvictable = isExpired || this.#eviction.isFlushed(page, unit) || this.#eviction.mayEvict();
    if (!isEvictable || (!isExpired && this.#index.frequency > 0)) return Settled.KEEP;
    if (isExpired) {
      keyspace.countExpired();
      keyspace.removeEntry(Notify.EXPIRED);
    } else {
      this.#eviction.evict(page, unit);
    }
    statistics[Stat.RECLAIM_DROPPED]++;
    return Settled.DONE;
  }

  /** Lets the entry point to the copy; without one, evicts the item where that is allowed. */
  #keep(hash: number, page: number, unit: number, isCopied: boolean): Settled {
    const keyspace = this.#keyspace;
    const index = this.#index;
    if (isCopied) {
      index.setFrequency(0);
      const { log } = keyspace;
      const { expiryMs } = index;
      keyspace.moveEntry(hash, log.page, log.unit);
      // As in Demotion.link: one that may still be undone does not count.
      keyspace.settle();
      log.confirm(log.page, log.unit, log.check, expiryMs);
      keyspace.statistics[Stat.RECLAIM_KEPT]++;
      return Settled.DONE;
    }
    const isEvictable = this.#isExpired() || this.#eviction.isFlushed(page, unit) || this.#eviction.mayEvict();
    if (!isEvictable) return Settled.STUCK;
    this.#eviction.evict(page, unit);
    return Settled.DONE;
  }
}
