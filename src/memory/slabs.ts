/**
 * Slab managers: fixed-size chunks for items and nodes that live in DRAM.
 *
 * Owns: class blocks, free lists in pages, and this participant's magazines. Invariant: each carved chunk of a slab page is in
 * exactly one of four places: the page's free list, a magazine, a held slot, or the index.
 *
 * A participant allocates from a magazine of up to 16 chunks a class in its own page, without a lock; it takes and gives
 * back eight at a time under the class lock, which costs about 4 ns an item.
 */
import { Item } from '../layout/item.js';
import { locationOffset, Page } from '../layout/location.js';
import { ParticipantPage as P, PageInfo, PageKind, SlabClass, Super } from '../layout/superblock.js';
import { type Held, STAGED_SLOT } from './held.js';
import type { Journal } from './journal.js';
import type { Memory } from './memory.js';
import { NO_PAGE, type PagePool } from './page-pool.js';
import { CLASS_CHUNKS, CLASS_COUNT, CLASS_UNITS } from './slab-classes.js';

/** Chunks moved between a magazine and its class at once. */
const BATCH = 8;
/** Larger chunks are taken one at a time: spares of them would be hoarding. */
const BATCH_MAX_UNITS = 256;

export class Slabs {
  /** The chunk that `take` found. */
  page = NO_PAGE;
  unit = 0;

  readonly #memory: Memory;
  readonly #journal: Journal;
  readonly #held: Held;
  readonly #pool: PagePool;
  readonly #magazines: number;
  #drainSeen: number;

  constructor(memory: Memory, journal: Journal, held: Held, pool: PagePool) {
    this.#memory = memory;
    this.#journal = journal;
    this.#held = held;
    this.#pool = pool;
    this.#magazines = memory.ownBase + P.MAGAZINE_WORD;
    this.#drainSeen = memory.ctl[Super.DRAIN_WORD];
  }

  classWord(slabClass: number): number {
    return this.#memory.classTable + slabClass * SlabClass.WORDS;
  }

  /** True when `take` needs no lock and no room made. */
  hasSpare(slabClass: number): boolean {
    return this.#memory.own[this.#magazines + slabClass * P.MAGAZINE_WORDS] > 0;
  }

  /** Takes a chunk into the staged slot; false when the class has none and no page is free. */
  take(slabClass: number, heldSlot = STAGED_SLOT): boolean {
    return this.#take(slabClass, heldSlot, true);
  }

  /**
   * Takes a free chunk of `slabClass` or of the next larger classes, up to `ratio` times as large, without growing any; false when there is
   * none. Small stores need it: a page is a large share of them.
   */
  takeLarger(slabClass: number, ratio: number, heldSlot: number): boolean {
    const { ctl } = this.#memory;
    const limit = CLASS_UNITS[slabClass] * ratio;
    for (let c = slabClass; c < CLASS_COUNT && CLASS_UNITS[c] <= limit; c++) {
      const hasFree =
        ctl[this.classWord(c) + SlabClass.PARTIAL_WORD] !== NO_PAGE ||
        this.#memory.own[this.#magazines + c * P.MAGAZINE_WORDS] > 0;
      if (hasFree && this.#take(c, heldSlot, false)) return true;
    }
    return false;
  }

  /** As take, with a page of the data reserve: while only the spare chunks of other participants keep pages from being free. */
  takeFromReserve(slabClass: number): boolean {
    return this.#grow(slabClass, this.#pool.indexReserve) && this.#take(slabClass, STAGED_SLOT, false);
  }

  #take(slabClass: number, heldSlot: number, mayGrow: boolean): boolean {
    const words = this.#memory.own;
    const magazine = this.#magazines + slabClass * P.MAGAZINE_WORDS;
    let count = words[magazine];
    if (count === 0) {
      if (!this.#refill(slabClass, mayGrow)) return false;
      count = words[magazine];
    }
    count--;
    const at = magazine + 1 + count * 2;
    this.page = words[at];
    this.unit = words[at + 1];
    this.#held.set(heldSlot, this.page, this.unit);
    words[magazine] = count;
    return true;
  }

  /**
   * Gives a chunk back and clears its held slot as soon as the magazine has it: from there another participant may get
   * it.
   */
  give(page: number, unit: number, heldSlot: number): void {
    const memory = this.#memory;
    const kind = memory.ctl[memory.pageInfo(page)];
    if ((kind & PageInfo.CLOSED_FLAG) !== 0) {
      // Not into the magazine, from which the page's other items would be moved into it again.
      this.giveToPage(page, unit, memory.ownArena, this.#held.word(heldSlot));
      return;
    }
    const slabClass = (kind >>> 8) & 0xff;
    const words = memory.own;
    const magazine = this.#magazines + slabClass * P.MAGAZINE_WORDS;
    const limit = CLASS_UNITS[slabClass] > BATCH_MAX_UNITS ? 0 : P.MAGAZINE_SLOTS;
    const chunk = locationOffset(page, unit) >>> 2;
    memory.arenas[page >>> Page.ARENA_SHIFT].i32[chunk + Item.VALUE_LENGTH_WORD] = Item.FREE_CHUNK;
    const count = words[magazine];
    const at = magazine + 1 + count * 2;
    words[at] = page;
    words[at + 1] = unit;
    words[magazine] = count + 1;
    this.#held.clear(heldSlot);
    if (count + 1 >= limit) this.#unload(slabClass, limit === 0 ? 1 : BATCH);
  }

  /** Gives all spare chunks back when somebody wants to empty a page. Cheap when nobody does. */
  drainIfAsked(): void {
    const wanted = this.#memory.ctl[Super.DRAIN_WORD];
    if (wanted === this.#drainSeen) return;
    this.#drainSeen = wanted;
    this.drain();
  }

  drain(): void {
    for (let c = 0; c < CLASS_COUNT; c++) this.drainClass(c);
  }

  drainClass(slabClass: number): void {
    const count = this.#memory.own[this.#magazines + slabClass * P.MAGAZINE_WORDS];
    if (count > 0) this.#unload(slabClass, count);
  }

  /** Puts one chunk straight into its page's free list, and clears the word that names it in the same step (repair). */
  giveToPage(page: number, unit: number, heldArena: number, heldWord: number): void {
    const memory = this.#memory;
    const slabClass = (memory.ctl[memory.pageInfo(page)] >>> 8) & 0xff;
    const word = this.classWord(slabClass);
    memory.lock(word);
    this.#pushToPage(slabClass, page, unit);
    this.#journal.clearWord(heldArena, heldWord);
    this.#journal.commitAlloc();
    memory.unlock(word);
  }

  #refill(slabClass: number, mayGrow: boolean): boolean {
    const memory = this.#memory;
    const word = this.classWord(slabClass);
    const wanted = CLASS_UNITS[slabClass] > BATCH_MAX_UNITS ? 1 : BATCH;
    for (;;) {
      memory.lock(word);
      const taken = this.#load(slabClass, word, wanted);
      memory.unlock(word);
      if (taken > 0) return true;
      if (!mayGrow || !this.#grow(slabClass, this.#pool.dataReserve)) return false;
    }
  }

  /** Adds a page to a class; false when no more than `reservePages` are free. */
  #grow(slabClass: number, reservePages: number): boolean {
    const memory = this.#memory;
    const page = this.#pool.takeDram(PageKind.TAKEN, slabClass, reservePages);
    if (page === NO_PAGE) return false;
    const word = this.classWord(slabClass);
    memory.lock(word);
    this.#adopt(slabClass, page);
    this.#journal.commitAlloc();
    memory.unlock(word);
    return true;
  }

  /** Fills the empty magazine from pages with free chunks. Class lock held. Returns how many it got. */
  #load(slabClass: number, word: number, wanted: number): number {
    const memory = this.#memory;
    const { own, ctl } = memory;
    const magazine = this.#magazines + slabClass * P.MAGAZINE_WORDS;
    this.#journal.saveAlloc(memory.ownArena, own, magazine);
    let taken = 0;
    let page = ctl[word + SlabClass.PARTIAL_WORD];
    while (taken < wanted && page !== NO_PAGE) {
      const unit = this.#popFromPage(slabClass, page);
      if (unit < 0) {
        this.#unlinkPartial(word, page);
        page = ctl[word + SlabClass.PARTIAL_WORD];
        continue;
      }
      own[magazine + 1 + taken * 2] = page;
      own[magazine + 2 + taken * 2] = unit;
      taken++;
    }
    own[magazine] = taken;
    this.#journal.commitAlloc();
    return taken;
  }

  #unload(slabClass: number, chunkCount: number): void {
    const memory = this.#memory;
    const word = this.classWord(slabClass);
    const magazine = this.#magazines + slabClass * P.MAGAZINE_WORDS;
    memory.lock(word);
    this.#journal.saveAlloc(memory.ownArena, memory.own, magazine);
    // The oldest spares go: the youngest are still in the CPU's cache.
    const count = memory.own[magazine];
    for (let i = 0; i < chunkCount; i++)
      this.#pushToPage(slabClass, memory.own[magazine + 1 + i * 2], memory.own[magazine + 2 + i * 2]);
    for (let i = 0; i < (count - chunkCount) * 2; i++) {
      this.#journal.saveAlloc(memory.ownArena, memory.own, magazine + 1 + i);
      memory.own[magazine + 1 + i] = memory.own[magazine + 1 + chunkCount * 2 + i];
    }
    memory.own[magazine] = count - chunkCount;
    this.#journal.commitAlloc();
    memory.unlock(word);
  }

  /** Links a page taken from the pool into its class. Class lock held. */
  #adopt(slabClass: number, page: number): void {
    const memory = this.#memory;
    const { ctl } = memory;
    const journal = this.#journal;
    const word = this.classWord(slabClass);
    const info = memory.pageInfo(page);
    const first = ctl[word + SlabClass.FIRST_WORD];
    if (first === NO_PAGE) {
      journal.setControl(word + SlabClass.FIRST_WORD, page);
      journal.setControl(word + SlabClass.HAND_PAGE_WORD, page);
      journal.setControl(word + SlabClass.HAND_CHUNK_WORD, 0);
      journal.setControl(info + PageInfo.NEXT_WORD, page);
      journal.setControl(info + PageInfo.PREVIOUS_WORD, page);
    } else {
      const firstInfo = memory.pageInfo(first);
      const last = ctl[firstInfo + PageInfo.PREVIOUS_WORD];
      journal.setControl(info + PageInfo.NEXT_WORD, first);
      journal.setControl(info + PageInfo.PREVIOUS_WORD, last);
      journal.setControl(memory.pageInfo(last) + PageInfo.NEXT_WORD, page);
      journal.setControl(firstInfo + PageInfo.PREVIOUS_WORD, page);
    }
    journal.setControl(word + SlabClass.PAGES_WORD, ctl[word + SlabClass.PAGES_WORD] + 1);
    journal.setControl(info + PageInfo.FREE_HEAD_WORD, 0);
    journal.setControl(info + PageInfo.FREE_COUNT_WORD, 0);
    journal.setControl(info + PageInfo.CARVED_WORD, 0);
    this.#linkPartial(word, page);
    journal.setControl(info + PageInfo.KIND_WORD, PageKind.SLAB | (slabClass << 8));
  }

  /** Takes a page whose chunks are all in its free list out of its class. Class lock held; the caller frees it in the pool. */
  #abandon(slabClass: number, page: number): void {
    const memory = this.#memory;
    const { ctl } = memory;
    const journal = this.#journal;
    const word = this.classWord(slabClass);
    const info = memory.pageInfo(page);
    this.#unlinkPartial(word, page);
    const next = ctl[info + PageInfo.NEXT_WORD];
    const previous = ctl[info + PageInfo.PREVIOUS_WORD];
    const only = next === page;
    journal.setControl(memory.pageInfo(previous) + PageInfo.NEXT_WORD, next);
    journal.setControl(memory.pageInfo(next) + PageInfo.PREVIOUS_WORD, previous);
    if (ctl[word + SlabClass.FIRST_WORD] === page)
      journal.setControl(word + SlabClass.FIRST_WORD, only ? NO_PAGE : next);
    if (ctl[word + SlabClass.HAND_PAGE_WORD] === page) {
      journal.setControl(word + SlabClass.HAND_PAGE_WORD, only ? NO_PAGE : next);
      journal.setControl(word + SlabClass.HAND_CHUNK_WORD, 0);
    }
    journal.setControl(word + SlabClass.PAGES_WORD, ctl[word + SlabClass.PAGES_WORD] - 1);
    journal.setControl(info + PageInfo.KIND_WORD, PageKind.TAKEN | (memory.lockMark << 16));
  }

  /**
   * Frees `page` in the pool if all its carved chunks are in its free list and it still belongs to the class.
   * Returns true when it went.
   */
  releaseIfEmpty(page: number): boolean {
    const memory = this.#memory;
    const { ctl } = memory;
    const info = memory.pageInfo(page);
    const kind = ctl[info + PageInfo.KIND_WORD];
    if ((kind & 0xff) !== PageKind.SLAB) return false;
    const slabClass = (kind >>> 8) & 0xff;
    const word = this.classWord(slabClass);
    memory.lock(word);
    const empty =
      ctl[info + PageInfo.KIND_WORD] === kind &&
      ctl[info + PageInfo.FREE_COUNT_WORD] === ctl[info + PageInfo.CARVED_WORD];
    if (empty) this.#abandon(slabClass, page);
    this.#journal.commitAlloc();
    memory.unlock(word);
    if (empty) this.#pool.free(page);
    return empty;
  }

  /** Stops handing out chunks of a page that is to be emptied. False when it is being emptied already. */
  closePage(page: number): boolean {
    const memory = this.#memory;
    const info = memory.pageInfo(page);
    const kind = memory.ctl[info];
    const word = this.classWord((kind >>> 8) & 0xff);
    memory.lock(word);
    const closes = memory.ctl[info] === kind && (kind & 0xff) === PageKind.SLAB && (kind & PageInfo.CLOSED_FLAG) === 0;
    if (closes) {
      this.#journal.setControl(info, kind | PageInfo.CLOSED_FLAG | (memory.lockMark << 16));
      this.#unlinkPartial(word, page);
    }
    this.#journal.commitAlloc();
    memory.unlock(word);
    return closes;
  }

  /** Hands out chunks of a closed page again. */
  reopenPage(page: number): void {
    const memory = this.#memory;
    const info = memory.pageInfo(page);
    const slabClass = (memory.ctl[info] >>> 8) & 0xff;
    const word = this.classWord(slabClass);
    memory.lock(word);
    this.#journal.setControl(info, PageKind.SLAB | (slabClass << 8));
    if (!this.#isPartial(slabClass, page)) this.#linkPartial(word, page);
    this.#journal.commitAlloc();
    memory.unlock(word);
  }

  /** A free chunk's unit, or -1. Class lock held. */
  #popFromPage(slabClass: number, page: number): number {
    const memory = this.#memory;
    const { ctl } = memory;
    const info = memory.pageInfo(page);
    const head = ctl[info + PageInfo.FREE_HEAD_WORD];
    if (head !== 0) {
      const unit = (head - 1) * CLASS_UNITS[slabClass];
      const chunk = locationOffset(page, unit) >>> 2;
      this.#journal.setControl(
        info + PageInfo.FREE_HEAD_WORD,
        memory.arenas[page >>> Page.ARENA_SHIFT].i32[chunk + Item.HASH_WORD],
      );
      this.#journal.setControl(info + PageInfo.FREE_COUNT_WORD, ctl[info + PageInfo.FREE_COUNT_WORD] - 1);
      return unit;
    }
    const carved = ctl[info + PageInfo.CARVED_WORD];
    if (carved === CLASS_CHUNKS[slabClass]) return -1;
    const unit = carved * CLASS_UNITS[slabClass];
    memory.arenas[page >>> Page.ARENA_SHIFT].i32[(locationOffset(page, unit) >>> 2) + Item.VALUE_LENGTH_WORD] =
      Item.FREE_CHUNK;
    this.#journal.setControl(info + PageInfo.CARVED_WORD, carved + 1);
    return unit;
  }

  #pushToPage(slabClass: number, page: number, unit: number): void {
    const memory = this.#memory;
    const { ctl } = memory;
    const info = memory.pageInfo(page);
    const i32 = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    const chunk = locationOffset(page, unit) >>> 2;
    const head = ctl[info + PageInfo.FREE_HEAD_WORD];
    i32[chunk + Item.VALUE_LENGTH_WORD] = Item.FREE_CHUNK;
    i32[chunk + Item.HASH_WORD] = head;
    this.#journal.setControl(info + PageInfo.FREE_HEAD_WORD, unit / CLASS_UNITS[slabClass] + 1);
    const count = ctl[info + PageInfo.FREE_COUNT_WORD];
    this.#journal.setControl(info + PageInfo.FREE_COUNT_WORD, count + 1);
    if (count === 0 && (ctl[info] & PageInfo.CLOSED_FLAG) === 0 && !this.#isPartial(slabClass, page))
      this.#linkPartial(this.classWord(slabClass), page);
  }

  #isPartial(slabClass: number, page: number): boolean {
    const { ctl } = this.#memory;
    const info = this.#memory.pageInfo(page);
    return (
      ctl[info + PageInfo.PARTIAL_PREVIOUS_WORD] !== NO_PAGE ||
      ctl[this.classWord(slabClass) + SlabClass.PARTIAL_WORD] === page
    );
  }

  #linkPartial(word: number, page: number): void {
    const { ctl } = this.#memory;
    const head = ctl[word + SlabClass.PARTIAL_WORD];
    const info = this.#memory.pageInfo(page);
    this.#journal.setControl(info + PageInfo.PARTIAL_NEXT_WORD, head);
    this.#journal.setControl(info + PageInfo.PARTIAL_PREVIOUS_WORD, NO_PAGE);
    if (head !== NO_PAGE) this.#journal.setControl(this.#memory.pageInfo(head) + PageInfo.PARTIAL_PREVIOUS_WORD, page);
    this.#journal.setControl(word + SlabClass.PARTIAL_WORD, page);
  }

  #unlinkPartial(word: number, page: number): void {
    const { ctl } = this.#memory;
    const info = this.#memory.pageInfo(page);
    const next = ctl[info + PageInfo.PARTIAL_NEXT_WORD];
    const previous = ctl[info + PageInfo.PARTIAL_PREVIOUS_WORD];
    if (previous !== NO_PAGE)
      this.#journal.setControl(this.#memory.pageInfo(previous) + PageInfo.PARTIAL_NEXT_WORD, next);
    else if (ctl[word + SlabClass.PARTIAL_WORD] === page) this.#journal.setControl(word + SlabClass.PARTIAL_WORD, next);
    else return; // not in the list
    if (next !== NO_PAGE)
      this.#journal.setControl(this.#memory.pageInfo(next) + PageInfo.PARTIAL_PREVIOUS_WORD, previous);
    this.#journal.setControl(info + PageInfo.PARTIAL_NEXT_WORD, NO_PAGE);
    this.#journal.setControl(info + PageInfo.PARTIAL_PREVIOUS_WORD, NO_PAGE);
  }
}
