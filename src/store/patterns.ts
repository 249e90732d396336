/**
 * Pattern subscriptions of all participants: what a publisher matches a channel against.
 *
 * Owns the pattern page (layout/interest) and this participant's copy of it, read anew when its version has moved. Invariant: a copy
 * of the present version lists exactly the records whose count is not 0.
 */
import { Bytes, bytesEqual } from '../layout/bytes.js';
import { PatternPage } from '../layout/interest.js';
import { Page, pageOffset } from '../layout/location.js';
import { PageKind, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE, type PagePool } from '../memory/page-pool.js';
import { copyBytes } from '../native/copy.js';

/** Clients of one participant that subscribe to one pattern. */
export interface PatternSubscription {
  readonly pattern: Bytes;
  readonly seat: number;
  readonly clients: number;
}

export class Patterns {
  readonly #memory: Memory;
  readonly #pool: PagePool;
  #version = 0;
  #list: readonly PatternSubscription[] = [];

  constructor(memory: Memory, pool: PagePool) {
    this.#memory = memory;
    this.#pool = pool;
  }

  /** All of them, as they are now. */
  get list(): readonly PatternSubscription[] {
    if (Atomics.load(this.#memory.ctl, Super.PATTERNS_VERSION_WORD) !== this.#version) this.#read();
    return this.#list;
  }

  /** Adds `delta` to this participant's count of clients for a pattern. False = no room for one more. */
  add(pattern: Bytes, length: number, delta: number): boolean {
    const memory = this.#memory;
    if (memory.ctl[Super.PATTERNS_PAGE_WORD] === NO_PAGE && !this.#takePage()) return false;
    memory.lock(Super.INTEREST_LOCK_WORD);
    const added = this.#change(pattern, length, delta);
    if (added) Atomics.add(memory.ctl, Super.PATTERNS_VERSION_WORD, 1);
    memory.unlock(Super.INTEREST_LOCK_WORD);
    return added;
  }

  /** A participant is gone. */
  forget(seat: number): void {
    const memory = this.#memory;
    if (memory.ctl[Super.PATTERNS_PAGE_WORD] === NO_PAGE) return;
    memory.lock(Super.INTEREST_LOCK_WORD);
    this.#forEach((words, word) => {
      if (words[word + PatternPage.SEAT_WORD] === seat) words[word + PatternPage.COUNT_WORD] = 0;
    });
    Atomics.add(memory.ctl, Super.PATTERNS_VERSION_WORD, 1);
    memory.unlock(Super.INTEREST_LOCK_WORD);
  }

  #takePage(): boolean {
    const memory = this.#memory;
    const page = this.#pool.takeDram(PageKind.INTEREST, 0, this.#pool.indexReserve);
    if (page === NO_PAGE) return false;
    const words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    words[(pageOffset(page) >>> 2) + PatternPage.USED_WORD] = PatternPage.RECORDS_OFFSET;
    memory.lock(Super.INTEREST_LOCK_WORD);
    const isFirst = memory.ctl[Super.PATTERNS_PAGE_WORD] === NO_PAGE;
    if (isFirst) {
      // It belongs to all from here on. A death between the two only leaks the page.
      memory.ctl[memory.pageInfo(page)] = PageKind.INTEREST;
      memory.ctl[Super.PATTERNS_PAGE_WORD] = page;
    }
    memory.unlock(Super.INTEREST_LOCK_WORD);
    if (!isFirst) this.#pool.free(page);
    return true;
  }

  #change(pattern: Bytes, length: number, delta: number): boolean {
    const { self } = this.#memory;
    const total = (PatternPage.HEADER_BYTES + length + 7) & ~7;
    let own = -1;
    let free = -1;
    const { bytes, end } = this.#forEach((words, word, from) => {
      if (words[word + PatternPage.COUNT_WORD] === 0) {
        if (free < 0 && words[word + PatternPage.BYTES_WORD] >= total) free = word;
        return;
      }
      if (
        words[word + PatternPage.SEAT_WORD] === self &&
        words[word + PatternPage.LENGTH_WORD] === length &&
        bytesEqual(from, (word << 2) + PatternPage.HEADER_BYTES, pattern, 0, length)
      ) {
        own = word;
      }
    });
    const words = bytes.i32;
    if (own >= 0) {
      words[own + PatternPage.COUNT_WORD] = Math.max(0, words[own + PatternPage.COUNT_WORD] + delta);
      return true;
    }
    if (delta <= 0) return true;
    if (free < 0) {
      const start = pageOffset(this.#memory.ctl[Super.PATTERNS_PAGE_WORD]);
      if (end - start + total > Page.BYTES) return false;
      free = end >>> 2;
      words[free + PatternPage.BYTES_WORD] = total;
      words[free + PatternPage.COUNT_WORD] = 0;
      words[(start >>> 2) + PatternPage.USED_WORD] = end - start + total;
    }
    words[free + PatternPage.SEAT_WORD] = self;
    words[free + PatternPage.LENGTH_WORD] = length;
    copyBytes(bytes, (free << 2) + PatternPage.HEADER_BYTES, pattern, 0, length);
    words[free + PatternPage.COUNT_WORD] = delta;
    return true;
  }

  /** Calls `visit` with each record's first word; returns where the records lie and end. The lock is held. */
  #forEach(visit: (words: Int32Array, word: number, bytes: Bytes) => void): { bytes: Bytes; end: number } {
    const page = this.#memory.ctl[Super.PATTERNS_PAGE_WORD];
    const bytes = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    const start = pageOffset(page);
    const end = start + bytes.i32[(start >>> 2) + PatternPage.USED_WORD];
    for (let at = start + PatternPage.RECORDS_OFFSET; at < end; ) {
      const length = bytes.i32[(at >>> 2) + PatternPage.BYTES_WORD];
      visit(bytes.i32, at >>> 2, bytes);
      at += length;
    }
    return { bytes, end };
  }

  #read(): void {
    const memory = this.#memory;
    const list: PatternSubscription[] = [];
    memory.lock(Super.INTEREST_LOCK_WORD);
    this.#forEach((words, word, bytes) => {
      const clients = words[word + PatternPage.COUNT_WORD];
      if (clients === 0) return;
      const at = (word << 2) + PatternPage.HEADER_BYTES;
      const pattern = Bytes.from(bytes.u8.slice(at, at + words[word + PatternPage.LENGTH_WORD]));
      list.push({ pattern, seat: words[word + PatternPage.SEAT_WORD], clients });
    });
    this.#version = Atomics.load(memory.ctl, Super.PATTERNS_VERSION_WORD);
    memory.unlock(Super.INTEREST_LOCK_WORD);
    this.#list = list;
  }
}
