/**
 * Nodes of collection trees: slab chunks with an item's header, so that whoever walks the slabs knows them.
 *
 *     header   hash (of a top node: its key's) | body bytes | shape: type NODE, level in the encoding bits, side tree in bit 0
 *              | parent's page (0 = it is the top) | parent's unit | 0
 *
 * A leaf's body (a packed collection's value has the same) is a slotted page. Slots, sorted, grow from the front, elements from the
 * back; what an element occupied is not used again before the leaf is copied into a fresh chunk, so that an insertion journals
 * no more than the words it moves.
 *
 *     word 0   elements | heap start << 16          (offsets count from the body's first byte)
 *     word 1   dead bytes in the heap | 1 << 16 when elements may have chunks of their own
 *     then     16-bit slots: offsets of elements
 *
 *     element  prefix (order HASH in a tree: 32-bit hash; SCORE: the score, a double) | [EXPIRES, 6 bytes of ms]
 *              | key length | value length, where elements have values | key | value
 *     or       prefix | [EXPIRES ...] | BLOB | page (4) | unit (2) | key length (4) | value length (4)
 *
 * Lengths below 0xf0 take one byte; longer ones two: 0xf0 + high bits, low bits. Larger elements lie in a chunk of their own, a BLOB,
 * whose header names the leaf as its parent.
 *
 * An inner node's body: word 0 the number of children, then five words for each: page | unit | elements below | separator, high and
 * low word. The separator is a lower bound of the first eight bytes of order below the child.
 */
export const enum Leaf {
  HEAD_WORD = 0,
  DEAD_WORD = 1,
  HEADER_BYTES = 8,
  HEAP_SHIFT = 16,
  COUNT_MASK = 0xffff,
  SLOT_BYTES = 2,
  DEAD_MASK = 0xffff,
  BLOBS_FLAG = 0x10000,
}

export const enum Inner {
  COUNT_WORD = 0,
  FIRST_WORD = 1,
  ENTRY_WORDS = 5,
  PAGE_WORD = 0,
  UNIT_WORD = 1,
  ELEMENTS_WORD = 2,
  HIGH_WORD = 3,
  LOW_WORD = 4,
}

/** Words of a node's header that differ from an item's. */
export const enum Node {
  PARENT_PAGE_WORD = 3,
  PARENT_UNIT_WORD = 4,
  HEADER_BYTES = 24,
  HEADER_WORDS = 6,
  /** Chunk of the largest leaf: about a hundred elements of 30 bytes. */
  LEAF_MAX_BYTES = 4096,
  LEAF_MIN_BYTES = 256,
  /** Chunks of inner nodes: 16 children at first, 100 at most. */
  INNER_MIN_CHILDREN = 16,
  INNER_MAX_CHILDREN = 100,
  LEVELS_MAX = 8,
}

export const enum ElementCode {
  /** Lengths from here on take two bytes. */
  LONG = 0xf0,
  EXPIRES = 0xfc,
  BLOB = 0xff,
  /** Largest element that lies in a leaf. */
  INLINE_MAX_BYTES = 1000,
  EXPIRY_BYTES = 6,
  /** BLOB and what follows. */
  STUB_BYTES = 15,
}

/** Bytes of a length code. */
export function lengthCodeBytes(length: number): number {
  return length < ElementCode.LONG ? 1 : 2;
}
