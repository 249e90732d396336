/**
 * A collection that a command has open: hash, list, set, sorted set or stream behind one cursor.
 *
 *   const fields = keyspace.collections[0];
 *   fields.open(HASHES, hash, db, bytes, offset, length)   // Opened.ABSENT: the first insertion makes the key
 *   if (fields.seekKey(bytes, offset, length)) { fields.load(); ... fields.key, fields.value }
 *   else if (fields.insertPair(...) !== Change.DONE) ...   // inserts before the position and stays on the new element
 *
 * A cursor is before element 0..count; `atEnd` = behind the last one, where nothing can be loaded. It moves with first, last, seekRank, next,
 * previous and the searches; `load` reads the element there into key, value, score and expiryMs (byte ranges that are valid until the
 * next change of any collection). Changes keep the cursor: on what was inserted or replaced, on what followed a removed element. The
 * removal of the last element deletes the key (streams excepted: removeKey).
 *
 * The key's lock is held throughout. Invariant: each step is whole or not done at all, for readers, for memory errors, and after the death
 * of the process: a command of many steps may be there in part after a death when it has changed more than the journal holds.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order, Root } from '../../layout/collection.js';
import { Page } from '../../layout/location.js';
import { CollectionChange } from './collection-change.js';
import type { Bound } from './leaf-reader.js';
import { Change } from './shapes.js';
import type { SideElement } from './side-tree.js';

/** How often room is made for two elements at once. */
const ROOM_TRIES = 4;
/** Fewer elements are removed one by one: about as fast as cutting them out. */
const CUT_MIN = 512;

export class Collection extends CollectionChange {
  // ---- marks and meta words: the family's own

  get marks(): number {
    return this.exists ? (this.item.i32[this.root >>> 2] >>> Root.MARKS_SHIFT) & Root.MARKS_MASK : 0;
  }

  /** The key exists. */
  setMarks(marks: number): Change {
    const word = this.item.i32[this.root >>> 2];
    return this.#setRootWord(0, (word & ~(Root.MARKS_MASK << Root.MARKS_SHIFT)) | (marks << Root.MARKS_SHIFT));
  }

  meta(index: number): number {
    return this.item.i32[(this.root >>> 2) + 1 + index];
  }

  /** All of them at once. The key exists. */
  readMetas(values: Int32Array): void {
    const { i32 } = this.item;
    const first = (this.root >>> 2) + 1;
    for (let i = 0; i < values.length; i++) values[i] = i32[first + i];
  }

  /** The key exists. */
  setMeta(index: number, value: number): Change {
    return this.#setRootWord(1 + index, value);
  }

  /** All of them at once. */
  setMetas(values: Int32Array): Change {
    if (!this.beginChange()) return Change.NO_MEMORY;
    const { i32 } = this.item;
    const first = (this.root >>> 2) + 1;
    this.journal.saveRange(this.page >>> Page.ARENA_SHIFT, i32, first, values.length);
    for (let i = 0; i < values.length; i++) i32[first + i] = values[i];
    return Change.DONE;
  }

  /** So many changes that follow stand or fall together at a death, as far as they find memory without evicting anybody. */
  beginSteps(steps: number): void {
    this.keyspace.makeChangeRoom(steps);
  }

  #setRootWord(word: number, value: number): Change {
    if (!this.beginChange()) return Change.NO_MEMORY;
    this.setWord(this.page >>> Page.ARENA_SHIFT, (this.root >>> 2) + word, value);
    return Change.DONE;
  }

  // ---- moving

  get atEnd(): boolean {
    return !this.exists || this.treeCount === 0 || this.slot >= this.leafCount;
  }

  first(): boolean {
    return this.exists && this.moveFirst();
  }

  last(): boolean {
    return this.exists && this.moveLast();
  }

  /** Behind the last element: where an insertion appends. */
  toEnd(): void {
    if (this.exists) this.moveToEnd();
  }

  /** To the next element; false = there is none, the cursor is at the end. */
  next(): boolean {
    return this.exists && this.moveNext();
  }

  /** To the one before; false = there is none, the cursor has not moved. */
  previous(): boolean {
    return this.exists && this.movePrevious();
  }

  /** To element `rank`, counted from 0; false and at the end when there are not so many. */
  seekRank(rank: number): boolean {
    return this.exists && this.moveToRank(rank);
  }

  /** Number of elements before the position. */
  get rank(): number {
    return this.exists ? this.position : 0;
  }

  /** Sorted sets: to the first element with at least this score (Bound.BEFORE) or with a greater one (Bound.AFTER). */
  seekScore(score: number, bound: Bound): void {
    if (!this.exists) return;
    this.aimAtScore(score, bound);
    this.moveToTarget();
  }

  /**
   * Hashes and sets, once they are trees: to the first element whose key's hash is at least `hash` (SSCAN and HSCAN: the cursor is a hash,
   * which changes of the tree do not touch).
   */
  seekHash(hash: number): void {
    this.aimAtHash(hash, this.scratch, 0, 0);
    this.moveToTarget();
  }

  // ---- changing

  /** Inserts an element without value before the position: list, set (behind a seekKey that found nothing). */
  insert(key: Bytes, offset: number, length: number): Change {
    this.setNew(key, offset, length);
    return this.insertNew();
  }

  /** Inserts key and value before the position: hash (behind a seekKey that found nothing), stream. */
  insertPair(
    key: Bytes,
    offset: number,
    length: number,
    value: Bytes,
    valueOffset: number,
    valueLength: number,
    expiryMs: number,
  ): Change {
    this.setNew(key, offset, length);
    this.setNewValue(value, valueOffset, valueLength, expiryMs);
    return this.insertNew();
  }

  /** Adds a member that is not there to a sorted set, where it belongs. */
  insertScored(score: number, key: Bytes, offset: number, length: number): Change {
    this.seekMember(score, key, offset, length);
    this.setNew(key, offset, length);
    this.newScore = score;
    return this.insertNew();
  }

  /** Gives the element at the position, whose member these bytes are (and none of a collection's), another score. */
  changeScore(score: number, key: Bytes, offset: number, length: number): Change {
    if (!this.beginChange()) return Change.NO_MEMORY;
    this.load();
    const before = this.score;
    if (this.isPackedLeaf) {
      const { slot } = this;
      this.aimAtMember(score, key, offset, length);
      this.searchLeaf();
      const to = this.slot;
      this.slot = slot;
      this.rescoreHere(score, to);
      return Change.DONE;
    }
    const hash = this.keyspace.hash(0, key, offset, length) >>> 0;
    this.setNew(key, offset, length);
    this.newScore = score;
    this.seekSide(hash, before);
    const isAlone = this.side.isAlone(hash);
    this.mark();
    this.seekMember(score, key, offset, length);
    if (isAlone && this.canMoveMarked()) {
      this.side.rescore(score);
      this.moveMarked();
      return Change.DONE;
    }
    // The new place first: what finds no memory has lost nothing.
    if (this.insertScored(score, key, offset, length) !== Change.DONE) return Change.NO_MEMORY;
    this.seekMember(before, key, offset, length);
    this.removeMember();
    this.removeFromTree();
    this.seekMember(score, key, offset, length);
    return Change.DONE;
  }

  /** Gives the element at the position another value and expiry. */
  replaceValue(value: Bytes, valueOffset: number, valueLength: number, expiryMs: number): Change {
    if (!this.beginChange()) return Change.NO_MEMORY;
    this.load();
    if (valueLength === this.valueLength && expiryMs === 0 && this.expiryMs === 0 && this.blobPage === 0) {
      this.overwriteValueHere(value, valueOffset);
      return Change.DONE;
    }
    this.setNew(this.key, this.keyOffset, this.keyLength);
    this.setNewValue(value, valueOffset, valueLength, expiryMs);
    return this.replaceWithNew();
  }

  /** Lists: puts another element in place of the one at the position. */
  replace(key: Bytes, offset: number, length: number): Change {
    this.setNew(key, offset, length);
    return this.replaceWithNew();
  }

  /** Brings the collection, which exists, to where it can be changed: removals do not fail then. */
  makeChangeable(): Change {
    return this.beginChange() ? Change.DONE : Change.NO_MEMORY;
  }

  /** Removes the element at the position. */
  remove(): Change {
    if (this.count === 1 && !this.shape.keepsEmpty) {
      this.removeKey();
      return Change.DONE;
    }
    if (!this.beginChange()) return Change.NO_MEMORY;
    if (this.isPackedLeaf) {
      this.removeHere();
      return Change.DONE;
    }
    if (this.order === Order.SCORE) this.removeMember();
    this.removeFromTree();
    return Change.DONE;
  }

  /** Removes elements `from`.. before `to`, by rank, of a list or stream: of many, most chunks are given back by the background. On what followed. */
  removeRange(from: number, to: number): Change {
    const size = to - from;
    if (size === this.count && !this.shape.keepsEmpty) {
      this.removeKey();
      return Change.DONE;
    }
    if (size >= CUT_MIN && !this.isPackedLeaf && this.cut(from, to, null)) return Change.DONE;
    this.seekRank(from);
    for (let left = size; left > 0; left--) if (this.remove() !== Change.DONE) return Change.NO_MEMORY;
    return Change.DONE;
  }

  /**
   * Removes members `from`.. before `to`, some but not all, of a large sorted set. `draft` holds the side tree of those that stay, and nothing else; it is gone
   * afterwards. NO_MEMORY: nothing has changed.
   */
  cutMembers(from: number, to: number, draft: Collection): Change {
    return this.cut(from, to, draft) ? Change.DONE : Change.NO_MEMORY;
  }

  /** Makes the key with an empty collection (streams). */
  create(): Change {
    return this.exists ? Change.DONE : this.growPacked(0, 0);
  }

  /** Makes a packed collection a tree whatever its size (a member that Redis would not keep in an intset or a listpack). */
  unpack(): Change {
    return !this.exists || !this.isPackedLeaf ? Change.DONE : this.makeTree();
  }

  // ---- the side tree: streams and hashes

  /** Adds an element to the side tree, behind a side.seek that found nothing. The key exists. */
  insertSide(
    key: Bytes,
    offset: number,
    length: number,
    value: Bytes,
    valueOffset: number,
    valueLength: number,
  ): Change {
    if (this.isPackedLeaf && this.makeTree() !== Change.DONE) return Change.NO_MEMORY;
    if (!this.beginChange()) return Change.NO_MEMORY;
    if (!this.side.plan(key, offset, length, value, valueOffset, valueLength)) return Change.NO_MEMORY;
    this.side.apply();
    return Change.DONE;
  }

  /** Adds two elements, whose bytes are none of a collection's: both or none, whenever the process dies. The key exists. */
  insertSideBoth(bytes: Bytes, one: SideElement, other: SideElement): Change {
    if (this.isPackedLeaf && this.makeTree() !== Change.DONE) return Change.NO_MEMORY;
    const { side } = this;
    for (let i = 0; i < ROOM_TRIES; i++) {
      if (!this.beginChange(3)) return Change.NO_MEMORY;
      if (side.insertWithoutRoom(bytes, one)) {
        if (side.insertWithoutRoom(bytes, other)) return Change.DONE;
        side.seek(bytes, one.keyOffset, one.keyLength);
        side.remove();
      }
      // Others must go first, which settles what is done so far.
      if (!side.makeRoomFor(bytes, one) || !side.makeRoomFor(bytes, other)) return Change.NO_MEMORY;
    }
    return Change.NO_MEMORY;
  }

  /** Gives the side tree's element at its position another value. */
  replaceSide(value: Bytes, valueOffset: number, valueLength: number): Change {
    if (!this.beginChange()) return Change.NO_MEMORY;
    return this.side.replace(value, valueOffset, valueLength) ? Change.DONE : Change.NO_MEMORY;
  }

  /** Removes the side tree's element at its position. */
  removeSide(): void {
    this.beginChange();
    this.side.remove();
  }
}

export type { ElementSource } from './collection-item.js';
export { Bound } from './leaf-reader.js';
export { Change, HASHES, LISTS, Opened, SETS, type Shape, SORTED_SETS, STREAMS } from './shapes.js';
