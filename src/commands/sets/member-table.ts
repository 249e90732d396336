/**
 * Members of sets, copied: what a command needs after the collections that it read have changed, or to tell members apart.
 *
 * Owns: the copies. Invariant: member i of 0..count-1 is bytes[offsets[i], + lengths[i]); a dropped one has length -1. One table a thread
 * is reused by all commands; `clear` gives large ones back to the engine.
 */
import { Bytes, bytesEqual } from '../../layout/bytes.js';
import { copyBytes } from '../../native/copy.js';

const BYTES_MIN = 4096;
const MEMBERS_MIN = 64;
/** Larger buffers are not kept from command to command. */
const KEPT_BYTES_MAX = 1 << 20;

export class MemberTable {
  bytes = Bytes.allocate(BYTES_MIN);
  /** Members, dropped ones included. */
  count = 0;
  /** Members without the dropped ones. */
  size = 0;
  offsets = new Uint32Array(MEMBERS_MIN);
  lengths = new Int32Array(MEMBERS_MIN);

  /** Of the members that were added with theirs. */
  hashes = new Int32Array(MEMBERS_MIN);

  #usedBytes = 0;
  /** Open addressing, of a power of two: member + 1, 0 = free. */
  #slots = new Int32Array(2 * MEMBERS_MIN);

  /** Makes room for so many members, of so many bytes: growing copies everything at once. The table is empty. */
  expect(memberCount: number, byteCount: number): void {
    this.bytes = Bytes.allocate(Math.max(BYTES_MIN, byteCount));
    this.offsets = new Uint32Array(memberCount + 1);
    this.lengths = new Int32Array(memberCount + 1);
    this.hashes = new Int32Array(memberCount + 1);
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * memberCount + 2)));
  }

  clear(): void {
    if (this.bytes.length > KEPT_BYTES_MAX || this.#slots.length * 4 > KEPT_BYTES_MAX) {
      this.bytes = Bytes.allocate(BYTES_MIN);
      this.offsets = new Uint32Array(MEMBERS_MIN);
      this.lengths = new Int32Array(MEMBERS_MIN);
      this.hashes = new Int32Array(MEMBERS_MIN);
      this.#slots = new Int32Array(2 * MEMBERS_MIN);
    } else if (this.count > 0) {
      this.#slots.fill(0);
    }
    this.count = 0;
    this.size = 0;
    this.#usedBytes = 0;
  }

  /** Hands everything over to a table of its own, and is empty. */
  take(): MemberTable {
    const taken = new MemberTable();
    taken.bytes = this.bytes;
    taken.count = this.count;
    taken.size = this.size;
    taken.offsets = this.offsets;
    taken.lengths = this.lengths;
    taken.hashes = this.hashes;
    taken.#usedBytes = this.#usedBytes;
    taken.#slots = this.#slots;
    this.bytes = Bytes.allocate(BYTES_MIN);
    this.offsets = new Uint32Array(MEMBERS_MIN);
    this.lengths = new Int32Array(MEMBERS_MIN);
    this.hashes = new Int32Array(MEMBERS_MIN);
    this.#slots = new Int32Array(2 * MEMBERS_MIN);
    this.clear();
    return taken;
  }

  /** Appends a member that is not looked for again. */
  push(from: Bytes, offset: number, length: number): void {
    this.#reserve(length);
    const { count } = this;
    copyBytes(this.bytes, this.#usedBytes, from, offset, length);
    this.offsets[count] = this.#usedBytes;
    this.lengths[count] = length;
    this.#usedBytes += length;
    this.count++;
    this.size++;
  }

  /** Appends a member with its hash; false = it is there already. */
  add(hash: number, from: Bytes, offset: number, length: number): boolean {
    if (this.count * 2 >= this.#slots.length) this.#rehash();
    const slot = this.#find(hash, from, offset, length);
    if (this.#slots[slot] !== 0) return false;
    this.push(from, offset, length);
    this.hashes[this.count - 1] = hash;
    this.#slots[slot] = this.count;
    return true;
  }

  /** The number of a member that was added with its hash, -1 = it is not there. */
  indexOf(hash: number, from: Bytes, offset: number, length: number): number {
    return this.#slots[this.#find(hash, from, offset, length)] - 1;
  }

  /** Drops a member that was added with its hash, if it is there. */
  dropEqual(hash: number, from: Bytes, offset: number, length: number): void {
    const member = this.indexOf(hash, from, offset, length);
    if (member >= 0) this.drop(member);
  }

  drop(member: number): void {
    if (this.lengths[member] < 0) return;
    this.lengths[member] = -1;
    this.size--;
  }

  has(member: number): boolean {
    return this.lengths[member] >= 0;
  }

  /** The slot of an equal member, or the free one where it belongs. Dropped members are equal to none. */
  #find(hash: number, from: Bytes, offset: number, length: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    // The low bits of a shard's hashes may be alike; the high ones are mixed in.
    let slot = (hash ^ (hash >>> 16)) & mask;
    for (; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const member = slots[slot] - 1;
      if (this.hashes[member] !== hash || this.lengths[member] !== length) continue;
      if (bytesEqual(this.bytes, this.offsets[member], from, offset, length)) break;
    }
    return slot;
  }

  #rehash(): void {
    const slots = new Int32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let member = 0; member < this.count; member++) {
      const hash = this.hashes[member];
      let slot = (hash ^ (hash >>> 16)) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = member + 1;
    }
    this.#slots = slots;
  }

  #reserve(length: number): void {
    if (this.#usedBytes + length > this.bytes.length) {
      const larger = Bytes.allocate(Math.max(this.bytes.length * 2, this.#usedBytes + length));
      copyBytes(larger, 0, this.bytes, 0, this.#usedBytes);
      this.bytes = larger;
    }
    if (this.count < this.offsets.length) return;
    const size = this.offsets.length * 2;
    const { offsets, lengths } = this;
    const hashes = this.hashes;
    this.offsets = new Uint32Array(size);
    this.offsets.set(offsets);
    this.lengths = new Int32Array(size);
    this.lengths.set(lengths);
    this.hashes = new Int32Array(size);
    this.hashes.set(hashes);
  }
}

/** By their bytes. */
export function compareMembers({ bytes, offsets, lengths }: MemberTable, a: number, b: number): number {
  const [one, other] = [a, b].map((i) => bytes.u8.subarray(offsets[i], offsets[i] + lengths[i]));
  return Buffer.compare(one, other);
}

/** A thread runs one command at a time. */
export const members = new MemberTable();
