/**
 * Trees whose keys are gone: a list in shared memory, taken apart a few nodes at a time by whoever has time or needs room.
 *
 * Owns: the list (head in the superblock, linked through the root items) and what hangs on it. Invariant: one participant at a time works
 * on it, under the graveyard's lock; each node is given back in the same step of the allocator's journal that takes it off its parent,
 * so that a death in between loses nothing and frees nothing twice. Its memory counts as used until then.
 */
import { Form, Order, Root, rootOffset } from '../../layout/collection.js';
import { Item, ItemType } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { ElementCode, Inner, Leaf, Node } from '../../layout/node.js';
import { PageKind, Super } from '../../layout/superblock.js';
import type { Journal } from '../../memory/journal.js';
import type { Memory } from '../../memory/memory.js';
import { NO_PAGE, type PagePool } from '../../memory/page-pool.js';
import type { Pins } from '../../memory/pins.js';
import type { Slabs } from '../../memory/slabs.js';

/**
 * Words of a root item that lead to the next one. Not the two that a free chunk uses: they are written before the step that frees the root
 * is certain to be whole.
 */
export const LINK_PAGE_WORD = Item.CLIENT_FLAGS_WORD;
export const LINK_UNIT_WORD = Item.VERSION_LOW_WORD;

/** Nodes taken apart under one hold of the lock: whoever deletes a collection may wait for it, about 10 microseconds. */
const NODES_A_HOLD = 32;

export class Graveyard {
  readonly #memory: Memory;
  readonly #journal: Journal;
  readonly #slabs: Slabs;
  readonly #pool: PagePool;
  readonly #pins: Pins;

  constructor(memory: Memory, journal: Journal, slabs: Slabs, pool: PagePool, pins: Pins) {
    this.#memory = memory;
    this.#journal = journal;
    this.#slabs = slabs;
    this.#pool = pool;
    this.#pins = pins;
  }

  get isEmpty(): boolean {
    return this.#memory.ctl[Super.GRAVE_PAGE_WORD] === NO_PAGE;
  }

  /** Trees in it. */
  get count(): number {
    return this.#memory.ctl[Super.GRAVE_COUNT_WORD];
  }

  /** True for the unlinked root item of a tree: `bury` is for those. */
  static isRoot(memory: Memory, page: number, unit: number): boolean {
    const offset = locationOffset(page, unit);
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const shape = i32[(offset >>> 2) + Item.SHAPE_WORD];
    const type = (shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
    if (type <= ItemType.STRING || type >= ItemType.NODE) return false;
    const root = rootOffset(offset + Item.HEADER_BYTES + (shape & Item.KEY_LENGTH_MASK));
    return (i32[root >>> 2] & Root.FORM_MASK) === Form.TREE;
  }

  /** Takes an unlinked tree over from the held slot that names its root item. */
  bury(page: number, unit: number, heldArena: number, heldWord: number): void {
    const memory = this.#memory;
    const { ctl } = memory;
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = memory.arenas[arena];
    const header = locationOffset(page, unit) >>> 2;
    memory.lock(Super.GRAVE_LOCK_WORD);
    this.#set(arena, i32, header + LINK_PAGE_WORD, ctl[Super.GRAVE_PAGE_WORD]);
    this.#set(arena, i32, header + LINK_UNIT_WORD, ctl[Super.GRAVE_UNIT_WORD]);
    this.#journal.setControl(Super.GRAVE_PAGE_WORD, page);
    this.#journal.setControl(Super.GRAVE_UNIT_WORD, unit);
    this.#journal.setControl(Super.GRAVE_COUNT_WORD, ctl[Super.GRAVE_COUNT_WORD] + 1);
    this.#journal.clearWord(heldArena, heldWord);
    this.#journal.commitAlloc();
    memory.unlock(Super.GRAVE_LOCK_WORD);
  }

  /** Gives back up to `nodeCount` nodes; returns how many. 0 also when another participant is at it. Without class locks. */
  step(nodeCount: number): number {
    const memory = this.#memory;
    let freed = 0;
    while (freed < nodeCount && !this.isEmpty && memory.tryLock(Super.GRAVE_LOCK_WORD)) {
      const end = Math.min(nodeCount, freed + NODES_A_HOLD);
      while (freed < end && !this.isEmpty) {
        this.#freeOne();
        freed++;
      }
      memory.unlock(Super.GRAVE_LOCK_WORD);
    }
    return freed;
  }

  /** Frees one node of the first tree, or its root item when there is no more. */
  #freeOne(): void {
    const { ctl, arenas } = this.#memory;
    const page = ctl[Super.GRAVE_PAGE_WORD];
    const unit = ctl[Super.GRAVE_UNIT_WORD];
    const offset = locationOffset(page, unit);
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = arenas[arena];
    const header = offset >>> 2;
    const keyLength = i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    const root = rootOffset(offset + Item.HEADER_BYTES + keyLength) >>> 2;
    const head = i32[root];
    const trees = root + 1 + ((head >>> Root.META_SHIFT) & Root.META_MASK);
    const order = (head >>> Root.ORDER_SHIFT) & Root.ORDER_MASK;
    if (i32[trees + Root.MAIN_WORD] !== NO_PAGE) {
      this.#freeOf(arena, trees + Root.MAIN_WORD, order);
    } else if (i32[trees + Root.SIDE_WORD] !== NO_PAGE) {
      this.#freeOf(arena, trees + Root.SIDE_WORD, Order.BYTES);
    } else {
      this.#journal.setControl(Super.GRAVE_PAGE_WORD, i32[header + LINK_PAGE_WORD]);
      this.#journal.setControl(Super.GRAVE_UNIT_WORD, i32[header + LINK_UNIT_WORD]);
      this.#journal.setControl(Super.GRAVE_COUNT_WORD, ctl[Super.GRAVE_COUNT_WORD] - 1);
      this.#give(page, unit);
    }
  }

  /** Frees the last node, or the last element's own chunk, of the tree whose words lie at `word`. */
  #freeOf(arena: number, word: number, order: Order): void {
    const { arenas } = this.#memory;
    let page = arenas[arena].i32[word];
    let unit = arenas[arena].i32[word + Root.TOP_WORD] & 0xffff;
    // The word that goes down by one, or to nothing, when the node goes.
    let parentArena = arena;
    let parentWord = word;
    let value = 0;
    for (let level = this.#level(page, unit); level > 0; level--) {
      const { i32 } = arenas[page >>> Page.ARENA_SHIFT];
      const body = (locationOffset(page, unit) >>> 2) + Node.HEADER_WORDS;
      const children = i32[body + Inner.COUNT_WORD];
      if (children === 0) break;
      parentArena = page >>> Page.ARENA_SHIFT;
      parentWord = body + Inner.COUNT_WORD;
      value = children - 1;
      const entry = body + Inner.FIRST_WORD + (children - 1) * Inner.ENTRY_WORDS;
      page = i32[entry + Inner.PAGE_WORD];
      unit = i32[entry + Inner.UNIT_WORD];
    }
    if (this.#level(page, unit) === 0 && this.#freeBlob(page, unit, order)) return;
    this.#set(parentArena, arenas[parentArena].i32, parentWord, value);
    this.#give(page, unit);
  }

  #level(page: number, unit: number): number {
    const { i32 } = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    const shape = i32[(locationOffset(page, unit) >>> 2) + Item.SHAPE_WORD];
    return (shape >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK;
  }

  /** Frees the own chunk of one of the leaf's last elements; false when none has one. */
  #freeBlob(page: number, unit: number, order: Order): boolean {
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32, u8, view } = this.#memory.arenas[arena];
    const base = locationOffset(page, unit) + Node.HEADER_BYTES;
    const word = base >>> 2;
    if ((i32[word + Leaf.DEAD_WORD] & Leaf.BLOBS_FLAG) === 0) return false;
    const prefix = order === Order.HASH ? 4 : order === Order.SCORE ? 8 : 0;
    while ((i32[word] & Leaf.COUNT_MASK) > 0) {
      const slot = base + Leaf.HEADER_BYTES + ((i32[word] & Leaf.COUNT_MASK) - 1) * Leaf.SLOT_BYTES;
      let at = base + view.getUint16(slot, true) + prefix;
      if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
      if (u8[at] === ElementCode.BLOB) {
        this.#set(arena, i32, word, i32[word] - 1);
        this.#give(view.getUint32(at + 1, true), view.getUint16(at + 5, true));
        return true;
      }
      i32[word] -= 1;
    }
    return false;
  }

  #set(arena: number, i32: Int32Array, word: number, value: number): void {
    this.#journal.saveAlloc(arena, i32, word);
    i32[word] = value;
  }

  /** Ends the step: the chunk is free, and so are the words that led to it. */
  #give(page: number, unit: number): void {
    if (this.#pins.doom(page, unit, 0, -1)) return;
    if (this.#memory.pageKind(page) === PageKind.LARGE) this.#pool.freeRun(page, 0, -1);
    else this.#slabs.giveToPage(page, unit, 0, -1);
  }
}
