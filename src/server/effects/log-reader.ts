/**
 * Reads the files of the effect log: records in the order of their numbers.
 *
 * Invariant: what is given out has passed its check word. A segment that ends in the middle of a group was cut short by a crash, and is read up
 * to there; one that is damaged where it was persistent, or that others follow, is refused (LogError), and nobody is to trust what stands behind.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Bytes } from '../../layout/bytes.js';
import { Group, Piece, Segment } from '../../layout/effects.js';
import { addon } from '../../native/addon.js';
import { RecordBuffer } from '../../store/effects/record-buffer.js';
import { pieceBytes } from '../../store/effects/ring.js';

const TWO_32 = 0x1_0000_0000;
const SCAN_BYTES = 1 << 20;

/** The log cannot be read. */
export class LogError extends Error {
  override readonly name = 'LogError';
  readonly code = 'ERR_EFFECT_LOG';

  constructor(
    readonly path: string,
    reason: string,
  ) {
    super(`${path}: ${reason}`);
  }
}

export interface RecordSink {
  /** Effects at bytes[offset, offset + length), which are valid during the call. */
  record(bytes: Bytes, offset: number, length: number, timeMs: number, number: number): void;
}

export interface ReadResult {
  /** It was cut short in the middle of a group at this position; -1 = it was not. */
  readonly cutAt: number;
  /** Of a checkpoint that is whole: numbers below are in it, whatever the key; null = it does not end. */
  readonly endCut: number | null;
}

export class LogReader {
  readonly #sink: RecordSink;
  readonly #group = new RecordBuffer();
  readonly #joined = new RecordBuffer();
  /** Pieces of records whose last one has not come yet, by seat. */
  readonly #open = new Map<number, Uint8Array[]>();
  /** Last pieces of the group in hand: number, seat, position. */
  #lasts: [number: number, seat: number, at: number][] = [];

  constructor(sink: RecordSink) {
    this.#sink = sink;
  }

  /** Something has been written to a file: one that is reserved for what comes next has no header yet. */
  isBegun(path: string, number: number): boolean {
    const fd = openSync(path, 'r');
    try {
      return this.#hasHeader(fd, path, number, fstatSync(fd).size);
    } finally {
      closeSync(fd);
    }
  }

  /** Reads one file. `isLast`: no other that was begun follows it. */
  read(path: string, number: number, isLast: boolean): ReadResult {
    const fd = openSync(path, 'r');
    try {
      const { size } = fstatSync(fd);
      if (!this.#hasHeader(fd, path, number, size)) {
        if (isLast) return { cutAt: 0, endCut: null };
        throw new LogError(path, 'its header is damaged');
      }
      return this.#groups(fd, path, number, size, isLast);
    } finally {
      closeSync(fd);
    }
  }

  #hasHeader(fd: number, path: string, number: number, size: number): boolean {
    if (size < Segment.HEADER_BYTES) return false;
    const { view } = this.#load(fd, 0, Segment.HEADER_BYTES);
    const word = (at: number): number => view.getInt32(at * 4, true);
    if (word(Segment.MAGIC_LOW_WORD) !== Segment.MAGIC_LOW || word(Segment.MAGIC_HIGH_WORD) !== Segment.MAGIC_HIGH) {
      return false;
    }
    if (word(Segment.VERSION_WORD) !== Segment.VERSION) {
      throw new LogError(
        path,
        `it has version ${word(Segment.VERSION_WORD)}, and this program reads ${Segment.VERSION}`,
      );
    }
    return word(Segment.NUMBER_WORD) === number && this.#checks(view, Segment.CHECK_WORD, Segment.HEADER_BYTES, number);
  }

  /** The range of the file, at the beginning of the buffer. */
  #load(fd: number, position: number, length: number): Bytes {
    const buffer = this.#group;
    buffer.length = 0;
    buffer.reserve(length);
    for (let done = 0; done < length; ) {
      const got = readSync(fd, buffer.bytes.u8, done, length - done, position + done);
      if (got === 0) throw new Error('the file has become shorter');
      done += got;
    }
    buffer.length = length;
    return buffer.bytes;
  }

  /** The check word of the loaded range, of `length` bytes, is right. */
  #checks(view: DataView, checkWord: number, length: number, salt: number): boolean {
    const check = view.getInt32(checkWord * 4, true);
    view.setInt32(checkWord * 4, 0, true);
    const sum = addon.crc32c(this.#group.bytes.arena, 0, length, salt) | 0;
    view.setInt32(checkWord * 4, check, true);
    return sum === check;
  }

  #groups(fd: number, path: string, number: number, size: number, isLast: boolean): ReadResult {
    let at: number = Segment.HEADER_BYTES;
    for (;;) {
      const bytes = this.#loadGroup(fd, at, size, number);
      if (bytes < 0) {
        const isEmpty = this.#isZero(fd, at, size);
        if (!isLast) {
          if (isEmpty) return { cutAt: -1, endCut: null };
          throw new LogError(path, `it is damaged at byte ${at}, and later ones follow it`);
        }
        this.#refuseDamage(fd, path, number, at, size);
        return { cutAt: isEmpty ? -1 : at, endCut: null };
      }
      const { view } = this.#group.bytes;
      if (view.getInt32(Group.MAGIC_WORD * 4, true) === Group.END_MAGIC) {
        return { cutAt: -1, endCut: view.getInt32(Group.CUT_WORD * 4, true) };
      }
      this.#giveOut(bytes);
      at += bytes;
    }
  }

  /** Loads the group at a position; its bytes, -1 = there is none that is whole. */
  #loadGroup(fd: number, at: number, size: number, number: number): number {
    if (at + Group.HEADER_BYTES > size) return -1;
    const { view } = this.#load(fd, at, Group.HEADER_BYTES);
    const magic = view.getInt32(Group.MAGIC_WORD * 4, true);
    if (magic !== Group.MAGIC && magic !== Group.END_MAGIC) return -1;
    const bytes = view.getUint32(Group.BYTES_WORD * 4, true) + Group.HEADER_BYTES;
    if (at + bytes > size || bytes % Group.ALIGN !== 0) return -1;
    const loaded = this.#load(fd, at, bytes);
    return this.#checks(loaded.view, Group.CHECK_WORD, bytes, number) ? bytes : -1;
  }

  /** Nothing was written from the position on. */
  #isZero(fd: number, at: number, size: number): boolean {
    const length = Math.min(SCAN_BYTES, size - at);
    const { u8 } = this.#load(fd, at, length);
    for (let i = 0; i < length; i++) if (u8[i] !== 0) return false;
    return true;
  }

  /** A whole group behind the damage says whether that place had been persistent. */
  #refuseDamage(fd: number, path: string, number: number, damage: number, size: number): void {
    for (let from = damage + Group.ALIGN; from + Group.HEADER_BYTES <= size; from += SCAN_BYTES) {
      const length = Math.min(SCAN_BYTES, size - from);
      const found: number[] = [];
      const { view } = this.#load(fd, from, length);
      for (let i = 0; i + 4 <= length; i += Group.ALIGN) {
        if (view.getInt32(i, true) === Group.MAGIC) found.push(from + i);
      }
      for (const at of found) {
        if (this.#loadGroup(fd, at, size, number) < 0) continue;
        if (this.#group.bytes.view.getUint32(Group.SAFE_WORD * 4, true) <= damage) continue;
        throw new LogError(
          path,
          `it is damaged at byte ${damage}, in the middle of what was written down for good; restore the folder from a backup, or move it away to go on without what it holds`,
        );
      }
    }
  }

  // ---- pieces

  #giveOut(bytes: number): void {
    const { view } = this.#group.bytes;
    this.#lasts = [];
    const whole: Uint8Array[][] = [];
    for (let at: number = Group.HEADER_BYTES; at < bytes; ) {
      const seat = view.getInt32(at, true);
      const end = at + Group.PART_BYTES + view.getUint32(at + 4, true);
      for (at += Group.PART_BYTES; at < end; ) {
        const payload = view.getUint32(at + Piece.PAYLOAD_WORD * 4, true);
        this.#piece(seat, at, payload, whole);
        at += pieceBytes(payload);
      }
    }
    this.#lasts.sort((a, b) => (a[0] - b[0]) | 0);
    for (const [number, index, at] of this.#lasts) this.#record(number, at, whole[index]);
  }

  #piece(seat: number, at: number, payload: number, whole: Uint8Array[][]): void {
    const { view, u8 } = this.#group.bytes;
    const flags = view.getUint32(at + Piece.TIME_HIGH_FLAGS_WORD * 4, true);
    // One that was begun and given up is followed by another's first piece.
    if ((flags & Piece.FIRST) !== 0) this.#open.delete(seat);
    const before = this.#open.get(seat);
    if ((flags & Piece.LAST) !== 0) {
      this.#lasts.push([view.getInt32(at + Piece.NUMBER_WORD * 4, true), whole.length, at]);
      whole.push(before ?? []);
      this.#open.delete(seat);
      return;
    }
    const body = at + Piece.HEADER_BYTES;
    const parts = before ?? [];
    parts.push(u8.slice(body, body + payload));
    this.#open.set(seat, parts);
  }

  /** The record whose last piece stands there; `before`: its other pieces. */
  #record(number: number, at: number, before: readonly Uint8Array[]): void {
    const { bytes } = this.#group;
    const length = bytes.view.getUint32(at + Piece.PAYLOAD_WORD * 4, true);
    const high = bytes.view.getUint32(at + Piece.TIME_HIGH_FLAGS_WORD * 4, true) & Piece.TIME_HIGH_MASK;
    const timeMs = high * TWO_32 + bytes.view.getUint32(at + Piece.TIME_LOW_WORD * 4, true);
    const body = at + Piece.HEADER_BYTES;
    if (before.length === 0) return this.#sink.record(bytes, body, length, timeMs, number);
    const joined = this.#joined;
    joined.clear();
    for (const part of before) {
      joined.reserve(part.length);
      joined.bytes.u8.set(part, joined.length);
      joined.length += part.length;
    }
    joined.raw(bytes, body, length);
    this.#sink.record(joined.bytes, 0, joined.length, timeMs, number);
  }
}
