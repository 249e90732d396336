/**
 * A position in a leaf of a collection, for reading: the element there, searching, comparing.
 *
 * Owns: which leaf is open, the slot, and what `load` has found out about the element. Invariant: a leaf with `count` elements has
 * slots 0..count-1; slot `count` is the position behind them, on which nothing can be loaded. Nothing here allocates.
 */
import { type Bytes, bytesEqual } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import { locationOffset, Page } from '../../layout/location.js';
import { ElementCode, Leaf, lengthCodeBytes, Node } from '../../layout/node.js';
import type { Memory } from '../../memory/memory.js';

/** What `seekScore` looks for among equal scores. */
export const enum Bound {
  /** The element itself, by its bytes. */
  EXACT = 0,
  /** Before all elements of the score. */
  BEFORE = 1,
  /** Behind them. */
  AFTER = -1,
}

/** Fewer elements are found as fast by halving. */
export const GUESS_MIN = 8;
/** Steps from where the place has been guessed; what is further away is found by halving. */
export const WALK_MAX = 8;

export class LeafReader {
  // ---- the element at the position, set by load
  key: Bytes;
  keyOffset = 0;
  keyLength = 0;
  value: Bytes;
  valueOffset = 0;
  valueLength = 0;
  /** Sorted sets. */
  score = 0;
  /** Field expiry in ms since 1970, 0 = none. */
  expiryMs = 0;
  /** Where the element lies when it has a chunk of its own, else page 0. */
  blobPage = 0;
  blobUnit = 0;

  order: Order = Order.POSITION;
  /** Elements have a value behind their key. */
  valued = false;
  slot = 0;

  protected readonly memory: Memory;
  protected readonly arenas: Bytes[];
  protected leaf: Bytes;
  /** Byte offset of the leaf's body, its length, and the number of its arena. */
  protected base = 0;
  protected capacity = 0;
  protected leafArena = 0;
  protected prefixBytes = 0;
  /** Elements of the tree are spread evenly by their hash or score: see searchEvenly. */
  protected isEven = false;

  // ---- what a search looks for
  protected targetBytes: Bytes;
  protected targetOffset = 0;
  protected targetLength = 0;
  protected targetHash = 0;
  protected targetScore = 0;
  /** Hash or score. */
  protected targetNumber = 0;
  protected targetBound: Bound = Bound.EXACT;

  constructor(memory: Memory) {
    this.memory = memory;
    this.arenas = memory.arenas;
    this.leaf = memory.arenas[0];
    this.key = this.leaf;
    this.value = this.leaf;
    this.targetBytes = this.leaf;
  }

  protected openLeafAt(leaf: Bytes, arena: number, base: number, capacity: number): void {
    if (this.leaf !== leaf) this.leaf = leaf;
    this.leafArena = arena;
    this.base = base;
    this.capacity = capacity;
  }

  /** Elements in the leaf. */
  get leafCount(): number {
    return this.leaf.i32[this.base >>> 2] & Leaf.COUNT_MASK;
  }

  protected get heapStart(): number {
    return this.leaf.i32[this.base >>> 2] >>> Leaf.HEAP_SHIFT;
  }

  /** Bytes between the slots and the heap. */
  protected get gap(): number {
    return this.heapStart - Leaf.HEADER_BYTES - this.leafCount * Leaf.SLOT_BYTES;
  }

  /** Bytes that the leaf would need without its dead ones. */
  protected get liveBytes(): number {
    return this.capacity - this.gap - (this.leaf.i32[(this.base >>> 2) + Leaf.DEAD_WORD] & Leaf.DEAD_MASK);
  }

  /** Byte offset of the element in slot `slot`. */
  protected elementOffset(slot: number): number {
    return this.base + this.leaf.view.getUint16(this.base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES, true);
  }

  /** Reads the element at the position into the fields above. */
  load(): void {
    const { leaf } = this;
    const { u8 } = leaf;
    let at = this.elementOffset(this.slot);
    if (this.order === Order.SCORE) this.score = leaf.view.getFloat64(at, true);
    at += this.prefixBytes;
    this.expiryMs = 0;
    if (u8[at] === ElementCode.EXPIRES) {
      this.expiryMs = leaf.view.getUint32(at + 1, true) + leaf.view.getUint16(at + 5, true) * 0x1_0000_0000;
      at += 1 + ElementCode.EXPIRY_BYTES;
    }
    let length = u8[at++];
    if (length === ElementCode.BLOB) return this.#loadBlob(at);
    if (this.blobPage !== 0) this.blobPage = 0;
    if (length >= ElementCode.LONG) length = ElementCode.LONG + ((length - ElementCode.LONG) << 8) + u8[at++];
    this.keyLength = length;
    length = 0;
    if (this.valued) {
      length = u8[at++];
      if (length >= ElementCode.LONG) length = ElementCode.LONG + ((length - ElementCode.LONG) << 8) + u8[at++];
    }
    this.valueLength = length;
    this.keyOffset = at;
    this.valueOffset = at + this.keyLength;
    if (this.key !== leaf) this.key = leaf;
    if (this.value !== leaf) this.value = leaf;
  }

  #loadBlob(at: number): void {
    const { view } = this.leaf;
    this.blobPage = view.getUint32(at, true);
    this.blobUnit = view.getUint16(at + 4, true);
    this.keyLength = view.getUint32(at + 6, true);
    this.valueLength = view.getUint32(at + 10, true);
    this.key = this.arenas[this.blobPage >>> Page.ARENA_SHIFT];
    this.value = this.key;
    this.keyOffset = locationOffset(this.blobPage, this.blobUnit) + Node.HEADER_BYTES;
    this.valueOffset = this.keyOffset + this.keyLength;
  }

  /** Bytes of the element at a byte offset of the leaf. */
  protected elementBytes(offset: number): number {
    const { u8 } = this.leaf;
    let at = offset + this.prefixBytes;
    if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
    let length = u8[at++];
    if (length === ElementCode.BLOB) return at - 1 + ElementCode.STUB_BYTES - offset;
    if (length >= ElementCode.LONG) length = ElementCode.LONG + ((length - ElementCode.LONG) << 8) + u8[at++];
    let bytes = length;
    if (this.valued) {
      length = u8[at++];
      if (length >= ElementCode.LONG) length = ElementCode.LONG + ((length - ElementCode.LONG) << 8) + u8[at++];
      bytes += length;
    }
    return at + bytes - offset;
  }

  /** Bytes that an element takes in a leaf of this collection. */
  protected bytesFor(keyLength: number, valueLength: number, expiryMs: number): number {
    const head = this.prefixBytes + (expiryMs === 0 ? 0 : 1 + ElementCode.EXPIRY_BYTES);
    const value = this.valued ? lengthCodeBytes(valueLength) + valueLength : 0;
    if (this.isBlobSized(keyLength, valueLength)) return head + ElementCode.STUB_BYTES;
    return head + lengthCodeBytes(keyLength) + keyLength + value;
  }

  /** True for elements that get a chunk of their own. */
  protected isBlobSized(keyLength: number, valueLength: number): boolean {
    return keyLength + valueLength > ElementCode.INLINE_MAX_BYTES;
  }

  // ---- searching in the open leaf

  protected aimAt(bytes: Bytes, offset: number, length: number): void {
    if (this.targetBytes !== bytes) this.targetBytes = bytes;
    this.targetOffset = offset;
    this.targetLength = length;
    this.targetBound = Bound.EXACT;
  }

  /** Negative, 0 or positive as the element at a byte offset of `leaf` stands before, at or behind what is looked for. */
  protected compare(leaf: Bytes, offset: number): number {
    if (this.order === Order.HASH) {
      const hash = leaf.view.getInt32(offset, true) >>> 0;
      if (hash !== this.targetHash) return hash < this.targetHash ? -1 : 1;
    } else if (this.order === Order.SCORE) {
      const score = leaf.view.getFloat64(offset, true);
      if (score !== this.targetScore) return score < this.targetScore ? -1 : 1;
      if (this.targetBound !== Bound.EXACT) return this.targetBound;
    }
    return this.#compareKey(leaf, offset + this.prefixBytes);
  }

  #compareKey(leaf: Bytes, start: number): number {
    let at = start;
    let { u8, view } = leaf;
    if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
    let length = u8[at++];
    if (length === ElementCode.BLOB) {
      const page = view.getUint32(at, true);
      length = view.getUint32(at + 6, true);
      at = locationOffset(page, view.getUint16(at + 4, true)) + Node.HEADER_BYTES;
      ({ u8, view } = this.arenas[page >>> Page.ARENA_SHIFT]);
    } else {
      if (length >= ElementCode.LONG) length = ElementCode.LONG + ((length - ElementCode.LONG) << 8) + u8[at++];
      if (this.valued) at += u8[at] >= ElementCode.LONG ? 2 : 1;
    }
    const { targetBytes, targetOffset, targetLength } = this;
    const { view: targetView, u8: target } = targetBytes;
    const common = Math.min(length, targetLength);
    let i = 0;
    for (; i <= common - 4; i += 4) {
      const difference = view.getUint32(at + i, false) - targetView.getUint32(targetOffset + i, false);
      if (difference !== 0) return difference;
    }
    for (; i < common; i++) {
      const difference = u8[at + i] - target[targetOffset + i];
      if (difference !== 0) return difference;
    }
    return length - targetLength;
  }

  /** Positions on the first element that does not stand before what is looked for; true when it is that. */
  protected searchLeaf(): boolean {
    const { leaf } = this;
    let low = 0;
    let high = this.leafCount;
    let isEqual = false;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.compare(leaf, this.elementOffset(middle));
      if (order < 0) {
        low = middle + 1;
      } else {
        high = middle;
        isEqual = order === 0;
      }
    }
    this.slot = low;
    return isEqual;
  }

  /**
   * The same in a leaf whose elements have numbers, from `low` to below `high`, that are spread evenly over so small a part of a tree: hashes, and
   * scores mostly. So the place can be guessed, and guessed better from the number that is found there: three or four elements are looked at
   * where halving looks at seven, each on a cache line of its own.
   */
  protected searchEvenly(low: number, high: number): boolean {
    const count = this.leafCount;
    const density = count / (high - low);
    if (count < GUESS_MIN || !(density > 0)) return this.searchLeaf();
    const wanted = this.targetNumber;
    let at = clamp(((wanted - low) * density) | 0, 0, count - 1);
    let number = this.#numberAt(at);
    const better = clamp(at + (((wanted - number) * density) | 0), 0, count - 1);
    if (better !== at) {
      at = better;
      number = this.#numberAt(at);
    }
    let steps = 0;
    if (number < wanted) {
      while (++at < count) {
        number = this.#numberAt(at);
        if (number >= wanted) break;
        if (++steps === WALK_MAX) return this.searchLeaf();
      }
    } else {
      while (at > 0) {
        const before = this.#numberAt(at - 1);
        if (before < wanted) break;
        number = before;
        at--;
        if (++steps === WALK_MAX) return this.searchLeaf();
      }
    }
    this.slot = at;
    if (at === count || number !== wanted) return false;
    // This one is the first of those with the number, of which there may be several.
    const order = this.compare(this.leaf, this.elementOffset(at));
    return order < 0 ? this.searchLeaf() : order === 0;
  }

  #numberAt(slot: number): number {
    const at = this.elementOffset(slot);
    const { view } = this.leaf;
    if (this.order === Order.HASH) return view.getUint32(at, true);
    // Keys of a side tree stand behind their length.
    return this.order === Order.SCORE ? view.getFloat64(at, true) : view.getUint32(at + 1, false);
  }

  /** The same where elements stand in order of insertion: positions on the key, or behind the last element. */
  protected scanLeaf(): boolean {
    const { leaf, targetLength, targetBytes, targetOffset, prefixBytes } = this;
    const { u8 } = leaf;
    const count = this.leafCount;
    for (let slot = 0; slot < count; slot++) {
      let at = this.elementOffset(slot) + prefixBytes;
      if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
      let length = u8[at++];
      if (length >= ElementCode.LONG) length = ElementCode.LONG + ((length - ElementCode.LONG) << 8) + u8[at++];
      if (length !== targetLength) continue;
      if (this.valued) at += u8[at] >= ElementCode.LONG ? 2 : 1;
      if (!bytesEqual(leaf, at, targetBytes, targetOffset, targetLength)) continue;
      this.slot = slot;
      return true;
    }
    this.slot = count;
    return false;
  }
}

export function clamp(value: number, low: number, high: number): number {
  return value < low ? low : Math.min(value, high);
}
