/**
 * Inserting into and removing from a tree: leaves that grow, split, shrink and merge, and the elements' own chunks.
 *
 * `planInsert` takes all memory that an insertion at the position needs, `applyInsert` then cannot fail; so several trees change in one
 * step. Invariant: no leaf of a tree is empty; a leaf's dead bytes go when it is copied into another chunk.
 */
import { Order, Root } from '../../layout/collection.js';
import { locationOffset, Page } from '../../layout/location.js';
import { ElementCode, Leaf, Node } from '../../layout/node.js';
import { copyBytes } from '../../native/copy.js';
import { InnerWriter } from './inner-writer.js';
import { roomyBody } from './nodes.js';

export const LEAF_BODY_MAX = Node.LEAF_MAX_BYTES - Node.HEADER_BYTES;
export const LEAF_BODY_MIN = Node.LEAF_MIN_BYTES - Node.HEADER_BYTES;
/** A leaf with less than this looks for a sibling to merge with, if both together fill no more than the other. */
const MERGE_BELOW = LEAF_BODY_MAX >>> 2;
const MERGED_MAX = (LEAF_BODY_MAX >>> 2) * 3;

/** Bytes that an element takes at most, its slot included. */
const ELEMENT_MAX = ElementCode.INLINE_MAX_BYTES + 32;

const enum Plan {
  /** Into the leaf as it is. */
  IN_PLACE = 0,
  /** The tree's first leaf. */
  PLANT = 1,
  /** Into a larger copy of the leaf. */
  ENLARGE = 2,
  /** Two leaves in place of one. */
  SPLIT = 3,
  /** A leaf of its own behind the last, before the first. */
  APPEND = 4,
  PREPEND = 5,
}

export class TreeWriter extends InnerWriter {
  #plan = Plan.IN_PLACE;
  #bytes = 0;
  #splitAt = 0;
  #hasBlob = false;

  // ---- inserting

  /** Takes the memory for inserting the new element before the position. False = there is none, and nothing has changed. */
  protected planInsert(): boolean {
    this.stepBack();
    const bytes = this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs);
    this.#bytes = bytes;
    const own = this.isBlobSized(this.newKeyLength, this.newValueLength);
    this.#hasBlob = own;
    if (this.#reservePlan(bytes) && (!own || this.nodes.reserve(this.newKeyLength + this.newValueLength, true))) {
      return true;
    }
    this.nodes.release();
    return false;
  }

  /** Gives back what planInsert took. */
  protected dropPlan(): void {
    this.nodes.release();
  }

  #reservePlan(bytes: number): boolean {
    const wanted = bytes + Leaf.SLOT_BYTES;
    if (this.levels === 0) {
      this.#plan = Plan.PLANT;
      return this.nodes.reserve(roomyBody(Math.max(LEAF_BODY_MIN, Leaf.HEADER_BYTES + wanted)), true);
    }
    if (this.gap >= wanted) {
      this.#plan = Plan.IN_PLACE;
      return true;
    }
    const needed = this.liveBytes + wanted;
    if (needed <= LEAF_BODY_MAX) {
      this.#plan = Plan.ENLARGE;
      return this.nodes.reserve(roomyBody(needed + (needed >>> 2)), true);
    }
    return this.#reserveSplit(bytes);
  }

  #reserveSplit(bytes: number): boolean {
    const count = this.leafCount;
    // A sequence: the leaf stays full, the next one begins larger than others, at an end of a list as large as it will be.
    const begins = this.order === Order.POSITION ? LEAF_BODY_MAX : LEAF_BODY_MAX >>> 2;
    const alone = Math.max(begins, Leaf.HEADER_BYTES + Leaf.SLOT_BYTES + bytes);
    if (this.slot === count && this.#isLastLeaf()) {
      this.#plan = Plan.APPEND;
      if (!this.nodes.reserve(roomyBody(alone), true)) return false;
    } else if (this.slot === 0 && this.#isFirstLeaf()) {
      this.#plan = Plan.PREPEND;
      if (!this.nodes.reserve(roomyBody(alone), true)) return false;
    } else {
      this.#plan = Plan.SPLIT;
      const half = this.liveBytes >>> 1;
      let left = Leaf.HEADER_BYTES;
      let splitAt = 0;
      while (left < half && splitAt < count - 1)
        left += Leaf.SLOT_BYTES + this.elementBytes(this.elementOffset(splitAt++));
      this.#splitAt = splitAt;
      const right = this.liveBytes - left + Leaf.HEADER_BYTES;
      const intoLeft = this.slot <= splitAt;
      const leftNeeds = left + (intoLeft ? bytes + Leaf.SLOT_BYTES : 0);
      const rightNeeds = right + (intoLeft ? 0 : bytes + Leaf.SLOT_BYTES);
      if (!this.nodes.reserve(roomyBody(leftNeeds + (leftNeeds >>> 2)), true)) return false;
      if (!this.nodes.reserve(roomyBody(rightNeeds + (rightNeeds >>> 2)), true)) return false;
    }
    return this.reserveAncestors(this.levels - 1);
  }

  #isLastLeaf(): boolean {
    for (let depth = 0; depth < this.levels - 1; depth++) {
      if (this.pathSlots[depth] !== this.childCount(depth) - 1) return false;
    }
    return true;
  }

  #isFirstLeaf(): boolean {
    for (let depth = 0; depth < this.levels - 1; depth++) if (this.pathSlots[depth] !== 0) return false;
    return true;
  }

  /** Inserts the new element before the position, and stays on it. */
  protected applyInsert(): void {
    const bytes = this.#bytes;
    const plan = this.#plan;
    if (plan === Plan.PLANT) this.#plant();
    else if (plan === Plan.ENLARGE) this.#copyLeaf(0);
    const rank = plan >= Plan.SPLIT ? this.position : -1;
    this.addToCounts(1);
    if (plan === Plan.SPLIT) this.#split();
    else if (plan === Plan.APPEND) this.#growBehind();
    else if (plan === Plan.PREPEND) this.#growBefore();
    // In a split the chunks above are taken first, in the order of the reservation; the element's own is the last.
    else this.#insertPlanned(bytes);
    if (rank >= 0) this.moveToRank(rank);
  }

  /** Writes the new element into the open leaf, with its own chunk where it needs one. */
  #insertPlanned(bytes: number): void {
    this.newBlobPage = 0;
    if (this.#hasBlob) this.#writeBlob();
    this.insertHere(bytes);
    this.newBlobPage = 0;
  }

  /** As insertPlanned, at the end of a leaf that the running step has made. */
  protected appendPlanned(): void {
    this.newBlobPage = 0;
    if (this.isBlobSized(this.newKeyLength, this.newValueLength)) this.#writeBlob();
    this.appendHere(this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs));
    this.newBlobPage = 0;
  }

  #writeBlob(): void {
    const { nodes } = this;
    const at = nodes.makeBlob(this.isSide);
    const blob = this.arenas[nodes.page >>> Page.ARENA_SHIFT];
    this.countChunk(nodes.page);
    copyBytes(blob, at, this.newKey, this.newKeyOffset, this.newKeyLength);
    if (this.valued) {
      copyBytes(blob, at + this.newKeyLength, this.newValue, this.newValueOffset, this.newValueLength);
    }
    this.newBlobPage = nodes.page;
    this.newBlobUnit = nodes.unit;
    this.setParent(nodes.page, nodes.unit, this.leafPage, this.leafUnit);
    const word = (this.base >>> 2) + Leaf.DEAD_WORD;
    const flags = this.leaf.i32[word];
    if ((flags & Leaf.BLOBS_FLAG) === 0) this.setWord(this.leafArena, word, flags | Leaf.BLOBS_FLAG);
  }

  #plant(): void {
    this.nodes.makeLeaf(this.isSide, 0, 0, this.ownerHash);
    const { page, unit } = this.nodes;
    this.countChunk(page);
    this.setTop(page, unit, 1);
    this.openNodeLeaf(page, unit);
    this.slot = 0;
  }

  /** Gives the leaf a chunk of another size, `drop` elements from the position on left out; the position stays. */
  #copyLeaf(drop: number): void {
    const { leafPage, leafUnit, slot } = this;
    const isTop = this.levels === 1;
    const depth = this.levels - 1;
    const parentPage = isTop ? 0 : this.pathPages[depth - 1];
    const parentUnit = isTop ? 0 : this.pathUnits[depth - 1];
    const base = this.nodes.makeLeaf(this.isSide, parentPage, parentUnit, isTop ? this.ownerHash : 0);
    const { page, unit } = this.nodes;
    this.countChunk(page);
    const to = this.arenas[page >>> Page.ARENA_SHIFT];
    const count = this.leafCount;
    if (drop === 0) {
      this.copyElements(to, base, 0, count);
    } else {
      this.copyElements(to, base, 0, slot);
      this.copyElements(to, base, slot + drop, count);
    }
    this.replaceNode(depth, page, unit);
    this.retire(leafPage, leafUnit);
    this.openNodeLeaf(page, unit);
    this.slot = slot;
    this.adoptBlobs();
  }

  /** The open leaf becomes the parent of its elements' own chunks. */
  protected adoptBlobs(): void {
    if ((this.leaf.i32[(this.base >>> 2) + Leaf.DEAD_WORD] & Leaf.BLOBS_FLAG) === 0) return;
    const { view, u8 } = this.leaf;
    const count = this.leafCount;
    for (let slot = 0; slot < count; slot++) {
      let at = this.elementOffset(slot) + this.prefixBytes;
      if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
      if (u8[at] !== ElementCode.BLOB) continue;
      this.setParent(view.getUint32(at + 1, true), view.getUint16(at + 5, true), this.leafPage, this.leafUnit);
    }
  }

  #split(): void {
    const { slot, leafPage, leafUnit, nodes } = this;
    const splitAt = this.#splitAt;
    const count = this.leafCount;
    const depth = this.levels - 1;
    const isTop = depth === 0;
    const intoLeft = slot <= splitAt;
    const parentPage = isTop ? 0 : this.pathPages[depth - 1];
    const parentUnit = isTop ? 0 : this.pathUnits[depth - 1];
    const leftBase = nodes.makeLeaf(this.isSide, parentPage, parentUnit, isTop ? this.ownerHash : 0);
    const { page: leftPage, unit: leftUnit } = nodes;
    this.countChunk(leftPage);
    const rightBase = nodes.makeLeaf(this.isSide, parentPage, parentUnit, 0);
    const { page: rightPage, unit: rightUnit } = nodes;
    this.countChunk(rightPage);
    this.copyElements(this.arenas[leftPage >>> Page.ARENA_SHIFT], leftBase, 0, splitAt);
    this.copyElements(this.arenas[rightPage >>> Page.ARENA_SHIFT], rightBase, splitAt, count);
    this.replaceNode(depth, leftPage, leftUnit);
    this.retire(leafPage, leafUnit);
    const rightCount = count - splitAt + (intoLeft ? 0 : 1);
    if (depth > 0) this.setElements(depth - 1, this.pathSlots[depth - 1], splitAt + (intoLeft ? 1 : 0));
    // The separator comes from the element that will be the first: the new one is never before it.
    this.separatorOfFirst(rightPage, rightUnit);
    const child = depth > 0 ? this.pathSlots[depth - 1] + 1 : 1;
    this.insertChild(depth - 1, child, rightPage, rightUnit, rightCount, this.separatorHigh, this.separatorLow);
    this.openNodeLeaf(leftPage, leftUnit);
    this.adoptBlobs();
    if (!intoLeft || this.#hasBlobsIn(rightPage, rightUnit)) {
      this.openNodeLeaf(rightPage, rightUnit);
      this.adoptBlobs();
    }
    if (intoLeft) this.openNodeLeaf(leftPage, leftUnit);
    this.slot = intoLeft ? slot : slot - splitAt;
    this.#insertPlanned(this.#bytes);
  }

  #hasBlobsIn(page: number, unit: number): boolean {
    const word = ((locationOffset(page, unit) + Node.HEADER_BYTES) >>> 2) + Leaf.DEAD_WORD;
    return (this.arenas[page >>> Page.ARENA_SHIFT].i32[word] & Leaf.BLOBS_FLAG) !== 0;
  }

  #growBehind(): void {
    const depth = this.levels - 1;
    this.nodes.makeLeaf(this.isSide, 0, 0, 0);
    const { page, unit } = this.nodes;
    this.countChunk(page);
    if (depth > 0) this.setElements(depth - 1, this.pathSlots[depth - 1], this.leafCount);
    const child = depth > 0 ? this.pathSlots[depth - 1] + 1 : 1;
    this.#separatorOfNew();
    this.insertChild(depth - 1, child, page, unit, 1, this.separatorHigh, this.separatorLow);
    this.openNodeLeaf(page, unit);
    this.slot = 0;
    this.#insertPlanned(this.#bytes);
  }

  #growBefore(): void {
    const depth = this.levels - 1;
    this.nodes.makeLeaf(this.isSide, 0, 0, 0);
    const { page, unit } = this.nodes;
    this.countChunk(page);
    if (depth > 0) {
      this.setElements(depth - 1, 0, this.leafCount);
      // Nobody has asked for the first child's separator so far; it may be behind elements that came later.
      this.separatorOfFirst(this.leafPage, this.leafUnit);
      const arena = this.pathPages[depth - 1] >>> Page.ARENA_SHIFT;
      this.setEntrySeparator(arena, this.entryWord(depth - 1, 0));
    }
    this.insertChild(depth - 1, 0, page, unit, 1, 0, 0);
    this.openNodeLeaf(page, unit);
    this.slot = 0;
    this.#insertPlanned(this.#bytes);
  }

  /** The separator of the element that is about to be written: of one in a scratch leaf it would be the same. */
  #separatorOfNew(): void {
    this.separatorOfParts(this.newHash, this.newScore, this.newKey, this.newKeyOffset, this.newKeyLength);
  }

  // ---- removing

  /** Removes the element at the position; the one behind it is there then. The last one takes all nodes with it. */
  protected removeFromTree(): void {
    this.hasSteppedOver = false;
    this.load();
    if (this.blobPage !== 0) this.retire(this.blobPage, this.blobUnit);
    const left = this.rootItem.i32[this.rootWord + Root.COUNT_WORD] - 1;
    const mayMerge = this.liveBytes < MERGE_BELOW + ELEMENT_MAX && this.levels > 1 && !this.#isListEnd();
    const rank = this.leafCount === 1 || mayMerge ? this.position : 0;
    this.addToCounts(-1);
    if (left === 0) {
      this.#uproot();
      return;
    }
    this.removeHere();
    if (this.leafCount === 0) {
      this.retire(this.leafPage, this.leafUnit);
      this.removeChild(this.levels - 2, this.pathSlots[this.levels - 2]);
      this.moveToRank(rank);
      return;
    }
    const live = this.liveBytes;
    if (live < MERGE_BELOW && mayMerge && this.#mergeLeaf(live)) {
      this.moveToRank(rank);
      return;
    }
    if (this.#isRoomy(live) && !this.#isListEnd()) this.#shrinkLeaf(live);
    if (this.slot === this.leafCount) this.nextLeaf();
  }

  /** True when the removal of an element of so many bytes would change nothing but slots of the open leaf, and counts. */
  protected canLose(bytes: number): boolean {
    const live = this.liveBytes - bytes - Leaf.SLOT_BYTES;
    return live >= MERGE_BELOW && this.leafCount > 1 && !this.#isRoomy(live);
  }

  /** True when a leaf of so many live bytes is to be copied into a smaller chunk. */
  #isRoomy(live: number): boolean {
    return live < this.capacity >>> 1 && this.capacity > LEAF_BODY_MIN;
  }

  /** True in a leaf at an end of a list: it is taken away to its last element, or grows again. */
  #isListEnd(): boolean {
    return this.order === Order.POSITION && this.levels > 1 && (this.#isLastLeaf() || this.#isFirstLeaf());
  }

  #uproot(): void {
    for (let depth = 0; depth < this.levels - 1; depth++) this.retire(this.pathPages[depth], this.pathUnits[depth]);
    this.retire(this.leafPage, this.leafUnit);
    this.setTop(0, 0, 0);
    this.slot = 0;
  }

  #shrinkLeaf(live: number): void {
    const body = roomyBody(Math.max(LEAF_BODY_MIN, live + (live >>> 2)));
    // Not at any price: a removal finds its memory, or leaves the leaf as it is.
    if (body < this.capacity && this.nodes.reserve(body, false)) this.#copyLeaf(0);
  }

  /** Merges the open leaf with a sibling of the same parent that has room for both; false when there is none. */
  #mergeLeaf(live: number): boolean {
    const depth = this.levels - 2;
    const child = this.pathSlots[depth];
    const children = this.childCount(depth);
    const { leafPage, leafUnit } = this;
    let with_ = -1;
    if (child + 1 < children && this.#liveOf(depth, child + 1) + live <= MERGED_MAX) with_ = child + 1;
    else if (child > 0 && this.#liveOf(depth, child - 1) + live <= MERGED_MAX) with_ = child - 1;
    this.openNodeLeaf(leafPage, leafUnit);
    if (with_ < 0) return false;
    const needed = this.#liveOf(depth, with_) + live;
    this.openNodeLeaf(leafPage, leafUnit);
    if (!this.nodes.reserve(roomyBody(needed + (needed >>> 3)), false)) return false;
    const base = this.nodes.makeLeaf(this.isSide, this.pathPages[depth], this.pathUnits[depth], 0);
    const { page, unit } = this.nodes;
    this.countChunk(page);
    const to = this.arenas[page >>> Page.ARENA_SHIFT];
    const left = Math.min(child, with_);
    let elements = 0;
    for (let from = left; from <= left + 1; from++) {
      this.#openChild(depth, from);
      elements += this.leafCount;
      this.copyElements(to, base, 0, this.leafCount);
      this.retire(this.leafPage, this.leafUnit);
    }
    this.pathSlots[depth] = left;
    this.replaceNode(depth + 1, page, unit);
    this.setElements(depth, left, elements);
    this.openNodeLeaf(page, unit);
    this.adoptBlobs();
    this.removeChild(depth, left + 1);
    return true;
  }

  #openChild(depth: number, child: number): void {
    const { i32 } = this.arenas[this.pathPages[depth] >>> Page.ARENA_SHIFT];
    const entry = this.entryWord(depth, child);
    this.openNodeLeaf(i32[entry], i32[entry + 1]);
  }

  #liveOf(depth: number, child: number): number {
    this.#openChild(depth, child);
    return this.liveBytes;
  }

  // ---- replacing

  /**
   * Puts the new element in place of the one at the position, which stands at the same place of the order. False = no memory, and
   * nothing has changed.
   */
  protected replaceInTree(): boolean {
    this.load();
    const { blobPage, blobUnit } = this;
    const own = this.isBlobSized(this.newKeyLength, this.newValueLength);
    const bytes = this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs);
    this.#bytes = bytes;
    this.#hasBlob = own;
    if (blobPage === 0 && !own && this.fitsOver(bytes)) {
      this.overwriteHere(bytes);
      return true;
    }
    if (this.gap >= bytes) {
      if (own && !this.nodes.reserve(this.newKeyLength + this.newValueLength, true)) return false;
      this.newBlobPage = 0;
      if (own) this.#writeBlob();
      this.replaceHere(bytes);
      this.newBlobPage = 0;
      if (blobPage !== 0) this.retire(blobPage, blobUnit);
      return true;
    }
    return this.#replaceInCopy(bytes);
  }

  /** The leaf has no room for the new element: takes the memory first, then the old one out and the new one in. */
  #replaceInCopy(bytes: number): boolean {
    const old = this.elementBytes(this.elementOffset(this.slot));
    const needed = this.liveBytes - old + bytes;
    const own = this.#hasBlob;
    const { blobPage, blobUnit } = this;
    if (needed <= LEAF_BODY_MAX) {
      const reserved =
        this.nodes.reserve(roomyBody(needed + (needed >>> 3)), true) &&
        (!own || this.nodes.reserve(this.newKeyLength + this.newValueLength, true));
      if (!reserved) {
        this.nodes.release();
        return false;
      }
      this.#copyLeaf(1);
      this.#insertPlanned(bytes);
      if (blobPage !== 0) this.retire(blobPage, blobUnit);
      return true;
    }
    // Rare, and only for long elements: inserted beside the old one, which then goes.
    if (!this.planInsert()) return false;
    this.applyInsert();
    const rank = this.position;
    this.moveToRank(rank + 1);
    this.removeFromTree();
    this.moveToRank(rank);
    return true;
  }
}
