/**
 * A participant's ring of the effect log: where records wait until the log's writer takes them.
 *
 * Invariant: pieces before HEAD are whole; the number of a record is taken and its last piece appended while PENDING is 1, so that whoever
 * reads the count of numbers, then waits for PENDING to be 0, finds every record below that count. Its owner holds the locks of what a record
 * tells of meanwhile: numbers of one key rise in the order of its changes.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Doubt, Piece, Ring } from '../../layout/effects.js';
import { Page, pageOffset } from '../../layout/location.js';
import { Super } from '../../layout/superblock.js';
import type { Memory } from '../../memory/memory.js';
import { addon } from '../../native/addon.js';
import { copyBytes } from '../../native/copy.js';
import { RecordBuffer } from './record-buffer.js';

const MASK = Ring.DATA_BYTES - 1;
/** On x64 stores are seen in their order: an atomic one is a call of some 10 ns more. */
const PLAIN_STORES_RELEASE = process.arch === 'x64';
/** Between two looks whether the writer has made room. */
const ROOM_WAIT_MS = 2;
/** A ring that stays full for so long while the log cannot be written is given up: see EFFECTS_DOUBT_WORD. */
const PATIENCE_MS = 200;

export class EffectRing {
  readonly #memory: Memory;
  readonly #ctl: Int32Array;
  readonly #bytes: Bytes;
  readonly #words: Int32Array;
  readonly #base: number;
  readonly #data: number;
  readonly #window: RecordBuffer;
  #head: number;
  /** Bytes that had been taken away when that was last looked at. */
  #tail: number;

  constructor(memory: Memory, page: number) {
    this.#memory = memory;
    this.#ctl = memory.ctl;
    this.#bytes = memory.arenas[page >>> Page.ARENA_SHIFT];
    this.#words = this.#bytes.i32;
    this.#base = pageOffset(page) >>> 2;
    this.#data = pageOffset(page) + Ring.DATA_BYTE;
    this.#window = new RecordBuffer(this.#bytes);
    this.#head = this.#words[this.#base + Ring.HEAD_WORD];
    this.#tail = this.#words[this.#base + Ring.TAIL_WORD];
    // Of whoever had the seat before and died.
    Atomics.store(this.#words, this.#base + Ring.PENDING_WORD, 0);
    Atomics.store(this.#words, this.#base + Ring.WAITS_WORD, 0);
  }

  /** Asks to be woken when what has been appended by now is persistent. */
  askForWake(): void {
    Atomics.store(this.#words, this.#base + Ring.WAITS_WORD, 1);
  }

  /**
   * Room for a record of at most so many bytes in one piece, to be written where it will lie, from the window's length on; null = there is
   * none right now. Nothing has happened until `close`.
   */
  open(bytes: number): RecordBuffer | null {
    const from = (this.#head & MASK) + Piece.HEADER_BYTES;
    if (from + bytes > Ring.DATA_BYTES || this.#ctl[Super.EFFECTS_WRITER_WORD] === 0) return null;
    if (this.#free() < bytes) {
      this.#tail = Atomics.load(this.#words, this.#base + Ring.TAIL_WORD);
      if (this.#free() < bytes) return null;
    }
    this.#window.length = this.#data + from;
    return this.#window;
  }

  /** What has been written to the window is a record. */
  close(timeMs: number): void {
    const from = this.#data + (this.#head & MASK) + Piece.HEADER_BYTES;
    this.#finish(this.#window.length - from, Piece.FIRST | Piece.LAST, timeMs);
  }

  #free(): number {
    return Ring.DATA_BYTES - ((this.#head - this.#tail) >>> 0) - Piece.HEADER_BYTES - PADDING_BYTES;
  }

  /** Appends a record whose payload is two ranges one behind the other; returns its number. False = it is lost: the log is in doubt. */
  append(a: RecordBuffer, b: RecordBuffer | null, timeMs: number): boolean {
    const total = a.length + (b === null ? 0 : b.length);
    let done = 0;
    let flags: number = Piece.FIRST;
    for (;;) {
      const room = this.#room(Math.min(total - done, MIN_PIECE_BYTES));
      if (room < 0) {
        Atomics.store(this.#ctl, Super.EFFECTS_DOUBT_WORD, Doubt.YES);
        Atomics.add(this.#ctl, Super.EFFECTS_NUMBER_WORD, 1);
        return false;
      }
      const part = Math.min(total - done, room);
      this.#copy(a, b, done, part);
      done += part;
      if (done === total) {
        this.#finish(part, flags | Piece.LAST, timeMs);
        return true;
      }
      this.#header(part, 0, flags, timeMs);
      this.#publish(part);
      flags = 0;
    }
  }

  #finish(part: number, flags: number, timeMs: number): void {
    // In front of an atomic operation it needs to be none itself.
    this.#words[this.#base + Ring.PENDING_WORD] = 1;
    const number = Atomics.add(this.#ctl, Super.EFFECTS_NUMBER_WORD, 1);
    this.#header(part, number, flags, timeMs);
    this.#publish(part);
    if (PLAIN_STORES_RELEASE) this.#words[this.#base + Ring.PENDING_WORD] = 0;
    else Atomics.store(this.#words, this.#base + Ring.PENDING_WORD, 0);
  }

  #header(part: number, number: number, flags: number, timeMs: number): void {
    const at = (this.#data + (this.#head & MASK)) >>> 2;
    const high = Math.floor(timeMs / 0x1_0000_0000);
    this.#words[at + Piece.PAYLOAD_WORD] = part;
    this.#words[at + Piece.NUMBER_WORD] = number;
    this.#words[at + Piece.TIME_LOW_WORD] = timeMs | 0;
    this.#words[at + Piece.TIME_HIGH_FLAGS_WORD] = high | flags;
  }

  #publish(part: number): void {
    this.#head = (this.#head + pieceBytes(part)) | 0;
    if (PLAIN_STORES_RELEASE) this.#words[this.#base + Ring.HEAD_WORD] = this.#head;
    else Atomics.store(this.#words, this.#base + Ring.HEAD_WORD, this.#head);
  }

  /** Copies `length` bytes from `from` on of the two ranges behind the header at the head. */
  #copy(a: RecordBuffer, b: RecordBuffer | null, from: number, length: number): void {
    let to = this.#head + Piece.HEADER_BYTES;
    let left = length;
    let at = from;
    if (at < a.length) {
      const part = Math.min(left, a.length - at);
      this.#copyIn(to, a.bytes, at, part);
      to += part;
      at += part;
      left -= part;
    }
    if (left > 0 && b !== null) this.#copyIn(to, b.bytes, at - a.length, left);
  }

  #copyIn(position: number, from: Bytes, offset: number, length: number): void {
    const at = position & MASK;
    const first = Math.min(length, Ring.DATA_BYTES - at);
    copyBytes(this.#bytes, this.#data + at, from, offset, first);
    if (first < length) copyBytes(this.#bytes, this.#data, from, offset + first, length - first);
  }

  /**
   * Payload bytes that the next piece may have, at least `wanted` (MIN_PIECE_BYTES at most); waits for the writer if need be. -1 = there is
   * none, or it cannot write.
   */
  #room(wanted: number): number {
    let untilMs = 0;
    for (;;) {
      const writer = Atomics.load(this.#ctl, Super.EFFECTS_WRITER_WORD);
      if (writer === 0) return -1;
      const tail = Atomics.load(this.#words, this.#base + Ring.TAIL_WORD);
      this.#tail = tail;
      const free = this.#free();
      if (free >= wanted) return free;
      this.wakeWriter();
      const nowMs = addon.monotonicMs();
      if (Atomics.load(this.#ctl, Super.EFFECTS_REFUSED_WORD) === 0) untilMs = 0;
      else if (untilMs === 0) untilMs = nowMs + PATIENCE_MS;
      else if (nowMs > untilMs) return -1;
      const word = (this.#base + Ring.TAIL_WORD) << 2;
      const woken = addon.futexWait(this.#bytes.arena, word, tail, ROOM_WAIT_MS);
      if (!woken && !this.#memory.isAlive(writer - 1)) return -1;
    }
  }

  wakeWriter(): void {
    if (Atomics.exchange(this.#ctl, Super.EFFECTS_SLEEP_WORD, 0) === 0) return;
    addon.futexWake(this.#memory.arenas[0].arena, Super.EFFECTS_SLEEP_WORD << 2, 1);
  }
}

/** Headers must not be split by the end of the ring: pieces are padded to theirs. */
const PADDING_BYTES = Piece.HEADER_BYTES;
/** A record is not cut into smaller pieces for want of room. */
const MIN_PIECE_BYTES = 64 * 1024;

/** Bytes of a piece in the ring and in the log. */
export function pieceBytes(payloadBytes: number): number {
  return Piece.HEADER_BYTES + ((payloadBytes + Piece.HEADER_BYTES - 1) & -Piece.HEADER_BYTES);
}
