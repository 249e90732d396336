/**
 * The Page Pool: hands out 1 MiB pages of both tiers, and runs of pages for large items.
 *
 * Owns: the kind word of every page and the two free counts, all under the page lock. The kind word is the only truth;
 * free pages are found by a scan from a hint (a page is taken a few hundred times a second at most), so a crash leaves no list to mend.
 * Single pages grow from the bottom of a tier, runs from its top, which keeps long free runs together.
 */
import { Page, pageOffset } from '../layout/location.js';
import { LogPage } from '../layout/log-record.js';
import { PageChange, PageInfo, PageKind, Super } from '../layout/superblock.js';
import type { Journal } from './journal.js';
import type { Memory } from './memory.js';

/** Share of DRAM kept back for new participants (a restart must find a page for its first one), as a divisor, and its bounds. */
const RESERVE_DIVISOR = 64;
const RESERVE_PAGES_MIN = 2;
const RESERVE_PAGES_MAX = 16;
/** Pages kept back from data for the index, beyond that. */
const INDEX_PAGES = 2;
/** The index leaves so many DRAM pages to data, and this share of the tier, as a divisor. */
const DATA_PAGES_MIN = 8;
const DATA_DIVISOR = 8;
/** With this share of the tier free, as a divisor, nobody counts the index. */
const ROOMY_DIVISOR = 4;
/** A page is 1024 KiB. */
const KIB_OF_PAGE_SHIFT = 10;
/** No page. */
export const NO_PAGE = 0;

/** Free DRAM pages that the index leaves alone, in a tier of so many pages. */
function indexReserveOf(dramPages: number): number {
  return Math.max(RESERVE_PAGES_MIN, Math.min(RESERVE_PAGES_MAX, Math.floor(dramPages / RESERVE_DIVISOR)));
}

/** Free DRAM pages that data leaves alone. */
export function dataReserveOf(dramPages: number): number {
  return indexReserveOf(dramPages) + INDEX_PAGES;
}

export class PagePool {
  /** A script that may run although memory is full is running: maxmemory does not count, only what there is. */
  ignoresLimit = false;

  readonly #memory: Memory;
  readonly #journal: Journal;
  /** How many DRAM pages were free when the index was found to have its share: it is not counted again until that changes. */
  #fullAtFree = -1;

  constructor(memory: Memory, journal: Journal) {
    this.#memory = memory;
    this.#journal = journal;
  }

  /** Free DRAM pages that the index leaves alone, and that data leaves alone. */
  get indexReserve(): number {
    return indexReserveOf(this.#memory.dramSize);
  }

  get dataReserve(): number {
    return dataReserveOf(this.#memory.dramSize);
  }

  get dramFree(): number {
    return this.#memory.ctl[Super.DRAM_FREE_WORD];
  }

  get capacityFree(): number {
    return this.#memory.ctl[Super.CAPACITY_FREE_WORD];
  }

  /** DRAM pages that clients' memory is still to be taken from: whole ones, beyond those that are lent. */
  get owedToClients(): number {
    const { ctl } = this.#memory;
    return Math.max(0, (ctl[Super.CLIENT_KIB_WORD] >>> KIB_OF_PAGE_SHIFT) - ctl[Super.LENT_PAGES_WORD]);
  }

  /** DRAM pages that are to be freed and go: for clients, and since the tier shall be smaller. */
  get owedPages(): number {
    return this.owedToClients + Math.max(0, -this.#memory.dramWanted);
  }

  /**
   * Takes a DRAM page as `kind`; NO_PAGE when no more than `reservePages` are free. For data (dataReserve), maxmemory and what clients
   * hold are limits too.
   */
  takeDram(kind: number, slabClass: number, reservePages: number): number {
    const { ctl, dramPages } = this.#memory;
    const isForData = reservePages >= this.dataReserve;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    let page = NO_PAGE;
    const kept = isForData ? reservePages + this.owedPages : reservePages;
    if (ctl[Super.DRAM_FREE_WORD] > kept && (!isForData || this.#underLimit(1))) {
      page = this.#findFree(1, dramPages, ctl[Super.DRAM_HINT_WORD]);
      if (page !== NO_PAGE) {
        this.#mark(page, kind, slabClass);
        this.#journal.setControl(Super.DRAM_FREE_WORD, ctl[Super.DRAM_FREE_WORD] - 1);
        ctl[Super.DRAM_HINT_WORD] = page + 1;
      }
    }
    this.#finish();
    return page;
  }

  takeCapacity(kind: number): number {
    const { ctl, capacityBase, capacityPages } = this.#memory;
    if (capacityPages === 0 || this.#memory.isCapacityLost) return NO_PAGE;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    let page = NO_PAGE;
    if (ctl[Super.CAPACITY_FREE_WORD] > 0 && this.#underLimit(1)) {
      page = this.#findFree(capacityBase, capacityBase + capacityPages, ctl[Super.CAPACITY_HINT_WORD]);
      if (page !== NO_PAGE) {
        this.#mark(page, kind, 0);
        this.#journal.setControl(Super.CAPACITY_FREE_WORD, ctl[Super.CAPACITY_FREE_WORD] - 1);
        ctl[Super.CAPACITY_HINT_WORD] = page + 1;
      }
    }
    this.#finish();
    return page;
  }

  /**
   * Takes `pageCount` adjacent pages of one arena for a large item and queues the run as the youngest. NO_PAGE when the
   * tier has no such run.
   */
  takeRun(pageCount: number, fromCapacity: boolean, reservePages: number): number {
    const memory = this.#memory;
    const { ctl } = memory;
    const first = fromCapacity ? memory.capacityBase : 1;
    const end = fromCapacity ? memory.capacityBase + memory.capacityPages : memory.dramPages;
    const freeWord = fromCapacity ? Super.CAPACITY_FREE_WORD : Super.DRAM_FREE_WORD;
    if (fromCapacity && (memory.capacityPages === 0 || memory.isCapacityLost)) return NO_PAGE;
    memory.lock(Super.PAGE_LOCK_WORD);
    let page = NO_PAGE;
    const kept = fromCapacity ? reservePages : reservePages + this.owedPages;
    if (ctl[freeWord] - kept >= pageCount && this.#underLimit(pageCount)) {
      page = this.#findRun(first, end, pageCount);
      if (page !== NO_PAGE) {
        for (let i = 0; i < pageCount; i++) this.#mark(page + i, i === 0 ? PageKind.LARGE : PageKind.LARGE_REST, 0);
        const info = memory.pageInfo(page);
        ctl[info + PageInfo.FREE_HEAD_WORD] = pageCount;
        this.#append(page, Super.LARGE_HEAD_WORD, Super.LARGE_TAIL_WORD);
        this.#journal.setControl(freeWord, ctl[freeWord] - pageCount);
      }
    }
    this.#finish();
    return page;
  }

  /** Gives back the run that begins at `page`, and clears the held slot that names it in the same step. */
  freeRun(page: number, heldArena: number, heldWord: number): void {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    const pageCount = ctl[this.#memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD];
    this.#unlink(page, Super.LARGE_HEAD_WORD, Super.LARGE_TAIL_WORD);
    for (let i = 0; i < pageCount; i++) this.#release(page + i);
    this.#journal.clearWord(heldArena, heldWord);
    this.#finish();
  }

  /** Makes a run the youngest again: it was used since it was last looked at. */
  requeueRun(page: number): void {
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    if (this.#memory.pageKind(page) === PageKind.LARGE) {
      this.#unlink(page, Super.LARGE_HEAD_WORD, Super.LARGE_TAIL_WORD);
      this.#append(page, Super.LARGE_HEAD_WORD, Super.LARGE_TAIL_WORD);
    }
    this.#finish();
  }

  free(page: number): void {
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    this.#release(page);
    this.#finish();
  }

  /** Frees a participant's page and clears the word that names it in one step. */
  freeParticipant(page: number, word: number): void {
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    this.#release(page);
    this.#journal.clearWord(0, word);
    this.#finish();
  }

  /** Makes a taken page an index page and enters it where the index finds it, unless that word is set by now. */
  enterIndexPage(page: number, word: number): boolean {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    const enters = ctl[word] === NO_PAGE;
    if (enters) {
      this.#journal.setControl(word, page);
      this.#journal.setControl(this.#memory.pageInfo(page) + PageInfo.KIND_WORD, PageKind.INDEX);
    }
    this.#finish();
    return enters;
  }

  /** Makes a log page the youngest: it cannot be freed yet. */
  requeueLog(page: number): void {
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    this.#unlink(page, Super.LOG_HEAD_WORD, Super.LOG_TAIL_WORD);
    this.#append(page, Super.LOG_HEAD_WORD, Super.LOG_TAIL_WORD);
    this.#finish();
  }

  /** Puts an open log page behind the others of the capacity log. */
  sealLog(page: number): void {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    const info = this.#memory.pageInfo(page);
    this.#append(page, Super.LOG_HEAD_WORD, Super.LOG_TAIL_WORD);
    this.#journal.setControl(Super.LOG_COUNT_WORD, ctl[Super.LOG_COUNT_WORD] + 1);
    this.#journal.setControl(Super.LOG_SEQUENCE_WORD, ctl[Super.LOG_SEQUENCE_WORD] + 1);
    this.#journal.setControl(info + PageInfo.CARVED_WORD, ctl[Super.LOG_SEQUENCE_WORD]);
    this.#journal.setControl(info + PageInfo.KIND_WORD, PageKind.LOG_SEALED);
    this.#finish();
  }

  /** Takes a sealed log page out of the queue and frees it. Its items are dead or moved. */
  freeLog(page: number): void {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    this.#voidLog(page);
    this.#unlink(page, Super.LOG_HEAD_WORD, Super.LOG_TAIL_WORD);
    this.#journal.setControl(Super.LOG_COUNT_WORD, ctl[Super.LOG_COUNT_WORD] - 1);
    this.#release(page);
    this.#finish();
  }

  /** Frees a log page from before a reboot, in which nothing lives. */
  freeUnscanned(page: number): void {
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    this.#voidLog(page);
    this.#release(page);
    this.#finish();
  }

  /** In a warm pool: whoever scans the page after a reboot shall not take what it held for living. */
  #voidLog(page: number): void {
    const memory = this.#memory;
    if (!memory.isWarm) return;
    memory.arenas[page >>> Page.ARENA_SHIFT].i32[(pageOffset(page) >>> 2) + LogPage.MAGIC_WORD] = 0;
    Atomics.store(memory.ctl, memory.pageInfo(page) + PageInfo.CHANGED_WORD, PageChange.CHANGED);
  }

  /** Owner of an open or taken page: participant number + 1 in the kind word's high half. */
  #mark(page: number, kind: number, slabClass: number): void {
    const { ctl } = this.#memory;
    const info = this.#memory.pageInfo(page);
    this.#journal.setControl(info + PageInfo.KIND_WORD, kind | (slabClass << 8) | (this.#memory.lockMark << 16));
    const isCapacity = this.#memory.isCapacity(page);
    // Whether a page of a warm pool is persistent is no matter of its use.
    const words = this.#memory.isWarm && isCapacity ? PageInfo.CHANGED_WORD : PageInfo.WORDS;
    for (let i = 1; i < words; i++) ctl[info + i] = 0;
    if (isCapacity && this.#memory.wearTable !== 0) ctl[this.#memory.wearWord(page)]++;
  }

  #release(page: number): void {
    const memory = this.#memory;
    this.#journal.setControl(memory.pageInfo(page) + PageInfo.KIND_WORD, PageKind.FREE);
    const capacity = memory.isCapacity(page);
    const freeWord = capacity ? Super.CAPACITY_FREE_WORD : Super.DRAM_FREE_WORD;
    this.#journal.setControl(freeWord, memory.ctl[freeWord] + 1);
    const hintWord = capacity ? Super.CAPACITY_HINT_WORD : Super.DRAM_HINT_WORD;
    if (page < memory.ctl[hintWord]) memory.ctl[hintWord] = page;
  }

  #finish(): void {
    this.#journal.commitAlloc();
    this.#memory.unlock(Super.PAGE_LOCK_WORD);
  }

  /** True while a slab class may take a DRAM page. */
  get hasRoomForData(): boolean {
    return this.hasRoomFor(1);
  }

  /**
   * True while the index may take one more page. It does not shrink, so without a limit the entries of a large capacity tier would take the
   * last chunk, and nothing could be stored ever after.
   */
  get hasRoomForIndex(): boolean {
    const { ctl, dramPages, dramSize } = this.#memory;
    const free = ctl[Super.DRAM_FREE_WORD];
    if (free * ROOMY_DIVISOR > dramSize) return true;
    if (free === this.#fullAtFree) return false;
    let indexPages = 0;
    for (let page = 1; page < dramPages; page++) if (this.#memory.pageKind(page) === PageKind.INDEX) indexPages++;
    const forData = Math.max(DATA_PAGES_MIN, Math.floor(dramSize / DATA_DIVISOR)) + this.dataReserve;
    const hasRoom = indexPages < dramSize - ctl[Super.META_PAGES_WORD] - forData;
    this.#fullAtFree = hasRoom ? -1 : free;
    return hasRoom;
  }

  /** True while slab classes may take so many DRAM pages. */
  hasRoomFor(pageCount: number): boolean {
    return this.dramFree >= this.dataReserve + this.owedPages + pageCount && this.#underLimit(pageCount);
  }

  /** True when pages of data must go: for the reserve, which the index may have taken of, for clients, or for a lower maxmemory. */
  get mustShrink(): boolean {
    return this.dramFree < this.dataReserve + this.owedPages || this.isOverLimit;
  }

  /** True when more is in use than may be: clients hold more than before, or maxmemory has been lowered. */
  get isOverLimit(): boolean {
    return !this.#underLimit(0);
  }

  /** maxmemory, or all there is: pages that may be in use at once, of both tiers and by clients. */
  #underLimit(pageCount: number): boolean {
    const { ctl, dramSize, capacitySize } = this.#memory;
    const all = dramSize + capacitySize;
    const limit = ctl[Super.MAX_DATA_PAGES_WORD];
    const used = all - ctl[Super.DRAM_FREE_WORD] - ctl[Super.CAPACITY_FREE_WORD] + this.owedToClients;
    return used + pageCount <= (limit === 0 || this.ignoresLimit ? all : limit);
  }

  // ---- pages lent for clients' memory

  /** Takes a free DRAM page for clients; NO_PAGE when only the reserve is left. */
  takeLent(): number {
    const { ctl, dramPages } = this.#memory;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    let page = NO_PAGE;
    if (ctl[Super.DRAM_FREE_WORD] > this.dataReserve && this.owedToClients > 0) {
      page = this.#findFree(1, dramPages, ctl[Super.DRAM_HINT_WORD]);
      if (page !== NO_PAGE) {
        this.#mark(page, PageKind.LENT, 0);
        this.#journal.setControl(Super.DRAM_FREE_WORD, ctl[Super.DRAM_FREE_WORD] - 1);
        this.#journal.setControl(Super.LENT_PAGES_WORD, ctl[Super.LENT_PAGES_WORD] + 1);
      }
    }
    this.#finish();
    return page;
  }

  /** Chooses a lent page that this participant shall reserve again; NO_PAGE when there is none. */
  beginReturn(): number {
    const memory = this.#memory;
    memory.lock(Super.PAGE_LOCK_WORD);
    let page = NO_PAGE;
    for (let i = 1; i < memory.dramPages && page === NO_PAGE; i++) if (memory.pageKind(i) === PageKind.LENT) page = i;
    if (page !== NO_PAGE) this.#mark(page, PageKind.RETURNING, 0);
    this.#finish();
    return page;
  }

  /** Frees the page, or lends it again when there was no memory for it. */
  endReturn(page: number, isReserved: boolean): void {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    if (isReserved) {
      this.#release(page);
      this.#journal.setControl(Super.LENT_PAGES_WORD, ctl[Super.LENT_PAGES_WORD] - 1);
    } else {
      this.#mark(page, PageKind.LENT, 0);
    }
    this.#finish();
  }

  #findFree(first: number, end: number, hint: number): number {
    const { ctl } = this.#memory;
    const from = hint >= first && hint < end ? hint : first;
    for (let page = from; page < end; page++) if (ctl[this.#memory.pageInfo(page)] === PageKind.FREE) return page;
    for (let page = first; page < from; page++) if (ctl[this.#memory.pageInfo(page)] === PageKind.FREE) return page;
    return NO_PAGE;
  }

  /** Highest run of free pages that does not cross an arena's end. */
  #findRun(first: number, end: number, pageCount: number): number {
    const { ctl } = this.#memory;
    let length = 0;
    for (let page = end - 1; page >= first; page--) {
      if ((page & Page.ARENA_MASK) === Page.ARENA_MASK) length = 0;
      length = (ctl[this.#memory.pageInfo(page)] & 0xff) === PageKind.FREE ? length + 1 : 0;
      if (length === pageCount) return page;
    }
    return NO_PAGE;
  }

  #append(page: number, headWord: number, tailWord: number): void {
    const { ctl } = this.#memory;
    const tail = ctl[tailWord];
    const info = this.#memory.pageInfo(page);
    this.#journal.setControl(info + PageInfo.NEXT_WORD, NO_PAGE);
    this.#journal.setControl(info + PageInfo.PREVIOUS_WORD, tail);
    if (tail === NO_PAGE) this.#journal.setControl(headWord, page);
    else this.#journal.setControl(this.#memory.pageInfo(tail) + PageInfo.NEXT_WORD, page);
    this.#journal.setControl(tailWord, page);
  }

  #unlink(page: number, headWord: number, tailWord: number): void {
    const { ctl } = this.#memory;
    const info = this.#memory.pageInfo(page);
    const next = ctl[info + PageInfo.NEXT_WORD];
    const previous = ctl[info + PageInfo.PREVIOUS_WORD];
    if (previous === NO_PAGE) this.#journal.setControl(headWord, next);
    else this.#journal.setControl(this.#memory.pageInfo(previous) + PageInfo.NEXT_WORD, next);
    if (next === NO_PAGE) this.#journal.setControl(tailWord, previous);
    else this.#journal.setControl(this.#memory.pageInfo(next) + PageInfo.PREVIOUS_WORD, previous);
  }
}
