/**
 * Cutting a run of elements out of a tree: whole subtrees leave it together, so that the number of elements does not matter.
 *
 * On the two ways to the ends of the run each node is split: what goes hangs on a new node of the same level beside it, so that what has been
 * cut out is a tree of as many levels, for the graveyard. Owns: nothing. Invariant: `planCut` takes all memory, `applyCut` then cannot fail; a
 * node that stays has a child, a leaf an element.
 */
import { Root } from '../../layout/collection.js';
import { locationOffset, Page } from '../../layout/location.js';
import { ElementCode, Inner, Leaf, Node } from '../../layout/node.js';
import { innerBody } from './inner-writer.js';
import { chunkUnits, roomyBody } from './nodes.js';
import { TreeMover } from './tree-mover.js';
import { LEAF_BODY_MIN } from './tree-writer.js';

/** Children of an inner node that lose elements: numbers, and the rank of the first element below the first and the last of them. */
interface Touched {
  readonly first: number;
  readonly last: number;
  readonly firstRank: number;
  readonly lastRank: number;
}

export class TreeCutter extends TreeMover {
  /** Top of what applyCut has cut out. */
  protected cutPage = 0;
  protected cutUnit = 0;

  /**
   * Takes the memory for cutting out elements `from`.. before `to`, some of a tree of two levels or more, but not all. False = there is none,
   * and nothing has changed.
   */
  protected planCut(from: number, to: number): boolean {
    if (this.#planNode(this.topPage, this.topUnit, this.levels - 1, from, to)) return true;
    this.nodes.release();
    return false;
  }

  /** In the order in which applyCut takes it. */
  #planNode(page: number, unit: number, level: number, from: number, to: number): boolean {
    if (level === 0) return this.#planLeaf(page, unit, from, to);
    const { i32 } = this.arenas[page >>> Page.ARENA_SHIFT];
    const body = bodyOf(page, unit);
    const { first, last, firstRank, lastRank } = touchedChildren(i32, body, from, to);
    if (isPart(i32, body, first, firstRank, from, to) && !this.#planChild(i32, body, first, level, from, to, firstRank))
      return false;
    if (
      last !== first &&
      isPart(i32, body, last, lastRank, from, to) &&
      !this.#planChild(i32, body, last, level, from, to, lastRank)
    )
      return false;
    return this.nodes.reserve(innerBody(Math.max(Node.INNER_MIN_CHILDREN, last - first + 1)), true);
  }

  #planChild(
    i32: Int32Array,
    body: number,
    child: number,
    level: number,
    from: number,
    to: number,
    rank: number,
  ): boolean {
    const entry = entryOf(body, child);
    const end = Math.min(to - rank, i32[entry + Inner.ELEMENTS_WORD]);
    return this.#planNode(
      i32[entry + Inner.PAGE_WORD],
      i32[entry + Inner.UNIT_WORD],
      level - 1,
      Math.max(0, from - rank),
      end,
    );
  }

  /** What stays of a leaf is copied into a new one. */
  #planLeaf(page: number, unit: number, from: number, to: number): boolean {
    this.openNodeLeaf(page, unit);
    const count = this.leafCount;
    let bytes = Leaf.HEADER_BYTES;
    for (let slot = 0; slot < count; slot++) {
      if (slot >= from && slot < to) continue;
      bytes += this.elementBytes(this.elementOffset(slot)) + Leaf.SLOT_BYTES;
    }
    return this.nodes.reserve(roomyBody(Math.max(LEAF_BODY_MIN, bytes)), true);
  }

  /**
   * Cuts out what planCut has planned. The position is lost. The collection's count of chunks still has those of what has been cut out.
   */
  protected applyCut(from: number, to: number): void {
    this.#cutNode(this.topPage, this.topUnit, this.levels - 1, from, to);
    this.addToRoot(this.rootWord + Root.COUNT_WORD, from - to);
    this.lowerTop();
  }

  /** Leaves what has been cut out in cutPage and cutUnit. */
  #cutNode(page: number, unit: number, level: number, from: number, to: number): void {
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = this.arenas[arena];
    const body = bodyOf(page, unit);
    const { first, last, firstRank, lastRank } = touchedChildren(i32, body, from, to);
    const isFirstPart = isPart(i32, body, first, firstRank, from, to);
    const isLastPart = last !== first && isPart(i32, body, last, lastRank, from, to);
    let headPage = 0;
    let headUnit = 0;
    if (isFirstPart) {
      this.#cutChild(page, unit, first, level, from, to, firstRank);
      headPage = this.cutPage;
      headUnit = this.cutUnit;
    }
    if (isLastPart) this.#cutChild(page, unit, last, level, from, to, lastRank);
    const whole = first + (isFirstPart ? 1 : 0);
    const end = last + (isLastPart || (last === first && isFirstPart) ? 0 : 1);
    const cut = this.nodes.makeInner(level, this.isSide, 0, 0, this.ownerHash);
    const { page: cutPage, unit: cutUnit } = this.nodes;
    this.countChunk(cutPage);
    const words = this.arenas[cutPage >>> Page.ARENA_SHIFT].i32;
    if (isFirstPart) appendChild(words, cut, headPage, headUnit);
    for (let child = whole; child < end; child++) {
      const entry = entryOf(body, child);
      appendChild(words, cut, i32[entry + Inner.PAGE_WORD], i32[entry + Inner.UNIT_WORD]);
    }
    if (isLastPart) appendChild(words, cut, this.cutPage, this.cutUnit);
    if (end > whole) this.#closeRun(arena, body, whole, end);
    this.cutPage = cutPage;
    this.cutUnit = cutUnit;
  }

  #cutChild(page: number, unit: number, child: number, level: number, from: number, to: number, rank: number): void {
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = this.arenas[arena];
    const entry = entryOf(bodyOf(page, unit), child);
    const elements = i32[entry + Inner.ELEMENTS_WORD];
    const start = Math.max(0, from - rank);
    const end = Math.min(to - rank, elements);
    if (level === 1) this.#cutLeaf(page, unit, entry, start, end);
    else this.#cutNode(i32[entry + Inner.PAGE_WORD], i32[entry + Inner.UNIT_WORD], level - 1, start, end);
    this.setWord(arena, entry + Inner.ELEMENTS_WORD, elements - (end - start));
  }

  /** What stays moves into a new leaf; the old one keeps what goes. */
  #cutLeaf(parentPage: number, parentUnit: number, entry: number, from: number, to: number): void {
    const parentArena = parentPage >>> Page.ARENA_SHIFT;
    const { i32 } = this.arenas[parentArena];
    const page = i32[entry + Inner.PAGE_WORD];
    const unit = i32[entry + Inner.UNIT_WORD];
    this.openNodeLeaf(page, unit);
    const base = this.nodes.makeLeaf(this.isSide, parentPage, parentUnit, 0);
    const { page: newPage, unit: newUnit } = this.nodes;
    this.countChunk(newPage);
    const target = this.arenas[newPage >>> Page.ARENA_SHIFT];
    const count = this.leafCount;
    if (from > 0) this.copyElements(target, base, 0, from);
    if (to < count) this.copyElements(target, base, to, count);
    this.setWord(parentArena, entry + Inner.PAGE_WORD, newPage);
    this.setWord(parentArena, entry + Inner.UNIT_WORD, newUnit);
    this.#keepSlots(from, to);
    this.openNodeLeaf(newPage, newUnit);
    this.adoptBlobs();
    this.cutPage = page;
    this.cutUnit = unit;
  }

  /** Of the open leaf, which nobody reads any more but to take it apart. */
  #keepSlots(from: number, to: number): void {
    const { leaf, leafArena, base, journal } = this;
    const { i32, u8 } = leaf;
    const word = base >>> 2;
    const slots = base + Leaf.HEADER_BYTES;
    journal.saveRange(leafArena, i32, word, ((slots + to * Leaf.SLOT_BYTES + 3) >>> 2) - word);
    u8.copyWithin(slots, slots + from * Leaf.SLOT_BYTES, slots + to * Leaf.SLOT_BYTES);
    i32[word] = (i32[word] & ~Leaf.COUNT_MASK) | (to - from);
  }

  /** Takes children [first, end) out of a node. */
  #closeRun(arena: number, body: number, first: number, end: number): void {
    const { i32 } = this.arenas[arena];
    const children = i32[body + Inner.COUNT_WORD];
    const at = entryOf(body, first);
    const behind = entryOf(body, children);
    this.journal.saveRange(arena, i32, at, behind - at);
    i32.copyWithin(at, entryOf(body, end), behind);
    this.setWord(arena, body + Inner.COUNT_WORD, children - (end - first));
  }

  /** Units of the chunks of a subtree, those of its elements included. */
  protected unitsBelow(page: number, unit: number, level: number): number {
    const { i32, u8, view } = this.arenas[page >>> Page.ARENA_SHIFT];
    const body = bodyOf(page, unit);
    let units = chunkUnits(this.keyspace, page);
    if (level > 0) {
      for (let child = i32[body + Inner.COUNT_WORD] - 1; child >= 0; child--) {
        const entry = entryOf(body, child);
        units += this.unitsBelow(i32[entry + Inner.PAGE_WORD], i32[entry + Inner.UNIT_WORD], level - 1);
      }
      return units;
    }
    if ((i32[body + Leaf.DEAD_WORD] & Leaf.BLOBS_FLAG) === 0) return units;
    const base = body << 2;
    for (let slot = (i32[body] & Leaf.COUNT_MASK) - 1; slot >= 0; slot--) {
      let at = base + view.getUint16(base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES, true) + this.prefixBytes;
      if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
      if (u8[at] === ElementCode.BLOB) units += chunkUnits(this.keyspace, view.getUint32(at + 1, true));
    }
    return units;
  }
}

/** First word of a node's body. */
function bodyOf(page: number, unit: number): number {
  return (locationOffset(page, unit) >>> 2) + Node.HEADER_WORDS;
}

function entryOf(body: number, child: number): number {
  return body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
}

/** The children below which elements [from, to), which there are, lie. */
function touchedChildren(i32: Int32Array, body: number, from: number, to: number): Touched {
  let child = 0;
  let rank = 0;
  while (rank + i32[entryOf(body, child) + Inner.ELEMENTS_WORD] <= from) {
    rank += i32[entryOf(body, child) + Inner.ELEMENTS_WORD];
    child++;
  }
  const first = child;
  const firstRank = rank;
  while (rank + i32[entryOf(body, child) + Inner.ELEMENTS_WORD] < to) {
    rank += i32[entryOf(body, child) + Inner.ELEMENTS_WORD];
    child++;
  }
  return { first, last: child, firstRank, lastRank: rank };
}

/** True when a child, whose first element has this rank, keeps some of its elements. */
function isPart(i32: Int32Array, body: number, child: number, rank: number, from: number, to: number): boolean {
  return from > rank || to < rank + i32[entryOf(body, child) + Inner.ELEMENTS_WORD];
}

/** To a node that nobody reads but to take it apart: counts and separators mean nothing there. */
function appendChild(i32: Int32Array, body: number, page: number, unit: number): void {
  const entry = entryOf(body, i32[body + Inner.COUNT_WORD]++);
  i32[entry + Inner.PAGE_WORD] = page;
  i32[entry + Inner.UNIT_WORD] = unit;
}
