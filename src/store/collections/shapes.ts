/** The kinds of collections, and what opening and changing one can come to. */
import { Order } from '../../layout/collection.js';
import { ItemType } from '../../layout/item.js';
import { ElementCode } from '../../layout/node.js';
import { StreamMeta } from '../../layout/stream.js';

/** What a family's collections look like. */
export interface Shape {
  readonly type: ItemType;
  readonly order: Order;
  /** Elements have values. */
  readonly valued: boolean;
  /** Those of the side tree have. */
  readonly sideValued: boolean;
  /** 32-bit words that the family keeps beside the elements. */
  readonly metaWords: number;
  /** A packed collection becomes a tree beyond so many elements, an element so long, so many bytes. */
  readonly packedEntriesMax: number;
  readonly packedElementMax: number;
  readonly packedBytesMax: number;
  /** The key stays when the last element goes. */
  readonly keepsEmpty: boolean;
}

/** Slots are 16 bits wide; beyond 16 KiB a tree changes faster in any case. */
const PACKED_BYTES_MAX = 16384;
const COMMON = {
  sideValued: false,
  metaWords: 0,
  packedEntriesMax: 128,
  packedElementMax: 64,
  packedBytesMax: PACKED_BYTES_MAX,
  keepsEmpty: false,
} as const;

export const HASHES: Shape = { ...COMMON, type: ItemType.HASH, order: Order.HASH, valued: true, packedEntriesMax: 512 };
export const SETS: Shape = { ...COMMON, type: ItemType.SET, order: Order.HASH, valued: false };
export const SORTED_SETS: Shape = { ...COMMON, type: ItemType.ZSET, order: Order.SCORE, valued: false };
/** Redis's list-max-listpack-size is -2: 8 KiB; slots are moved at each push to the front, so half of that. */
export const LISTS: Shape = {
  ...COMMON,
  type: ItemType.LIST,
  order: Order.POSITION,
  valued: false,
  packedEntriesMax: 4096,
  packedElementMax: ElementCode.INLINE_MAX_BYTES,
  packedBytesMax: 4096,
};

/** Elements by id; words for what a stream knows of itself; the side tree, which has values, for its groups (layout/stream). */
export const STREAMS: Shape = {
  ...COMMON,
  type: ItemType.STREAM,
  order: Order.BYTES,
  valued: true,
  sideValued: true,
  metaWords: StreamMeta.WORDS,
  packedElementMax: ElementCode.INLINE_MAX_BYTES,
  packedBytesMax: 4096,
  keepsEmpty: true,
};

export const enum Opened {
  ABSENT = 0,
  OPEN = 1,
  /** The key holds something else. */
  WRONG_TYPE = 2,
}

export const enum Change {
  DONE = 0,
  /** No memory under the policy; nothing has changed. */
  NO_MEMORY = 1,
}
