/**
 * Growing and shrinking the tiers while the store is at work: a few pages a step, between the turns of whoever is at work in the pool.
 *
 * A tier has a size, the pages with memory behind them, and a target. Towards a smaller one pages of data are freed as for any need of room
 * (PagePool.owedPages, CapacityLog.isShort), and what is free is punched out of the tier's file; towards a larger one ranges of the file are
 * reserved again. Owns: the targets and the word that says why a tier does not get there. Invariant: each step leaves a sound pool, so
 * it does not matter who takes the next one, or when.
 */
import { Page } from '../layout/location.js';
import { Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { TierPages } from '../memory/tier-pages.js';
import { addon } from '../native/addon.js';
import type { KeyspaceParts } from './item-finder.js';
import type { Keyspace } from './keyspace.js';
import { findSizeProblem, type SizeProblem } from './resize-check.js';

/** After a failure, and when nothing could be freed. */
const AGAIN_MS = 500;

/** The sizes of the tiers, for all participants at once. */
export class Sizes {
  readonly pages: TierPages;
  readonly #memory: Memory;

  constructor({ memory, journal, pool }: Pick<KeyspaceParts, 'memory' | 'journal' | 'pool'>) {
    this.pages = new TierPages(memory, journal, pool);
    this.#memory = memory;
  }

  /** In bytes, whole pages: the background works towards them. A tier that the pool does not have gets none. */
  set(dramBytes: number, capacityBytes: number): void {
    const { ctl, dramRoom, capacityRoom } = this.#memory;
    Atomics.store(ctl, Super.DRAM_TARGET_WORD, Math.min(dramRoom, Math.floor(dramBytes / Page.BYTES)));
    Atomics.store(ctl, Super.CAPACITY_TARGET_WORD, Math.min(capacityRoom, Math.floor(capacityBytes / Page.BYTES)));
  }

  /** What speaks against these; null = nothing. */
  problem(dramBytes: number, capacityBytes: number): SizeProblem | null {
    return findSizeProblem(this.#memory, dramBytes, capacityBytes, false);
  }
}

export class Resizing {
  readonly #keyspace: Keyspace;
  readonly #memory: Memory;
  readonly #pages: TierPages;
  #notBeforeMs = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#pages = keyspace.sizes.pages;
    this.#memory = keyspace.memory;
  }

  /** A few pages towards the targets; true when there is more to do now. Outside of locks. */
  step(nowMs: number): boolean {
    if (nowMs < this.#notBeforeMs) return false;
    if (this.#pages.adopt()) return this.#giveBack(nowMs);
    const { dramWanted, capacityWanted } = this.#memory;
    const isDramDone = dramWanted === 0 || !this.#towards(false, dramWanted, nowMs);
    const isCapacityDone = capacityWanted === 0 || !this.#towards(true, capacityWanted, nowMs);
    return !isDramDone || !isCapacityDone;
  }

  #towards(isCapacity: boolean, wanted: number, nowMs: number): boolean {
    if (wanted > 0) return this.#pages.beginArrive(isCapacity, wanted) && this.#reserve(nowMs);
    if (this.#pages.beginLeave(isCapacity, -wanted)) return this.#giveBack(nowMs);
    if (!isCapacity) return false;
    return this.#keyspace.eviction.freeCapacity();
  }

  /** Punches the run in hand out of its file. */
  #giveBack(nowMs: number): boolean {
    const { first, count } = this.#pages;
    const isGone = this.#try(nowMs, () =>
      inFile(this.#memory, first, (fd, at) => addon.punchHole(fd, at, count * Page.BYTES)),
    );
    this.#pages.endLeave(isGone);
    return isGone;
  }

  #reserve(nowMs: number): boolean {
    const { first, count } = this.#pages;
    const isReserved = this.#try(nowMs, () =>
      inFile(this.#memory, first, (fd, at) => addon.reserve(fd, at, count * Page.BYTES)),
    );
    this.#pages.endArrive(isReserved);
    return isReserved;
  }

  /** False when the system refuses: it is tried again later, and INFO says why it is not done. */
  #try(nowMs: number, action: () => void): boolean {
    const { ctl } = this.#memory;
    try {
      action();
      if (ctl[Super.RESIZE_ERRNO_WORD] !== 0) Atomics.store(ctl, Super.RESIZE_ERRNO_WORD, 0);
      return true;
    } catch (error) {
      const { errno } = error as NodeJS.ErrnoException;
      if (errno === undefined) throw error;
      Atomics.store(ctl, Super.RESIZE_ERRNO_WORD, Math.abs(errno));
      this.#notBeforeMs = nowMs + AGAIN_MS;
      return false;
    }
  }
}

/** The file that a page lies in, and where. */
function inFile(memory: Memory, page: number, action: (fd: number, offset: number) => void): void {
  if (!memory.isCapacity(page)) return action(memory.controlFd, page * Page.BYTES);
  const fd = addon.openFile(memory.capacityPath, false, false);
  try {
    action(fd, (page - memory.capacityBase) * Page.BYTES);
  } finally {
    addon.closeFile(fd);
  }
}
