/**
 * Listpacks: how Redis 7 keeps small collections, and the nodes of large lists and streams.
 *
 *     | bytes, 4 | entries, 2 (65535 = count them) | entry ... | ff |        entry: | code | data | length of code and data |
 *
 *     0xxxxxxx integer 0..127             110xxxxx x         integer of 13 bits      f1 f2 f3 f4   16, 24, 32, 64 bits
 *     10xxxxxx string up to 63 bytes      1110xxxx x         string up to 4095       f0            string, 4 bytes of length
 *
 * The length behind an entry takes 1 to 5 bytes of 7 bits, the lowest last; all but the first have bit 7 set. Invariant of the reader:
 * each entry is checked whole before it is given out, the end when there are no more.
 *
 * Example, "a" and 5: 0c 00 00 00 02 00 | 81 61 02 | 05 01 | ff
 */
import { Bytes } from '../../layout/bytes.js';
import { copyBytes } from '../../native/copy.js';
import { decimal, readDecimal, writeDecimal, writeDecimal64 } from '../decimal.js';
import { RdbError } from '../format.js';
import type { StringSlot } from '../reader.js';

const HEADER_BYTES = 6;
const END = 0xff;
const COUNT_UNKNOWN = 0xffff;

const enum Entry {
  STRING_6_BITS = 0x80,
  INTEGER_13_BITS = 0xc0,
  STRING_12_BITS = 0xe0,
  STRING_32_BITS = 0xf0,
  INTEGER_16_BITS = 0xf1,
  INTEGER_24_BITS = 0xf2,
  INTEGER_32_BITS = 0xf3,
  INTEGER_64_BITS = 0xf4,
}

function damaged(): never {
  throw new RdbError('a listpack is damaged');
}

export class ListpackReader {
  /** Of the last integer: its halves. */
  high = 0;
  low = 0;
  /** The last entry was an integer. */
  isInteger = false;

  #bytes: Bytes = Bytes.allocate(0);
  #at = 0;
  #end = 0;
  #count = 0;
  #declared = 0;

  /** The whole blob in the slot must be one listpack. */
  open({ bytes, offset, length }: StringSlot): void {
    if (length < HEADER_BYTES + 1 || bytes.view.getUint32(offset, true) !== length) damaged();
    if (bytes.u8[offset + length - 1] !== END) damaged();
    this.#bytes = bytes;
    this.#at = offset + HEADER_BYTES;
    this.#end = offset + length - 1;
    this.#count = 0;
    this.#declared = bytes.view.getUint16(offset + 4, true);
  }

  /** The next entry as a string; false at the end. */
  next(slot: StringSlot): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    if (at >= this.#end) {
      if (this.#declared !== COUNT_UNKNOWN && this.#declared !== this.#count) damaged();
      return false;
    }
    const { u8, view } = bytes;
    const left = this.#end - at;
    const code = u8[at];
    let size = 1;
    this.isInteger = true;
    if (code < Entry.STRING_6_BITS) {
      this.#integer(slot, 0, code);
    } else if (code < Entry.INTEGER_13_BITS) {
      size = this.#string(slot, at + 1, code & 0x3f, 1, left);
    } else if (code < Entry.STRING_12_BITS) {
      if (left < 2) damaged();
      const value = (((code & 0x1f) << 8) | u8[at + 1]) << 19;
      this.#integer(slot, value >> 31, value >> 19);
      size = 2;
    } else if (code < Entry.STRING_32_BITS) {
      if (left < 2) damaged();
      size = this.#string(slot, at + 2, ((code & 0xf) << 8) | u8[at + 1], 2, left);
    } else if (code === Entry.STRING_32_BITS) {
      if (left < 5) damaged();
      size = this.#string(slot, at + 5, view.getUint32(at + 1, true), 5, left);
    } else {
      size = this.#wideInteger(slot, code, at, left);
    }
    this.#at = at + size + this.#checkLength(at + size, size, left - size);
    this.#count++;
    return true;
  }

  #string(slot: StringSlot, at: number, length: number, codeBytes: number, left: number): number {
    if (length > left - codeBytes) damaged();
    this.isInteger = false;
    slot.bytes = this.#bytes;
    slot.offset = at;
    slot.length = length;
    return codeBytes + length;
  }

  #wideInteger(slot: StringSlot, code: number, at: number, left: number): number {
    const { u8, view } = this.#bytes;
    const dataBytes = wideBytes(code);
    if (dataBytes === 0 || left < 1 + dataBytes) damaged();
    if (code === Entry.INTEGER_64_BITS) {
      this.#integer(slot, view.getInt32(at + 5, true), view.getInt32(at + 1, true));
    } else {
      let value = view.getInt16(at + 1, true);
      if (code === Entry.INTEGER_24_BITS) value = ((u8[at + 3] << 24) >> 8) | (value & 0xffff);
      else if (code === Entry.INTEGER_32_BITS) value = view.getInt32(at + 1, true);
      this.#integer(slot, value >> 31, value);
    }
    return 1 + dataBytes;
  }

  #integer(slot: StringSlot, high: number, low: number): void {
    this.high = high;
    this.low = low;
    slot.bytes = slot.scratch;
    slot.offset = 0;
    slot.length = high === low >> 31 ? writeDecimal(slot.scratch, 0, low) : writeDecimal64(slot.scratch, 0, high, low);
  }

  /** The length behind an entry of `size` bytes must say just that. Returns the bytes that it takes. */
  #checkLength(at: number, size: number, left: number): number {
    const count = lengthBytes(size);
    if (count > left) damaged();
    const { u8 } = this.#bytes;
    let rest = size;
    for (let i = count - 1; i > 0; i--) {
      if (u8[at + i] !== ((rest % 128) | 128)) damaged();
      rest = Math.floor(rest / 128);
    }
    if (u8[at] !== rest) damaged();
    return count;
  }
}

/** Bytes behind the code of an integer, 0 = there is no such code. */
function wideBytes(code: number): number {
  if (code <= Entry.INTEGER_32_BITS) return code - Entry.INTEGER_16_BITS + 2;
  return code === Entry.INTEGER_64_BITS ? 8 : 0;
}

/** Bytes of the length behind an entry. */
function lengthBytes(size: number): number {
  if (size <= 127) return 1;
  if (size < 16_383) return 2;
  if (size < 2_097_151) return 3;
  return size < 268_435_455 ? 4 : 5;
}

/** Bytes that an entry for this string takes, as listpacks keep it. */
export function entryBytes(bytes: Bytes, offset: number, length: number): number {
  let size: number;
  if (readDecimal(bytes, offset, length)) size = integerBytes(decimal.high, decimal.low);
  else size = length + (length < 64 ? 1 : length < 4096 ? 2 : 5);
  return size + lengthBytes(size);
}

/** The same for an integer, given by its halves. */
export function integerEntryBytes(high: number, low: number): number {
  const size = integerBytes(high, low);
  return size + lengthBytes(size);
}

function integerBytes(high: number, low: number): number {
  if (high !== low >> 31) return 9;
  if (low >= 0 && low <= 127) return 1;
  if (low >= -4096 && low <= 4095) return 2;
  if (low >= -0x8000 && low <= 0x7fff) return 3;
  return low >= -0x80_0000 && low <= 0x7f_ffff ? 4 : 5;
}

/** Makes a listpack of the elements that are added, byte for byte as Redis does. */
export class ListpackWriter {
  bytes = Bytes.allocate(1024);
  /** Bytes so far, header included; `finish` adds the end. */
  length = HEADER_BYTES;
  count = 0;

  begin(): void {
    this.length = HEADER_BYTES;
    this.count = 0;
  }

  add(from: Bytes, offset: number, length: number): void {
    if (readDecimal(from, offset, length)) {
      this.addInteger(decimal.high, decimal.low);
      return;
    }
    this.#reserve(length + 10);
    const { u8, view } = this.bytes;
    let at = this.length;
    if (length < 64) {
      u8[at++] = Entry.STRING_6_BITS | length;
    } else if (length < 4096) {
      u8[at++] = Entry.STRING_12_BITS | (length >> 8);
      u8[at++] = length & 0xff;
    } else {
      u8[at] = Entry.STRING_32_BITS;
      view.setUint32(at + 1, length, true);
      at += 5;
    }
    copyBytes(this.bytes, at, from, offset, length);
    this.#end(at + length);
  }

  addInteger(high: number, low: number): void {
    this.#reserve(16);
    const { u8, view } = this.bytes;
    let at = this.length;
    switch (integerBytes(high, low)) {
      case 1:
        u8[at++] = low;
        break;
      case 2:
        u8[at++] = Entry.INTEGER_13_BITS | ((low >> 8) & 0x1f);
        u8[at++] = low & 0xff;
        break;
      case 3:
        u8[at] = Entry.INTEGER_16_BITS;
        view.setInt16(at + 1, low, true);
        at += 3;
        break;
      case 4:
        view.setInt32(at, (low << 8) | Entry.INTEGER_24_BITS, true);
        at += 4;
        break;
      case 5:
        u8[at] = Entry.INTEGER_32_BITS;
        view.setInt32(at + 1, low, true);
        at += 5;
        break;
      default:
        u8[at] = Entry.INTEGER_64_BITS;
        view.setInt32(at + 1, low, true);
        view.setInt32(at + 5, high, true);
        at += 9;
    }
    this.#end(at);
  }

  /** Writes the length of the entry that ends at `at` behind it. */
  #end(at: number): void {
    const { u8 } = this.bytes;
    const size = at - this.length;
    const count = lengthBytes(size);
    let rest = size;
    for (let i = count - 1; i > 0; i--) {
      u8[at + i] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    u8[at] = rest;
    this.length = at + count;
    this.count++;
  }

  finish(): void {
    this.#reserve(1);
    const { u8, view } = this.bytes;
    u8[this.length++] = END;
    view.setUint32(0, this.length, true);
    view.setUint16(4, Math.min(this.count, COUNT_UNKNOWN), true);
  }

  #reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const larger = Bytes.allocate(Math.max(this.bytes.length * 2, this.length + more));
    copyBytes(larger, 0, this.bytes, 0, this.length);
    this.bytes = larger;
  }
}
