/**
 * Building a whole tree at once, from elements that come in order: what a packed collection turns into.
 *
 * Invariant: `planBuild` takes all memory; `applyBuild`, which cannot fail, links nothing that anybody sees before its last step.
 */

import { Root } from '../../layout/collection.js';
import { Page } from '../../layout/location.js';
import { Inner, Leaf, Node } from '../../layout/node.js';
import { roomyBody } from './nodes.js';
import { TreeMover } from './tree-mover.js';
import { LEAF_BODY_MIN } from './tree-writer.js';

/** Leaves of one build; the largest packed collection of the smallest elements takes a third of it. */
const LEAVES_MAX = 40;

export abstract class TreeBuilder extends TreeMover {
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
}
