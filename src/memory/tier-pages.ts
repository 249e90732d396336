/**
 * Pages that come to a tier and leave it while the store is at work.
 *
 * Of the pages that the page table has room for, those below the tier's extent are known, and of these some are absent: no memory stands behind
 * them. A page leaves as FREE -> LEAVING -> ABSENT, and comes as ABSENT -> ARRIVING -> FREE; in between its owner gives its memory back, or
 * reserves it. Owns: these four kinds, the extents and the counts of absent pages, under the page lock. Invariants: absent + leaving pages
 * are what is counted as absent, and an arriving page of a dead owner becomes absent.
 */
import { PageChange, PageInfo, PageKind, Super } from '../layout/superblock.js';
import type { Journal } from './journal.js';
import type { Memory } from './memory.js';
import { NO_PAGE, type PagePool } from './page-pool.js';

/** Adjacent pages that leave, or come, in one step. */
const LEAVE_PAGES = 16;
const ARRIVE_PAGES = 4;
/** Free capacity pages that stay for reclaim, which moves what lies in the others. */
const CAPACITY_KEPT = 2;

export class TierPages {
  /** Of the run that `beginLeave` or `beginArrive` found. */
  first = NO_PAGE;
  count = 0;

  readonly #memory: Memory;
  readonly #journal: Journal;
  readonly #pool: PagePool;
  /** Where the last look ended, of DRAM and capacity. */
  readonly #absentFrom = [0, 0];

  constructor(memory: Memory, journal: Journal, pool: PagePool) {
    this.#memory = memory;
    this.#journal = journal;
    this.#pool = pool;
  }

  /** Chooses up to `wanted` adjacent free pages that shall leave; false when none is free. */
  beginLeave(isCapacity: boolean, wanted: number): boolean {
    const memory = this.#memory;
    const { ctl } = memory;
    const freeWord = isCapacity ? Super.CAPACITY_FREE_WORD : Super.DRAM_FREE_WORD;
    const kept = isCapacity ? CAPACITY_KEPT : this.#pool.dataReserve;
    memory.lock(Super.PAGE_LOCK_WORD);
    const limit = Math.min(wanted, LEAVE_PAGES, ctl[freeWord] - kept);
    this.count = limit > 0 ? this.#findFreeRun(isCapacity, limit) : 0;
    for (let i = 0; i < this.count; i++) this.#mark(this.first + i, PageKind.LEAVING);
    if (this.count > 0) {
      this.#add(freeWord, -this.count);
      this.#add(absentWord(isCapacity), this.count);
    }
    this.#finish();
    return this.count > 0;
  }

  /** The run's memory has been given back; or it could not be, and the pages stay. */
  endLeave(isGone: boolean): void {
    const isCapacity = this.#memory.isCapacity(this.first);
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    for (let i = 0; i < this.count; i++) this.#mark(this.first + i, isGone ? PageKind.ABSENT : PageKind.FREE);
    if (!isGone) {
      this.#add(absentWord(isCapacity), -this.count);
      this.#add(isCapacity ? Super.CAPACITY_FREE_WORD : Super.DRAM_FREE_WORD, this.count);
    }
    this.#finish();
  }

  /** Chooses up to `wanted` adjacent absent pages that shall come, beyond the extent if need be; false when the page table has no more. */
  beginArrive(isCapacity: boolean, wanted: number): boolean {
    const memory = this.#memory;
    memory.lock(Super.PAGE_LOCK_WORD);
    this.count = this.#findAbsentRun(isCapacity, Math.min(wanted, ARRIVE_PAGES));
    // What is counted as absent may all be on its way out.
    if (this.count === 0 && this.#extend(isCapacity, wanted)) {
      this.count = this.#findAbsentRun(isCapacity, Math.min(wanted, ARRIVE_PAGES));
    }
    for (let i = 0; i < this.count; i++) this.#mark(this.first + i, PageKind.ARRIVING);
    if (this.count > 0) this.#add(absentWord(isCapacity), -this.count);
    this.#finish();
    return this.count > 0;
  }

  /** The run has its memory, and is free for use; or there was none. */
  endArrive(isReserved: boolean): void {
    const isCapacity = this.#memory.isCapacity(this.first);
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    for (let i = 0; i < this.count; i++) this.#mark(this.first + i, isReserved ? PageKind.FREE : PageKind.ABSENT);
    if (isReserved) this.#add(isCapacity ? Super.CAPACITY_FREE_WORD : Super.DRAM_FREE_WORD, this.count);
    else this.#add(absentWord(isCapacity), this.count);
    this.#finish();
  }

  /** A dead participant was about to give the page's memory back, or to reserve it: it is nobody's, and shall leave. */
  orphan(page: number): void {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PAGE_LOCK_WORD);
    if (this.#memory.pageKind(page) === PageKind.ARRIVING) this.#add(absentWord(this.#memory.isCapacity(page)), 1);
    this.#journal.setControl(this.#memory.pageInfo(page) + PageInfo.KIND_WORD, PageKind.LEAVING);
    this.#journal.setControl(Super.ORPHANS_WORD, ctl[Super.ORPHANS_WORD] + 1);
    this.#finish();
  }

  /** As beginLeave, for a page that a dead participant had in hand. */
  adopt(): boolean {
    const memory = this.#memory;
    const { ctl, dramPages, capacityBase, capacityPages } = memory;
    if (ctl[Super.ORPHANS_WORD] === 0) return false;
    memory.lock(Super.PAGE_LOCK_WORD);
    this.count = 0;
    for (let page = 1; page < capacityBase + capacityPages && this.count === 0; page++) {
      if (page === dramPages) page = capacityBase;
      if (ctl[memory.pageInfo(page)] !== PageKind.LEAVING) continue;
      this.first = page;
      this.count = 1;
      this.#mark(page, PageKind.LEAVING);
    }
    this.#journal.setControl(Super.ORPHANS_WORD, this.count === 0 ? 0 : ctl[Super.ORPHANS_WORD] - 1);
    this.#finish();
    return this.count > 0;
  }

  #extend(isCapacity: boolean, wanted: number): boolean {
    const { ctl, dramRoom, capacityRoom } = this.#memory;
    const extentWord = isCapacity ? Super.CAPACITY_EXTENT_WORD : Super.DRAM_EXTENT_WORD;
    const added = Math.min(wanted, (isCapacity ? capacityRoom : dramRoom) - ctl[extentWord]);
    if (added <= 0) return false;
    this.#add(extentWord, added);
    this.#add(absentWord(isCapacity), added);
    return true;
  }

  /** The highest free pages: runs are looked for from the bottom of DRAM, and a short extent is quick to walk. */
  #findFreeRun(isCapacity: boolean, limit: number): number {
    const { capacityBase, capacityPages, dramPages } = this.#memory;
    const first = isCapacity ? capacityBase : 1;
    let count = 0;
    for (let page = (isCapacity ? capacityBase + capacityPages : dramPages) - 1; page >= first; page--) {
      const mayGo = this.#mayLeave(page);
      if (mayGo) {
        this.first = page;
        count++;
      }
      if (count > 0 && (!mayGo || count === limit)) break;
    }
    return count;
  }

  #mayLeave(page: number): boolean {
    const memory = this.#memory;
    if (memory.ctl[memory.pageInfo(page)] !== PageKind.FREE) return false;
    // What a power cut brings back of a page of a warm pool must be void before.
    if (!memory.isWarm || !memory.isCapacity(page)) return true;
    return memory.ctl[memory.pageInfo(page) + PageInfo.CHANGED_WORD] === PageChange.NONE;
  }

  /** The lowest absent pages, from where the last look ended. */
  #findAbsentRun(isCapacity: boolean, limit: number): number {
    const memory = this.#memory;
    const base = isCapacity ? memory.capacityBase : 0;
    const extent = isCapacity ? memory.capacityPages : memory.dramPages;
    const tier = isCapacity ? 1 : 0;
    if (memory.ctl[absentWord(isCapacity)] === 0) return 0;
    const from = this.#absentFrom[tier] < extent ? this.#absentFrom[tier] : 0;
    for (let i = 0; i < extent; i++) {
      const at = (from + i) % extent;
      if (memory.pageKind(base + at) !== PageKind.ABSENT) continue;
      let count = 1;
      while (count < limit && at + count < extent && memory.pageKind(base + at + count) === PageKind.ABSENT) count++;
      this.first = base + at;
      this.#absentFrom[tier] = at + count;
      return count;
    }
    return 0;
  }

  /** Of pages on their way the kind word names the owner. */
  #mark(page: number, kind: PageKind): void {
    const isOnItsWay = kind === PageKind.LEAVING || kind === PageKind.ARRIVING;
    const owner = isOnItsWay ? this.#memory.lockMark << 16 : 0;
    this.#journal.setControl(this.#memory.pageInfo(page) + PageInfo.KIND_WORD, kind | owner);
  }

  #add(word: number, change: number): void {
    this.#journal.setControl(word, this.#memory.ctl[word] + change);
  }

  #finish(): void {
    this.#journal.commitAlloc();
    this.#memory.unlock(Super.PAGE_LOCK_WORD);
  }
}

function absentWord(isCapacity: boolean): number {
  return isCapacity ? Super.CAPACITY_ABSENT_WORD : Super.DRAM_ABSENT_WORD;
}
