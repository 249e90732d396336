/**
 * Changes in the inner nodes of a tree: counts, children, parents, growing and splitting up to the top.
 *
 * Invariant: between steps each entry's count is that of the elements below it, each child names its parent, a top node its key's hash,
 * and every word that held something is journaled before it changes.
 */
import { Root } from '../../layout/collection.js';
import { Item } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { Inner, Node } from '../../layout/node.js';
import type { Keyspace } from '../keyspace.js';
import { chunkUnits, Nodes, roomyBody } from './nodes.js';
import { TreeReader } from './tree-reader.js';

const ENTRY_BYTES = Inner.ENTRY_WORDS * 4;

/** Body bytes of the chunk that an inner node for so many children gets. */
export function innerBody(children: number): number {
  return roomyBody(Inner.FIRST_WORD * 4 + children * ENTRY_BYTES);
}

export class InnerWriter extends TreeReader {
  protected readonly keyspace: Keyspace;
  protected readonly nodes: Nodes;
  protected readonly isSide: boolean;
  /** Hash of the key, which top nodes carry. */
  protected ownerHash = 0;

  constructor(keyspace: Keyspace, isSide: boolean) {
    super(keyspace.memory, keyspace.journal);
    this.keyspace = keyspace;
    this.isSide = isSide;
    this.nodes = new Nodes(keyspace);
  }

  // ---- words of the root and of nodes

  protected setWord(arena: number, word: number, value: number): void {
    const { i32 } = this.arenas[arena];
    this.journal.save(arena, i32, word);
    i32[word] = value;
  }

  protected addToRoot(word: number, by: number): void {
    this.setWord(this.rootArena, word, this.rootItem.i32[word] + by);
  }

  protected setTop(page: number, unit: number, levels: number): void {
    this.topPage = page;
    this.topUnit = unit;
    this.levels = levels;
    this.setWord(this.rootArena, this.rootWord + Root.PAGE_WORD, page);
    this.setWord(this.rootArena, this.rootWord + Root.TOP_WORD, unit | (levels << Root.LEVELS_SHIFT));
  }

  /** The collection has another key by now: its top node says so. */
  protected changeOwner(hash: number): void {
    this.ownerHash = hash;
    if (this.levels === 0) return;
    const word = (locationOffset(this.topPage, this.topUnit) >>> 2) + Item.HASH_WORD;
    this.setWord(this.topPage >>> Page.ARENA_SHIFT, word, hash);
  }

  /** Word that counts the chunks of the collection: behind the words of both trees. */
  protected get unitsWord(): number {
    return this.rootWord + (this.isSide ? Root.UNITS_WORD - Root.SIDE_WORD : Root.UNITS_WORD);
  }

  protected countChunk(page: number): void {
    this.addToRoot(this.unitsWord, chunkUnits(this.keyspace, page));
  }

  protected retire(page: number, unit: number): void {
    this.addToRoot(this.unitsWord, -chunkUnits(this.keyspace, page));
    this.keyspace.retireChunk(page, unit);
  }

  /** Adds to the counts above the open leaf and in the root. */
  protected addToCounts(by: number): void {
    this.addToCountsFrom(0, by);
    this.addToRoot(this.rootWord + Root.COUNT_WORD, by);
  }

  /** Adds to the counts above the open leaf from a depth of the path on. */
  protected addToCountsFrom(first: number, by: number): void {
    for (let depth = first; depth < this.levels - 1; depth++) this.#addToEntry(depth, by);
  }

  #addToEntry(depth: number, by: number): void {
    const at = this.entryWord(depth, this.pathSlots[depth]) + Inner.ELEMENTS_WORD;
    const arena = this.pathPages[depth] >>> Page.ARENA_SHIFT;
    this.setWord(arena, at, this.arenas[arena].i32[at] + by);
  }

  protected entryWord(depth: number, child: number): number {
    return this.bodyWord(depth) + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
  }

  protected childCount(depth: number): number {
    return this.arenas[this.pathPages[depth] >>> Page.ARENA_SHIFT].i32[this.bodyWord(depth) + Inner.COUNT_WORD];
  }

  protected setParent(page: number, unit: number, parentPage: number, parentUnit: number): void {
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = this.arenas[arena];
    const at = (locationOffset(page, unit) >>> 2) + Node.PARENT_PAGE_WORD;
    this.journal.saveRange(arena, i32, at, 2);
    i32[at] = parentPage;
    i32[at + 1] = parentUnit;
  }

  /** The node at a depth of the path gives its place to another one: in its parent, or as the top. */
  protected replaceNode(depth: number, page: number, unit: number): void {
    if (depth === 0) {
      this.setTop(page, unit, this.levels);
      return;
    }
    const arena = this.pathPages[depth - 1] >>> Page.ARENA_SHIFT;
    const at = this.entryWord(depth - 1, this.pathSlots[depth - 1]);
    this.setWord(arena, at + Inner.PAGE_WORD, page);
    this.setWord(arena, at + Inner.UNIT_WORD, unit);
  }

  protected setElements(depth: number, child: number, elements: number): void {
    this.setWord(
      this.pathPages[depth] >>> Page.ARENA_SHIFT,
      this.entryWord(depth, child) + Inner.ELEMENTS_WORD,
      elements,
    );
  }

  /** Sets an entry's separator to what separatorOf has computed. */
  protected setEntrySeparator(arena: number, entry: number): void {
    this.setWord(arena, entry + Inner.HIGH_WORD, this.separatorHigh | 0);
    this.setWord(arena, entry + Inner.LOW_WORD, this.separatorLow | 0);
  }

  // ---- one child more

  /** Reserves what the ancestors need for one child more above depth `below`. False = no memory. */
  protected reserveAncestors(below: number): boolean {
    for (let depth = below - 1; depth >= 0; depth--) {
      const capacity = this.#capacity(depth);
      if (this.childCount(depth) < capacity) return true;
      const isSplit = capacity >= Node.INNER_MAX_CHILDREN;
      const children = isSplit ? Node.INNER_MAX_CHILDREN : Math.min(Node.INNER_MAX_CHILDREN, capacity * 2);
      if (!this.nodes.reserve(innerBody(children), true)) return false;
      if (!isSplit) return true;
    }
    return this.nodes.reserve(innerBody(Node.INNER_MIN_CHILDREN), true);
  }

  #capacity(depth: number): number {
    const header = this.bodyWord(depth) - Node.HEADER_WORDS;
    const { i32 } = this.arenas[this.pathPages[depth] >>> Page.ARENA_SHIFT];
    return Math.floor((i32[header + Item.VALUE_LENGTH_WORD] - Inner.FIRST_WORD * 4) / ENTRY_BYTES);
  }

  /** Adds a child at `child` of the path's node at `depth` (-1: above the top); its parent is set. Uses what reserveAncestors got. */
  protected insertChild(
    depth: number,
    child: number,
    page: number,
    unit: number,
    elements: number,
    high: number,
    low: number,
  ): void {
    if (depth < 0) {
      this.#raiseTop(child, page, unit, elements, high, low);
      return;
    }
    if (this.childCount(depth) === this.#capacity(depth)) {
      if (this.#capacity(depth) < Node.INNER_MAX_CHILDREN) {
        this.#enlarge(depth);
      } else {
        this.#splitInner(depth, child, page, unit, elements, high, low);
        return;
      }
    }
    this.#putEntry(this.pathPages[depth], this.pathUnits[depth], child, page, unit, elements, high, low);
  }

  #putEntry(
    parentPage: number,
    parentUnit: number,
    child: number,
    page: number,
    unit: number,
    elements: number,
    high: number,
    low: number,
  ): void {
    const arena = parentPage >>> Page.ARENA_SHIFT;
    const { i32 } = this.arenas[arena];
    const body = (locationOffset(parentPage, parentUnit) >>> 2) + Node.HEADER_WORDS;
    const children = i32[body + Inner.COUNT_WORD];
    const at = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
    const end = body + Inner.FIRST_WORD + children * Inner.ENTRY_WORDS;
    if (end > at) this.journal.saveRange(arena, i32, at, end - at);
    i32.copyWithin(at + Inner.ENTRY_WORDS, at, end);
    i32[at + Inner.PAGE_WORD] = page;
    i32[at + Inner.UNIT_WORD] = unit;
    i32[at + Inner.ELEMENTS_WORD] = elements;
    i32[at + Inner.HIGH_WORD] = high | 0;
    i32[at + Inner.LOW_WORD] = low | 0;
    this.setWord(arena, body + Inner.COUNT_WORD, children + 1);
    this.setParent(page, unit, parentPage, parentUnit);
  }

  /** A new top over the old one and a new node beside it, before (child 0) or behind it. */
  #raiseTop(child: number, page: number, unit: number, elements: number, high: number, low: number): void {
    const { topPage, topUnit, levels } = this;
    const { i32 } = this.rootItem;
    const old = i32[this.rootWord + Root.COUNT_WORD] - elements;
    this.nodes.makeInner(levels, this.isSide, 0, 0, this.ownerHash);
    const { page: top, unit: topAt } = this.nodes;
    this.countChunk(top);
    // The old top's separator: only asked for when it is not the first child.
    this.#firstSeparator(topPage, topUnit, levels);
    this.#putEntry(top, topAt, 0, topPage, topUnit, old, this.separatorHigh, this.separatorLow);
    this.#putEntry(top, topAt, child, page, unit, elements, high, low);
    this.setTop(top, topAt, levels + 1);
  }

  /** Computes the separator of the first element below a node of a level (1 = a leaf). */
  #firstSeparator(page: number, unit: number, level: number): void {
    let at = page;
    let atUnit = unit;
    for (let l = level; l > 1; l--) {
      const { i32 } = this.arenas[at >>> Page.ARENA_SHIFT];
      const first = (locationOffset(at, atUnit) >>> 2) + Node.HEADER_WORDS + Inner.FIRST_WORD;
      at = i32[first + Inner.PAGE_WORD];
      atUnit = i32[first + Inner.UNIT_WORD];
    }
    this.separatorOfFirst(at, atUnit);
  }

  protected separatorOfFirst(page: number, unit: number): void {
    const leaf = this.arenas[page >>> Page.ARENA_SHIFT];
    const base = locationOffset(page, unit) + Node.HEADER_BYTES;
    this.separatorOf(leaf, base + leaf.view.getUint16(base + 8, true));
  }

  /** Copies the path's node at a depth into a chunk for twice as many children. */
  #enlarge(depth: number): void {
    const page = this.pathPages[depth];
    const unit = this.pathUnits[depth];
    const from = this.bodyWord(depth);
    const { i32 } = this.arenas[page >>> Page.ARENA_SHIFT];
    const children = i32[from + Inner.COUNT_WORD];
    const header = from - Node.HEADER_WORDS;
    const body = this.nodes.makeInner(
      this.levels - 1 - depth,
      this.isSide,
      i32[header + Node.PARENT_PAGE_WORD],
      i32[header + Node.PARENT_UNIT_WORD],
      i32[header + Item.HASH_WORD],
    );
    const { page: newPage, unit: newUnit } = this.nodes;
    this.countChunk(newPage);
    this.#moveEntries(i32, from, 0, children, newPage, newUnit, body);
    this.replaceNode(depth, newPage, newUnit);
    this.pathPages[depth] = newPage;
    this.pathUnits[depth] = newUnit;
    this.retire(page, unit);
  }

  /** Copies entries [first, end) to a node that nobody sees yet and makes it their children's parent. */
  #moveEntries(
    from: Int32Array,
    fromBody: number,
    first: number,
    end: number,
    page: number,
    unit: number,
    body: number,
  ): void {
    const to = this.arenas[page >>> Page.ARENA_SHIFT].i32;
    let target = body + Inner.FIRST_WORD;
    for (let child = first; child < end; child++, target += Inner.ENTRY_WORDS) {
      const source = fromBody + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
      for (let i = 0; i < Inner.ENTRY_WORDS; i++) to[target + i] = from[source + i];
      this.setParent(from[source + Inner.PAGE_WORD], from[source + Inner.UNIT_WORD], page, unit);
    }
    to[body + Inner.COUNT_WORD] = end - first;
  }

  #splitInner(
    depth: number,
    child: number,
    page: number,
    unit: number,
    elements: number,
    high: number,
    low: number,
  ): void {
    const leftPage = this.pathPages[depth];
    const leftUnit = this.pathUnits[depth];
    const from = this.bodyWord(depth);
    const arena = leftPage >>> Page.ARENA_SHIFT;
    const { i32 } = this.arenas[arena];
    const children = i32[from + Inner.COUNT_WORD];
    // At the end of a sequence the left node stays full.
    const half = child === children ? children - 1 : children >>> 1;
    const body = this.nodes.makeInner(this.levels - 1 - depth, this.isSide, 0, 0, 0);
    const { page: rightPage, unit: rightUnit } = this.nodes;
    this.countChunk(rightPage);
    this.#moveEntries(i32, from, half, children, rightPage, rightUnit, body);
    // What is put behind the left half is written over these.
    const moved = (children - half) * Inner.ENTRY_WORDS;
    this.journal.saveRange(arena, i32, from + Inner.FIRST_WORD + half * Inner.ENTRY_WORDS, moved);
    this.setWord(arena, from + Inner.COUNT_WORD, half);
    if (child > half) this.#putEntry(rightPage, rightUnit, child - half, page, unit, elements, high, low);
    else this.#putEntry(leftPage, leftUnit, child, page, unit, elements, high, low);
    const right = this.arenas[rightPage >>> Page.ARENA_SHIFT].i32;
    const rightElements = sumElements(right, body);
    const rightHigh = right[body + Inner.FIRST_WORD + Inner.HIGH_WORD];
    const rightLow = right[body + Inner.FIRST_WORD + Inner.LOW_WORD];
    if (depth > 0) this.setElements(depth - 1, this.pathSlots[depth - 1], sumElements(i32, from));
    const above = depth > 0 ? this.pathSlots[depth - 1] + 1 : 1;
    this.insertChild(depth - 1, above, rightPage, rightUnit, rightElements, rightHigh, rightLow);
  }

  // ---- one child less

  /** Takes a child out of the path's node at a depth; a node without children goes too, and a top with one child gives way to it. */
  protected removeChild(depth: number, child: number): void {
    const children = this.childCount(depth);
    if (children === 1) {
      this.retire(this.pathPages[depth], this.pathUnits[depth]);
      this.removeChild(depth - 1, this.pathSlots[depth - 1]);
      return;
    }
    const arena = this.pathPages[depth] >>> Page.ARENA_SHIFT;
    const { i32 } = this.arenas[arena];
    const body = this.bodyWord(depth);
    const at = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
    const end = body + Inner.FIRST_WORD + children * Inner.ENTRY_WORDS;
    this.journal.saveRange(arena, i32, at, end - at);
    i32.copyWithin(at, at + Inner.ENTRY_WORDS, end);
    this.setWord(arena, body + Inner.COUNT_WORD, children - 1);
    this.lowerTop();
  }

  /** A top with one child gives way to it. */
  protected lowerTop(): void {
    while (this.levels > 1) {
      const { i32 } = this.arenas[this.topPage >>> Page.ARENA_SHIFT];
      const body = (locationOffset(this.topPage, this.topUnit) >>> 2) + Node.HEADER_WORDS;
      if (i32[body + Inner.COUNT_WORD] !== 1) return;
      const { topPage, topUnit } = this;
      const page = i32[body + Inner.FIRST_WORD + Inner.PAGE_WORD];
      const unit = i32[body + Inner.FIRST_WORD + Inner.UNIT_WORD];
      this.setParent(page, unit, 0, 0);
      this.setWord(page >>> Page.ARENA_SHIFT, (locationOffset(page, unit) >>> 2) + Item.HASH_WORD, this.ownerHash);
      this.setTop(page, unit, this.levels - 1);
      this.retire(topPage, topUnit);
    }
  }
}

function sumElements(i32: Int32Array, body: number): number {
  let sum = 0;
  let at = body + Inner.FIRST_WORD + Inner.ELEMENTS_WORD;
  for (let child = i32[body + Inner.COUNT_WORD]; child > 0; child--) {
    sum += i32[at];
    at += Inner.ENTRY_WORDS;
  }
  return sum;
}
