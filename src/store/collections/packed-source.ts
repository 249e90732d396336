/**
 * The elements of a packed collection in the order that a tree of them has. Allocates: a collection becomes a tree once.
 *
 * Invariant: while it is in use the packed item's bytes stay where they are.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import type { Keyspace } from '../keyspace.js';
import { LeafReader } from './leaf-reader.js';
import type { Shape } from './shapes.js';
import { writeMember } from './side-tree.js';

export class PackedSource extends LeafReader {
  /** Hash of the element that loadInOrder has read. */
  hash = 0;
  readonly #keyspace: Keyspace;
  #isOpen = false;
  /** Hashes by slot; slots in the tree's order. */
  #hashes = new Uint32Array(0);
  #slots = new Int32Array(0);

  constructor(keyspace: Keyspace) {
    super(keyspace.memory);
    this.#keyspace = keyspace;
  }

  /** Opens the leaf in an item; null = there are no elements. */
  open(shape: Shape, item: Bytes | null, base: number, arena: number, capacity: number): void {
    this.order = shape.order;
    this.valued = shape.valued;
    this.prefixBytes = shape.order === Order.SCORE ? 8 : 0;
    this.#isOpen = item !== null;
    if (item !== null) this.openLeafAt(item, arena, base, capacity);
    const count = this.leafCount;
    this.#hashes = new Uint32Array(count);
    this.#slots = Int32Array.from({ length: count }, (_, slot) => slot);
    if (this.order !== Order.HASH && this.order !== Order.SCORE) return;
    for (this.slot = 0; this.slot < count; this.slot++) {
      this.load();
      this.#hashes[this.slot] = this.#keyspace.hash(0, this.key, this.keyOffset, this.keyLength);
    }
    if (this.order === Order.HASH) this.#slots.sort((a, b) => this.#hashes[a] - this.#hashes[b] || this.#byKey(a, b));
  }

  override get leafCount(): number {
    return this.#isOpen ? super.leafCount : 0;
  }

  #byKey(a: number, b: number): number {
    return Buffer.compare(this.#keyOf(a), this.#keyOf(b));
  }

  #keyOf(slot: number): Uint8Array {
    this.slot = slot;
    this.load();
    return this.key.u8.subarray(this.keyOffset, this.keyOffset + this.keyLength);
  }

  loadInOrder(index: number): void {
    this.slot = this.#slots[index];
    this.hash = this.#hashes[this.slot];
    this.load();
  }

  /** Of a sorted set, in the order of the side tree. */
  memberHashes(): Uint32Array {
    this.#sortMembers();
    return Uint32Array.from(this.#slots, (slot) => this.#hashes[slot]);
  }

  /** The same members' scores; after memberHashes. */
  memberScores(): Float64Array {
    const scores = Float64Array.from(this.#slots, (slot) => this.#scoreOf(slot));
    this.#slots.sort((a, b) => a - b);
    return scores;
  }

  #scoreOf(slot: number): number {
    this.slot = slot;
    this.load();
    return this.score;
  }

  #sortMembers(): void {
    const keys = Array.from(this.#slots, (slot) => {
      const key = new Uint8Array(12);
      writeMember(new DataView(key.buffer), this.#hashes[slot], this.#scoreOf(slot));
      return key;
    });
    this.#slots.sort((a, b) => Buffer.compare(keys[a], keys[b]));
  }
}
