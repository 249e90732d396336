/**
 * Wait records: the requests of this participant's blocked clients, where every other participant can read and run them.
 *
 * Owns: pages of kind WAITS, each cut into records of one size, and which records are free (known to the owner alone: the
 * pages go with it). Invariant: whoever is not the owner touches a record only between `claim` and `release`, with the ticket
 * checked in between.
 */
import type { Bytes } from '../layout/bytes.js';
import { Wait, WaitState } from '../layout/interest.js';
import { locationOffset, Page } from '../layout/location.js';
import { PageKind, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE, type PagePool } from '../memory/page-pool.js';
import { copyBytes } from '../native/copy.js';

/** Where a record lies. */
export interface WaitPlace {
  page: number;
  unit: number;
  ticket: number;
  sizeClass: number;
}

/** 256 bytes to 1 MiB. */
const SIZE_CLASSES = 13;

export class Waits {
  readonly #memory: Memory;
  readonly #pool: PagePool;
  /** Free places by size: page and unit, packed as page * 65536 + unit. */
  readonly #free: number[][] = Array.from({ length: SIZE_CLASSES }, () => []);

  constructor(memory: Memory, pool: PagePool) {
    this.#memory = memory;
    this.#pool = pool;
  }

  /**
   * Copies a request (`argc` pairs of args from `first` on, in `bytes`) into a record in state WAITING. Null when it is too large or there
   * is no memory.
   */
  create(flags: number, type: number, bytes: Bytes, args: Int32Array, first: number, argc: number): WaitPlace | null {
    const header = (Wait.HEADER_WORDS + argc * 2) * 4;
    let size = header;
    for (let i = 0; i < argc; i++) size += args[first + i * 2 + 1];
    if (size > Wait.BYTES_MAX) return null;
    const sizeClass = size <= Wait.BYTES_MIN ? 0 : 32 - Math.clz32(size - 1) - Wait.BYTES_MIN_SHIFT;
    const place = this.#take(sizeClass);
    if (place < 0) return null;
    const page = Math.floor(place / Page.UNITS);
    const unit = place % Page.UNITS;
    const to = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    const start = locationOffset(page, unit);
    const words = to.i32;
    const word = start >>> 2;
    const ticket = Atomics.add(this.#memory.ctl, Super.TICKET_WORD, 1) + 1;
    let at = header;
    for (let i = 0; i < argc; i++) {
      const length = args[first + i * 2 + 1];
      copyBytes(to, start + at, bytes, args[first + i * 2], length);
      words[word + Wait.HEADER_WORDS + i * 2] = at;
      words[word + Wait.HEADER_WORDS + i * 2 + 1] = length;
      at += length;
    }
    words[word + Wait.TICKET_WORD] = ticket;
    words[word + Wait.FLAGS_WORD] = flags;
    words[word + Wait.ARGC_WORD] = argc;
    words[word + Wait.TYPE_WORD] = type;
    Atomics.store(words, word + Wait.STATE_WORD, WaitState.WAITING);
    return { page, unit, ticket, sizeClass };
  }

  #take(sizeClass: number): number {
    const free = this.#free[sizeClass];
    if (free.length === 0) {
      const page = this.#pool.takeDram(PageKind.WAITS, 0, this.#pool.indexReserve);
      if (page === NO_PAGE) return -1;
      const bytes = Wait.BYTES_MIN << sizeClass;
      for (let at = Page.BYTES - bytes; at >= 0; at -= bytes) {
        const unit = at >>> Page.UNIT_SHIFT;
        this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32[locationOffset(page, unit) >>> 2] = WaitState.FREE;
        free.push(page * Page.UNITS + unit);
      }
    }
    return free.pop()!;
  }

  /** The owner ends a wait; false while somebody is serving it (the outcome comes as a message, or the state goes back). */
  cancel(place: WaitPlace): boolean {
    const { words, word } = this.at(place.page, place.unit);
    const was = Atomics.compareExchange(words, word, WaitState.WAITING, WaitState.FREE);
    if (was === WaitState.WAITING) this.#give(place);
    return was === WaitState.WAITING;
  }

  /** The owner has got the reply. */
  finish(place: WaitPlace): void {
    const { words, word } = this.at(place.page, place.unit);
    Atomics.store(words, word, WaitState.FREE);
    this.#give(place);
  }

  #give(place: WaitPlace): void {
    this.#free[place.sizeClass].push(place.page * Page.UNITS + place.unit);
  }

  /** Who serves it now: a participant, or -1. For the owner, which looks whether that one has died. */
  servedBy(place: WaitPlace): number {
    const { words, word } = this.at(place.page, place.unit);
    const state = Atomics.load(words, word);
    return (state & WaitState.MASK) === WaitState.SERVING ? state >>> 8 : -1;
  }

  // ---- for everybody

  /** The words that hold a record, and its first one there. The same object each time. */
  at(page: number, unit: number): { words: Int32Array; word: number } {
    this.#at.words = this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    this.#at.word = locationOffset(page, unit) >>> 2;
    return this.#at;
  }

  readonly #at: { words: Int32Array; word: number } = { words: new Int32Array(0), word: 0 };

  bytesOf(page: number): Bytes {
    return this.#memory.arenas[page >>> Page.ARENA_SHIFT];
  }

  /** Takes a waiting record in hand, if it still is that ticket's. */
  claim(page: number, unit: number, ticket: number): boolean {
    const { words, word } = this.at(page, unit);
    const mine = WaitState.SERVING | (this.#memory.self << 8);
    if (Atomics.compareExchange(words, word, WaitState.WAITING, mine) !== WaitState.WAITING) return false;
    if (words[word + Wait.TICKET_WORD] === ticket) return true;
    Atomics.store(words, word, WaitState.WAITING);
    return false;
  }

  /** True when the record is that ticket's and waits or is being served: not yet answered. */
  isOpen(page: number, unit: number, ticket: number): boolean {
    const { words, word } = this.at(page, unit);
    const state = Atomics.load(words, word) & WaitState.MASK;
    return words[word + Wait.TICKET_WORD] === ticket && (state === WaitState.WAITING || state === WaitState.SERVING);
  }

  release(page: number, unit: number, state: WaitState.WAITING | WaitState.SERVED): void {
    const { words, word } = this.at(page, unit);
    Atomics.store(words, word, state);
  }
}
