/**
 * From a node of a collection to the item that owns it, for whoever meets nodes in slab pages: eviction and page moves.
 *
 * A node names its parent, the top node its key's hash. Read without a lock, a chain of parents may be torn: it only says which shard to
 * lock. Invariant: under that lock, `findRoot` believes a chain only when it can be walked from an item of the index downwards.
 */
import { Bucket } from '../../layout/bucket.js';
import { Form, Root, rootOffset } from '../../layout/collection.js';
import { Item, ItemType } from '../../layout/item.js';
import { locationOffset, Page, unitsOf } from '../../layout/location.js';
import { ElementCode, Inner, Leaf, Node } from '../../layout/node.js';
import { PageKind } from '../../layout/superblock.js';
import { MOVING_SLOT } from '../../memory/held.js';
import type { Memory } from '../../memory/memory.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import { RELOCATION_RATIO } from '../../memory/slab-classes.js';
import { copyBytes } from '../../native/copy.js';
import type { Keyspace } from '../keyspace.js';
import { Graveyard } from './graveyard.js';
import { chunkUnits } from './nodes.js';

/** A leaf's blob, the leaf, and the inner nodes above. */
const CHAIN_MAX = Node.LEVELS_MAX + 2;

export class Ownership {
  readonly #keyspace: Keyspace;
  readonly #memory: Memory;
  readonly #pages = new Int32Array(CHAIN_MAX);
  readonly #units = new Int32Array(CHAIN_MAX);
  #length = 0;
  /** Word of the root item that names the top node of the chain that findRoot has walked, and its arena. */
  #rootArena = 0;
  #topWord = 0;
  #treesWord = 0;
  #headWord = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#memory = keyspace.memory;
  }

  /** Hash of the key that a chunk belongs to, as far as can be told without a lock. `header` is its first word. */
  hashOf(page: number, unit: number, i32: Int32Array, header: number): number {
    if (!isPart(i32[header + Item.SHAPE_WORD])) return i32[header + Item.HASH_WORD];
    this.#climb(page, unit);
    const top = this.#length - 1;
    return this.#words(this.#pages[top])[this.#header(top) + Item.HASH_WORD];
  }

  #words(page: number): Int32Array {
    return this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32;
  }

  #header(at: number): number {
    return locationOffset(this.#pages[at], this.#units[at]) >>> 2;
  }

  /** Follows the parents of a node or blob up to the top, as far as they make sense. */
  #climb(fromPage: number, fromUnit: number): void {
    let page = fromPage;
    let unit = fromUnit;
    let length = 0;
    while (length < CHAIN_MAX && this.#memory.isPage(page)) {
      this.#pages[length] = page;
      this.#units[length++] = unit;
      const i32 = this.#words(page);
      const header = locationOffset(page, unit) >>> 2;
      page = i32[header + Node.PARENT_PAGE_WORD];
      unit = i32[header + Node.PARENT_UNIT_WORD] & 0xffff;
    }
    this.#length = length;
  }

  /** Positions the index on the root item of a node or blob; false when it is none, or of no key of the hash's shard (which is locked). */
  findRoot(hash: number, page: number, unit: number): boolean {
    const header = locationOffset(page, unit) >>> 2;
    const shape = this.#words(page)[header + Item.SHAPE_WORD];
    if (!isPart(shape)) return false;
    this.#climb(page, unit);
    return this.#findTop(hash) && this.#isChain();
  }

  /** Looks for the item of this hash whose tree has the end of the chain as its top. */
  #findTop(hash: number): boolean {
    const { index } = this.#keyspace;
    const top = this.#length - 1;
    const page = this.#pages[top];
    const unit = this.#units[top];
    index.locate(hash);
    do {
      const { words, base } = index;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        const at = base + Bucket.SLOT_WORD + slot * 2;
        if (words[at] >>> 16 !== hash >>> 16 || words[at + 1] === NO_PAGE) continue;
        if (!this.#isTop(hash, words[at + 1], words[at] & 0xffff, page, unit)) continue;
        index.slot = slot;
        return true;
      }
    } while (index.next());
    return false;
  }

  #isTop(hash: number, itemPage: number, itemUnit: number, page: number, unit: number): boolean {
    if (this.#memory.isCapacity(itemPage) || !Graveyard.isRoot(this.#memory, itemPage, itemUnit)) return false;
    const i32 = this.#words(itemPage);
    const offset = locationOffset(itemPage, itemUnit);
    if (i32[(offset >>> 2) + Item.HASH_WORD] !== hash) return false;
    const keyLength = i32[(offset >>> 2) + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    const root = rootOffset(offset + Item.HEADER_BYTES + keyLength) >>> 2;
    const trees = root + 1 + ((i32[root] >>> Root.META_SHIFT) & Root.META_MASK);
    this.#rootArena = itemPage >>> Page.ARENA_SHIFT;
    this.#treesWord = trees;
    this.#headWord = root;
    for (const word of TREES) {
      this.#topWord = trees + word;
      const topUnit = i32[trees + word + Root.TOP_WORD] & 0xffff;
      if (i32[trees + word] === page && topUnit === unit) return true;
    }
    return false;
  }

  /** True when each link of the chain, from the top down, is one that the upper node knows of. */
  #isChain(): boolean {
    for (let at = this.#length - 1; at > 0; at--) if (this.#entryOf(at) < 0) return false;
    return true;
  }

  /** Bytes in front of the elements of a leaf with this shape word. */
  #prefixBytes(shape: number): number {
    if (shape >>> Item.DB_SHIFT === 1) return 0;
    const head = this.#memory.arenas[this.#rootArena].i32[this.#headWord];
    return PREFIX_BYTES[(head >>> Root.ORDER_SHIFT) & Root.ORDER_MASK];
  }

  /** Where chain node `at` names node `at` - 1: word of the entry, or byte offset of the stub; -1 = it does not. */
  #entryOf(at: number): number {
    const parent = this.#pages[at];
    const { i32, u8, view } = this.#memory.arenas[parent >>> Page.ARENA_SHIFT];
    const body = this.#header(at) + Node.HEADER_WORDS;
    const page = this.#pages[at - 1];
    const unit = this.#units[at - 1];
    const level = (i32[body - Node.HEADER_WORDS + Item.SHAPE_WORD] >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK;
    if (level > 0) {
      const children = i32[body + Inner.COUNT_WORD];
      for (let child = 0; child < children; child++) {
        const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
        if (i32[entry + Inner.PAGE_WORD] === page && i32[entry + Inner.UNIT_WORD] === unit) return entry;
      }
      return -1;
    }
    const base = body << 2;
    const prefix = this.#prefixBytes(i32[body - Node.HEADER_WORDS + Item.SHAPE_WORD]);
    const count = i32[body] & Leaf.COUNT_MASK;
    for (let slot = 0; slot < count; slot++) {
      let stub = base + view.getUint16(base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES, true) + prefix;
      if (u8[stub] === ElementCode.EXPIRES) stub += 1 + ElementCode.EXPIRY_BYTES;
      if (u8[stub] !== ElementCode.BLOB) continue;
      if (view.getUint32(stub + 1, true) === page && view.getUint16(stub + 5, true) === unit) return stub;
    }
    return -1;
  }

  /**
   * Moves the node or blob at the start of the chain that findRoot has walked into another chunk; the shard is locked, the index stands on
   * the root item's entry. False = there is no free chunk.
   */
  relocate(page: number, unit: number): boolean {
    const keyspace = this.#keyspace;
    const memory = this.#memory;
    const { slabs, journal } = keyspace;
    const info = memory.ctl[memory.pageInfo(page)];
    if ((info & 0xff) !== PageKind.SLAB) return false;
    if (!slabs.takeLarger((info >>> 8) & 0xff, RELOCATION_RATIO, MOVING_SLOT)) return false;
    const newPage = slabs.page;
    const newUnit = slabs.unit;
    const from = memory.arenas[page >>> Page.ARENA_SHIFT];
    const to = memory.arenas[newPage >>> Page.ARENA_SHIFT];
    const offset = locationOffset(page, unit);
    const newOffset = locationOffset(newPage, newUnit);
    const bytes = Node.HEADER_BYTES + from.i32[(offset >>> 2) + Item.VALUE_LENGTH_WORD];
    copyBytes(to, newOffset, from, offset, unitsOf(bytes) << Page.UNIT_SHIFT);
    // First the journal, then the held slots: see repair.
    const rootWords = memory.arenas[this.#rootArena].i32;
    const unitsWord = this.#treesWord + Root.UNITS_WORD;
    journal.save(this.#rootArena, rootWords, unitsWord);
    rootWords[unitsWord] += chunkUnits(keyspace, newPage) - chunkUnits(keyspace, page);
    keyspace.linkMoved();
    this.#repoint(newPage, newUnit);
    this.#adopt(newPage, newUnit, newOffset >>> 2);
    keyspace.retireChunk(page, unit);
    return true;
  }

  /** The root item at this place has been copied elsewhere: its tree goes with the copy. Journaled. */
  markMoved(page: number, unit: number): void {
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = this.#memory.arenas[arena];
    const offset = locationOffset(page, unit);
    const keyLength = i32[(offset >>> 2) + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    const root = rootOffset(offset + Item.HEADER_BYTES + keyLength) >>> 2;
    this.#keyspace.journal.save(arena, i32, root);
    i32[root] |= Form.MOVED;
  }

  /** Lets whatever names the first node of the chain name its new place. */
  #repoint(page: number, unit: number): void {
    const { journal } = this.#keyspace;
    if (this.#length === 1) {
      const { i32 } = this.#memory.arenas[this.#rootArena];
      journal.saveRange(this.#rootArena, i32, this.#topWord, 2);
      i32[this.#topWord] = page;
      i32[this.#topWord + Root.TOP_WORD] = (i32[this.#topWord + Root.TOP_WORD] & ~0xffff) | unit;
      return;
    }
    const arena = this.#pages[1] >>> Page.ARENA_SHIFT;
    const { i32, view } = this.#memory.arenas[arena];
    const entry = this.#entryOf(1);
    const level = (i32[this.#header(1) + Item.SHAPE_WORD] >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK;
    if (level > 0) {
      journal.saveRange(arena, i32, entry, 2);
      i32[entry + Inner.PAGE_WORD] = page;
      i32[entry + Inner.UNIT_WORD] = unit;
      return;
    }
    journal.saveRange(arena, i32, (entry + 1) >>> 2, 3);
    view.setUint32(entry + 1, page, true);
    view.setUint16(entry + 5, unit, true);
  }

  /** Makes the moved node the parent of what it leads to. */
  #adopt(page: number, unit: number, header: number): void {
    const { i32, u8, view } = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    const shape = i32[header + Item.SHAPE_WORD];
    if (((shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK) === ItemType.BLOB) return;
    const body = header + Node.HEADER_WORDS;
    if (((shape >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK) > 0) {
      const children = i32[body + Inner.COUNT_WORD];
      for (let child = 0; child < children; child++) {
        const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
        this.#setParent(i32[entry], i32[entry + Inner.UNIT_WORD], page, unit);
      }
      return;
    }
    if ((i32[body + Leaf.DEAD_WORD] & Leaf.BLOBS_FLAG) === 0) return;
    const prefix = this.#prefixBytes(shape);
    const base = body << 2;
    for (let slot = 0; slot < (i32[body] & Leaf.COUNT_MASK); slot++) {
      let stub = base + view.getUint16(base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES, true) + prefix;
      if (u8[stub] === ElementCode.EXPIRES) stub += 1 + ElementCode.EXPIRY_BYTES;
      if (u8[stub] !== ElementCode.BLOB) continue;
      this.#setParent(view.getUint32(stub + 1, true), view.getUint16(stub + 5, true), page, unit);
    }
  }

  #setParent(page: number, unit: number, parentPage: number, parentUnit: number): void {
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = this.#memory.arenas[arena];
    const at = (locationOffset(page, unit) >>> 2) + Node.PARENT_PAGE_WORD;
    this.#keyspace.journal.saveRange(arena, i32, at, 2);
    i32[at] = parentPage;
    i32[at + 1] = parentUnit;
  }
}

const TREES = [Root.MAIN_WORD, Root.SIDE_WORD] as const;
/** Bytes in front of elements of trees, by order. */
const PREFIX_BYTES = [0, 4, 8, 0] as const;

function isPart(shape: number): boolean {
  const type = (shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
  return type === ItemType.NODE || type === ItemType.BLOB;
}
