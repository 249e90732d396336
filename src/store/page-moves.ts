/**
 * Moves whole pages between slab classes, large items and the free pool, so that no distribution of sizes is for ever.
 *
 * Cheapest first: pages of classes with enough free chunks elsewhere (nothing is lost, items are copied together), then, where
 * items may go, the pages and large items idle longest. Invariant: a page leaves its class only when each of its carved
 * chunks is in its free list.
 */
import { Page, pageOffset } from '../layout/location.js';
import {
  ParticipantPage as P,
  PageInfo,
  PageKind,
  Participant,
  ParticipantState,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_CHUNKS, CLASS_COUNT, CLASS_UNITS, RELOCATION_RATIO } from '../memory/slab-classes.js';
import type { Eviction } from './eviction.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';
import { Stat } from './statistics.js';
import { Verdict } from './verdict.js';

/** A donor's items must be idle this many times longer than the taker's victims, and by this many seconds. */
const DONOR_AGE_RATIO = 2;
const DONOR_AGE_MIN_S = 2;
/** Chunks sampled for a class's idle age; pages and classes looked at for a page that can be emptied; passes over its chunks. */
const AGE_SAMPLE = 16;
const PAGES_TRIED = 8;
const DONORS_TRIED = 8;
const PASSES = 3;
/** Sweep steps (64 buckets each) of a search for dead items, and the number of removals that ends it. */
const DEAD_STEPS = 64;
const DEAD_ENOUGH = 4096;
/** Nodes of deleted trees given back before anything else goes for a run. */
const GRAVES_A_STEP = 256;
/** Large items looked at before giving up. */
const LARGE_TRIES = 2048;

export class PageMoves {
  readonly #keyspace: Keyspace;
  readonly #eviction: Eviction;
  readonly #memory: Memory;
  readonly #ctl: Int32Array;
  /** Of each class, filled by #countFree: free chunks, the page with the fewest in use, and how many that has. */
  readonly #free = new Int32Array(CLASS_COUNT);
  readonly #sparsest = new Int32Array(CLASS_COUNT);
  readonly #used = new Int32Array(CLASS_COUNT);
  /** Classes that freeOne has asked for a page. */
  readonly #asked = new Uint8Array(CLASS_COUNT);

  /** The last makePage failed, and other participants were in its way: their spare chunks, or they are emptying the page themselves. */
  waitsForOthers = false;

  constructor(keyspace: Keyspace, eviction: Eviction) {
    this.#keyspace = keyspace;
    this.#eviction = eviction;
    this.#memory = keyspace.memory;
    this.#ctl = keyspace.memory.ctl;
  }

  /** Frees pages until the pool may give one to a class that has found no room in its own. */
  makePage(slabClass: number): boolean {
    const { pool } = this.#keyspace;
    this.waitsForOthers = false;
    for (let i = 0; i <= pool.dataReserve && !pool.hasRoomForData; i++) if (!this.freeOne(slabClass, true)) break;
    return pool.hasRoomForData;
  }

  /** A page from a class whose items are much older than this one's victims, if there is one. */
  balance(slabClass: number): void {
    this.freeOne(slabClass, false);
  }

  /** Frees one DRAM page or large item for `slabClass` (-1 = for anything); `must`: whatever the ages. */
  freeOne(slabClass: number, must: boolean): boolean {
    if (this.#emptySparse(slabClass)) return true;
    if (this.#eviction.policy === Policy.NO_EVICTION && this.#memory.capacityPages === 0) {
      return must && ((this.#sweepDead() && this.#emptySparse(slabClass)) || this.evictLarge(1));
    }
    const minAge = must ? -1 : this.#victimAge(slabClass) * DONOR_AGE_RATIO + DONOR_AGE_MIN_S;
    this.#asked.fill(0);
    if (slabClass >= 0) this.#asked[slabClass] = 1;
    let donor = this.#findDonor(minAge);
    const donorAge = donor < 0 ? minAge : this.#idleAge(donor);
    const large = this.#ctl[Super.LARGE_HEAD_WORD];
    if (large !== NO_PAGE && this.#eviction.idleOf(large, 0) > donorAge && this.evictLarge(1)) return true;
    // What the running command has found keeps its page, which may be the only one of the class.
    for (let tries = 0; donor >= 0 && tries < DONORS_TRIED; tries++) {
      if (this.#emptyOneOf(donor)) return true;
      this.#asked[donor] = 1;
      donor = this.#findDonor(minAge);
    }
    return must && this.evictLarge(2);
  }

  /** Removes expired and flushed items, whose chunks may lie in any class; false when a bounded look finds none. */
  #sweepDead(): boolean {
    let removed = 0;
    for (let step = 0; step < DEAD_STEPS && removed < DEAD_ENOUGH; step++) removed += this.#keyspace.sweep.step();
    this.#keyspace.slabs.drain();
    return removed > 0;
  }

  #victimAge(slabClass: number): number {
    return slabClass < 0 ? 0 : this.#ctl[this.#keyspace.slabs.classWord(slabClass) + SlabClass.VICTIM_AGE_WORD];
  }

  // ---- pages whose items find room in others of their class

  #countFree(): void {
    const ctl = this.#ctl;
    const memory = this.#memory;
    this.#free.fill(0);
    this.#sparsest.fill(NO_PAGE);
    for (let page = 1; page < memory.dramPages; page++) {
      const info = memory.pageInfo(page);
      const kind = ctl[info];
      if ((kind & 0xff) !== PageKind.SLAB || (kind & PageInfo.CLOSED_FLAG) !== 0) continue;
      const slabClass = (kind >>> 8) & 0xff;
      const used = ctl[info + PageInfo.CARVED_WORD] - ctl[info + PageInfo.FREE_COUNT_WORD];
      this.#free[slabClass] += CLASS_CHUNKS[slabClass] - used;
      if (this.#sparsest[slabClass] !== NO_PAGE && used >= this.#used[slabClass]) continue;
      this.#sparsest[slabClass] = page;
      this.#used[slabClass] = used;
    }
  }

  /** Empties the page that costs the fewest bytes of copies, among those whose items fit elsewhere. */
  #emptySparse(exceptClass: number): boolean {
    this.#countFree();
    for (let tries = 0; tries < PAGES_TRIED; tries++) {
      let best = -1;
      for (let c = 0; c < CLASS_COUNT; c++) {
        if (c === exceptClass || this.#sparsest[c] === NO_PAGE) continue;
        if (!this.#fitsElsewhere(c)) continue;
        if (best < 0 || this.#used[c] * CLASS_UNITS[c] < this.#used[best] * CLASS_UNITS[best]) best = c;
      }
      if (best < 0) return false;
      if (this.emptyPage(this.#sparsest[best])) return true;
      this.#sparsest[best] = NO_PAGE;
    }
    return false;
  }

  /** True when the items of a class's sparsest page find free chunks in its other pages or in larger classes. */
  #fitsElsewhere(slabClass: number): boolean {
    const wanted = this.#used[slabClass];
    let free = this.#free[slabClass] - (CLASS_CHUNKS[slabClass] - wanted);
    const limit = CLASS_UNITS[slabClass] * RELOCATION_RATIO;
    for (let c = slabClass + 1; c < CLASS_COUNT && CLASS_UNITS[c] <= limit && free < wanted; c++) free += this.#free[c];
    return free >= wanted;
  }

  // ---- pages whose items have been idle longest

  /** The class idle for longest, among those that have not been asked yet. */
  #findDonor(minAge: number): number {
    let donor = -1;
    let donorAge = minAge;
    for (let c = 0; c < CLASS_COUNT; c++) {
      if (this.#asked[c] === 1 || this.#ctl[this.#keyspace.slabs.classWord(c) + SlabClass.PAGES_WORD] === 0) continue;
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
    const word = this.#keyspace.slabs.classWord(slabClass);
    const page = ctl[word + SlabClass.HAND_PAGE_WORD];
    if (page === NO_PAGE) return -1;
    const carved = ctl[this.#memory.pageInfo(page) + PageInfo.CARVED_WORD];
    const first = ctl[word + SlabClass.HAND_CHUNK_WORD];
    let items = 0;
    let idle = 0;
    for (let i = 0; i < AGE_SAMPLE && first + i < carved; i++) {
      const age = this.#eviction.idleOf(page, (first + i) * CLASS_UNITS[slabClass]);
      if (age < 0) continue;
      items++;
      idle += age;
    }
    return items === 0 ? 0 : Math.floor(idle / items);
  }

  /** Frees one page of a class, whatever the ages; false when something in each that was tried had to stay. */
  freePageOf(slabClass: number): boolean {
    return this.#emptyOneOf(slabClass);
  }

  #emptyOneOf(slabClass: number): boolean {
    const ctl = this.#ctl;
    const memory = this.#memory;
    let page = ctl[this.#keyspace.slabs.classWord(slabClass) + SlabClass.HAND_PAGE_WORD];
    const wanted = PageKind.SLAB | (slabClass << 8);
    for (let i = 0; i < PAGES_TRIED && memory.isPage(page); i++) {
      if ((ctl[memory.pageInfo(page)] & 0xffff) !== wanted) return false;
      if (this.emptyPage(page)) return true;
      page = ctl[memory.pageInfo(page) + PageInfo.NEXT_WORD];
    }
    return false;
  }

  // ---- emptying

  /** Moves or evicts everything in a slab page and frees it. False when something had to stay. */
  emptyPage(page: number): boolean {
    const { slabs, statistics } = this.#keyspace;
    const kind = this.#ctl[this.#memory.pageInfo(page)];
    const slabClass = (kind >>> 8) & 0xff;
    if ((kind & 0xff) !== PageKind.SLAB || this.#hasForeignSpares(page, slabClass)) return false;
    if (!slabs.closePage(page)) {
      this.waitsForOthers = true;
      return false;
    }
    slabs.drainClass(slabClass);
    const carved = this.#ctl[this.#memory.pageInfo(page) + PageInfo.CARVED_WORD];
    let stuck = false;
    for (let pass = 0; pass < PASSES && !stuck; pass++) {
      for (let chunk = 0; chunk < carved && !stuck; chunk++) {
        stuck = this.#eviction.examine(page, chunk * CLASS_UNITS[slabClass], true) === Verdict.STUCK;
      }
      slabs.drainClass(slabClass);
      if (slabs.releaseIfEmpty(page)) {
        statistics[Stat.PAGES_MOVED]++;
        return true;
      }
    }
    slabs.reopenPage(page);
    return false;
  }

  /** True when another participant keeps spare chunks of the page: they are asked for, for the next time. */
  #hasForeignSpares(page: number, slabClass: number): boolean {
    const memory = this.#memory;
    for (let p = 0; p < Participant.MAX; p++) {
      const at = memory.participantWord(p);
      const own = this.#ctl[at + Participant.PAGE_WORD];
      if (p === memory.self || own === NO_PAGE || this.#ctl[at] !== ParticipantState.ACTIVE) continue;
      const words = memory.arenas[own >>> Page.ARENA_SHIFT].i32;
      const magazine = (pageOffset(own) >>> 2) + P.MAGAZINE_WORD + slabClass * P.MAGAZINE_WORDS;
      for (let i = 0; i < words[magazine]; i++) {
        if (words[magazine + 1 + i * 2] !== page) continue;
        Atomics.add(this.#ctl, Super.DRAIN_WORD, 1);
        this.waitsForOthers = true;
        return true;
      }
    }
    return false;
  }

  // ---- large items

  /** Frees something so that a run of pages may come free; false when nothing more can go. */
  makeRunRoom(pageCount: number): boolean {
    const keyspace = this.#keyspace;
    const memory = this.#memory;
    if (pageCount > memory.dramSize + memory.capacitySize) return false;
    keyspace.settle();
    keyspace.freeUnlinked();
    if (keyspace.graveyard.step(GRAVES_A_STEP) > 0) return true;
    const rounds = this.#eviction.policy === Policy.NO_EVICTION ? 1 : 2;
    return this.evictLarge(rounds) || this.#clearWindow(pageCount) || this.#eviction.reclaim.freePage();
  }

  /** Evicts the first large item (of the capacity tier) that may go, oldest first; a first round takes the use bits away. */
  evictLarge(rounds: number, onlyCapacity = false): boolean {
    const { pool } = this.#keyspace;
    let first = NO_PAGE;
    for (let tries = 0, round = 0; tries < LARGE_TRIES; tries++) {
      const page = this.#ctl[Super.LARGE_HEAD_WORD];
      if (page === NO_PAGE || (page === first && ++round === rounds)) return false;
      if (first === NO_PAGE) first = page;
      const isAsked = !onlyCapacity || this.#memory.isCapacity(page);
      if (isAsked && this.#eviction.examine(page, 0, false) === Verdict.FREED) return true;
      pool.requeueRun(page);
    }
    return false;
  }

  /** Empties the adjacent DRAM pages that cost least until they are a free run. */
  #clearWindow(pageCount: number): boolean {
    const { pool } = this.#keyspace;
    const memory = this.#memory;
    // A free run alone does not help while the reserve is short.
    if (pool.dramFree < pageCount + pool.dataReserve) return this.freeOne(-1, true);
    const first = this.#cheapestWindow(pageCount);
    if (first === NO_PAGE) return false;
    let freed = 0;
    for (let page = first; page < first + pageCount; page++) {
      if (memory.pageKind(page) === PageKind.FREE) continue;
      if (!this.emptyPage(page)) return false;
      freed++;
    }
    return freed > 0;
  }

  /** First page of the run of free and slab pages with the fewest bytes in use; NO_PAGE when there is none. */
  #cheapestWindow(pageCount: number): number {
    const memory = this.#memory;
    let best = NO_PAGE;
    let bestCost = Number.MAX_VALUE;
    for (let first = memory.dramPages - pageCount; first > 0; first--) {
      if ((first & Page.ARENA_MASK) + pageCount > Page.ARENA_PAGES) continue;
      let cost = 0;
      for (let page = first; page < first + pageCount && cost < bestCost; page++) cost += this.#cost(page);
      if (cost >= bestCost) continue;
      best = first;
      bestCost = cost;
    }
    return best;
  }

  #cost(page: number): number {
    const info = this.#memory.pageInfo(page);
    const kind = this.#ctl[info];
    if ((kind & 0xff) === PageKind.FREE) return 0;
    if ((kind & 0xff) !== PageKind.SLAB || (kind & PageInfo.CLOSED_FLAG) !== 0) return Number.MAX_VALUE;
    const used = this.#ctl[info + PageInfo.CARVED_WORD] - this.#ctl[info + PageInfo.FREE_COUNT_WORD];
    return 1 + used * CLASS_UNITS[(kind >>> 8) & 0xff];
  }
}
