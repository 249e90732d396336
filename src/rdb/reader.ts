/**
 * Reading RDB: bytes, numbers, lengths and strings, from memory or from a file through a window that moves over it.
 *
 * Owns: the position, the window, the checksum of what has been passed, and the room that strings are unpacked into. Invariant: nothing
 * beyond the end is read, and no memory is taken for a length before it is known that so many bytes are there (LZF: that so many can come of
 * them). What is wrong is thrown as an RdbError; `offset` then says where.
 */
import { Bytes } from '../layout/bytes.js';
import { copyBytes } from '../native/copy.js';
import { Crc64 } from './crc64.js';
import { DECIMAL_MAX_BYTES, writeDecimal } from './decimal.js';
import { Code, RdbError } from './format.js';
import { LZF_RATIO_MAX, unpackLzf } from './lzf.js';

/** Fills u8[at, at + length) with what comes next in a file; returns how many bytes, 0 at its end. */
export type Fill = (u8: Uint8Array, at: number, length: number) => number;

const WINDOW_BYTES = 1 << 20;
const SCRATCH_BYTES = 4096;
/** Larger buffers are given back once they are not needed. */
const KEPT_BYTES_MAX = 4 << 20;
const STRING_MAX_BYTES = 0x4000_0000;
const TWO_32 = 0x1_0000_0000;

/** A string that has been read: a byte range, valid until the same slot is used again (see `passing` for those that live shorter). */
export class StringSlot {
  bytes: Bytes;
  offset = 0;
  length = 0;
  /** Where it is unpacked or copied. */
  scratch = Bytes.allocate(SCRATCH_BYTES);

  constructor() {
    this.bytes = this.scratch;
  }

  reserve(length: number): Bytes {
    if (this.scratch.length < length || (this.scratch.length > KEPT_BYTES_MAX && length <= SCRATCH_BYTES)) {
      this.scratch = Bytes.allocate(Math.max(length, SCRATCH_BYTES));
    }
    return this.scratch;
  }
}

export class RdbReader {
  bytes: Bytes = Bytes.allocate(0);
  /** Next byte, and the end of what is there. */
  at = 0;
  end = 0;
  readonly crc = new Crc64();
  checksums = true;

  #fill: Fill | null = null;
  /** Bytes of the file that have not been filled in. */
  #unread = 0;
  /** Offset within the file of the window's first byte. */
  #base = 0;
  /** What stands before it is in the checksum. */
  #summed = 0;
  /** Wide lengths: the halves of the last one that did not fit 32 bits. */
  high = 0;
  low = 0;

  /** Reads these bytes of memory, which do not move meanwhile. */
  openMemory(bytes: Bytes, offset: number, length: number): void {
    this.bytes = bytes;
    this.at = offset;
    this.end = offset + length;
    this.#fill = null;
    this.#unread = 0;
    this.#base = -offset;
  }

  /** Reads a file of `size` bytes. */
  openFile(fill: Fill, size: number): void {
    this.bytes = Bytes.allocate(Math.min(WINDOW_BYTES, Math.max(size, 1)));
    this.at = 0;
    this.end = 0;
    this.#fill = fill;
    this.#unread = size;
    this.#base = 0;
    this.#summed = 0;
    this.crc.reset();
  }

  get isFile(): boolean {
    return this.#fill !== null;
  }

  /** Bytes before the position. */
  get offset(): number {
    return this.#base + this.at;
  }

  /** Bytes behind it. */
  get left(): number {
    return this.end - this.at + this.#unread;
  }

  fail(reason: string): never {
    throw new RdbError(reason);
  }

  /** Makes `count` bytes available from the position on, in one piece. */
  need(count: number): void {
    if (this.end - this.at >= count) return;
    if (count > this.left) this.fail('it ends in the middle of a value');
    this.#refill(count);
  }

  #refill(count: number): void {
    this.sum();
    const { bytes, at, end } = this;
    const kept = end - at;
    let window = bytes;
    if (count > bytes.length) window = Bytes.allocate(count);
    else if (bytes.length > KEPT_BYTES_MAX && count <= WINDOW_BYTES && kept <= WINDOW_BYTES) {
      window = Bytes.allocate(WINDOW_BYTES);
    }
    if (window === bytes) bytes.u8.copyWithin(0, at, end);
    else window.u8.set(bytes.u8.subarray(at, end));
    this.bytes = window;
    this.#base += at;
    this.#summed = 0;
    this.at = 0;
    this.end = kept;
    while (this.end < count) {
      const wanted = Math.min(window.length - this.end, this.#unread);
      const got = this.#fill!(window.u8, this.end, wanted);
      if (got <= 0) this.fail('the file became shorter while it was read');
      this.end += got;
      this.#unread -= got;
    }
  }

  /** Takes what has been passed into the checksum. */
  sum(): void {
    if (this.checksums && this.#fill !== null) this.crc.update(this.bytes.u8, this.#summed, this.at);
    this.#summed = this.at;
  }

  // ---- numbers

  byte(): number {
    if (this.at >= this.end) this.need(1);
    return this.bytes.u8[this.at++];
  }

  skip(count: number): void {
    for (let rest = count; rest > 0; ) {
      const part = Math.min(rest, WINDOW_BYTES);
      this.need(part);
      this.at += part;
      rest -= part;
    }
  }

  uint16(): number {
    this.need(2);
    this.at += 2;
    return this.bytes.view.getUint16(this.at - 2, true);
  }

  int32(): number {
    this.need(4);
    this.at += 4;
    return this.bytes.view.getInt32(this.at - 4, true);
  }

  /** A signed 64-bit number; inexact beyond 2^53. */
  int64(): number {
    const low = this.int32();
    return this.int32() * TWO_32 + (low >>> 0);
  }

  double(): number {
    this.need(8);
    this.at += 8;
    return this.bytes.view.getFloat64(this.at - 8, true);
  }

  /** A length; those beyond 2^53 are refused, as no file is so long. */
  length(): number {
    const first = this.byte();
    if (first >= Code.INT8) this.fail('a length is none');
    return this.#lengthFrom(first);
  }

  #lengthFrom(first: number): number {
    if (first < Code.LENGTH_14_BITS) return first;
    if (first < Code.LENGTH_32_BITS) return ((first & 0x3f) << 8) | this.byte();
    if (first === Code.LENGTH_32_BITS) {
      this.need(4);
      this.at += 4;
      return this.bytes.view.getUint32(this.at - 4, false);
    }
    if (first !== Code.LENGTH_64_BITS) this.fail('a length is none');
    this.need(8);
    this.at += 8;
    const { view } = this.bytes;
    this.high = view.getInt32(this.at - 8, false);
    this.low = view.getInt32(this.at - 4, false);
    const value = (this.high >>> 0) * TWO_32 + (this.low >>> 0);
    if (!Number.isSafeInteger(value)) this.fail('a length is beyond all measure');
    return value;
  }

  /** A 64-bit number that is kept like a length (stream ids, counters); `high` and `low` are its halves. */
  wide(): void {
    const first = this.byte();
    if (first >= Code.INT8) this.fail('a length is none');
    if (first === Code.LENGTH_64_BITS) {
      this.need(8);
      this.high = this.bytes.view.getInt32(this.at, false);
      this.low = this.bytes.view.getInt32(this.at + 4, false);
      this.at += 8;
      return;
    }
    this.high = 0;
    this.low = this.#lengthFrom(first) | 0;
  }

  /** A number of elements, each of which takes at least `bytesEach` bytes: more than the rest can hold is refused. */
  count(bytesEach: number): number {
    const count = this.length();
    if (count * bytesEach > this.left) this.fail('it says that it has more elements than bytes');
    return count;
  }

  // ---- strings

  /** A string that stays valid until the slot is used again. */
  string(slot: StringSlot): void {
    this.passing(slot);
    if (this.#fill === null || slot.bytes === slot.scratch) return;
    const { offset, length } = slot;
    const { bytes } = slot;
    copyBytes(slot.reserve(length), 0, bytes, offset, length);
    slot.bytes = slot.scratch;
    slot.offset = 0;
  }

  /** A string that is valid until the next read: of a file it lies in the window. */
  passing(slot: StringSlot): void {
    const first = this.byte();
    if (first >= Code.INT8) return this.#encoded(first, slot);
    const length = this.#lengthFrom(first);
    if (length > STRING_MAX_BYTES) this.fail('a string is too long');
    this.need(length);
    slot.bytes = this.bytes;
    slot.offset = this.at;
    slot.length = length;
    this.at += length;
  }

  #encoded(first: number, slot: StringSlot): void {
    switch (first) {
      case Code.INT8:
        this.need(1);
        this.#integer(slot, this.bytes.view.getInt8(this.at));
        this.at += 1;
        return;
      case Code.INT16:
        this.need(2);
        this.#integer(slot, this.bytes.view.getInt16(this.at, true));
        this.at += 2;
        return;
      case Code.INT32:
        this.#integer(slot, this.int32());
        return;
      case Code.LZF:
        return this.#packed(slot);
      default:
        this.fail('a string is kept in an unknown way');
    }
  }

  #integer(slot: StringSlot, value: number): void {
    slot.bytes = slot.reserve(DECIMAL_MAX_BYTES);
    slot.offset = 0;
    slot.length = writeDecimal(slot.bytes, 0, value);
  }

  #packed(slot: StringSlot): void {
    const packedLength = this.length();
    const length = this.length();
    if (length > STRING_MAX_BYTES || length > packedLength * LZF_RATIO_MAX) this.fail('a packed string is too long');
    this.need(packedLength);
    const to = slot.reserve(length);
    if (!unpackLzf(this.bytes.u8, this.at, packedLength, to.u8, 0, length)) this.fail('a packed string is damaged');
    this.at += packedLength;
    slot.bytes = to;
    slot.offset = 0;
    slot.length = length;
  }

  skipString(): void {
    const first = this.byte();
    if (first === Code.LZF) {
      const packedLength = this.length();
      this.length();
      this.skip(packedLength);
    } else if (first >= Code.INT8) {
      if (first > Code.INT32) this.fail('a string is kept in an unknown way');
      this.skip(1 << (first - Code.INT8));
    } else {
      this.skip(this.#lengthFrom(first));
    }
  }
}
