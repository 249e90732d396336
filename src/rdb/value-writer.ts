/**
 * Writing the value of an item: in the encoding that Redis would choose for it, byte for byte where that is determined.
 *
 *   const type = values.plan(keyspace, version);   // -1: nothing to be written, all its fields have run out
 *   writer.byte(type) ... values.write();
 *
 * Invariant: between plan and write the item stays as it is: its lock is held, or whoever lets go of it (see `onPause`) finds out
 * whether it has changed.
 */

import { Bytes } from '../layout/bytes.js';
import { ItemType } from '../layout/item.js';
import { type Collection, HASHES, LISTS, SETS, SORTED_SETS, STREAMS } from '../store/collections/collection.js';
import { HashMark, SetMark } from '../store/collections/forms.js';
import type { Keyspace } from '../store/keyspace.js';
import { QuicklistNode, RdbType, Version } from './format.js';
import { IntsetWriter } from './packed/intset.js';
import { entryBytes, ListpackWriter } from './packed/listpack.js';
import { isIntegerScore, scoreText } from './score-text.js';
import { StreamWriter } from './stream-writer.js';
import type { RdbWriter } from './writer.js';

const TWO_32 = 0x1_0000_0000;
/** What a quicklist reckons for an element beyond its bytes, and for an empty node. */
const NODE_OVERHEAD_BYTES = 8;
const NODE_EMPTY_BYTES = 7;
/** list-max-listpack-size below zero: bytes of a node; above: elements, and at most so many bytes. */
const NODE_BYTES = [4096, 8192, 16_384, 32_768, 65_536];
const NODE_SAFE_BYTES = 8192;
/** Elements between two pauses. */
const PAUSE_EVERY = 128;

/** Work that yields where it may pause. */
export type Pauses<Result = void> = Generator<undefined, Result, undefined>;

export class ValueWriter {
  /** Redis's list-max-listpack-size. */
  listSize = -2;
  /** Called now and then between two elements of a tree: it may let go of the item, if it finds it again as it was. */
  onPause: (() => void) | null = null;
  /** Whoever calls planInSteps and writeInSteps pauses where they yield; the cursor stands on the item when they go on. */
  isStepped = false;
  /** Hashes whose fields' expiries have been left out, since the version has no place for them. */
  expiriesLost = 0;

  readonly streams: StreamWriter;

  readonly #writer: RdbWriter;
  readonly #listpack = new ListpackWriter();
  readonly #intset = new IntsetWriter();
  readonly #text = Bytes.allocate(32);
  #keyspace!: Keyspace;
  #collection!: Collection;
  #shape: typeof LISTS = LISTS;
  /** The moment by which fields have run out or not. */
  #nowMs = 0;
  #type: RdbType = RdbType.STRING;
  #version = 0;
  #steps = 0;
  /** Of a list: its nodes. Of a hash: fields that have not run out, and the earliest expiry among them. */
  #nodes = 0;
  #live = 0;
  #earliestMs = 0;

  constructor(writer: RdbWriter) {
    this.#writer = writer;
    this.streams = new StreamWriter(writer, () => this.#pause());
  }

  /** Looks at the item that the keyspace's cursor stands on. Returns its type in RDB of that version, -1 = there is nothing to be written. */
  plan(keyspace: Keyspace, version: number): number {
    return this.#toEnd(this.planInSteps(keyspace, version));
  }

  *planInSteps(keyspace: Keyspace, version: number): Pauses<number> {
    this.#keyspace = keyspace;
    this.#version = version;
    this.#steps = 0;
    this.#nowMs = keyspace.nowMs;
    this.#type = yield* this.#plan(keyspace);
    return this.#type;
  }

  #toEnd<Result>(steps: Pauses<Result>): Result {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      this.onPause?.();
    }
  }

  *#plan(keyspace: Keyspace): Pauses<number> {
    switch (keyspace.type) {
      case ItemType.STRING:
        return RdbType.STRING;
      case ItemType.LIST:
        this.#open(LISTS);
        yield* this.#countNodes();
        return RdbType.LIST_QUICKLIST_2;
      case ItemType.SET: {
        const set = this.#open(SETS);
        if ((set.marks & SetMark.INTEGERS) !== 0) return RdbType.SET_INTSET;
        return set.isPacked && this.#version >= Version.REDIS_7_2 ? RdbType.SET_LISTPACK : RdbType.SET;
      }
      case ItemType.ZSET:
        return this.#open(SORTED_SETS).isPacked ? RdbType.ZSET_LISTPACK : RdbType.ZSET_2;
      case ItemType.HASH:
        return yield* this.#planHash(this.#open(HASHES));
      case ItemType.STREAM:
        this.streams.plan(this.#open(STREAMS));
        return this.#version >= Version.REDIS_7_2 ? RdbType.STREAM_LISTPACKS_3 : RdbType.STREAM_LISTPACKS_2;
      default:
        throw new Error(`an item of unknown type ${keyspace.type}`);
    }
  }

  #open(shape: typeof LISTS): Collection {
    this.#shape = shape;
    this.#collection = this.#keyspace.collections[0];
    this.#collection.openFound(shape);
    return this.#collection;
  }

  /** The field-by-field form of Redis 7.4 is there where a field has an expiry, and the version knows it. */
  *#planHash(hash: Collection): Pauses<number> {
    this.#live = hash.count;
    this.#earliestMs = 0;
    if ((hash.marks & HashMark.EXPIRES) !== 0) {
      yield* this.#countFields(hash);
      if (this.#live === 0) return -1;
      if (this.#earliestMs !== 0 && this.#version >= Version.REDIS_7_4) {
        return hash.isPacked ? RdbType.HASH_LISTPACK_EX : RdbType.HASH_METADATA;
      }
      if (this.#earliestMs !== 0) this.expiriesLost++;
    }
    return hash.isPacked ? RdbType.HASH_LISTPACK : RdbType.HASH;
  }

  *#countFields(hash: Collection): Pauses {
    this.#live = 0;
    for (let more = hash.first(); more; more = hash.next()) {
      hash.load();
      if (this.#isLive(hash)) {
        this.#live++;
        const { expiryMs } = hash;
        if (expiryMs !== 0 && (this.#earliestMs === 0 || expiryMs < this.#earliestMs)) this.#earliestMs = expiryMs;
      }
      if (this.#isPauseDue()) yield* this.#rest();
    }
  }

  #isLive(hash: Collection): boolean {
    return hash.expiryMs === 0 || hash.expiryMs > this.#nowMs;
  }

  /** Now and then, between two elements. */
  #isPauseDue(): boolean {
    if (this.onPause === null && !this.isStepped) return false;
    return ++this.#steps % PAUSE_EVERY === 0 && !this.#collection.isPacked;
  }

  *#rest(): Pauses {
    const { rank } = this.#collection;
    yield;
    this.#reopen(rank);
  }

  #reopen(rank: number): void {
    this.#collection.openFound(this.#shape);
    this.#collection.seekRank(rank);
  }

  /** Of a stream, which is written in one go where nobody is called. True = the collection has been opened anew. */
  #pause(): boolean {
    if (this.onPause === null || !this.#isPauseDue()) return false;
    const { rank } = this.#collection;
    this.onPause();
    this.#reopen(rank);
    return true;
  }

  /** Writes what `plan` has looked at, behind its type. */
  write(): void {
    this.#toEnd(this.writeInSteps());
  }

  *writeInSteps(): Pauses {
    const { value, valueOffset, valueLength } = this.#keyspace;
    switch (this.#type) {
      case RdbType.STRING:
        return this.#writer.string(value, valueOffset, valueLength);
      case RdbType.LIST_QUICKLIST_2:
        return yield* this.#writeList();
      case RdbType.SET:
        return yield* this.#writeSet();
      case RdbType.SET_INTSET:
        return this.#writeIntset();
      case RdbType.SET_LISTPACK:
        return this.#writePackedSet();
      case RdbType.ZSET_LISTPACK:
        return this.#writePackedScores();
      case RdbType.ZSET_2:
        return yield* this.#writeScores();
      case RdbType.STREAM_LISTPACKS_2:
      case RdbType.STREAM_LISTPACKS_3:
        return this.streams.write(this.#collection, this.#version);
      default:
        return yield* this.#writeHash();
    }
  }

  // ---- lists

  /** True when an element of so many bytes goes into a node of `bytes` bytes and `count` elements. */
  #fits(bytes: number, count: number, length: number): boolean {
    if (count === 0) return true;
    const size = bytes + length + NODE_OVERHEAD_BYTES;
    const { listSize } = this;
    if (listSize < 0) return size <= NODE_BYTES[Math.min(-listSize, NODE_BYTES.length) - 1];
    return size <= NODE_SAFE_BYTES && count < listSize;
  }

  *#countNodes(): Pauses {
    const list = this.#collection;
    this.#nodes = 1;
    let bytes = NODE_EMPTY_BYTES;
    let count = 0;
    for (let more = list.first(); more; more = list.next()) {
      list.load();
      if (!this.#fits(bytes, count, list.keyLength)) {
        this.#nodes++;
        bytes = NODE_EMPTY_BYTES;
        count = 0;
      }
      bytes += entryBytes(list.key, list.keyOffset, list.keyLength);
      count++;
      if (this.#isPauseDue()) yield* this.#rest();
    }
  }

  *#writeList(): Pauses {
    const list = this.#collection;
    const node = this.#listpack;
    this.#writer.lengthOf(this.#nodes);
    node.begin();
    for (let more = list.first(); more; more = list.next()) {
      list.load();
      if (!this.#fits(node.length + 1, node.count, list.keyLength)) this.#writeNode();
      node.add(list.key, list.keyOffset, list.keyLength);
      if (this.#isPauseDue()) yield* this.#rest();
    }
    this.#writeNode();
  }

  #writeNode(): void {
    this.#writer.lengthOf(QuicklistNode.PACKED);
    this.#writeListpack();
    this.#listpack.begin();
  }

  #writeListpack(): void {
    const { bytes } = this.#listpack;
    this.#listpack.finish();
    this.#writer.string(this.#listpack.bytes, 0, this.#listpack.length);
    // The one that was large for a moment need not stay.
    if (bytes.length > 1 << 20) this.#listpack.bytes = Bytes.allocate(1024);
  }

  // ---- sets

  *#writeSet(): Pauses {
    const set = this.#collection;
    this.#writer.lengthOf(set.count);
    for (let more = set.first(); more; more = set.next()) {
      set.load();
      this.#writer.string(set.key, set.keyOffset, set.keyLength);
      if (this.#isPauseDue()) yield* this.#rest();
    }
  }

  #writeIntset(): void {
    const set = this.#collection;
    this.#intset.begin();
    for (let more = set.first(); more; more = set.next()) {
      set.load();
      this.#intset.add(set.key, set.keyOffset, set.keyLength);
    }
    this.#intset.finish();
    this.#writer.string(this.#intset.bytes, 0, this.#intset.length);
  }

  #writePackedSet(): void {
    const set = this.#collection;
    this.#listpack.begin();
    for (let more = set.first(); more; more = set.next()) {
      set.load();
      this.#listpack.add(set.key, set.keyOffset, set.keyLength);
    }
    this.#writeListpack();
  }

  // ---- sorted sets

  #writePackedScores(): void {
    const set = this.#collection;
    this.#listpack.begin();
    for (let more = set.first(); more; more = set.next()) {
      set.load();
      this.#listpack.add(set.key, set.keyOffset, set.keyLength);
      this.#addScore(set.score);
    }
    this.#writeListpack();
  }

  #addScore(score: number): void {
    if (isIntegerScore(score)) {
      // Halves of a double are exact: it has no more than 53 bits.
      const low = (score % TWO_32) | 0;
      this.#listpack.addInteger(Math.floor(score / TWO_32) | 0, low);
      return;
    }
    const text = scoreText(score, this.#version >= Version.REDIS_7_2);
    for (let i = 0; i < text.length; i++) this.#text.u8[i] = text.charCodeAt(i);
    this.#listpack.add(this.#text, 0, text.length);
  }

  /** From the last to the first, as Redis does: who loads them inserts at the front. */
  *#writeScores(): Pauses {
    const set = this.#collection;
    this.#writer.lengthOf(set.count);
    for (let more = set.last(); more; more = set.previous()) {
      set.load();
      this.#writer.string(set.key, set.keyOffset, set.keyLength);
      this.#writer.double(set.score);
      if (this.#isPauseDue()) yield* this.#rest();
    }
  }

  // ---- hashes

  *#writeHash(): Pauses {
    const type = this.#type;
    const isExpiring = type === RdbType.HASH_METADATA || type === RdbType.HASH_LISTPACK_EX;
    if (isExpiring) this.#writer.int64(this.#earliestMs);
    if (type === RdbType.HASH_LISTPACK) this.#writePackedFields();
    else if (type === RdbType.HASH_LISTPACK_EX) this.#writePackedTriples();
    else yield* this.#writeFields(isExpiring);
  }

  *#writeFields(isExpiring: boolean): Pauses {
    const hash = this.#collection;
    this.#writer.lengthOf(this.#live);
    for (let more = hash.first(); more; more = hash.next()) {
      hash.load();
      if (this.#isLive(hash)) {
        const { expiryMs } = hash;
        if (isExpiring) this.#writer.lengthOf(expiryMs === 0 ? 0 : expiryMs - this.#earliestMs + 1);
        this.#writer.string(hash.key, hash.keyOffset, hash.keyLength);
        this.#writer.string(hash.value, hash.valueOffset, hash.valueLength);
      }
      if (this.#isPauseDue()) yield* this.#rest();
    }
  }

  #writePackedFields(): void {
    const hash = this.#collection;
    this.#listpack.begin();
    for (let more = hash.first(); more; more = hash.next()) {
      hash.load();
      if (!this.#isLive(hash)) continue;
      this.#listpack.add(hash.key, hash.keyOffset, hash.keyLength);
      this.#listpack.add(hash.value, hash.valueOffset, hash.valueLength);
    }
    this.#writeListpack();
  }

  /** In the order of their expiries, those without one last. */
  #writePackedTriples(): void {
    const hash = this.#collection;
    const ranks: { readonly rank: number; readonly expiryMs: number }[] = [];
    for (let more = hash.first(); more; more = hash.next()) {
      hash.load();
      if (this.#isLive(hash)) ranks.push({ rank: hash.rank, expiryMs: hash.expiryMs });
    }
    ranks.sort((a, b) => (a.expiryMs || Number.MAX_SAFE_INTEGER) - (b.expiryMs || Number.MAX_SAFE_INTEGER));
    this.#listpack.begin();
    for (const { rank, expiryMs } of ranks) {
      hash.seekRank(rank);
      hash.load();
      this.#listpack.add(hash.key, hash.keyOffset, hash.keyLength);
      this.#listpack.add(hash.value, hash.valueOffset, hash.valueLength);
      this.#listpack.addInteger(Math.floor(expiryMs / TWO_32), expiryMs | 0);
    }
    this.#writeListpack();
  }
}
