/**
 * Zipmaps: small hashes in files of Redis before 2.6. Read only.
 *
 *     | fields (254 and more = count them) | length | field | length | free | value | free bytes | ... | ff |
 *
 * Lengths take one byte, or fe and 4. Invariant: each entry is checked whole before it is given out.
 */
import { Bytes } from '../../layout/bytes.js';
import { RdbError } from '../format.js';
import type { StringSlot } from '../reader.js';

const END = 0xff;
const WIDE_LENGTH = 0xfe;

function damaged(): never {
  throw new RdbError('a zipmap is damaged');
}

export class ZipmapReader {
  #bytes: Bytes = Bytes.allocate(0);
  #at = 0;
  #end = 0;
  #declared = 0;
  #count = 0;
  #isValue = false;

  open({ bytes, offset, length }: StringSlot): void {
    if (length < 2 || bytes.u8[offset + length - 1] !== END) damaged();
    this.#bytes = bytes;
    this.#declared = bytes.u8[offset];
    this.#at = offset + 1;
    this.#end = offset + length - 1;
    this.#count = 0;
    this.#isValue = false;
  }

  /** Fields and values in turn. */
  next(slot: StringSlot): boolean {
    const { u8, view } = this.#bytes;
    let at = this.#at;
    if (at >= this.#end) {
      if (this.#isValue || (this.#declared < WIDE_LENGTH && this.#declared !== this.#count)) damaged();
      return false;
    }
    let length = u8[at++];
    if (length === END) damaged();
    if (length === WIDE_LENGTH) {
      if (at + 4 > this.#end) damaged();
      length = view.getUint32(at, true);
      at += 4;
    }
    let free = 0;
    if (this.#isValue) {
      if (at >= this.#end) damaged();
      free = u8[at++];
      this.#count++;
    }
    if (length + free > this.#end - at) damaged();
    slot.bytes = this.#bytes;
    slot.offset = at;
    slot.length = length;
    this.#at = at + length + free;
    this.#isValue = !this.#isValue;
    return true;
  }
}
