/**
 * What clients hold outside the pool is charged to the pool: each participant says how much that is for its own, and DRAM pages of that
 * size are taken from the data and lent, their memory given back to the system. So DRAM tier and clients together stay what the tier was.
 *
 * Owns: the KiB words of participants, the sum of them, and which pages are lent. Invariants: the sum is recounted with every report, so
 * what a death leaves wrong is right again with the next one; a lent page is reserved again before anything is put into it.
 */
import { Page } from '../layout/location.js';
import { Participant, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE, type PagePool } from '../memory/page-pool.js';
import { addon } from '../native/addon.js';

const KIB_MAX = 2 ** 31 - 1;
/** Pages that stay lent although clients need them no more: their memory goes up and down. */
const SPARE_PAGES = 2;
/** After a failure (no memory for a page that comes back, no room for one to lend) it is tried again after so long. */
const AGAIN_MS = 100;

/** Sets what a participant's clients hold, and counts all of them anew. */
export function chargeClients(memory: Memory, participant: number, bytes: number): void {
  const { ctl } = memory;
  const kib = Math.min(KIB_MAX, Math.ceil(bytes / 1024));
  Atomics.store(ctl, memory.participantWord(participant) + Participant.CLIENT_KIB_WORD, kib);
  let sum = 0;
  // A pool of an earlier build does not know how many seats were taken.
  const seats = ctl[Super.SEATS_WORD] === 0 ? Participant.MAX : ctl[Super.SEATS_WORD];
  for (let p = 0; p < seats; p++) sum += ctl[memory.participantWord(p) + Participant.CLIENT_KIB_WORD];
  Atomics.store(ctl, Super.CLIENT_KIB_WORD, Math.min(KIB_MAX, sum));
}

/** A participant has left or died, and its clients with it. */
export function forgetClients(memory: Memory, participant: number): void {
  chargeClients(memory, participant, 0);
}

export class Lending {
  readonly #memory: Memory;
  readonly #pool: PagePool;
  #notBeforeMs = 0;
  /** The file system cannot punch holes: pages are kept from the data, but not given back. */
  #cannotPunch = false;

  constructor(memory: Memory, pool: PagePool) {
    this.#memory = memory;
    this.#pool = pool;
  }

  /** Lends a page or takes one back; true when there is more to do. */
  step(nowMs: number): boolean {
    const { ctl } = this.#memory;
    const owed = this.#pool.owedToClients;
    if (owed > 0) return this.#lend();
    const lent = ctl[Super.LENT_PAGES_WORD];
    if (lent === 0 || nowMs < this.#notBeforeMs) return false;
    const clientKib = ctl[Super.CLIENT_KIB_WORD];
    const spare = clientKib === 0 ? 0 : SPARE_PAGES;
    if (lent - Math.ceil((clientKib * 1024) / Page.BYTES) <= spare) return false;
    return this.#takeBack(nowMs);
  }

  #lend(): boolean {
    const page = this.#pool.takeLent();
    if (page === NO_PAGE) return false;
    if (this.#cannotPunch) return true;
    try {
      addon.punchHole(this.#memory.controlFd, page * Page.BYTES, Page.BYTES);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EOPNOTSUPP') throw error;
      this.#cannotPunch = true;
    }
    return true;
  }

  #takeBack(nowMs: number): boolean {
    const page = this.#pool.beginReturn();
    if (page === NO_PAGE) return false;
    let isReserved = true;
    try {
      addon.reserve(this.#memory.controlFd, page * Page.BYTES, Page.BYTES);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOSPC' && code !== 'ENOMEM') throw error;
      isReserved = false;
      this.#notBeforeMs = nowMs + AGAIN_MS;
    }
    this.#pool.endReturn(page, isReserved);
    return isReserved;
  }
}
