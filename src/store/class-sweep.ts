/**
 * Which chunks of a slab class are looked at when it needs room: a CLOCK hand over them, random samples for the policies that ask for them.
 *
 * Owns the hand's place in this participant's turn; the hand itself is in shared memory, under the class's lock. Invariant: what is looked at
 * is bounded, and eviction alone judges it.
 */
import { PageInfo, PageKind, SlabClass } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_CHUNKS, CLASS_UNITS } from '../memory/slab-classes.js';
import type { Eviction } from './eviction.js';
import type { Index } from './index.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';
import { NOT_LOCKED, Verdict } from './verdict.js';

/** Chunks that the hand passes in one step, under one class lock: all of them may go. Large ones are passed one at a time, as they are taken. */
const HAND_STEP = 16;
const STEP_MAX_UNITS = 256;
/** Chunks looked at before an allocation gives up; fewer where only expired and flushed items may go. */
const MAX_LOOKED_AT = 65536;
const MAX_LOOKED_AT_WITHOUT_EVICTION = 512;
/** Random policies: page numbers drawn until one is of the class; volatile-ttl: items compared for one victim. */
const PAGE_DRAWS = 64;
const TTL_SAMPLES = 8;
/**
 * The LFU policies: items compared for one victim, and what none of them can have. Five, as Redis: a choice from 16 hits 2 % less often on
 * a load whose favourites change, one from 64 5 % less, since then only new items go and those that were once used stay.
 */
const LFU_SAMPLES = 5;
const USES_MAX = 256;
const NOT_EVICTABLE = -2;

export class ClassSweep {
  readonly #keyspace: Keyspace;
  readonly #eviction: Eviction;
  readonly #memory: Memory;
  readonly #ctl: Int32Array;
  readonly #index: Index;
  #handPage = NO_PAGE;
  #handChunk = 0;
  #handCount = 0;

  constructor(keyspace: Keyspace, eviction: Eviction) {
    this.#keyspace = keyspace;
    this.#eviction = eviction;
    this.#memory = keyspace.memory;
    this.#ctl = keyspace.memory.ctl;
    this.#index = keyspace.index;
  }

  /** Frees at least one chunk of a class; false when a bounded look finds nothing that may go. */
  run(slabClass: number): boolean {
    const { policy } = this.#eviction;
    if (policy === Policy.VOLATILE_TTL && this.#evictSoonest(slabClass)) return true;
    const isRandom = policy === Policy.ALL_RANDOM || policy === Policy.VOLATILE_RANDOM;
    const word = this.#keyspace.slabs.classWord(slabClass);
    const chunks = this.#ctl[word + SlabClass.PAGES_WORD] * CLASS_CHUNKS[slabClass];
    const limit = Math.min(chunks * 4, this.#eviction.mayFreeAny() ? MAX_LOOKED_AT : MAX_LOOKED_AT_WITHOUT_EVICTION);
    const units = CLASS_UNITS[slabClass];
    const step = units > STEP_MAX_UNITS ? 1 : HAND_STEP;
    if (policy === Policy.ALL_LFU || policy === Policy.VOLATILE_LFU) return this.#evictLeastUsed(slabClass, limit);
    for (let lookedAt = 0; lookedAt < limit; lookedAt += this.#handCount + 1) {
      if (!(isRandom && this.#drawChunk(slabClass)) && !this.#advanceHand(slabClass, step)) return false;
      const page = this.#handPage;
      let freed = false;
      for (let i = 0; i < this.#handCount; i++) {
        if (this.#eviction.examine(page, (this.#handChunk + i) * units, false) === Verdict.FREED) {
          freed = true;
          this.#noteVictim(word);
        }
      }
      if (freed) return true;
    }
    return false;
  }

  #noteVictim(word: number): void {
    this.#ctl[word + SlabClass.EVICTIONS_WORD]++;
    const old = this.#ctl[word + SlabClass.VICTIM_AGE_WORD];
    this.#ctl[word + SlabClass.VICTIM_AGE_WORD] = old + ((this.#eviction.victimAgeS - old) >> 3);
  }

  /**
   * Takes the next chunks under the class's hand; false when the class has no page, or others are emptying all of them: what goes from such
   * a page is no chunk for the class.
   */
  #advanceHand(slabClass: number, step: number): boolean {
    const ctl = this.#ctl;
    const memory = this.#memory;
    const word = this.#keyspace.slabs.classWord(slabClass);
    memory.lock(word);
    const page = this.#openPageFrom(ctl[word + SlabClass.HAND_PAGE_WORD]);
    if (page !== NO_PAGE) {
      if (page !== ctl[word + SlabClass.HAND_PAGE_WORD]) {
        ctl[word + SlabClass.HAND_PAGE_WORD] = page;
        ctl[word + SlabClass.HAND_CHUNK_WORD] = 0;
      }
      const chunk = ctl[word + SlabClass.HAND_CHUNK_WORD];
      const carved = ctl[memory.pageInfo(page) + PageInfo.CARVED_WORD];
      const count = Math.min(step, carved - chunk);
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

  /** The first page of a class's ring from `first` on that nobody is emptying. Class lock held. */
  #openPageFrom(first: number): number {
    const ctl = this.#ctl;
    let page = first;
    while (page !== NO_PAGE && (ctl[this.#memory.pageInfo(page)] & PageInfo.CLOSED_FLAG) !== 0) {
      page = ctl[this.#memory.pageInfo(page) + PageInfo.NEXT_WORD];
      if (page === first) return NO_PAGE;
    }
    return page;
  }

  /** Draws one chunk of a class at random; false when no draw hit a page of it. */
  #drawChunk(slabClass: number): boolean {
    const memory = this.#memory;
    const wanted = PageKind.SLAB | (slabClass << 8);
    for (let i = 0; i < PAGE_DRAWS; i++) {
      const page = 1 + Math.floor(Math.random() * (memory.dramPages - 1));
      const info = memory.pageInfo(page);
      const carved = this.#ctl[info + PageInfo.CARVED_WORD];
      const kind = this.#ctl[info];
      if ((kind & 0xffff) !== wanted || (kind & PageInfo.CLOSED_FLAG) !== 0 || carved === 0) continue;
      this.#handPage = page;
      this.#handChunk = Math.floor(Math.random() * carved);
      this.#handCount = 1;
      return true;
    }
    return false;
  }

  /** volatile-ttl: of a sample of the class's items with an expiry, evicts the one that has the least time left. */
  #evictSoonest(slabClass: number): boolean {
    const units = CLASS_UNITS[slabClass];
    let bestPage = NO_PAGE;
    let bestUnit = 0;
    let bestMs = Number.MAX_VALUE;
    for (let found = 0, tries = 0; found < TTL_SAMPLES && tries < TTL_SAMPLES * 8; tries++) {
      if (!this.#drawChunk(slabClass)) return false;
      const unit = this.#handChunk * units;
      const expiryMs = this.#expiryOf(this.#handPage, unit);
      if (expiryMs === 0) continue;
      found++;
      if (expiryMs >= bestMs) continue;
      bestMs = expiryMs;
      bestPage = this.#handPage;
      bestUnit = unit;
    }
    if (bestPage === NO_PAGE || this.#eviction.examine(bestPage, bestUnit, false) !== Verdict.FREED) return false;
    this.#noteVictim(this.#keyspace.slabs.classWord(slabClass));
    return true;
  }

  /**
   * The *-lfu policies: of the next chunks under the hand, evicts the item with the lowest counter. Redis takes its sample from keys at
   * random; the hand comes by the newest items last, which random draws do not.
   */
  #evictLeastUsed(slabClass: number, limit: number): boolean {
    const units = CLASS_UNITS[slabClass];
    const word = this.#keyspace.slabs.classWord(slabClass);
    let bestPage = NO_PAGE;
    let bestUnit = 0;
    let fewest = USES_MAX;
    let seen = 0;
    for (let lookedAt = 0; lookedAt < limit; lookedAt += this.#handCount + 1) {
      if (!this.#advanceHand(slabClass, LFU_SAMPLES)) return false;
      const page = this.#handPage;
      for (let i = 0; i < this.#handCount; i++) {
        const unit = (this.#handChunk + i) * units;
        const uses = this.#usesOf(page, unit);
        if (uses === NOT_EVICTABLE) continue;
        seen++;
        if (uses >= fewest) continue;
        fewest = uses;
        bestPage = page;
        bestUnit = unit;
      }
      if (seen < LFU_SAMPLES) continue;
      if (this.#eviction.examine(bestPage, bestUnit, false) === Verdict.FREED) {
        this.#noteVictim(word);
        return true;
      }
      fewest = USES_MAX;
      seen = 0;
    }
    if (seen === 0 || this.#eviction.examine(bestPage, bestUnit, false) !== Verdict.FREED) return false;
    this.#noteVictim(word);
    return true;
  }

  /** Uses of the item in a chunk as the LFU counter has them, less than none for an expired or flushed one. */
  #usesOf(page: number, unit: number): number {
    const keyspace = this.#keyspace;
    const hash = this.#eviction.lockItem(page, unit);
    if (hash === NOT_LOCKED) return NOT_EVICTABLE;
    let uses = NOT_EVICTABLE;
    if (
      this.#index.findLocation(hash, page, unit) &&
      !keyspace.isProtected(page, unit) &&
      !keyspace.pins.isPinned(page, unit)
    ) {
      const isExpired = this.#index.hasExpiry && this.#index.expiryMs <= keyspace.nowMs;
      if (isExpired || this.#eviction.isFlushed(page, unit)) uses = -1;
      else if (this.#memory.capacityPages > 0 || this.#eviction.mayEvict()) uses = keyspace.entryFrequency;
    }
    this.#eviction.unlockItem(hash);
    return uses;
  }

  #expiryOf(page: number, unit: number): number {
    const hash = this.#eviction.lockItem(page, unit);
    if (hash === NOT_LOCKED) return 0;
    const expiryMs = this.#eviction.findItem(hash, page, unit) ? this.#index.expiryMs : 0;
    this.#eviction.unlockItem(hash);
    return expiryMs;
  }
}
