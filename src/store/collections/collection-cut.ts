/**
 * Removing many elements at once: they are cut out of the tree as a tree of their own, which the background takes apart.
 *
 * The collection gets a new root item; the old one leads to what has been cut out and goes where the root items of deleted keys go. So a death
 * at any moment leaves either all elements in place or the run gone, and loses no chunk: see repair. Invariant: a tree belongs to one item.
 */
import { Root } from '../../layout/collection.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import { CollectionItem } from './collection-item.js';

/** A cut journals what some steps do. */
const CUT_STEPS = 4;

export abstract class CollectionCut extends CollectionItem {
  /**
   * Cuts elements `from`.. before `to` out of a tree; where all go, the key stays with an empty one. `draft`: a sorted set in the same shard
   * without elements, whose side tree becomes this one's; the draft is gone then. False = no memory, or a tree of one leaf: nothing has
   * changed. The position is on what followed.
   */
  protected cut(from: number, to: number, draft: CollectionCut | null): boolean {
    if (this.levels === 0 || !this.beginChange(CUT_STEPS)) return false;
    const isAll = to - from === this.treeCount;
    if (!isAll && (this.levels === 1 || !this.planCut(from, to))) return false;
    const { rootItem, rootArena, rootWord, levels } = this;
    if (!this.renewRoot()) {
      this.dropPlan();
      return false;
    }
    if (isAll) this.#cutAll();
    else this.applyCut(from, to);
    this.#countChunks(levels, to - from, draft);
    if (draft !== null) this.#takeSide(draft);
    // What has gone hangs on the old item.
    const { i32 } = rootItem;
    this.journal.saveRange(rootArena, i32, rootWord, Root.UNITS_WORD);
    i32[rootWord + Root.PAGE_WORD] = this.cutPage;
    i32[rootWord + Root.TOP_WORD] = this.cutUnit | (levels << Root.LEVELS_SHIFT);
    i32[rootWord + Root.COUNT_WORD] = to - from;
    if (draft === null) i32.fill(0, rootWord + Root.SIDE_WORD, rootWord + Root.UNITS_WORD);
    this.moveToRank(from);
    return true;
  }

  #cutAll(): void {
    this.cutPage = this.topPage;
    this.cutUnit = this.topUnit;
    this.addToRoot(this.rootWord + Root.COUNT_WORD, -this.treeCount);
    this.setTop(NO_PAGE, 0, 0);
  }

  /** Counts what stays, or what has gone: whichever is less. `levels`: of what has gone. */
  #countChunks(levels: number, gone: number, draft: CollectionCut | null): void {
    const isAlone = this.side.count === 0;
    if (draft === null && !(isAlone && this.treeCount < gone)) {
      this.addToRoot(this.unitsWord, -this.unitsBelow(this.cutPage, this.cutUnit, levels - 1));
      return;
    }
    const own = this.levels === 0 ? 0 : this.unitsBelow(this.topPage, this.topUnit, this.levels - 1);
    const taken = draft === null ? 0 : draft.rootItem.i32[draft.unitsWord];
    this.setWord(this.rootArena, this.unitsWord, own + taken);
  }

  #takeSide(draft: CollectionCut): void {
    const { keyspace, rootItem, rootArena, rootWord } = this;
    const to = rootWord + Root.SIDE_WORD;
    const from = draft.rootWord + Root.SIDE_WORD;
    this.journal.saveRange(rootArena, rootItem.i32, to, Root.UNITS_WORD - Root.SIDE_WORD);
    for (let word = 0; word < Root.UNITS_WORD - Root.SIDE_WORD; word++) {
      rootItem.i32[to + word] = draft.rootItem.i32[from + word];
    }
    keyspace.eviction.ownership.markMoved(draft.page, draft.unit);
    draft.removeKey();
    this.standOnItem();
    this.bind();
  }

  /** Deletes the key. */
  removeKey(): void {
    const { keyspace } = this;
    keyspace.standOn(this.keyHash, this.page, this.unit);
    this.rememberKey();
    keyspace.remove();
    this.slot = 0;
  }
}
