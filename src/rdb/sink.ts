/**
 * What takes the values that are read: RESTORE gathers them, loading a file stores them at once.
 *
 * For each value `begin` first, then `text` once (strings) or the other calls once for each element. Byte ranges are valid during the call.
 * A sink throws RdbError for what it finds wrong: members that come twice.
 */
import type { Bytes } from '../layout/bytes.js';
import type { ItemType } from '../layout/item.js';

export interface ValueSink {
  /** `count`: how many elements it will be, -1 = not known. */
  begin(type: ItemType, count: number): void;
  text(bytes: Bytes, offset: number, length: number): void;
  /** Of a list or a set. */
  element(bytes: Bytes, offset: number, length: number): void;
  /** Of a sorted set; never NaN. */
  scored(score: number, bytes: Bytes, offset: number, length: number): void;
  /** Of a hash; `expiryMs` 0 = none. */
  pair(
    bytes: Bytes,
    offset: number,
    length: number,
    value: Bytes,
    valueOffset: number,
    valueLength: number,
    expiryMs: number,
  ): void;
}
