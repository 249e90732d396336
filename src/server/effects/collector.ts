/**
 * Takes what the participants have appended to their rings: all records below one number, so that what has been taken is the log up to a moment.
 *
 * Invariant: a record is taken once, and only when every record with a smaller number is taken with it or was before.
 */
import { Doubt, Piece, Ring } from '../../layout/effects.js';
import { Page, pageOffset } from '../../layout/location.js';
import { Participant, Super } from '../../layout/superblock.js';
import { addon } from '../../native/addon.js';
import { pieceBytes } from '../../store/effects/ring.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { GroupBuffer } from './group-buffer.js';

const MASK = Ring.DATA_BYTES - 1;
const PENDING_WAIT_MS = 1;

export class Collector {
  readonly #keyspace: Keyspace;
  readonly #ctl: Int32Array;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#ctl = keyspace.memory.ctl;
  }

  /** Fills a group, which is empty when there is nothing; returns its cut. */
  collect(into: GroupBuffer): number {
    into.clear();
    const cut = Atomics.load(this.#ctl, Super.EFFECTS_NUMBER_WORD);
    for (let seat = 0, seats = this.#seats; seat < seats; seat++) {
      const page = this.#pageOf(seat);
      if (page !== 0) this.#take(seat, page, cut, into);
    }
    return cut;
  }

  /** Forgets what rings hold. Nobody appends. */
  discard(): void {
    for (let seat = 0, seats = this.#seats; seat < seats; seat++) {
      const page = this.#pageOf(seat);
      if (page === 0) continue;
      const { words, base } = this.#ring(page);
      Atomics.store(words, base + Ring.TAIL_WORD, Atomics.load(words, base + Ring.HEAD_WORD));
    }
  }

  /** True when some ring holds something. */
  hasMore(): boolean {
    for (let seat = 0, seats = this.#seats; seat < seats; seat++) {
      const page = this.#pageOf(seat);
      if (page === 0) continue;
      const { words, base } = this.#ring(page);
      if (Atomics.load(words, base + Ring.HEAD_WORD) !== words[base + Ring.TAIL_WORD]) return true;
    }
    return false;
  }

  /** Wakes the participants of this process that wait for what is persistent by now. */
  wakeWaiting(): void {
    for (let seat = 0, seats = this.#seats; seat < seats; seat++) {
      const page = this.#pageOf(seat);
      if (page === 0) continue;
      const { words, base } = this.#ring(page);
      if (Atomics.exchange(words, base + Ring.WAITS_WORD, 0) === 0) continue;
      const at = this.#keyspace.memory.participantWord(seat);
      if (this.#ctl[at + Participant.PID_WORD] !== process.pid) continue;
      try {
        addon.wake(this.#ctl[at + Participant.RING_WAKE_WORD]);
      } catch (error) {
        // It has closed its end: it is ending.
        if ((error as NodeJS.ErrnoException).code !== 'EBADF') throw error;
      }
    }
  }

  /** Seats that were ever taken are below it: all 112 of them, three times a turn, would be a good part of a turn. */
  get #seats(): number {
    return Atomics.load(this.#ctl, Super.SEATS_WORD) || Participant.MAX;
  }

  #pageOf(seat: number): number {
    return Atomics.load(this.#ctl, this.#keyspace.memory.participantWord(seat) + Participant.RING_WORD);
  }

  #ring(page: number): { words: Int32Array; base: number } {
    return { words: this.#keyspace.memory.arenas[page >>> Page.ARENA_SHIFT].i32, base: pageOffset(page) >>> 2 };
  }

  #take(seat: number, page: number, cut: number, into: GroupBuffer): void {
    const { words, base } = this.#ring(page);
    this.#waitPending(seat, page, words, base);
    const head = Atomics.load(words, base + Ring.HEAD_WORD);
    const tail = words[base + Ring.TAIL_WORD];
    if (head === tail) return;
    const first = (pageOffset(page) + Ring.DATA_BYTE) >>> 2;
    let end = tail;
    while (end !== head) {
      const at = first + ((end & MASK) >>> 2);
      const isLast = (words[at + Piece.TIME_HIGH_FLAGS_WORD] & Piece.LAST) !== 0;
      if (isLast && ((words[at + Piece.NUMBER_WORD] - cut) | 0) >= 0) break;
      end = (end + pieceBytes(words[at + Piece.PAYLOAD_WORD])) | 0;
    }
    const length = (end - tail) >>> 0;
    if (length === 0) return;
    into.part(seat, length);
    const bytes = this.#keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
    const from = tail & MASK;
    const part = Math.min(length, Ring.DATA_BYTES - from);
    into.buffer.raw(bytes, pageOffset(page) + Ring.DATA_BYTE + from, part);
    into.buffer.raw(bytes, pageOffset(page) + Ring.DATA_BYTE, length - part);
    Atomics.store(words, base + Ring.TAIL_WORD, end);
    addon.futexWake(bytes.arena, (base + Ring.TAIL_WORD) << 2, 1);
  }

  /** Whoever dies between taking a number and appending its piece has lost that record: the log is in doubt (see repair). */
  #waitPending(seat: number, page: number, words: Int32Array, base: number): void {
    const { arena } = this.#keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
    while (Atomics.load(words, base + Ring.PENDING_WORD) !== 0) {
      addon.futexWait(arena, (base + Ring.PENDING_WORD) << 2, 1, PENDING_WAIT_MS);
      if (Atomics.load(words, base + Ring.PENDING_WORD) === 0) return;
      if (!this.#keyspace.memory.isAlive(seat)) {
        Atomics.store(this.#ctl, Super.EFFECTS_DOUBT_WORD, Doubt.YES);
        Atomics.store(words, base + Ring.PENDING_WORD, 0);
        return;
      }
    }
  }
}
