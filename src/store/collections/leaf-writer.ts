/**
 * Changes in the open leaf: inserting, removing and replacing the element at the position, copying the leaf into a fresh chunk.
 *
 * Invariant: each word that held something before is journaled before it changes; the gap between slots and heap holds nothing, and what
 * was an element is never written over in the same leaf. So an undo finds every element where its old slot says.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import { ElementCode, Leaf } from '../../layout/node.js';
import type { Journal } from '../../memory/journal.js';
import type { Memory } from '../../memory/memory.js';
import { addCopy, copyBytes, runCopies, WORD_COPY_BYTES } from '../../native/copy.js';
import { LeafReader } from './leaf-reader.js';

/** Elements that one native call copies. */
const COPIES_AT_ONCE = 1024;
const SCORE_BYTES = 8;
const SLOT_BITS = 16;
const SLOT_MASK = 0xffff;

export class LeafWriter extends LeafReader {
  protected readonly journal: Journal;

  // ---- the element to be written
  protected newKey: Bytes;
  protected newKeyOffset = 0;
  protected newKeyLength = 0;
  protected newValue: Bytes;
  protected newValueOffset = 0;
  protected newValueLength = 0;
  protected newScore = 0;
  protected newExpiryMs = 0;
  protected newHash = 0;
  protected newBlobPage = 0;
  protected newBlobUnit = 0;

  constructor(memory: Memory, journal: Journal) {
    super(memory);
    this.journal = journal;
    this.newKey = this.leaf;
    this.newValue = this.leaf;
  }

  /** Makes the open leaf an empty one. It belongs to nobody yet. */
  protected clearLeaf(): void {
    const word = this.base >>> 2;
    this.leaf.i32[word] = this.capacity << Leaf.HEAP_SHIFT;
    this.leaf.i32[word + Leaf.DEAD_WORD] = 0;
    this.slot = 0;
  }

  /** Inserts the new element before the position, where there is room for it, and stays on it. */
  protected insertHere(bytes: number): void {
    const { leaf, base, slot, journal, leafArena } = this;
    const { i32 } = leaf;
    const word = base >>> 2;
    const count = i32[word] & Leaf.COUNT_MASK;
    const heap = (i32[word] >>> Leaf.HEAP_SHIFT) - bytes;
    journal.save(leafArena, i32, word);
    const from = base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES;
    const end = base + Leaf.HEADER_BYTES + count * Leaf.SLOT_BYTES;
    if (from !== end) {
      journal.saveRange(leafArena, i32, from >>> 2, ((end + Leaf.SLOT_BYTES + 3) >>> 2) - (from >>> 2));
    }
    openSlot(i32, from, end, heap);
    this.#writeNew(base + heap);
    i32[word] = (count + 1) | (heap << Leaf.HEAP_SHIFT);
  }

  /** Appends the new element to a leaf that the running step has made: an undo takes the whole leaf away, so nothing is journaled. */
  protected appendHere(bytes: number): void {
    const { leaf, base } = this;
    const { i32 } = leaf;
    const word = base >>> 2;
    const count = i32[word] & Leaf.COUNT_MASK;
    const heap = (i32[word] >>> Leaf.HEAP_SHIFT) - bytes;
    this.#writeNew(base + heap);
    leaf.view.setUint16(base + Leaf.HEADER_BYTES + count * Leaf.SLOT_BYTES, heap, true);
    i32[word] = (count + 1) | (heap << Leaf.HEAP_SHIFT);
  }

  /** Removes the element at the position; the one behind it is there then. */
  protected removeHere(): void {
    const { leaf, base, slot, journal, leafArena } = this;
    const { i32 } = leaf;
    const word = base >>> 2;
    const count = i32[word] & Leaf.COUNT_MASK;
    const bytes = this.elementBytes(this.elementOffset(slot));
    const from = base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES;
    const end = base + Leaf.HEADER_BYTES + count * Leaf.SLOT_BYTES;
    journal.saveRange(leafArena, i32, word, 2);
    journal.saveRange(leafArena, i32, from >>> 2, ((end + 3) >>> 2) - (from >>> 2));
    closeSlot(i32, from, end);
    i32[word + Leaf.DEAD_WORD] += bytes;
    i32[word] -= 1;
  }

  /** Lets the position's slot point to the new element, where there is room for it. */
  protected replaceHere(bytes: number): void {
    const { leaf, base, slot, journal, leafArena } = this;
    const { i32 } = leaf;
    const word = base >>> 2;
    const at = base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES;
    const old = this.elementBytes(this.elementOffset(slot));
    const heap = (i32[word] >>> Leaf.HEAP_SHIFT) - bytes;
    journal.saveRange(leafArena, i32, word, 2);
    journal.save(leafArena, i32, at >>> 2);
    this.#writeNew(base + heap);
    i32[word + Leaf.DEAD_WORD] += old;
    i32[word] = (i32[word] & Leaf.COUNT_MASK) | (heap << Leaf.HEAP_SHIFT);
    leaf.view.setUint16(at, heap, true);
  }

  /** True when the new element may be written over the one at the position: key and value begin where they did. */
  protected fitsOver(bytes: number): boolean {
    const at = this.elementOffset(this.slot);
    const expires = this.leaf.u8[at + this.prefixBytes] === ElementCode.EXPIRES;
    return expires === (this.newExpiryMs !== 0) && this.elementBytes(at) === bytes;
  }

  /** Writes over the element at the position. */
  protected overwriteHere(bytes: number): void {
    const at = this.elementOffset(this.slot);
    this.journal.saveRange(this.leafArena, this.leaf.i32, at >>> 2, ((at + bytes + 3) >>> 2) - (at >>> 2));
    this.#writeNew(at);
  }

  /** Writes another value of the same length over that of the loaded element, which lies in the leaf. */
  protected overwriteValueHere(from: Bytes, offset: number): void {
    const { leaf, leafArena, valueOffset, valueLength, journal } = this;
    const word = valueOffset >>> 2;
    const wordCount = ((valueOffset + valueLength + 3) >>> 2) - word;
    if (valueLength > WORD_COPY_BYTES) {
      journal.saveAndCopy(leafArena, word, wordCount, valueOffset, from, offset, valueLength);
    } else {
      journal.saveRange(leafArena, leaf.i32, word, wordCount);
      copyBytes(leaf, valueOffset, from, offset, valueLength);
    }
  }

  /** Gives the element at the position another score and moves its slot before slot `to`, counted with the element still in its old place. */
  protected rescoreHere(score: number, to: number): void {
    const { leaf, slot, journal, leafArena } = this;
    const slots = this.base + Leaf.HEADER_BYTES;
    const at = this.elementOffset(slot);
    const offset = leaf.view.getUint16(slots + slot * Leaf.SLOT_BYTES, true);
    const target = to > slot ? to - 1 : to;
    journal.saveRange(leafArena, leaf.i32, at >>> 2, ((at + SCORE_BYTES + 3) >>> 2) - (at >>> 2));
    if (target !== slot) {
      const from = slots + Math.min(slot, target) * Leaf.SLOT_BYTES;
      const end = slots + (Math.max(slot, target) + 1) * Leaf.SLOT_BYTES;
      journal.saveRange(leafArena, leaf.i32, from >>> 2, ((end + 3) >>> 2) - (from >>> 2));
      if (target > slot) {
        closeSlot(leaf.i32, from, end);
        leaf.view.setUint16(end - Leaf.SLOT_BYTES, offset, true);
      } else {
        openSlot(leaf.i32, from, end - Leaf.SLOT_BYTES, offset);
      }
      this.slot = target;
    }
    leaf.view.setFloat64(at, score, true);
  }

  #writeNew(offset: number): void {
    const { leaf } = this;
    const { u8, view } = leaf;
    let at = offset;
    if (this.prefixBytes !== 0) {
      if (this.order === Order.SCORE) view.setFloat64(at, this.newScore, true);
      else view.setUint32(at, this.newHash, true);
      at += this.prefixBytes;
    }
    if (this.newExpiryMs !== 0) {
      const high = Math.floor(this.newExpiryMs / 0x1_0000_0000);
      u8[at] = ElementCode.EXPIRES;
      view.setUint32(at + 1, this.newExpiryMs - high * 0x1_0000_0000, true);
      view.setUint16(at + 5, high, true);
      at += 1 + ElementCode.EXPIRY_BYTES;
    }
    if (this.newBlobPage !== 0) {
      u8[at] = ElementCode.BLOB;
      view.setUint32(at + 1, this.newBlobPage, true);
      view.setUint16(at + 5, this.newBlobUnit, true);
      view.setUint32(at + 7, this.newKeyLength, true);
      view.setUint32(at + 11, this.newValueLength, true);
      return;
    }
    at = writeLength(u8, at, this.newKeyLength);
    if (this.valued) at = writeLength(u8, at, this.newValueLength);
    copyBytes(leaf, at, this.newKey, this.newKeyOffset, this.newKeyLength);
    if (this.valued) {
      copyBytes(leaf, at + this.newKeyLength, this.newValue, this.newValueOffset, this.newValueLength);
    }
  }

  /** Copies slots [first, end) of the open leaf behind what `to`, a body that nobody sees yet, holds; without dead bytes. */
  protected copyElements(to: Bytes, toBase: number, first: number, end: number): void {
    const { leaf, base } = this;
    const word = toBase >>> 2;
    let count = to.i32[word] & Leaf.COUNT_MASK;
    let heap = to.i32[word] >>> Leaf.HEAP_SHIFT;
    const deadWord = leaf.i32[(base >>> 2) + Leaf.DEAD_WORD];
    to.i32[word + Leaf.DEAD_WORD] |= deadWord & Leaf.BLOBS_FLAG;
    if (first === 0 && end === this.leafCount && (deadWord & Leaf.DEAD_MASK) === 0) {
      // Whole and without holes: the heap in one piece.
      const start = this.heapStart;
      const bytes = this.capacity - start;
      const shift = heap - this.capacity;
      heap -= bytes;
      copyBytes(to, toBase + heap, leaf, base + start, bytes);
      for (let slot = 0; slot < end; slot++, count++) {
        const offset = leaf.view.getUint16(base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES, true) + shift;
        to.view.setUint16(toBase + Leaf.HEADER_BYTES + count * Leaf.SLOT_BYTES, offset, true);
      }
    } else {
      for (let slot = first; slot < end; slot++, count++) {
        const from = this.elementOffset(slot);
        const bytes = this.elementBytes(from);
        heap -= bytes;
        addCopy(to.arena, toBase + heap, leaf.arena, from, bytes);
        if (slot % COPIES_AT_ONCE === COPIES_AT_ONCE - 1) runCopies();
        to.view.setUint16(toBase + Leaf.HEADER_BYTES + count * Leaf.SLOT_BYTES, heap, true);
      }
      runCopies();
    }
    to.i32[word] = count | (heap << Leaf.HEAP_SHIFT);
  }
}

function writeLength(u8: Uint8Array, at: number, length: number): number {
  if (length < ElementCode.LONG) {
    u8[at] = length;
    return at + 1;
  }
  u8[at] = ElementCode.LONG + ((length - ElementCode.LONG) >>> 8);
  u8[at + 1] = (length - ElementCode.LONG) & 0xff;
  return at + 2;
}

/**
 * Moves the slots of byte offsets [at, end) up by one and writes `value` into the place. Two slots a word, and one word after the other:
 * half of what a loop over slots takes, and up to 150 slots less than a native call.
 */
function openSlot(i32: Int32Array, at: number, end: number, value: number): void {
  const first = at >>> 2;
  let word = end >>> 2;
  if (word > first) {
    // The half behind the last slot may hold an element.
    if ((end & 2) === 0) i32[word] = (i32[word] & ~SLOT_MASK) | (i32[word - 1] >>> SLOT_BITS);
    else i32[word] = (i32[word] << SLOT_BITS) | (i32[word - 1] >>> SLOT_BITS);
    for (word--; word > first; word--) i32[word] = (i32[word] << SLOT_BITS) | (i32[word - 1] >>> SLOT_BITS);
  }
  const old = i32[first];
  if ((at & 2) !== 0) i32[first] = (old & SLOT_MASK) | (value << SLOT_BITS);
  else if (at === end) i32[first] = (old & ~SLOT_MASK) | value;
  else i32[first] = (old << SLOT_BITS) | value;
}

/** Moves the slots of byte offsets [at + 2, end) down by one, over the one at `at`. */
function closeSlot(i32: Int32Array, at: number, end: number): void {
  let word = at >>> 2;
  const last = (end - Leaf.SLOT_BYTES) >>> 2;
  if (word < last && (at & 2) !== 0) {
    i32[word] = (i32[word] & SLOT_MASK) | (i32[word + 1] << SLOT_BITS);
    word++;
  }
  for (; word < last; word++) i32[word] = (i32[word] >>> SLOT_BITS) | (i32[word + 1] << SLOT_BITS);
  // Two slots in the last word, of which the first goes.
  if ((end & 2) === 0 && word << 2 >= at) i32[word] = (i32[word] & ~SLOT_MASK) | (i32[word] >>> SLOT_BITS);
}
