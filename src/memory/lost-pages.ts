/**
 * Pages of the capacity tier that are gone while the pool is in use: the file has been cut short, or its medium fails.
 *
 * The kernel then raises SIGBUS, which the addon answers with a page of zeros (fault.c), and counts. So before an item of the tier is used,
 * a word of each of its pages is read, and the count looked at: what is not there is a miss, and never zeros. Owns the superblock's word that
 * names the first lost page: all from there on are. Invariant: while it is set, nothing new is written to the tier.
 */
import { existsSync, statSync } from 'node:fs';
import type { Bytes } from '../layout/bytes.js';
import { Page } from '../layout/location.js';
import { Super } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import type { Memory } from './memory.js';

/** The smallest page of any system that this runs on. */
const SYSTEM_PAGE_BYTES = 4096;
/** Called through a variable: see native/copy. */
const { sigbusCount } = addon;

export class LostPages {
  /** Read and kept, so that no engine leaves the reads out. */
  touched = 0;
  readonly #memory: Memory;
  /** Pages of zeros in this process, and those of them in the tier, as last seen. */
  #allFaults = sigbusCount();
  #faults = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
    this.#faults = this.#countFaults();
  }

  /** False when the bytes of a page of the tier cannot be read. A large value's pages are looked at when they are sent. */
  isThere(page: number, bytes: Bytes, offset: number, length: number): boolean {
    const first = this.#memory.ctl[Super.LOST_PAGE_WORD];
    if (first !== 0 && page >= first) return false;
    if (length > Page.BYTES) return true;
    const { i32 } = bytes;
    const end = offset + length - 1;
    let touched = i32[end >>> 2];
    for (let at = offset; at < end; at += SYSTEM_PAGE_BYTES) touched |= i32[at >>> 2];
    this.touched = touched;
    if (sigbusCount() === this.#allFaults) return true;
    this.look();
    const lost = this.#memory.ctl[Super.LOST_PAGE_WORD];
    return lost === 0 || page < lost;
  }

  /** Finds out what was lost, if anything was since the last look: also what nobody has found an item in. */
  look(): void {
    const allFaults = sigbusCount();
    if (allFaults === this.#allFaults) return;
    this.#allFaults = allFaults;
    const faults = this.#countFaults();
    if (faults === this.#faults) return; // of another file
    this.#faults = faults;
    const { capacityBase, capacityPages } = this.#memory;
    const pages = this.#pagesInFile();
    // A medium that fails: nobody knows which of the mapping's pages show zeros by now.
    this.#note(pages < capacityPages ? capacityBase + pages : capacityBase);
  }

  #countFaults(): number {
    const { arenas, capacityBase } = this.#memory;
    let faults = 0;
    for (let i = capacityBase >>> Page.ARENA_SHIFT; i < arenas.length; i++)
      faults += addon.arenaFaults(arenas[i].arena);
    return faults;
  }

  /** Whole pages that the file has; none when it is gone as well. */
  #pagesInFile(): number {
    const { capacityPath } = this.#memory;
    return existsSync(capacityPath) ? Math.floor(statSync(capacityPath).size / Page.BYTES) : 0;
  }

  #note(first: number): void {
    const { ctl } = this.#memory;
    for (let known = Atomics.load(ctl, Super.LOST_PAGE_WORD); known === 0 || first < known; ) {
      const seen = Atomics.compareExchange(ctl, Super.LOST_PAGE_WORD, known, first);
      if (seen === known) return;
      known = seen;
    }
  }
}
