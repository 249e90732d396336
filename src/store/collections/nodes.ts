/**
 * Chunks for the nodes of one step: taken before anything changes, so that a step that finds no memory has changed nothing.
 *
 * Owns: the chunks that are reserved. Invariant: a reserved chunk is in a held slot; `take` hands them out in the order in which they were
 * reserved and notes them as linked, which the undo of a dead participant takes back.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Item, ItemType, shapeWord } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { Inner, Leaf, Node } from '../../layout/node.js';
import { PageInfo, PageKind } from '../../layout/superblock.js';
import { CLASS_UNITS } from '../../memory/slab-classes.js';
import type { Keyspace } from '../keyspace.js';

/** Two leaves, an inner node a level, a new top, an element's own chunk; a conversion takes more leaves. */
const RESERVED_MAX = 48;

export class Nodes {
  /** False while nobody may be evicted for a chunk: what the command has changed must not be settled now. */
  mayMakeRoom = true;
  /** What `take` and `make...` have handed out. */
  page = 0;
  unit = 0;

  readonly #keyspace: Keyspace;
  readonly #pages = new Int32Array(RESERVED_MAX);
  readonly #units = new Int32Array(RESERVED_MAX);
  readonly #slots = new Int32Array(RESERVED_MAX);
  readonly #bytes = new Int32Array(RESERVED_MAX);
  #count = 0;
  #taken = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  /** Reserves a chunk with a body of so many bytes. False = no memory; what was reserved before stays. */
  reserve(bodyBytes: number, mayMakeRoom: boolean): boolean {
    const keyspace = this.#keyspace;
    if (this.#count === RESERVED_MAX) return false;
    if (!keyspace.takeChunk(Node.HEADER_BYTES + bodyBytes, mayMakeRoom && this.mayMakeRoom)) return false;
    const at = this.#count++;
    this.#pages[at] = keyspace.chunkPage;
    this.#units[at] = keyspace.chunkUnit;
    this.#slots[at] = keyspace.chunkSlot;
    this.#bytes[at] = bodyBytes;
    return true;
  }

  /** Gives back what has not been taken. */
  release(): void {
    for (let i = this.#taken; i < this.#count; i++) {
      this.#keyspace.dropChunk(this.#pages[i], this.#units[i], this.#slots[i]);
    }
    this.#count = 0;
    this.#taken = 0;
  }

  /** The next reserved chunk; returns the body bytes that were asked for. */
  take(): number {
    const at = this.#taken++;
    this.page = this.#pages[at];
    this.unit = this.#units[at];
    this.#keyspace.linkChunk(this.page, this.unit, this.#slots[at]);
    const bytes = this.#bytes[at];
    if (this.#taken === this.#count) {
      this.#count = 0;
      this.#taken = 0;
    }
    return bytes;
  }

  /** Takes a chunk and makes it an empty leaf; returns the byte offset of its body. */
  makeLeaf(isSide: boolean, parentPage: number, parentUnit: number, topHash: number): number {
    const capacity = this.take();
    const base = this.#writeHeader(capacity, 0, isSide, parentPage, parentUnit, topHash);
    const { i32 } = this.#bytesOf(this.page);
    i32[base >>> 2] = capacity << Leaf.HEAP_SHIFT;
    i32[(base >>> 2) + Leaf.DEAD_WORD] = 0;
    return base;
  }

  /** The same for an inner node without children; returns the first word of its body. */
  makeInner(level: number, isSide: boolean, parentPage: number, parentUnit: number, topHash: number): number {
    const base = this.#writeHeader(this.take(), level, isSide, parentPage, parentUnit, topHash);
    this.#bytesOf(this.page).i32[(base >>> 2) + Inner.COUNT_WORD] = 0;
    return base >>> 2;
  }

  /** The same for an element's own chunk, with room for its key and value; returns their byte offset. */
  makeBlob(isSide: boolean): number {
    return this.#writeHeader(this.take(), 0, isSide, 0, 0, 0, ItemType.BLOB);
  }

  #bytesOf(page: number): Bytes {
    return this.#keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
  }

  #writeHeader(
    capacity: number,
    level: number,
    isSide: boolean,
    parentPage: number,
    parentUnit: number,
    topHash: number,
    type = ItemType.NODE,
  ): number {
    const { i32 } = this.#bytesOf(this.page);
    const offset = locationOffset(this.page, this.unit);
    const header = offset >>> 2;
    i32[header + Item.VALUE_LENGTH_WORD] = capacity;
    i32[header + Item.SHAPE_WORD] = shapeWord(0, type, level, isSide ? 1 : 0);
    i32[header + Node.PARENT_PAGE_WORD] = parentPage;
    i32[header + Node.PARENT_UNIT_WORD] = parentUnit;
    i32[header + Item.VERSION_HIGH_WORD] = 0;
    i32[header + Item.HASH_WORD] = topHash;
    return offset + Node.HEADER_BYTES;
  }
}

/**
 * Chunks of nodes: of nine classes only. With a chunk as close as the slabs have it, the leaves of one collection lay in sixty classes, each
 * with a page of its own: a store of 20 MiB did nothing but empty pages for them.
 */
const NODE_CHUNK_BYTES = [256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096] as const;

/** Body bytes of the chunk that a body of `bytes`, at most that of the largest leaf, gets. */
export function roomyBody(bytes: number): number {
  for (const chunk of NODE_CHUNK_BYTES) if (chunk - Node.HEADER_BYTES >= bytes) return chunk - Node.HEADER_BYTES;
  return Node.LEAF_MAX_BYTES - Node.HEADER_BYTES;
}

/** 16-byte units that a node or blob takes from the store. */
export function chunkUnits({ memory }: Pick<Keyspace, 'memory'>, page: number): number {
  const info = memory.pageInfo(page);
  const kind = memory.ctl[info];
  if ((kind & 0xff) === PageKind.SLAB) return CLASS_UNITS[(kind >>> 8) & 0xff];
  return memory.ctl[info + PageInfo.FREE_HEAD_WORD] * Page.UNITS;
}
