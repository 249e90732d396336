/**
 * A buffer of mapped memory that grows, for what is written down of a change: native copies reach it. Owns its arena, unless it is a window of
 * memory that others own: whoever opens that has looked that there is room.
 */
import { Bytes } from '../../layout/bytes.js';
import { addon } from '../../native/addon.js';
import { copyBytes } from '../../native/copy.js';

const FIRST_BYTES = 16 * 1024;
/** Larger ones are not kept. */
const KEPT_BYTES_MAX = 4 << 20;
const TWO_32 = 0x1_0000_0000;

export class RecordBuffer {
  bytes: Bytes;
  length = 0;

  constructor(window?: Bytes) {
    this.bytes = window ?? allocate(FIRST_BYTES);
  }

  clear(): void {
    this.length = 0;
    if (this.bytes.length > KEPT_BYTES_MAX) this.#replace(allocate(FIRST_BYTES));
  }

  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const larger = allocate(Math.max(this.bytes.length * 2, this.length + more));
    copyBytes(larger, 0, this.bytes, 0, this.length);
    this.#replace(larger);
  }

  #replace(by: Bytes): void {
    addon.releaseArena(this.bytes.arena);
    this.bytes = by;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes.u8[this.length++] = value;
  }

  int16(value: number): void {
    this.reserve(2);
    this.bytes.view.setUint16(this.length, value, true);
    this.length += 2;
  }

  int32(value: number): void {
    this.reserve(4);
    this.bytes.view.setInt32(this.length, value, true);
    this.length += 4;
  }

  /** A safe integer, not negative, in eight bytes. */
  int64(value: number): void {
    this.int32(value | 0);
    this.int32(Math.floor(value / TWO_32) | 0);
  }

  raw(from: Bytes, offset: number, length: number): void {
    this.reserve(length);
    copyBytes(this.bytes, this.length, from, offset, length);
    this.length += length;
  }
}

function allocate(bytes: number): Bytes {
  const arena = addon.allocateArena(bytes, {});
  return new Bytes(addon.wrapArena(arena), arena);
}
