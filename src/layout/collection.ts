/**
 * A collection's value: hash, list, set, sorted set or stream. It begins at the first word boundary behind the key.
 *
 *     word 0        form (bits 0-3) | order (4-6) | valued (7) | marks (8-15, the family's) | meta words (16-23)
 *     words 1..m    meta words of the family
 *     packed        a leaf (layout/node) with all elements, to the end of the value
 *     tree          main tree: page | unit, levels << 16 | elements; side tree: the same; 16-byte units of all chunks
 *
 * The main tree holds the elements in the collection's order. The side tree, ordered by bytes, serves the family: of a sorted set it
 * maps a member's hash to its scores, of a hash it lists fields by expiry, of a stream it keeps groups.
 *
 * Example, a packed hash of one field f = v, capacity 16 bytes behind the leaf's header:
 *     80 00 00 00 | a0: 03 00 00 00 ... : form 0, order 0, valued; leaf: one element, heap from byte 20 on
 */
export const enum Root {
  /** Word 0. */
  FORM_MASK = 0xf,
  ORDER_SHIFT = 4,
  ORDER_MASK = 7,
  VALUED_SHIFT = 7,
  MARKS_SHIFT = 8,
  MARKS_MASK = 0xff,
  META_SHIFT = 16,
  META_MASK = 0xff,

  // Words of a tree, behind the meta words.
  MAIN_WORD = 0,
  SIDE_WORD = 3,
  UNITS_WORD = 6,
  TREE_WORDS = 7,

  // Words of one tree within.
  PAGE_WORD = 0,
  /** unit | levels << 16; one level is a leaf alone. */
  TOP_WORD = 1,
  COUNT_WORD = 2,
  LEVELS_SHIFT = 16,
}

export const enum Form {
  PACKED = 0,
  TREE = 1,
  /** What the item led to belongs to another item by now (RENAME, a move of the item): nothing hangs on it any more. */
  MOVED = 15,
}

/** What the elements are sorted by. A packed collection keeps the order of insertion in place of HASH. */
export const enum Order {
  /** Where the family puts them: lists. */
  POSITION = 0,
  /** Hash of the key, then its bytes: hashes and sets. */
  HASH = 1,
  /** Score, then the key's bytes: sorted sets. */
  SCORE = 2,
  /** The key's bytes: streams, and all side trees. */
  BYTES = 3,
}

/** Byte offset of a collection's word 0 within its arena. */
export function rootOffset(valueOffset: number): number {
  return (valueOffset + 3) & ~3;
}
