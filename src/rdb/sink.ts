/**
 * What takes the values that are read: RESTORE gathers them, loading a file stores them at once.
 *
 * For each value `begin` first, then `text` once (strings) or the other calls once for each element; of a stream all entries, `state`, and each
 * group with its consumers, each of them with what is pending for it. Byte ranges are valid during the call.
 * A sink throws RdbError for what it finds wrong: members that come twice.
 */
import type { Bytes } from '../layout/bytes.js';
import type { ItemType } from '../layout/item.js';
import type { StreamId } from '../store/streams/stream-id.js';

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

  /** Of a stream, in ascending order: `pairs` names and values, whose (offset, length) pairs stand in `args`. */
  entry(id: StreamId, bytes: Bytes, args: Int32Array, pairs: number): void;
  /** What a stream knows of itself. */
  state(lastId: StreamId, maxDeletedId: StreamId, entriesAdded: number): void;
  /** `entriesRead`: NO_COUNTER = unknown, NaN = to be reckoned from the stream. */
  group(bytes: Bytes, offset: number, length: number, lastId: StreamId, entriesRead: number): void;
  /** `activeMs` -1 = it was never given anything. */
  consumer(bytes: Bytes, offset: number, length: number, seenMs: number, activeMs: number): void;
  pending(id: StreamId, deliveredMs: number, deliveries: number): void;
}
