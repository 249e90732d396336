/**
 * One group of the effect log as bytes: header, then parts (see layout/effects).
 *
 * Owns the buffer. Invariant: after `seal` its check word covers all that stands behind it, and the number of the file that it is for.
 */

import type { Bytes } from '../../layout/bytes.js';
import { Group, Segment } from '../../layout/effects.js';
import { addon } from '../../native/addon.js';
import { RecordBuffer } from '../../store/effects/record-buffer.js';

export class GroupBuffer {
  readonly buffer = new RecordBuffer();

  clear(): void {
    this.buffer.clear();
    for (let i = 0; i < Group.HEADER_BYTES / 4; i++) this.buffer.int32(0);
  }

  get length(): number {
    return this.buffer.length;
  }

  get isEmpty(): boolean {
    return this.buffer.length <= Group.HEADER_BYTES;
  }

  /** Begins a part of so many bytes of pieces, which the caller appends to `buffer`. */
  part(seat: number, bytes: number): void {
    this.buffer.int32(seat);
    this.buffer.int32(bytes);
    this.buffer.int64(0);
  }

  /** `cut`: see layout/effects. `safe`: bytes of the file in front of it that are persistent for sure. */
  seal(magic: number, cut: number, safe: number, salt: number): void {
    const { view, arena } = this.buffer.bytes;
    view.setUint32(Group.MAGIC_WORD * 4, magic, true);
    view.setInt32(Group.BYTES_WORD * 4, this.buffer.length - Group.HEADER_BYTES, true);
    view.setInt32(Group.CUT_WORD * 4, cut, true);
    view.setInt32(Group.SAFE_WORD * 4, safe, true);
    view.setInt32(Group.CHECK_WORD * 4, 0, true);
    view.setInt32(Group.CHECK_WORD * 4, addon.crc32c(arena, 0, this.buffer.length, salt), true);
  }
}

/** Writes the header of file `number` to the beginning of `bytes`. */
export function writeHeader(bytes: Bytes, number: number): void {
  const { view, u8 } = bytes;
  u8.fill(0, 0, Segment.HEADER_BYTES);
  view.setInt32(Segment.MAGIC_LOW_WORD * 4, Segment.MAGIC_LOW, true);
  view.setInt32(Segment.MAGIC_HIGH_WORD * 4, Segment.MAGIC_HIGH, true);
  view.setInt32(Segment.VERSION_WORD * 4, Segment.VERSION, true);
  view.setInt32(Segment.NUMBER_WORD * 4, number, true);
  view.setInt32(Segment.CHECK_WORD * 4, addon.crc32c(bytes.arena, 0, Segment.HEADER_BYTES, number), true);
}
