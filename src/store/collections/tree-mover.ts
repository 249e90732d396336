/**
 * Moving an element of a tree to where it belongs with another score, without looking for its old place again.
 *
 * Owns: the mark, a second position beside the cursor's. Invariant: all nodes stay where they are, so that both positions hold: what needs a
 * leaf to be copied, split or merged is left to TreeWriter, which inserts and removes.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Leaf, Node } from '../../layout/node.js';
import type { Keyspace } from '../keyspace.js';
import { TreeWriter } from './tree-writer.js';

export class TreeMover extends TreeWriter {
  readonly #pages = new Int32Array(Node.LEVELS_MAX);
  readonly #units = new Int32Array(Node.LEVELS_MAX);
  readonly #slots = new Int32Array(Node.LEVELS_MAX);
  #leaf: Bytes;
  #leafPage = 0;
  #leafUnit = 0;
  #leafArena = 0;
  #base = 0;
  #capacity = 0;
  #slot = 0;

  constructor(keyspace: Keyspace, isSide: boolean) {
    super(keyspace, isSide);
    this.#leaf = this.leaf;
  }

  /** Remembers the position. */
  protected mark(): void {
    const { pathPages, pathUnits, pathSlots, levels } = this;
    for (let depth = 0; depth < levels - 1; depth++) {
      this.#pages[depth] = pathPages[depth];
      this.#units[depth] = pathUnits[depth];
      this.#slots[depth] = pathSlots[depth];
    }
    if (this.#leaf !== this.leaf) this.#leaf = this.leaf;
    this.#leafPage = this.leafPage;
    this.#leafUnit = this.leafUnit;
    this.#leafArena = this.leafArena;
    this.#base = this.base;
    this.#capacity = this.capacity;
    this.#slot = this.slot;
  }

  /** The position becomes the mark, and the mark the position. */
  #exchange(): void {
    const { pathPages, pathUnits, pathSlots, levels } = this;
    for (let depth = 0; depth < levels - 1; depth++) {
      const page = pathPages[depth];
      const unit = pathUnits[depth];
      const slot = pathSlots[depth];
      pathPages[depth] = this.#pages[depth];
      pathUnits[depth] = this.#units[depth];
      pathSlots[depth] = this.#slots[depth];
      this.#pages[depth] = page;
      this.#units[depth] = unit;
      this.#slots[depth] = slot;
    }
    const { leaf, leafPage, leafUnit, leafArena, base, capacity, slot } = this;
    this.openLeafAt(this.#leaf, this.#leafArena, this.#base, this.#capacity);
    this.leafPage = this.#leafPage;
    this.leafUnit = this.#leafUnit;
    this.slot = this.#slot;
    if (this.#leaf !== leaf) this.#leaf = leaf;
    this.#leafPage = leafPage;
    this.#leafUnit = leafUnit;
    this.#leafArena = leafArena;
    this.#base = base;
    this.#capacity = capacity;
    this.#slot = slot;
  }

  /** True when the new element, which is the marked one with another score, can go before the position, where a search for it has ended. */
  protected canMoveMarked(): boolean {
    this.stepBack();
    if (this.#isInMarkedLeaf()) return true;
    const { newKeyLength } = this;
    if (this.isBlobSized(newKeyLength, 0)) return false;
    const bytes = this.bytesFor(newKeyLength, 0, 0);
    if (this.gap < bytes + Leaf.SLOT_BYTES) return false;
    this.#exchange();
    const canLeave = this.canLose(bytes);
    this.#exchange();
    return canLeave;
  }

  /** Does it. The position is on the element then. */
  protected moveMarked(): void {
    if (this.#isInMarkedLeaf()) {
      const to = this.slot;
      this.slot = this.#slot;
      this.rescoreHere(this.newScore, to);
      return;
    }
    this.insertHere(this.bytesFor(this.newKeyLength, 0, 0));
    const first = this.#firstDifference();
    this.addToCountsFrom(first, 1);
    this.#exchange();
    this.removeHere();
    this.addToCountsFrom(first, -1);
    this.#exchange();
  }

  #isInMarkedLeaf(): boolean {
    return this.leafPage === this.#leafPage && this.leafUnit === this.#leafUnit;
  }

  /** Depth at which mark and position go different ways. Above, what one gains the other loses. */
  #firstDifference(): number {
    let depth = 0;
    while (this.pathSlots[depth] === this.#slots[depth]) depth++;
    return depth;
  }
}
