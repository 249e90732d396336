/**
 * Writing RDB: numbers, lengths and strings into a buffer that grows, or is emptied into a file.
 *
 * Owns: the buffer and its length. Strings are written as Redis does: short integers as numbers, longer ones than 20 bytes packed if
 * that saves something.
 */
import { Bytes } from '../layout/bytes.js';
import { copyBytes } from '../native/copy.js';
import { decimal, readDecimal } from './decimal.js';
import { Code } from './format.js';
import { packLzf } from './lzf.js';

const BUFFER_BYTES = 64 * 1024;
/** Larger ones are not kept. */
const KEPT_BYTES_MAX = 4 << 20;
/** Longer strings are no 32-bit integers. */
const INTEGER_MAX_BYTES = 11;
/** Strings up to this length are not packed, and packing must save so many bytes. */
const PLAIN_MAX_BYTES = 20;
const PACKED_SAVES_BYTES = 4;
const LENGTH_MAX_BYTES = 9;
const TWO_32 = 0x1_0000_0000;

export class RdbWriter {
  bytes = Bytes.allocate(BUFFER_BYTES);
  length = 0;
  /** Packs strings: Redis's rdbcompression. */
  compresses = true;

  clear(): void {
    this.length = 0;
    if (this.bytes.length > KEPT_BYTES_MAX) this.bytes = Bytes.allocate(BUFFER_BYTES);
  }

  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const larger = Bytes.allocate(Math.max(this.bytes.length * 2, this.length + more));
    copyBytes(larger, 0, this.bytes, 0, this.length);
    this.bytes = larger;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes.u8[this.length++] = value;
  }

  int32(value: number): void {
    this.reserve(4);
    this.bytes.view.setInt32(this.length, value, true);
    this.length += 4;
  }

  /** A safe integer in eight bytes. */
  int64(value: number): void {
    this.int32(value | 0);
    this.int32(Math.floor(value / TWO_32) | 0);
  }

  double(value: number): void {
    this.reserve(8);
    this.bytes.view.setFloat64(this.length, value, true);
    this.length += 8;
  }

  raw(from: Bytes, offset: number, length: number): void {
    this.reserve(length);
    copyBytes(this.bytes, this.length, from, offset, length);
    this.length += length;
  }

  lengthOf(value: number): void {
    this.reserve(LENGTH_MAX_BYTES);
    const { u8, view } = this.bytes;
    const at = this.length;
    if (value < 0x40) {
      u8[at] = value;
      this.length += 1;
    } else if (value < 0x4000) {
      u8[at] = Code.LENGTH_14_BITS | (value >> 8);
      u8[at + 1] = value & 0xff;
      this.length += 2;
    } else if (value < TWO_32) {
      u8[at] = Code.LENGTH_32_BITS;
      view.setUint32(at + 1, value, false);
      this.length += 5;
    } else {
      this.#wideLength(Math.floor(value / TWO_32), value | 0);
    }
  }

  /** A 64-bit number, given by its halves, in the form of a length. */
  wide(high: number, low: number): void {
    if (high === 0) return this.lengthOf(low >>> 0);
    this.reserve(LENGTH_MAX_BYTES);
    this.#wideLength(high, low);
  }

  #wideLength(high: number, low: number): void {
    const { u8, view } = this.bytes;
    u8[this.length] = Code.LENGTH_64_BITS;
    view.setInt32(this.length + 1, high | 0, false);
    view.setInt32(this.length + 5, low | 0, false);
    this.length += 9;
  }

  string(from: Bytes, offset: number, length: number): void {
    if (length <= INTEGER_MAX_BYTES && this.#integer(from, offset, length)) return;
    if (this.compresses && length > PLAIN_MAX_BYTES && this.#packed(from, offset, length)) return;
    this.lengthOf(length);
    this.raw(from, offset, length);
  }

  text(text: string): void {
    this.blob(Buffer.from(text));
  }

  blob(content: Uint8Array): void {
    this.string(Bytes.from(content), 0, content.length);
  }

  #integer(from: Bytes, offset: number, length: number): boolean {
    if (!readDecimal(from, offset, length)) return false;
    const { high, low } = decimal;
    if (high !== low >> 31) return false;
    this.reserve(5);
    const { u8, view } = this.bytes;
    const at = this.length;
    if (low === (low << 24) >> 24) {
      u8[at] = Code.INT8;
      u8[at + 1] = low;
      this.length += 2;
    } else if (low === (low << 16) >> 16) {
      u8[at] = Code.INT16;
      view.setInt16(at + 1, low, true);
      this.length += 3;
    } else {
      u8[at] = Code.INT32;
      view.setInt32(at + 1, low, true);
      this.length += 5;
    }
    return true;
  }

  /** Packs behind the room that the two lengths can take, and moves what has come out in front of them. */
  #packed(from: Bytes, offset: number, length: number): boolean {
    const limit = length - PACKED_SAVES_BYTES;
    const lengths = 1 + 2 * LENGTH_MAX_BYTES;
    this.reserve(lengths + length);
    const start = this.length + lengths;
    const packed = packLzf(from.u8, offset, length, this.bytes.u8, start, limit);
    if (packed === 0) return false;
    this.bytes.u8[this.length++] = Code.LZF;
    this.lengthOf(packed);
    this.lengthOf(length);
    this.bytes.u8.copyWithin(this.length, start, start + packed);
    this.length += packed;
    return true;
  }
}
