/**
 * Building trees from elements that come in order: a small one at once, which a packed collection turns into, and large ones leaf by leaf,
 * which costs a tenth of inserting the elements.
 *
 * Invariant: `planBuild` takes all memory; `applyBuild`, which cannot fail, links nothing that anybody sees before its last step.
 * `appendLeaf` is a step of its own, after which the tree is one of fewer elements.
 */

import { Root } from '../../layout/collection.js';
import { Page } from '../../layout/location.js';
import { Inner, Leaf, Node } from '../../layout/node.js';
import { roomyBody } from './nodes.js';
import { TreeCutter } from './tree-cutter.js';
import { LEAF_BODY_MAX, LEAF_BODY_MIN } from './tree-writer.js';

/** Leaves of one build; the largest packed collection of the smallest elements takes a third of it. */
const LEAVES_MAX = 40;
/** Elements with chunks of their own in an appended leaf: a step takes all its chunks beforehand. */
const BLOBS_A_LEAF = 16;
/** What appended leaves are filled to where elements may come in between later: a whole chunk, and room for a third more in the next larger one. */
export const GROWING_FILL = roomyBody((LEAF_BODY_MAX >>> 2) * 3 - 64);

export abstract class TreeBuilder extends TreeCutter {
  readonly #ends = new Int32Array(LEAVES_MAX);
  readonly #sizes = new Int32Array(LEAVES_MAX);
  #leaves = 0;

  /** Sets what is to be written to element `index`. */
  protected abstract loadNew(index: number): void;

  /** Takes the memory for a tree of `count` elements in leaves of up to `fill` bytes. False = there is none. */
  protected planBuild(count: number, fill: number): boolean {
    this.#leaves = 0;
    let bytes = Leaf.HEADER_BYTES;
    for (let i = 0; i < count; i++) {
      this.loadNew(i);
      const element = this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs) + Leaf.SLOT_BYTES;
      if (bytes + element > fill) {
        this.#endLeaf(i, bytes);
        bytes = Leaf.HEADER_BYTES;
      }
      bytes += element;
    }
    if (count > 0) this.#endLeaf(count, bytes);
    for (let leaf = 0; leaf < this.#leaves; leaf++) {
      const wanted = Math.max(LEAF_BODY_MIN, this.#sizes[leaf]);
      if (!this.nodes.reserve(roomyBody(wanted), true)) return false;
    }
    if (this.#leaves < 2) return true;
    const children = Math.max(Node.INNER_MIN_CHILDREN, this.#leaves);
    return this.nodes.reserve(roomyBody((Inner.FIRST_WORD + children * Inner.ENTRY_WORDS) * 4), true);
  }

  #endLeaf(end: number, bytes: number): void {
    this.#ends[this.#leaves] = end;
    this.#sizes[this.#leaves++] = bytes;
  }

  /** Builds what planBuild has planned; the tree's words are open and say that it is empty. */
  protected applyBuild(): void {
    const leaves = this.#leaves;
    if (leaves === 0) return;
    const pages = new Int32Array(leaves);
    const units = new Int32Array(leaves);
    let first = 0;
    for (let leaf = 0; leaf < leaves; leaf++) {
      this.nodes.makeLeaf(this.isSide, 0, 0, this.ownerHash);
      pages[leaf] = this.nodes.page;
      units[leaf] = this.nodes.unit;
      this.countChunk(pages[leaf]);
      this.openNodeLeaf(pages[leaf], units[leaf]);
      for (let i = first; i < this.#ends[leaf]; i++) {
        this.loadNew(i);
        this.slot = i - first;
        this.insertHere(this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs));
      }
      first = this.#ends[leaf];
    }
    this.addToRoot(this.rootWord + Root.COUNT_WORD, first);
    if (leaves === 1) this.setTop(pages[0], units[0], 1);
    else this.#buildTop(pages, units);
  }

  #buildTop(pages: Int32Array, units: Int32Array): void {
    const body = this.nodes.makeInner(1, this.isSide, 0, 0, this.ownerHash);
    const { page, unit } = this.nodes;
    this.countChunk(page);
    const { i32 } = this.arenas[page >>> Page.ARENA_SHIFT];
    for (let leaf = 0; leaf < pages.length; leaf++) {
      const entry = body + Inner.FIRST_WORD + leaf * Inner.ENTRY_WORDS;
      this.separatorOfFirst(pages[leaf], units[leaf]);
      i32[entry + Inner.PAGE_WORD] = pages[leaf];
      i32[entry + Inner.UNIT_WORD] = units[leaf];
      i32[entry + Inner.ELEMENTS_WORD] = this.#ends[leaf] - (leaf === 0 ? 0 : this.#ends[leaf - 1]);
      i32[entry + Inner.HIGH_WORD] = this.separatorHigh | 0;
      i32[entry + Inner.LOW_WORD] = this.separatorLow | 0;
      this.setParent(pages[leaf], units[leaf], page, unit);
    }
    i32[body + Inner.COUNT_WORD] = pages.length;
    this.setTop(page, unit, 2);
  }

  // ---- leaf by leaf

  /**
   * Appends elements `first`.. before `end`, as many as fill a leaf of up to `fill` bytes; they stand behind all that are there, in order. Returns
   * how many, 0 = no memory, and nothing has changed.
   */
  protected appendLeaf(first: number, end: number, fill: number): number {
    if (this.levels > 0) this.moveToEnd();
    const next = this.#reserveLeaf(first, end, fill);
    if (next === first) {
      this.nodes.release();
      return 0;
    }
    const depth = this.levels - 1;
    this.nodes.makeLeaf(this.isSide, 0, 0, depth < 0 ? this.ownerHash : 0);
    const { page, unit } = this.nodes;
    this.countChunk(page);
    if (depth < 0) {
      this.addToRoot(this.rootWord + Root.COUNT_WORD, next - first);
      this.setTop(page, unit, 1);
    } else {
      this.#linkLeaf(depth, page, unit, first, next - first);
    }
    this.openNodeLeaf(page, unit);
    for (let i = first; i < next; i++) {
      this.loadNew(i);
      this.appendPlanned();
    }
    this.moveToEnd();
    return next - first;
  }

  /** Takes the memory for a leaf; returns the element behind its last, `first` = there is none. */
  #reserveLeaf(first: number, end: number, fill: number): number {
    let bytes = Leaf.HEADER_BYTES;
    let blobs = 0;
    let next = first;
    for (; next < end; next++) {
      this.loadNew(next);
      const element = this.bytesFor(this.newKeyLength, this.newValueLength, this.newExpiryMs) + Leaf.SLOT_BYTES;
      const own = this.isBlobSized(this.newKeyLength, this.newValueLength);
      if (next > first && (bytes + element > fill || (own && blobs === BLOBS_A_LEAF))) break;
      bytes += element;
      if (own) blobs++;
    }
    const { nodes } = this;
    if (!nodes.reserve(roomyBody(Math.max(LEAF_BODY_MIN, bytes)), true)) return first;
    if (this.levels > 0 && !this.reserveAncestors(this.levels - 1)) return first;
    for (let i = first; i < next && blobs > 0; i++) {
      this.loadNew(i);
      if (!this.isBlobSized(this.newKeyLength, this.newValueLength)) continue;
      if (!nodes.reserve(this.newKeyLength + this.newValueLength, true)) return first;
      blobs--;
    }
    return next;
  }

  /** Makes a leaf, which is still to be filled, the last one behind the open one. */
  #linkLeaf(depth: number, page: number, unit: number, first: number, added: number): void {
    this.addToCounts(added);
    if (depth > 0) this.setElements(depth - 1, this.pathSlots[depth - 1], this.leafCount);
    this.loadNew(first);
    this.separatorOfParts(this.newHash, this.newScore, this.newKey, this.newKeyOffset, this.newKeyLength);
    const child = depth > 0 ? this.pathSlots[depth - 1] + 1 : 1;
    this.insertChild(depth - 1, child, page, unit, added, this.separatorHigh, this.separatorLow);
  }
}
