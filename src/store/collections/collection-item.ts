/**
 * The item behind an open collection: opening, its version, packed growth, and the change from packed to tree.
 *
 * Owns: where the item lies. Invariant: an item that is changed lies in a slab chunk and has got a version of its own in the running
 * command; a tree is built whole before the item that leads to it takes the packed one's place.
 */
import { Bytes } from '../../layout/bytes.js';
import { Form, Order, Root, rootOffset } from '../../layout/collection.js';
import { Item } from '../../layout/item.js';
import { Page, unitsOf } from '../../layout/location.js';
import { Leaf } from '../../layout/node.js';
import { Database, PageKind } from '../../layout/superblock.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import { CLASS_OF_UNITS, CLASS_UNITS } from '../../memory/slab-classes.js';
import { copyBytes } from '../../native/copy.js';
import type { Keyspace } from '../keyspace.js';
import { PackedSource } from './packed-source.js';
import { Change, HASHES, Opened, type Shape } from './shapes.js';
import { SideTree } from './side-tree.js';
import { GROWING_FILL, TreeBuilder } from './tree-builder.js';
import { LEAF_BODY_MAX } from './tree-writer.js';

/** Bytes of the leaves that a tree begins with, where elements come in any order: they have room to grow on. */
const MIXED_FILL = (LEAF_BODY_MAX >>> 2) * 3;
/** Prefixes of elements. */
const SCORE_BYTES = 8;
const HASH_BYTES = 4;

/** Elements in the order that a tree of them has, for building one. While it is in use their bytes stay where they are. */
export interface ElementSource {
  readonly key: Bytes;
  readonly keyOffset: number;
  readonly keyLength: number;
  readonly value: Bytes;
  readonly valueOffset: number;
  readonly valueLength: number;
  readonly expiryMs: number;
  readonly score: number;
  /** Of the key, without a sign: in hashes and sets. */
  readonly hash: number;
  /** Sets the fields above. */
  loadInOrder(index: number): void;
}

export abstract class CollectionItem extends TreeBuilder {
  /** When these are passed, the collection becomes a tree; `open` sets them to the shape's, families to their settings. */
  packedEntriesMax = 0;
  packedElementMax = 0;
  /** See the class; count 0 while the collection is packed. */
  readonly side: SideTree;

  protected shape: Shape = HASHES;
  protected keyHash = 0;
  protected readonly scratch = Bytes.allocate(32);
  /** Sorted sets: a search for a member has set the position of `side`, which no change but its own has touched since. */
  protected isSidePlaced = false;
  /** No member has this hash: the position of `side` is where one belongs. -1 = not known. */
  protected vacantHash = -1;
  /** Where the item lies; page 0 = the key does not exist. */
  protected page = NO_PAGE;
  protected unit = 0;
  protected item: Bytes;
  /** Byte offset of word 0. */
  protected root = 0;

  #database = 0;
  /** The key, while there is no item that has it. */
  #keyBytes: Bytes;
  #keyOffset = 0;
  #keyLength = 0;
  #itemOffset = 0;
  #hasNewVersion = false;
  readonly #packed: PackedSource;
  /** What a tree is being built from. */
  #source: ElementSource;

  constructor(keyspace: Keyspace) {
    super(keyspace, false);
    this.item = this.leaf;
    this.#keyBytes = this.leaf;
    this.#packed = new PackedSource(keyspace);
    this.#source = this.#packed;
    this.side = new SideTree(keyspace, this.scratch);
  }

  // ---- opening

  /** Opens the collection of a key whose lock is held, before its first element. */
  open(shape: Shape, hash: number, db: number, bytes: Bytes, offset: number, length: number): Opened {
    const { keyspace } = this;
    if (keyspace.find(hash, db, bytes, offset, length)) {
      if (keyspace.type !== shape.type) return Opened.WRONG_TYPE;
      this.openFound(shape);
      return Opened.OPEN;
    }
    this.#begin(shape, hash);
    this.#beginAbsent(keyspace.physical(db), bytes, offset, length);
    return Opened.ABSENT;
  }

  /** Begins a draft under the name of a key whose lock is held: see draft.ts. */
  openDraft(shape: Shape, hash: number, bytes: Bytes, offset: number, length: number): void {
    this.#begin(shape, hash);
    this.#beginAbsent(Database.DRAFTS, bytes, offset, length);
  }

  #beginAbsent(database: number, bytes: Bytes, offset: number, length: number): void {
    this.#database = database;
    if (this.#keyBytes !== bytes) this.#keyBytes = bytes;
    this.#keyOffset = offset;
    this.#keyLength = length;
    this.#bindNothing();
  }

  /** The item's version, which no other state of this or another key has. The key exists. */
  get version(): number {
    const header = this.#itemOffset >>> 2;
    const { i32 } = this.item;
    return i32[header + Item.VERSION_HIGH_WORD] * 0x1_0000_0000 + (i32[header + Item.VERSION_LOW_WORD] >>> 0);
  }

  /** Puts the keyspace's cursor on the item. */
  standOnItem(): void {
    this.keyspace.standOn(this.keyHash, this.page, this.unit);
  }

  /** Opens the collection that the keyspace's cursor stands on. */
  openFound(shape: Shape): void {
    this.#begin(shape, this.keyspace.cursorHash);
    this.#database = this.keyspace.itemDatabase;
    this.bind();
    this.moveFirst();
  }

  /** The locks are released: nothing of it is valid any more. */
  close(): void {
    this.page = NO_PAGE;
  }

  /** True when the collection's item lies there. */
  isAt(page: number, unit: number): boolean {
    return this.page === page && this.unit === unit;
  }

  #begin(shape: Shape, hash: number): void {
    this.keyspace.openCollections++;
    if (this.shape !== shape) this.shape = shape;
    this.order = shape.order;
    this.valued = shape.valued;
    this.packedEntriesMax = shape.packedEntriesMax;
    this.packedElementMax = shape.packedElementMax;
    this.keyHash = hash;
    this.ownerHash = hash;
    this.#hasNewVersion = false;
    this.hasSteppedOver = false;
    this.slot = 0;
  }

  #bindNothing(): void {
    this.page = NO_PAGE;
    this.isSidePlaced = false;
    this.vacantHash = -1;
    this.isPackedLeaf = true;
    this.prefixBytes = this.order === Order.SCORE ? SCORE_BYTES : 0;
    this.side.bindNone();
  }

  /** Takes over where the keyspace's cursor stands. The position is lost, but for the slot of a packed collection. */
  protected bind(): void {
    const { value, page, unit, itemOffset, valueOffset, valueLength } = this.keyspace;
    if (this.item !== value) this.item = value;
    this.page = page;
    this.unit = unit;
    this.isSidePlaced = false;
    this.vacantHash = -1;
    this.#itemOffset = itemOffset;
    this.root = rootOffset(valueOffset);
    const arena = page >>> Page.ARENA_SHIFT;
    const body = this.root + this.#headBytes;
    if ((value.i32[this.root >>> 2] & Root.FORM_MASK) === Form.PACKED) {
      this.isPackedLeaf = true;
      this.prefixBytes = this.order === Order.SCORE ? SCORE_BYTES : 0;
      this.openLeafAt(value, arena, body, valueOffset + valueLength - body);
      this.side.bindNone();
    } else {
      this.prefixBytes = this.order === Order.SCORE ? SCORE_BYTES : this.order === Order.HASH ? HASH_BYTES : 0;
      this.openTree(value, arena, (body >>> 2) + Root.MAIN_WORD);
      const isScored = this.order === Order.SCORE;
      this.isEven = isScored || this.order === Order.HASH;
      this.side.bind(value, arena, (body >>> 2) + Root.SIDE_WORD, this.keyHash, this.shape.sideValued, isScored);
    }
  }

  /** Bytes of word 0 and the meta words. */
  get #headBytes(): number {
    return (1 + this.shape.metaWords) * 4;
  }

  get exists(): boolean {
    return this.page !== NO_PAGE;
  }

  /** False once it has become a tree, which it stays: what OBJECT ENCODING says follows from it. */
  get isPacked(): boolean {
    return this.isPackedLeaf;
  }

  // ---- changing the item

  /**
   * The item can be changed in place, and has a version that it never had before. False = no memory. So many changes can follow before
   * anything of it is settled for want of room in the journal.
   */
  protected beginChange(steps = 1): boolean {
    const { keyspace } = this;
    keyspace.makeChangeRoom(steps);
    if (this.memory.pageKind(this.page) !== PageKind.SLAB) {
      // Only packed ones leave the slabs.
      const { slot } = this;
      keyspace.standOn(this.keyHash, this.page, this.unit);
      if (!keyspace.rewrite(keyspace.encoding)) return false;
      this.bind();
      this.slot = slot;
    } else if (!this.#hasNewVersion) {
      keyspace.renewVersion(this.keyHash, this.page >>> Page.ARENA_SHIFT, this.item, this.#itemOffset >>> 2);
    }
    this.#hasNewVersion = true;
    return true;
  }

  /** Keeps the key of the item that is about to go: a later insertion makes it again. */
  protected rememberKey(): void {
    const { keyBytes, keyOffset, keyLength } = this.keyspace;
    const copy = Bytes.allocate(keyLength);
    copyBytes(copy, 0, keyBytes, keyOffset, keyLength);
    this.#keyBytes = copy;
    this.#keyOffset = 0;
    this.#keyLength = keyLength;
    this.#bindNothing();
  }

  /** Where the key's bytes are, for staging: the item's own, or the command's. The keyspace's cursor stands on the item afterwards. */
  #findKey(): number {
    if (!this.exists) return 0;
    const { keyspace } = this;
    keyspace.standOn(this.keyHash, this.page, this.unit);
    if (this.#keyBytes !== keyspace.keyBytes) this.#keyBytes = keyspace.keyBytes;
    this.#keyOffset = keyspace.keyOffset;
    this.#keyLength = keyspace.keyLength;
    return keyspace.expiryMs;
  }

  /** Stages an item with `bodyBytes` behind the head, which is copied or made; returns its body's byte offset, -1 = no memory. */
  #stageItem(bodyBytes: number, form: Form): number {
    const { keyspace } = this;
    const head = this.#headBytes;
    const before = rootOffset(this.#keyLength) - this.#keyLength + head;
    const length = before + bodyBytes;
    if (!keyspace.stageIn(this.keyHash, this.#database, this.#keyBytes, this.#keyOffset, this.#keyLength, length)) {
      return -1;
    }
    const { staged } = keyspace;
    const root = rootOffset(keyspace.stagedOffset);
    const { order, valued, metaWords } = this.shape;
    if (this.exists) copyBytes(staged, root, this.item, this.root, head);
    else staged.i32.fill(0, root >>> 2, (root + head) >>> 2);
    const marks = staged.i32[root >>> 2] & (Root.MARKS_MASK << Root.MARKS_SHIFT);
    staged.i32[root >>> 2] =
      form |
      (order << Root.ORDER_SHIFT) |
      ((valued ? 1 : 0) << Root.VALUED_SHIFT) |
      marks |
      (metaWords << Root.META_SHIFT);
    return root + head;
  }

  #commit(expiryMs: number): boolean {
    if (!this.keyspace.commit(this.shape.type, 0, 0, expiryMs)) return false;
    this.#hasNewVersion = true;
    this.bind();
    return true;
  }

  /**
   * Copies the packed collection (or none yet) to a fresh item with the new element before the position, `replaced` elements of which it
   * stands for. `bytes` 0 = only a copy of another size.
   */
  protected growPacked(bytes: number, replaced: number): Change {
    const { slot, exists } = this;
    const expiryMs = this.#findKey();
    const count = exists ? this.leafCount : 0;
    let needed = (exists ? this.liveBytes : Leaf.HEADER_BYTES) + bytes + Leaf.SLOT_BYTES;
    // What grows gets an eighth to grow on; a new collection may stay as it is.
    if (exists) needed += needed >>> 3;
    const before = Item.HEADER_BYTES + rootOffset(this.#keyLength) + this.#headBytes;
    const capacity = needed + slack(before + needed, this.memory.chunkTailBytes);
    const base = this.#stageItem(capacity, Form.PACKED);
    if (base < 0) return Change.NO_MEMORY;
    const { staged } = this.keyspace;
    staged.i32[base >>> 2] = capacity << Leaf.HEAP_SHIFT;
    staged.i32[(base >>> 2) + Leaf.DEAD_WORD] = 0;
    if (exists && replaced === 0) {
      this.copyElements(staged, base, 0, count);
    } else if (exists) {
      this.copyElements(staged, base, 0, slot);
      this.copyElements(staged, base, slot + replaced, count);
    }
    if (!this.#commit(expiryMs)) return Change.NO_MEMORY;
    this.slot = slot;
    if (bytes > 0) this.insertHere(bytes);
    return Change.DONE;
  }

  /** Copies a tree's root item, which the tree goes with; the old one still names it. The position is lost. False = no memory. */
  protected renewRoot(): boolean {
    const expiryMs = this.#findKey();
    const body = this.#stageItem(Root.TREE_WORDS * 4, Form.TREE);
    if (body < 0) return false;
    copyBytes(this.keyspace.staged, body, this.item, this.rootWord << 2, Root.TREE_WORDS * 4);
    return this.#commit(expiryMs);
  }

  // ---- from packed to tree

  /** Makes the collection a tree, which it stays; an absent key gets an empty one, to be filled at once. The position is lost. */
  protected makeTree(): Change {
    const { exists } = this;
    const source = this.#packed;
    this.#source = source;
    source.open(this.shape, exists ? this.item : null, this.base, this.leafArena, this.capacity);
    const isMixed = this.order === Order.HASH || this.order === Order.SCORE;
    const isScored = this.order === Order.SCORE;
    this.prefixBytes = isScored ? SCORE_BYTES : this.order === Order.HASH ? HASH_BYTES : 0;
    const planned =
      this.planBuild(source.leafCount, isMixed ? MIXED_FILL : LEAF_BODY_MAX) &&
      (!isScored || this.side.planMembers(source.memberHashes(), source.memberScores()));
    const expiryMs = planned ? this.#findKey() : 0;
    const body = planned ? this.#stageItem(Root.TREE_WORDS * 4, Form.TREE) : -1;
    if (body >= 0) {
      const { i32 } = this.keyspace.staged;
      i32.fill(0, body >>> 2, (body >>> 2) + Root.TREE_WORDS);
      if (this.#commit(expiryMs)) {
        this.applyBuild();
        if (isScored) this.side.applyMembers();
        this.moveFirst();
        return Change.DONE;
      }
    }
    this.dropPlan();
    this.side.drop();
    if (!exists) this.#bindNothing();
    else this.prefixBytes = isScored ? SCORE_BYTES : 0;
    return Change.NO_MEMORY;
  }

  /** An absent key gets an empty tree, to be filled at once. */
  createTree(): Change {
    return this.makeTree();
  }

  /**
   * Appends elements of a source to a tree, from number `first` on and before `end`: as many as make one leaf. They stand behind all that are
   * there; of a sorted set the members are to be added to the side tree as well. Returns how many, 0 = no memory.
   */
  append(source: ElementSource, first: number, end: number): number {
    if (!this.beginChange()) return 0;
    this.#source = source;
    const isMixed = this.order === Order.HASH || this.order === Order.SCORE;
    return this.appendLeaf(first, end, isMixed ? GROWING_FILL : LEAF_BODY_MAX);
  }

  /** Appends a leaf of a sorted set's members to its side tree: their numbers by hash and score are in `order`. Returns how many, 0 = no memory. */
  appendMembers(hashes: Uint32Array, scores: Float64Array, order: Uint32Array, first: number): number {
    return this.beginChange() ? this.side.appendMembers(hashes, scores, order, first) : 0;
  }

  /** Bytes of the chunks that hold the elements: more than they have themselves. */
  get chunkBytes(): number {
    if (!this.exists) return 0;
    return this.isPackedLeaf ? this.capacity : this.rootItem.i32[this.unitsWord] * Page.UNIT_BYTES;
  }

  protected override loadNew(index: number): void {
    const source = this.#source;
    source.loadInOrder(index);
    if (this.newKey !== source.key) this.newKey = source.key;
    this.newKeyOffset = source.keyOffset;
    this.newKeyLength = source.keyLength;
    if (this.newValue !== source.value) this.newValue = source.value;
    this.newValueOffset = source.valueOffset;
    this.newValueLength = source.valueLength;
    this.newExpiryMs = source.expiryMs;
    this.newScore = source.score;
    this.newHash = source.hash;
  }
}

/** Bytes that the chunk of an item of `bytes` has between it and the chunk's tail. */
function slack(bytes: number, tailBytes: number): number {
  return CLASS_UNITS[CLASS_OF_UNITS[unitsOf(bytes + tailBytes)]] * Page.UNIT_BYTES - bytes - tailBytes;
}
