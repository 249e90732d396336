/**
 * The side tree of a collection, ordered by its keys' bytes: members by hash (sorted sets), fields by expiry (hashes), groups (streams).
 *
 * It moves and reads as a collection does. Changes go through the collection (insertSide, removeSide), which owns the item; the plan and
 * apply here are for it. Invariant: a packed collection has none.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import type { Keyspace } from '../keyspace.js';
import { GROWING_FILL, TreeBuilder } from './tree-builder.js';
import { LEAF_BODY_MAX } from './tree-writer.js';

/** What a member's key begins with. */
export const MEMBER_HASH_BYTES = 4;
/** Hash and score of a member. */
export const MEMBER_BYTES = 12;
const SCORE_BYTES = 8;

/** Where key and value of an element lie. */
export interface SideElement {
  keyOffset: number;
  keyLength: number;
  valueOffset: number;
  valueLength: number;
}

export class SideTree extends TreeBuilder {
  #hashes: Uint32Array = new Uint32Array(0);
  #scores: Float64Array = new Float64Array(0);
  /** Their order, where they do not stand in it. */
  #order: Uint32Array | null = null;
  readonly #member: Bytes;

  constructor(keyspace: Keyspace, scratch: Bytes) {
    super(keyspace, true);
    this.order = Order.BYTES;
    this.#member = scratch;
  }

  bind(item: Bytes, arena: number, word: number, ownerHash: number, valued: boolean, holdsMembers: boolean): void {
    this.valued = valued;
    this.isEven = holdsMembers;
    this.ownerHash = ownerHash;
    this.openTree(item, arena, word);
  }

  /** There is none. */
  bindNone(): void {
    this.levels = 0;
    this.topPage = 0;
    this.isPackedLeaf = false;
    this.rootWord = -1;
  }

  get count(): number {
    return this.rootWord < 0 ? 0 : this.treeCount;
  }

  get atEnd(): boolean {
    return this.count === 0 || this.slot >= this.leafCount;
  }

  get rank(): number {
    return this.count === 0 ? 0 : this.position;
  }

  first(): boolean {
    return this.count > 0 && this.moveFirst();
  }

  last(): boolean {
    return this.count > 0 && this.moveLast();
  }

  next(): boolean {
    return this.moveNext();
  }

  previous(): boolean {
    return this.movePrevious();
  }

  seekRank(rank: number): boolean {
    return this.count > 0 && this.moveToRank(rank);
  }

  /** To the first element whose key does not stand before these bytes; true when it has them. */
  seek(bytes: Bytes, offset: number, length: number): boolean {
    if (this.count === 0) return false;
    this.aimAtBytes(bytes, offset, length);
    return this.moveToTarget();
  }

  // ---- for the collection

  plan(key: Bytes, offset: number, length: number, value: Bytes, valueOffset: number, valueLength: number): boolean {
    this.#setNew(key, offset, length, value, valueOffset, valueLength);
    this.aimAtBytes(key, offset, length);
    this.moveToTarget();
    return this.planInsert();
  }

  /** The same for a member before the position, where `seek` has ended and where it belongs. */
  planMember(key: Bytes): boolean {
    this.#setNew(key, 0, MEMBER_BYTES, key, 0, 0);
    return this.planInsert();
  }

  apply(): void {
    this.applyInsert();
  }

  /** Inserts an element if there is memory for it without evicting anybody. */
  insertWithoutRoom(bytes: Bytes, element: SideElement): boolean {
    this.nodes.mayMakeRoom = false;
    const planned = this.#planElement(bytes, element);
    this.nodes.mayMakeRoom = true;
    if (planned) this.applyInsert();
    return planned;
  }

  /** Makes room for an element; false = there is none. */
  makeRoomFor(bytes: Bytes, element: SideElement): boolean {
    const planned = this.#planElement(bytes, element);
    if (planned) this.dropPlan();
    return planned;
  }

  #planElement(bytes: Bytes, element: SideElement): boolean {
    const { keyOffset, keyLength, valueOffset, valueLength } = element;
    return this.plan(bytes, keyOffset, keyLength, bytes, valueOffset, valueLength);
  }

  drop(): void {
    this.dropPlan();
  }

  /** Gives the element at the position another value. False = no memory. */
  replace(value: Bytes, valueOffset: number, valueLength: number): boolean {
    this.load();
    this.#setNew(this.key, this.keyOffset, this.keyLength, value, valueOffset, valueLength);
    return this.replaceInTree();
  }

  remove(): void {
    this.removeFromTree();
  }

  // ---- members of a sorted set

  /** True when the position, which is one of this tree as it is, is on the member of this hash and score. */
  isOnMember(hash: number, score: number): boolean {
    if (this.atEnd) return false;
    const at = this.#memberOffset(this.slot);
    const { view } = this.leaf;
    return view.getUint32(at, false) === hash && view.getFloat64(at + MEMBER_HASH_BYTES, false) === score;
  }

  /**
   * True when the member at the position, of this hash, may get whatever score in place: those beside it in its leaf have other hashes. (At an
   * end of the leaf a separator might tell the score.)
   */
  isAlone(hash: number): boolean {
    const { slot } = this;
    if (slot === 0 || slot >= this.leafCount - 1) return false;
    const { view } = this.leaf;
    return (
      view.getUint32(this.#memberOffset(slot - 1), false) !== hash &&
      view.getUint32(this.#memberOffset(slot + 1), false) !== hash
    );
  }

  /** Gives the member at the position, which is alone, another score. */
  rescore(score: number): void {
    const at = this.#memberOffset(this.slot) + MEMBER_HASH_BYTES;
    this.journal.saveRange(this.leafArena, this.leaf.i32, at >>> 2, ((at + SCORE_BYTES + 3) >>> 2) - (at >>> 2));
    this.leaf.view.setFloat64(at, score + 0, false);
  }

  /** Byte offset of a member's key: behind its length, which is one byte. */
  #memberOffset(slot: number): number {
    return this.elementOffset(slot) + 1;
  }

  /** Restamps the top node when the collection gets another key. */
  setOwner(hash: number): void {
    this.changeOwner(hash);
  }

  planMembers(hashes: Uint32Array, scores: Float64Array): boolean {
    this.#hashes = hashes;
    this.#scores = scores;
    this.#order = null;
    this.valued = false;
    return this.planBuild(hashes.length, LEAF_BODY_MAX);
  }

  applyMembers(): void {
    this.applyBuild();
  }

  /** Appends a leaf of members, by their numbers in `order`, from place `first` on: see TreeBuilder.appendLeaf. */
  appendMembers(hashes: Uint32Array, scores: Float64Array, order: Uint32Array, first: number): number {
    this.#hashes = hashes;
    this.#scores = scores;
    this.#order = order;
    return this.appendLeaf(first, order.length, GROWING_FILL);
  }

  protected override loadNew(index: number): void {
    const i = this.#order === null ? index : this.#order[index];
    writeMember(this.#member.view, this.#hashes[i], this.#scores[i]);
    this.#setNew(this.#member, 0, MEMBER_BYTES, this.#member, 0, 0);
  }

  #setNew(key: Bytes, offset: number, length: number, value: Bytes, valueOffset: number, valueLength: number): void {
    if (this.newKey !== key) this.newKey = key;
    this.newKeyOffset = offset;
    this.newKeyLength = length;
    if (this.newValue !== value) this.newValue = value;
    this.newValueOffset = valueOffset;
    this.newValueLength = valueLength;
    this.newExpiryMs = 0;
  }
}

/** The key of a sorted set's member in the side tree: its hash, then its score. */
export function writeMember(view: DataView, hash: number, score: number): void {
  view.setUint32(0, hash, false);
  view.setFloat64(4, score + 0, false);
}
