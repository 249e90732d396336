/**
 * Makes room in the DRAM tier: a CLOCK hand over the chunks of a slab class, page moves between classes, large items.
 *
 * A victim is appended to the capacity log when there is one, else evicted if the policy allows. Invariant: an item is only
 * touched under its shard's lock, which is tried, never waited for (the caller may hold others), and items that the running command has
 * just found stay.
 */
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { Database, DatabaseState, PageInfo, PageKind, SlabClass, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { DRAM_RESERVE_PAGES, NO_PAGE } from '../memory/page-pool.js';
import { CLASS_CHUNKS, CLASS_COUNT, CLASS_UNITS } from '../memory/slab-classes.js';
import type { Index } from './index.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';
import { Reclaim } from './reclaim.js';
import { Stat } from './statistics.js';

/** Chunks that the hand passes in one step, under one class lock. */
const HAND_STEP = 16;
/** Chunks looked at before an allocation gives up. */
const MAX_LOOKED_AT = 65536;
/** Evictions of a class between two looks at whether another class should give it a page. */
const BALANCE_INTERVAL = 512;
/** A donor's items must be idle this many times longer than the taker's victims, and by this many seconds. */
const DONOR_AGE_RATIO = 2;
const DONOR_AGE_MIN_S = 5;

/** In place of the class that wants a page. */
const NO_CLASS = -1;
/** Requests for a class without pages until it is given one. */
const PAGE_DEMAND = 1024;
/** Classes that are asked for a page before an allocation gives up. */
const DONOR_TRIES = 8;

const enum Verdict {
  /** Not an item, or one that must stay. */
  SKIPPED = 0,
  /** Used since the hand last passed. */
  SPARED = 1,
  FREED = 2,
}

export class Eviction {
  readonly reclaim: Reclaim;
  readonly #keyspace: Keyspace;
  readonly #memory: Memory;
  readonly #ctl: Int32Array;
  readonly #index: Index;
  #handPage = NO_PAGE;
  #handChunk = 0;
  #handCount = 0;
  #victimAgeS = 0;
  /** Classes that #movePage has looked at. */
  readonly #tried = new Uint8Array(CLASS_COUNT);

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#memory = keyspace.memory;
    this.#ctl = keyspace.memory.ctl;
    this.#index = keyspace.index;
    this.reclaim = new Reclaim(keyspace, this);
  }

  get policy(): number {
    return this.#ctl[Super.POLICY_WORD];
  }

  hasPages(slabClass: number): boolean {
    return this.#ctl[this.#keyspace.slabs.classWord(slabClass) + SlabClass.PAGES_WORD] > 0;
  }

  /**
   * False when the class has no page and has not been asked for often enough to be given one: emptying a page of a small
   * pool for one item would throw thousands out.
   */
  mayMakeRoom(slabClass: number): boolean {
    if (this.hasPages(slabClass)) return true;
    const word = this.#keyspace.slabs.classWord(slabClass) + SlabClass.EVICTIONS_WORD;
    return ++this.#ctl[word] % PAGE_DEMAND === 0;
  }

  /** Frees at least one chunk of a class (into this participant's magazine); false when nothing may go. */
  makeRoom(slabClass: number): boolean {
    this.#keyspace.settle();
    this.#keyspace.freeUnlinked();
    this.reclaim.keepUp();
    const word = this.#keyspace.slabs.classWord(slabClass);
    if (this.#ctl[word + SlabClass.PAGES_WORD] === 0) return this.#movePages(slabClass);
    const evictions = this.#ctl[word + SlabClass.EVICTIONS_WORD];
    if (evictions % BALANCE_INTERVAL === BALANCE_INTERVAL - 1) {
      this.#ctl[word + SlabClass.EVICTIONS_WORD]++;
      this.#movePage(slabClass);
    }
    return this.#sweepClass(slabClass) || this.#movePages(slabClass);
  }

  /** Empties a page for the index, which has none left to grow into; false when no page can be emptied. */
  refillReserve(): boolean {
    this.#keyspace.settle();
    this.#keyspace.freeUnlinked();
    return this.#keyspace.pool.dramFree > 0 || this.#movePage(NO_CLASS);
  }

  /** Moves pages until the pool may give one to the class: the reserve is filled up first. */
  #movePages(slabClass: number): boolean {
    const { pool } = this.#keyspace;
    for (let i = 0; i <= DRAM_RESERVE_PAGES && pool.dramFree <= DRAM_RESERVE_PAGES; i++) {
      if (!this.#movePage(slabClass)) break;
    }
    return pool.dramFree > DRAM_RESERVE_PAGES;
  }

  #sweepClass(slabClass: number): boolean {
    const word = this.#keyspace.slabs.classWord(slabClass);
    let lookedAt = 0;
    const limit = Math.min(MAX_LOOKED_AT, this.#ctl[word + SlabClass.PAGES_WORD] * CLASS_CHUNKS[slabClass] * 4);
    while (lookedAt < limit) {
      if (!this.#advanceHand(slabClass)) return false;
      const page = this.#handPage;
      const units = CLASS_UNITS[slabClass];
      let freed = false;
      for (let i = 0; i < this.#handCount; i++) {
        if (this.examine(page, (this.#handChunk + i) * units, false) === Verdict.FREED) {
          freed = true;
          this.#noteVictim(word);
        }
      }
      if (freed) return true;
      lookedAt += this.#handCount + 1;
    }
    return false;
  }

  #noteVictim(word: number): void {
    this.#ctl[word + SlabClass.EVICTIONS_WORD]++;
    const old = this.#ctl[word + SlabClass.VICTIM_AGE_WORD];
    this.#ctl[word + SlabClass.VICTIM_AGE_WORD] = old + ((this.#victimAgeS - old) >> 3);
  }

  /** Takes the next chunks under the class's hand; false when the class has no page. */
  #advanceHand(slabClass: number): boolean {
    const ctl = this.#ctl;
    const memory = this.#memory;
    const word = this.#keyspace.slabs.classWord(slabClass);
    memory.lock(word);
    const page = ctl[word + SlabClass.HAND_PAGE_WORD];
    if (page !== NO_PAGE) {
      const chunk = ctl[word + SlabClass.HAND_CHUNK_WORD];
      const carved = ctl[memory.pageInfo(page) + PageInfo.CARVED_WORD];
      const count = Math.min(HAND_STEP, carved - chunk);
      this.#handPage = page;
      this.#handChunk = chunk;
      this.#handCount = Math.max(0, count);
      if (chunk + count >= carved) {
        ctl[word + SlabClass.HAND_PAGE_WORD] = ctl[memory.pageInfo(page) + PageInfo.NEXT_WORD];
        ctl[word + SlabClass.HAND_CHUNK_WORD] = 0;
      } else {
        ctl[word + SlabClass.HAND_CHUNK_WORD] = chunk + count;
      }
    }
    memory.unlock(word);
    return page !== NO_PAGE;
  }

  /**
   * Looks at one chunk and frees it when its item may go: expired, flushed, or unused since the last look (or `force`).
   */
  examine(page: number, unit: number, force: boolean): Verdict {
    const memory = this.#memory;
    const header = locationOffset(page, unit) >>> 2;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    if (i32[header + Item.VALUE_LENGTH_WORD] === Item.FREE_CHUNK) return Verdict.SKIPPED;
    const hash = i32[header + Item.HASH_WORD];
    const lockWord = this.#index.shardWord(hash);
    const mine = memory.holds(lockWord);
    if (!mine && !memory.tryLock(lockWord)) return Verdict.SKIPPED;
    const verdict = this.#index.findLocation(hash, page, unit) ? this.#judge(hash, page, unit, force) : Verdict.SKIPPED;
    this.#keyspace.settle();
    if (!mine) memory.unlock(lockWord);
    this.#keyspace.freeUnlinked();
    return verdict;
  }

  /** The index stands on the item's entry and its shard is locked. */
  #judge(hash: number, page: number, unit: number, force: boolean): Verdict {
    const keyspace = this.#keyspace;
    const index = this.#index;
    if (keyspace.isProtected(page, unit)) return Verdict.SKIPPED;
    if (index.hasExpiry && index.expiryMs <= keyspace.nowMs) {
      keyspace.removeEntry();
      keyspace.statistics[Stat.EXPIRED]++;
      return Verdict.FREED;
    }
    if (this.isFlushed(page, unit)) {
      keyspace.removeEntry();
      return Verdict.FREED;
    }
    const frequency = index.frequency;
    if (frequency > 0 && !force && !this.#ignoresUse()) {
      index.setFrequency(this.#isLfu() ? frequency - 1 : 0);
      return Verdict.SPARED;
    }
    this.#victimAgeS = (keyspace.accessNow - index.access) & 0xffffff;
    if (this.demote(hash, page, unit)) return Verdict.FREED;
    if (!this.mayEvict()) return Verdict.SKIPPED;
    keyspace.removeEntry();
    keyspace.statistics[Stat.EVICTED]++;
    return Verdict.FREED;
  }

  /** True when the policy lets the entry that the index stands on be evicted. */
  mayEvict(): boolean {
    const { policy } = this;
    if (policy === Policy.NO_EVICTION) return false;
    return policy < Policy.VOLATILE_LRU || this.#index.hasExpiry;
  }

  #ignoresUse(): boolean {
    const { policy } = this;
    return policy === Policy.ALL_RANDOM || policy === Policy.VOLATILE_RANDOM || policy === Policy.VOLATILE_TTL;
  }

  #isLfu(): boolean {
    return this.policy === Policy.ALL_LFU || this.policy === Policy.VOLATILE_LFU;
  }

  /** True when the item's database has been flushed. */
  isFlushed(page: number, unit: number): boolean {
    const shape =
      this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32[(locationOffset(page, unit) >>> 2) + Item.SHAPE_WORD];
    const state = this.#memory.databaseTable + Database.STATE_WORD + (shape >>> Item.DB_SHIFT);
    return this.#ctl[state] === DatabaseState.DEAD;
  }

  /** Moves the entry's item to the capacity log; the index stands on the entry, its shard is locked. */
  demote(hash: number, page: number, unit: number): boolean {
    const keyspace = this.#keyspace;
    const { log } = keyspace;
    if (this.#memory.capacityPages === 0 || this.#memory.isCapacity(page)) return false;
    const header = locationOffset(page, unit) >>> 2;
    const { i32 } = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    const size = itemBytes(i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, i32[header + Item.VALUE_LENGTH_WORD]);
    if (size > MAX_LOG_ITEM_BYTES || !log.append(page, unit)) return false;
    keyspace.moveEntry(hash, log.page, log.unit);
    keyspace.statistics[Stat.DEMOTED]++;
    keyspace.statistics[Stat.CAPACITY_BYTES_WRITTEN] += unitsOf(size) << Page.UNIT_SHIFT;
    return true;
  }

  // ---- pages between classes

  /** Empties a page of the class whose items have been idle longest, or of the next one, and gives it back to the pool. */
  #movePage(slabClass: number): boolean {
    this.#tried.fill(0);
    if (slabClass >= 0) this.#tried[slabClass] = 1;
    for (let tries = 0; tries < DONOR_TRIES; tries++) {
      const donor = this.#findDonor(slabClass);
      if (donor < 0) return false;
      const page = this.#ctl[this.#keyspace.slabs.classWord(donor) + SlabClass.HAND_PAGE_WORD];
      if (page !== NO_PAGE && this.emptyPage(page)) {
        this.#keyspace.statistics[Stat.PAGES_MOVED]++;
        return true;
      }
      this.#tried[donor] = 1;
    }
    return false;
  }

  /** The class to take a page from: idle for longest, and clearly longer than the taker's own victims if it has pages. */
  #findDonor(slabClass: number): number {
    const ctl = this.#ctl;
    const own = this.#keyspace.slabs.classWord(slabClass);
    let donor = -1;
    let donorAge =
      slabClass >= 0 && this.hasPages(slabClass)
        ? ctl[own + SlabClass.VICTIM_AGE_WORD] * DONOR_AGE_RATIO + DONOR_AGE_MIN_S
        : -1;
    for (let c = 0; c < CLASS_COUNT; c++) {
      if (this.#tried[c] === 1 || ctl[this.#keyspace.slabs.classWord(c) + SlabClass.PAGES_WORD] === 0) continue;
      const age = this.#idleAge(c);
      if (age > donorAge) {
        donorAge = age;
        donor = c;
      }
    }
    return donor;
  }

  /** Mean idle seconds of the items under a class's hand. */
  #idleAge(slabClass: number): number {
    const ctl = this.#ctl;
    const memory = this.#memory;
    const word = this.#keyspace.slabs.classWord(slabClass);
    const page = ctl[word + SlabClass.HAND_PAGE_WORD];
    if (page === NO_PAGE) return -1;
    const carved = ctl[memory.pageInfo(page) + PageInfo.CARVED_WORD];
    const first = ctl[word + SlabClass.HAND_CHUNK_WORD];
    let items = 0;
    let idle = 0;
    for (let i = 0; i < HAND_STEP && first + i < carved; i++) {
      const unit = (first + i) * CLASS_UNITS[slabClass];
      const header = locationOffset(page, unit) >>> 2;
      const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
      if (i32[header + Item.VALUE_LENGTH_WORD] === Item.FREE_CHUNK) continue;
      const hash = i32[header + Item.HASH_WORD];
      const lockWord = this.#index.shardWord(hash);
      const mine = memory.holds(lockWord);
      if (!mine && !memory.tryLock(lockWord)) continue;
      if (this.#index.findLocation(hash, page, unit)) {
        items++;
        idle += (this.#keyspace.accessNow - this.#index.access) & 0xffffff;
      }
      if (!mine) memory.unlock(lockWord);
    }
    return items === 0 ? 0 : Math.floor(idle / items);
  }

  /** Moves or evicts everything in a slab page and frees it. False when something had to stay. */
  emptyPage(page: number): boolean {
    const { slabs } = this.#keyspace;
    const kind = this.#ctl[this.#memory.pageInfo(page)];
    if ((kind & 0xff) !== PageKind.SLAB) return false;
    const slabClass = (kind >>> 8) & 0xff;
    if (!slabs.closePage(page)) return false;
    Atomics.add(this.#ctl, Super.DRAIN_WORD, 1);
    const carved = this.#ctl[this.#memory.pageInfo(page) + PageInfo.CARVED_WORD];
    for (let chunk = 0; chunk < carved; chunk++) this.examine(page, chunk * CLASS_UNITS[slabClass], true);
    slabs.drainIfAsked();
    if (slabs.releaseIfEmpty(page)) return true;
    slabs.reopenPage(page);
    return false;
  }

  // ---- large items

  /** Frees a large item or a log page so that a run of pages may come free; false when nothing more can go. */
  makeRunRoom(pageCount: number): boolean {
    if (pageCount > this.#memory.dramPages + this.#memory.capacityPages) return false;
    this.#keyspace.settle();
    this.#keyspace.freeUnlinked();
    return this.#evictLarge() || this.reclaim.freePage();
  }

  #evictLarge(): boolean {
    const { pool } = this.#keyspace;
    // Twice round: the first pass takes the use bits away.
    let tries = 2 * 1024;
    while (tries-- > 0) {
      const page = this.#ctl[Super.LARGE_HEAD_WORD];
      if (page === NO_PAGE) return false;
      const verdict = this.examine(page, 0, false);
      if (verdict === Verdict.FREED) return true;
      if (this.#ctl[Super.LARGE_HEAD_WORD] === this.#ctl[Super.LARGE_TAIL_WORD] && verdict === Verdict.SKIPPED)
        return false;
      pool.requeueRun(page);
    }
    return false;
  }
}

/** An item of the largest slab class. */
const MAX_LOG_ITEM_BYTES = CLASS_UNITS[CLASS_COUNT - 1] * Page.UNIT_BYTES;
