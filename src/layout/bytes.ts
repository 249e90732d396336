/**
 * A mapped range of bytes and the views over it. Every byte range in the program is (Bytes, offset, length).
 *
 * One object exists per range and thread (the pump's input, its output, each arena of the store), so call sites see one
 * hidden class. Invariant: `arena` is the addon's number of exactly this range, or NO_ARENA for ordinary JavaScript
 * memory, which the addon cannot address.
 */

import { PLAIN, type Views, writers } from './flavour.js';

/** `Bytes.arena` of memory that belongs to the JavaScript engine and not to a mapping. */
export const NO_ARENA = -1;

export class Bytes {
  readonly u8: Uint8Array;
  readonly view: DataView;
  /** Whole words; a tail of fewer than 4 bytes is only reachable through `u8` and `view`. */
  readonly i32: Int32Array;
  readonly arena: number;

  constructor(buffer: ArrayBufferLike, arena: number, views: Views = PLAIN.views(buffer, arena)) {
    this.u8 = views.u8;
    this.view = views.view;
    this.i32 = views.i32;
    this.arena = arena;
  }

  /** An arena of a pool: written to in the thread's flavour. */
  static ofPool(buffer: ArrayBufferLike, arena: number): Bytes {
    return new Bytes(buffer, arena, writers().views(buffer, arena));
  }

  /** Fresh JavaScript memory: transaction queues, tests, replies to embedded calls. */
  static allocate(length: number): Bytes {
    return new Bytes(new ArrayBuffer(length), NO_ARENA);
  }

  /** A copy of text as UTF-8 in memory of its own. For slow paths and tests. */
  static from(text: string | Uint8Array): Bytes {
    const source = typeof text === 'string' ? new TextEncoder().encode(text) : text;
    const bytes = Bytes.allocate(source.length);
    bytes.u8.set(source);
    return bytes;
  }

  /** Counters in an arena of a pool. */
  doubles(byteOffset: number, count: number): Float64Array {
    return writers().doubles(this.u8.buffer, this.arena, byteOffset, count);
  }

  get length(): number {
    return this.u8.length;
  }
}

/** True when the two ranges hold the same bytes. Keys are short: a word loop beats a native call up to about 60 bytes. */
export function bytesEqual(a: Bytes, aOffset: number, b: Bytes, bOffset: number, length: number): boolean {
  const aView = a.view;
  const bView = b.view;
  let i = 0;
  for (const words = length - 3; i < words; i += 4) {
    if (aView.getInt32(aOffset + i, true) !== bView.getInt32(bOffset + i, true)) return false;
  }
  const aU8 = a.u8;
  const bU8 = b.u8;
  for (; i < length; i++) {
    if (aU8[aOffset + i] !== bU8[bOffset + i]) return false;
  }
  return true;
}
