/**
 * Intsets: small sets of integers.
 *
 *     | bytes of an integer: 2, 4 or 8; 4 | integers, 4 | integer ... |      all little-endian, in ascending order
 *
 * Invariant of the reader: what is not strictly ascending is refused. Example, 1 and 3: 02 00 00 00 02 00 00 00 01 00 03 00
 */
import { Bytes } from '../../layout/bytes.js';
import { decimal, readDecimal, writeDecimal, writeDecimal64 } from '../decimal.js';
import { RdbError } from '../format.js';
import type { StringSlot } from '../reader.js';

const HEADER_BYTES = 8;

function damaged(): never {
  throw new RdbError('an intset is damaged');
}

export class IntsetReader {
  #bytes: Bytes = Bytes.allocate(0);
  #width = 2;
  #at = 0;
  #end = 0;
  #high = 0;
  #low = 0;
  #isFirst = true;

  open({ bytes, offset, length }: StringSlot): void {
    if (length < HEADER_BYTES) damaged();
    const width = bytes.view.getUint32(offset, true);
    if (width !== 2 && width !== 4 && width !== 8) damaged();
    if (bytes.view.getUint32(offset + 4, true) * width !== length - HEADER_BYTES) damaged();
    this.#bytes = bytes;
    this.#width = width;
    this.#at = offset + HEADER_BYTES;
    this.#end = offset + length;
    this.#isFirst = true;
  }

  next(slot: StringSlot): boolean {
    const at = this.#at;
    if (at >= this.#end) return false;
    const { view } = this.#bytes;
    const low = this.#width === 2 ? view.getInt16(at, true) : view.getInt32(at, true);
    const high = this.#width === 8 ? view.getInt32(at + 4, true) : low >> 31;
    const isGreater = high > this.#high || (high === this.#high && low >>> 0 > this.#low >>> 0);
    if (!this.#isFirst && !isGreater) damaged();
    this.#isFirst = false;
    this.#high = high;
    this.#low = low;
    this.#at = at + this.#width;
    slot.bytes = slot.scratch;
    slot.offset = 0;
    slot.length = high === low >> 31 ? writeDecimal(slot.scratch, 0, low) : writeDecimal64(slot.scratch, 0, high, low);
    return true;
  }
}

/** Makes an intset of integers that are added in ascending order, in the narrowest form that holds them. */
export class IntsetWriter {
  bytes = Bytes.allocate(1024);
  length = 0;

  #halves = new Int32Array(128);
  #count = 0;
  #width = 2;

  begin(): void {
    this.#count = 0;
    this.#width = 2;
  }

  add(from: Bytes, offset: number, length: number): void {
    if (!readDecimal(from, offset, length)) throw new Error('a member of a set of integers is none');
    const { high, low } = decimal;
    if (this.#count * 2 >= this.#halves.length) {
      const larger = new Int32Array(this.#halves.length * 2);
      larger.set(this.#halves);
      this.#halves = larger;
    }
    this.#halves[this.#count * 2] = high;
    this.#halves[this.#count * 2 + 1] = low;
    this.#count++;
    if (high !== low >> 31) this.#width = 8;
    else if (this.#width === 2 && low !== (low << 16) >> 16) this.#width = 4;
  }

  finish(): void {
    const width = this.#width;
    this.length = HEADER_BYTES + this.#count * width;
    if (this.length > this.bytes.length) this.bytes = Bytes.allocate(this.length);
    const { view } = this.bytes;
    view.setUint32(0, width, true);
    view.setUint32(4, this.#count, true);
    for (let i = 0, at = HEADER_BYTES; i < this.#count; i++, at += width) {
      const low = this.#halves[i * 2 + 1];
      if (width === 2) view.setInt16(at, low, true);
      else view.setInt32(at, low, true);
      if (width === 8) view.setInt32(at + 4, this.#halves[i * 2], true);
    }
  }
}
