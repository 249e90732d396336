/**
 * Ziplists: small collections in files of Redis before 7. Read only.
 *
 *     | bytes, 4 | offset of the last entry, 4 | entries, 2 (65535 = count them) | entry ... | ff |
 *     entry: | length of the entry before: 1 byte, or fe and 4 | code | data |
 *
 *     00xxxxxx string up to 63     01xxxxxx x string of 14 bits     10...... 4 bytes of length, big-endian     integers: c0 16 bits,
 *     d0 32, e0 64, f0 24, fe 8, f1..fd the values 0..12
 *
 * Invariant: each entry is checked whole before it is given out, the end when there are no more.
 */
import { Bytes } from '../../layout/bytes.js';
import { writeDecimal, writeDecimal64 } from '../decimal.js';
import { RdbError } from '../format.js';
import type { StringSlot } from '../reader.js';

const HEADER_BYTES = 10;
const END = 0xff;
const COUNT_UNKNOWN = 0xffff;
const WIDE_LENGTH = 0xfe;

const enum Entry {
  STRING_14_BITS = 0x40,
  STRING_32_BITS = 0x80,
  INTEGER_16_BITS = 0xc0,
  INTEGER_32_BITS = 0xd0,
  INTEGER_64_BITS = 0xe0,
  INTEGER_24_BITS = 0xf0,
  INTEGER_8_BITS = 0xfe,
}

function damaged(): never {
  throw new RdbError('a ziplist is damaged');
}

export class ZiplistReader {
  #bytes: Bytes = Bytes.allocate(0);
  #start = 0;
  #at = 0;
  #end = 0;
  #last = 0;
  #before = 0;
  #count = 0;

  /** The whole blob in the slot must be one ziplist. */
  open({ bytes, offset, length }: StringSlot): void {
    if (length < HEADER_BYTES + 1 || bytes.view.getUint32(offset, true) !== length) damaged();
    if (bytes.u8[offset + length - 1] !== END) damaged();
    this.#bytes = bytes;
    this.#start = offset;
    this.#at = offset + HEADER_BYTES;
    this.#end = offset + length - 1;
    this.#last = this.#at;
    this.#before = 0;
    this.#count = 0;
  }

  next(slot: StringSlot): boolean {
    const { u8, view } = this.#bytes;
    let at = this.#at;
    if (at >= this.#end) {
      const declared = view.getUint16(this.#start + 8, true);
      if (declared !== COUNT_UNKNOWN && declared !== this.#count) damaged();
      if (view.getUint32(this.#start + 4, true) !== this.#last - this.#start) damaged();
      return false;
    }
    this.#last = at;
    let before = u8[at++];
    if (before === WIDE_LENGTH) {
      if (at + 4 > this.#end) damaged();
      before = view.getUint32(at, true);
      at += 4;
    }
    if (before !== this.#before || at >= this.#end) damaged();
    const next = u8[at] < Entry.INTEGER_16_BITS ? this.#string(slot, at) : this.#integer(slot, at);
    this.#before = next - this.#last;
    this.#at = next;
    this.#count++;
    return true;
  }

  #string(slot: StringSlot, at: number): number {
    const { u8, view } = this.#bytes;
    const code = u8[at];
    let from = at + 1;
    let length = code & 0x3f;
    if (code >= Entry.STRING_32_BITS) {
      if (at + 5 > this.#end) damaged();
      length = view.getUint32(at + 1, false);
      from = at + 5;
    } else if (code >= Entry.STRING_14_BITS) {
      if (at + 2 > this.#end) damaged();
      length = (length << 8) | u8[at + 1];
      from = at + 2;
    }
    if (length > this.#end - from) damaged();
    slot.bytes = this.#bytes;
    slot.offset = from;
    slot.length = length;
    return from + length;
  }

  #integer(slot: StringSlot, at: number): number {
    const { u8, view } = this.#bytes;
    const code = u8[at];
    const size = integerBytes(code);
    const data = at + 1;
    if (size < 0 || data + size > this.#end) damaged();
    slot.bytes = slot.scratch;
    slot.offset = 0;
    if (size === 8) {
      slot.length = writeDecimal64(slot.scratch, 0, view.getInt32(data + 4, true), view.getInt32(data, true));
      return data + size;
    }
    let value = (code & 0xf) - 1;
    if (size === 1) value = view.getInt8(data);
    else if (size === 2) value = view.getInt16(data, true);
    else if (size === 3) value = ((u8[data + 2] << 24) >> 8) | (u8[data + 1] << 8) | u8[data];
    else if (size === 4) value = view.getInt32(data, true);
    slot.length = writeDecimal(slot.scratch, 0, value);
    return data + size;
  }
}

/** Bytes behind the code; -1 = there is no such code. */
function integerBytes(code: number): number {
  switch (code) {
    case Entry.INTEGER_8_BITS:
      return 1;
    case Entry.INTEGER_16_BITS:
      return 2;
    case Entry.INTEGER_24_BITS:
      return 3;
    case Entry.INTEGER_32_BITS:
      return 4;
    case Entry.INTEGER_64_BITS:
      return 8;
    default:
      return code > Entry.INTEGER_24_BITS && code < Entry.INTEGER_8_BITS ? 0 : -1;
  }
}
