/**
 * A position in a tree of a collection: the path from the top to a leaf, and how to move along it.
 *
 * Owns: the path. Invariant: the inner nodes of the path lead to the open leaf; the position is before an element of it, or behind the
 * tree's last element. A packed collection is a tree whose one leaf lies in the item: it has no path, and `descend` leaves it open.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order, Root } from '../../layout/collection.js';
import { Item } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { ElementCode, Inner, Leaf, Node } from '../../layout/node.js';
import type { Journal } from '../../memory/journal.js';
import type { Memory } from '../../memory/memory.js';
import { Bound, clamp, GUESS_MIN, WALK_MAX } from './leaf-reader.js';
import { LeafWriter } from './leaf-writer.js';

/** Which child a descent takes. */
export const enum Way {
  FIRST = 0,
  LAST = 1,
  RANK = 2,
  SEARCH = 3,
}

/** As many as there are. */
const HASHES = 0x1_0000_0000;

const scoreNumber = new Float64Array(1);
const scoreWords = new Uint32Array(scoreNumber.buffer);

export class TreeReader extends LeafWriter {
  protected isPackedLeaf = true;
  /** Levels of nodes, the leaf's included; 0 = an empty tree. */
  protected levels = 0;
  protected topPage = 0;
  protected topUnit = 0;
  /** Where the tree's three words lie: the item and the first word. */
  protected rootItem: Bytes;
  protected rootArena = 0;
  protected rootWord = 0;
  protected leafPage = 0;
  protected leafUnit = 0;
  protected readonly pathPages = new Int32Array(Node.LEVELS_MAX);
  protected readonly pathUnits = new Int32Array(Node.LEVELS_MAX);
  protected readonly pathSlots = new Int32Array(Node.LEVELS_MAX);
  /** A search ended behind a leaf's last element and the position went on to the next leaf: an insertion belongs before that step. */
  protected hasSteppedOver = false;
  /** First eight bytes of what is looked for, as separators have them. */
  protected targetHigh = 0;
  protected targetLow = 0;
  /** Result of separatorOf. */
  protected separatorHigh = 0;
  protected separatorLow = 0;
  #wantedRank = 0;
  /** What the separators on the way of a search say of the next node: its elements' numbers are from the one to below the other. */
  #lowest = 0;
  #behind = 0;

  constructor(memory: Memory, journal: Journal) {
    super(memory, journal);
    this.rootItem = this.leaf;
  }

  /** Opens the tree whose words lie at `word` of an item. */
  protected openTree(item: Bytes, arena: number, word: number): void {
    if (this.rootItem !== item) this.rootItem = item;
    this.rootArena = arena;
    this.rootWord = word;
    this.isPackedLeaf = false;
    this.readTop();
  }

  protected readTop(): void {
    const { i32 } = this.rootItem;
    this.topPage = i32[this.rootWord + Root.PAGE_WORD];
    const top = i32[this.rootWord + Root.TOP_WORD];
    this.topUnit = top & 0xffff;
    this.levels = top >>> Root.LEVELS_SHIFT;
  }

  /** Elements of the tree. */
  protected get treeCount(): number {
    return this.isPackedLeaf ? this.leafCount : this.rootItem.i32[this.rootWord + Root.COUNT_WORD];
  }

  protected openNodeLeaf(page: number, unit: number): void {
    const leaf = this.arenas[page >>> Page.ARENA_SHIFT];
    const header = locationOffset(page, unit);
    this.leafPage = page;
    this.leafUnit = unit;
    const capacity = leaf.i32[(header >>> 2) + Item.VALUE_LENGTH_WORD];
    this.openLeafAt(leaf, page >>> Page.ARENA_SHIFT, header + Node.HEADER_BYTES, capacity);
  }

  // ---- moving

  protected descend(way: Way): void {
    this.hasSteppedOver = false;
    if (this.isPackedLeaf || this.levels === 0) return;
    // Of scores nobody knows the first and the last.
    this.#lowest = this.order === Order.SCORE ? Number.NaN : 0;
    this.#behind = this.order === Order.SCORE ? Number.NaN : HASHES;
    this.#descendFrom(0, this.topPage, this.topUnit, way);
  }

  #descendFrom(depth: number, fromPage: number, fromUnit: number, way: Way): void {
    let page = fromPage;
    let unit = fromUnit;
    const { pathPages, pathUnits, pathSlots, levels } = this;
    for (let at = depth; at < levels - 1; at++) {
      const { i32 } = this.arenas[page >>> Page.ARENA_SHIFT];
      const body = (locationOffset(page, unit) >>> 2) + Node.HEADER_WORDS;
      const children = i32[body + Inner.COUNT_WORD];
      let child = 0;
      if (way === Way.LAST) child = children - 1;
      else if (way === Way.RANK) child = this.#childOfRank(i32, body, children);
      else if (way === Way.SEARCH) {
        child = this.#searchInner(i32, body, children, levels - 1 - at);
        if (this.isEven) this.#narrow(i32, body, child, children);
      }
      pathPages[at] = page;
      pathUnits[at] = unit;
      pathSlots[at] = child;
      const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
      page = i32[entry + Inner.PAGE_WORD];
      unit = i32[entry + Inner.UNIT_WORD];
    }
    this.openNodeLeaf(page, unit);
  }

  /** The child that holds element #wantedRank, which becomes its rank below that child; the last child when there are not so many. */
  #childOfRank(i32: Int32Array, body: number, children: number): number {
    let rank = this.#wantedRank;
    let entry = body + Inner.FIRST_WORD + Inner.ELEMENTS_WORD;
    let child = 0;
    for (; child < children - 1 && rank >= i32[entry]; child++) {
      rank -= i32[entry];
      entry += Inner.ENTRY_WORDS;
    }
    this.#wantedRank = rank;
    return child;
  }

  /** The last child whose separator does not stand behind what is looked for. */
  #searchInner(i32: Int32Array, body: number, children: number, levelsBelow: number): number {
    let low = 1;
    let high = children;
    if (this.isEven && children >= GUESS_MIN && this.#behind > this.#lowest) {
      // As in searchEvenly: two steps from the guess mostly.
      const density = children / (this.#behind - this.#lowest);
      low = clamp(((this.targetNumber - this.#lowest) * density) | 0, 1, children - 1);
      high = low;
      let steps = 0;
      if (this.#compareChild(i32, body, low, levelsBelow) <= 0) {
        while (++high < children && this.#compareChild(i32, body, high, levelsBelow) <= 0) {
          if (++steps === WALK_MAX) return this.#halve(i32, body, high + 1, children, levelsBelow);
        }
        return high - 1;
      }
      while (--low > 0 && this.#compareChild(i32, body, low, levelsBelow) > 0) {
        if (++steps === WALK_MAX) return this.#halve(i32, body, 1, low, levelsBelow);
      }
      return low;
    }
    return this.#halve(i32, body, low, high, levelsBelow);
  }

  #halve(i32: Int32Array, body: number, from: number, end: number, levelsBelow: number): number {
    let low = from;
    let high = end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compareChild(i32, body, middle, levelsBelow) <= 0) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Takes over what the separators of a child, and of the one behind it, say of what is below it. */
  #narrow(i32: Int32Array, body: number, child: number, children: number): void {
    const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
    if (child > 0) this.#lowest = this.#separatorNumber(i32, entry);
    if (child < children - 1) this.#behind = this.#separatorNumber(i32, entry + Inner.ENTRY_WORDS);
  }

  #separatorNumber(i32: Int32Array, entry: number): number {
    const high = i32[entry + Inner.HIGH_WORD];
    return this.order === Order.SCORE ? scoreOfSeparator(high, i32[entry + Inner.LOW_WORD]) : high >>> 0;
  }

  /** Negative, 0 or positive as what is below a child begins before, at or behind what is looked for. */
  #compareChild(i32: Int32Array, body: number, child: number, levelsBelow: number): number {
    const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
    const high = i32[entry + Inner.HIGH_WORD] >>> 0;
    if (high !== this.targetHigh) return high < this.targetHigh ? -1 : 1;
    const low = i32[entry + Inner.LOW_WORD] >>> 0;
    if (low !== this.targetLow) return low < this.targetLow ? -1 : 1;
    // Eight bytes do not tell: ask the first element below the child.
    let page = i32[entry + Inner.PAGE_WORD];
    let unit = i32[entry + Inner.UNIT_WORD];
    for (let level = levelsBelow; level > 1; level--) {
      const words = this.arenas[page >>> Page.ARENA_SHIFT].i32;
      const first = (locationOffset(page, unit) >>> 2) + Node.HEADER_WORDS + Inner.FIRST_WORD;
      page = words[first + Inner.PAGE_WORD];
      unit = words[first + Inner.UNIT_WORD];
    }
    const leaf = this.arenas[page >>> Page.ARENA_SHIFT];
    const base = locationOffset(page, unit) + Node.HEADER_BYTES;
    return this.compare(leaf, base + leaf.view.getUint16(base + Leaf.HEADER_BYTES, true));
  }

  protected moveFirst(): boolean {
    this.descend(Way.FIRST);
    this.slot = 0;
    return this.treeCount > 0;
  }

  protected moveLast(): boolean {
    if (this.treeCount === 0) return this.moveFirst();
    this.descend(Way.LAST);
    this.slot = this.leafCount - 1;
    return true;
  }

  protected moveToEnd(): void {
    if (this.moveLast()) this.slot++;
  }

  protected moveNext(): boolean {
    this.hasSteppedOver = false;
    if (this.treeCount === 0) return false;
    const count = this.leafCount;
    if (this.slot < count) this.slot++;
    return this.slot < count || this.nextLeaf();
  }

  protected movePrevious(): boolean {
    this.hasSteppedOver = false;
    if (this.slot === 0 && !this.previousLeaf()) return false;
    this.slot--;
    return true;
  }

  protected moveToRank(rank: number): boolean {
    const count = this.treeCount;
    if (rank >= count) {
      this.moveToEnd();
      return false;
    }
    this.#wantedRank = rank;
    this.descend(Way.RANK);
    this.slot = this.isPackedLeaf ? rank : this.#wantedRank;
    return true;
  }

  /** To the first element that does not stand before what is looked for; true when it is that. */
  protected moveToTarget(): boolean {
    this.descend(Way.SEARCH);
    if (this.treeCount === 0) {
      this.slot = 0;
      return false;
    }
    const found = this.isEven ? this.searchEvenly(this.#lowest, this.#behind) : this.searchLeaf();
    if (!found && this.slot === this.leafCount && this.nextLeaf()) this.hasSteppedOver = true;
    return found;
  }

  /** Before an insertion: back to where the search ended. */
  protected stepBack(): void {
    if (!this.hasSteppedOver) return;
    this.hasSteppedOver = false;
    this.previousLeaf();
  }

  /** To the first element of the next leaf; false = there is none, nothing has moved. */
  protected nextLeaf(): boolean {
    return this.#turn(1);
  }

  /** Behind the last element of the leaf before; false = there is none, nothing has moved. */
  protected previousLeaf(): boolean {
    return this.#turn(-1);
  }

  #turn(by: number): boolean {
    if (this.isPackedLeaf) return false;
    for (let depth = this.levels - 2; depth >= 0; depth--) {
      const { i32 } = this.arenas[this.pathPages[depth] >>> Page.ARENA_SHIFT];
      const body = this.bodyWord(depth);
      const child = this.pathSlots[depth] + by;
      if (child < 0 || child >= i32[body + Inner.COUNT_WORD]) continue;
      this.pathSlots[depth] = child;
      const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
      const way = by > 0 ? Way.FIRST : Way.LAST;
      this.#descendFrom(depth + 1, i32[entry + Inner.PAGE_WORD], i32[entry + Inner.UNIT_WORD], way);
      this.slot = by > 0 ? 0 : this.leafCount;
      return true;
    }
    return false;
  }

  /** First word of the body of the path's node at a depth. */
  protected bodyWord(depth: number): number {
    return (locationOffset(this.pathPages[depth], this.pathUnits[depth]) >>> 2) + Node.HEADER_WORDS;
  }

  /** Elements before the position. */
  protected get position(): number {
    let rank = this.slot;
    if (this.isPackedLeaf) return rank;
    for (let depth = 0; depth < this.levels - 1; depth++) {
      const { i32 } = this.arenas[this.pathPages[depth] >>> Page.ARENA_SHIFT];
      let entry = this.bodyWord(depth) + Inner.FIRST_WORD + Inner.ELEMENTS_WORD;
      for (let child = this.pathSlots[depth]; child > 0; child--) {
        rank += i32[entry];
        entry += Inner.ENTRY_WORDS;
      }
    }
    return rank;
  }

  // ---- what is looked for

  protected aimAtHash(hash: number, bytes: Bytes, offset: number, length: number): void {
    this.aimAt(bytes, offset, length);
    this.targetHash = hash >>> 0;
    this.targetNumber = hash >>> 0;
    this.targetHigh = hash >>> 0;
    this.targetLow = 0;
  }

  protected aimAtBytes(bytes: Bytes, offset: number, length: number): void {
    this.aimAt(bytes, offset, length);
    this.targetHigh = bytesWord(bytes.u8, offset, length);
    this.targetNumber = this.targetHigh;
    this.targetLow = length > 4 ? bytesWord(bytes.u8, offset + 4, length - 4) : 0;
  }

  protected aimAtScore(score: number, bound: Bound): void {
    this.targetScore = score;
    this.targetNumber = score;
    this.targetBound = bound;
    this.#scoreSeparator(score);
    this.targetHigh = this.separatorHigh;
    this.targetLow = this.separatorLow;
  }

  protected aimAtMember(score: number, bytes: Bytes, offset: number, length: number): void {
    this.aimAt(bytes, offset, length);
    this.aimAtScore(score, Bound.EXACT);
  }

  /** Computes the separator of an element that is not written yet. */
  protected separatorOfParts(hash: number, score: number, key: Bytes, offset: number, length: number): void {
    if (this.order === Order.HASH) {
      this.separatorHigh = hash >>> 0;
      this.separatorLow = 0;
    } else if (this.order === Order.SCORE) {
      this.#scoreSeparator(score);
    } else if (this.order === Order.BYTES) {
      this.#bytesSeparator(key.u8, offset, length);
    } else {
      this.separatorHigh = 0;
      this.separatorLow = 0;
    }
  }

  #bytesSeparator(u8: Uint8Array, offset: number, length: number): void {
    this.separatorHigh = bytesWord(u8, offset, length);
    this.separatorLow = length > 4 ? bytesWord(u8, offset + 4, length - 4) : 0;
  }

  /** Computes the separator of the element at a byte offset of a leaf. */
  protected separatorOf(leaf: Bytes, offset: number): void {
    if (this.order === Order.HASH) {
      this.separatorHigh = leaf.view.getUint32(offset, true);
      this.separatorLow = 0;
    } else if (this.order === Order.SCORE) {
      this.#scoreSeparator(leaf.view.getFloat64(offset, true));
    } else if (this.order === Order.BYTES) {
      this.#keySeparator(leaf, offset);
    } else {
      this.separatorHigh = 0;
      this.separatorLow = 0;
    }
  }

  /** A double's bits, so changed that they sort as the doubles do. */
  #scoreSeparator(score: number): void {
    // -0 and 0 are equal.
    scoreNumber[0] = score + 0;
    const high = scoreWords[1];
    const isNegative = high >>> 31 === 1;
    this.separatorHigh = (isNegative ? ~high : high ^ 0x8000_0000) >>> 0;
    this.separatorLow = (isNegative ? ~scoreWords[0] : scoreWords[0]) >>> 0;
  }

  #keySeparator(leaf: Bytes, offset: number): void {
    let { u8 } = leaf;
    let at = offset;
    if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
    let length = u8[at++];
    if (length === ElementCode.BLOB) {
      const page = leaf.view.getUint32(at, true);
      length = leaf.view.getUint32(at + 6, true);
      at = locationOffset(page, leaf.view.getUint16(at + 4, true)) + Node.HEADER_BYTES;
      u8 = this.arenas[page >>> Page.ARENA_SHIFT].u8;
    } else {
      if (length >= ElementCode.LONG) length = ElementCode.LONG + ((length - ElementCode.LONG) << 8) + u8[at++];
      if (this.valued) at += u8[at] >= ElementCode.LONG ? 2 : 1;
    }
    this.#bytesSeparator(u8, at, length);
  }
}

/** The score that a separator was made from. */
function scoreOfSeparator(high: number, low: number): number {
  const isNegative = high >= 0;
  scoreWords[1] = isNegative ? ~high : high ^ 0x8000_0000;
  scoreWords[0] = isNegative ? ~low : low;
  return scoreNumber[0];
}

/** Up to four bytes as one unsigned word that sorts as they do, zeros for those that are missing. */
function bytesWord(u8: Uint8Array, offset: number, length: number): number {
  let word = 0;
  for (let i = 0; i < 4; i++) word = (word << 8) | (i < length ? u8[offset + i] : 0);
  return word >>> 0;
}
