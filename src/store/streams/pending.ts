/**
 * Entries that a group has delivered and that were not acknowledged: by id, and by consumer and id.
 *
 * Owns: what is known of the one that was found last. Invariant: an entry is pending for one consumer, and stands in both orders or in
 * neither, whenever the process dies.
 */
import { Bytes } from '../../layout/bytes.js';
import { ID_KEY_BYTES_MAX, OrderedNumber, PendingRecord, SideKey } from '../../layout/stream.js';
import { Change, type Collection } from '../collections/collection.js';
import type { SideElement } from '../collections/side-tree.js';
import { mustBeDone, type StreamGroups, set } from './groups.js';
import type { Stream } from './stream.js';
import { StreamId, writeOrdered } from './stream-id.js';

/** Kind, group, consumer, id, and a byte behind the last of them. */
const KEY_BYTES_MAX = 2 + 2 * OrderedNumber.SMALL_BYTES_MAX + ID_KEY_BYTES_MAX;
/** Where the second key and the record lie in the buffer. */
const SECOND_KEY = KEY_BYTES_MAX;
const RECORD = 2 * KEY_BYTES_MAX;
const BEYOND = 0xff;
const WORD = 0x1_0000_0000;
const COUNT_MAX = 2 ** 48 - 1;

export class PendingEntries {
  readonly id = new StreamId();
  /** Number of its consumer. */
  consumer = 0;
  deliveredMs = 0;
  deliveries = 0;

  readonly #stream: Stream;
  readonly #groups: StreamGroups;
  readonly #bytes = Bytes.allocate(RECORD + PendingRecord.BYTES);
  /** Where ids begin in the keys that are moved through. */
  #prefix = 0;
  readonly #prefixBytes = Bytes.allocate(KEY_BYTES_MAX);

  constructor(stream: Stream, groups: StreamGroups) {
    this.#stream = stream;
    this.#groups = groups;
  }

  get #collection(): Collection {
    return this.#stream.collection;
  }

  // ---- keys

  /** Writes kind and group at `offset`; returns the offset behind them. */
  #writePrefix(bytes: Bytes, offset: number, kind: number): number {
    bytes.u8[offset] = kind;
    return writeOrdered(bytes.u8, offset + 1, 0, this.#groups.number);
  }

  #writeOwnedPrefix(bytes: Bytes, offset: number, consumer: number): number {
    return writeOrdered(bytes.u8, this.#writePrefix(bytes, offset, SideKey.OWNED), 0, consumer);
  }

  /** The key by id, at the buffer's begin; returns its length. */
  #writeKey(id: StreamId): number {
    return id.writeKey(this.#bytes, this.#writePrefix(this.#bytes, 0, SideKey.PENDING));
  }

  /** The key by consumer, at SECOND_KEY; returns its length. */
  #writeOwnedKey(consumer: number, id: StreamId): number {
    return id.writeKey(this.#bytes, this.#writeOwnedPrefix(this.#bytes, SECOND_KEY, consumer)) - SECOND_KEY;
  }

  #writeRecord(): void {
    const { view } = this.#bytes;
    view.setUint32(RECORD + PendingRecord.CONSUMER, this.consumer, true);
    write48(view, RECORD + PendingRecord.DELIVERED_AT, Math.max(0, this.deliveredMs));
    write48(view, RECORD + PendingRecord.DELIVERIES, Math.min(COUNT_MAX, this.deliveries));
  }

  // ---- counting

  /** Entries that are pending in the group. */
  get count(): number {
    const length = this.#writePrefix(this.#prefixBytes, 0, SideKey.PENDING);
    return this.#rankBehind(length) - this.#rankOf(this.#prefixBytes, 0, length);
  }

  /** Those of a consumer. */
  countOf(consumer: number): number {
    const length = this.#writeOwnedPrefix(this.#prefixBytes, 0, consumer);
    return this.#rankBehind(length) - this.#rankOf(this.#prefixBytes, 0, length);
  }

  /** Those of a consumer whose ids are not below this one. */
  countOwnedFrom(consumer: number, id: StreamId): number {
    const behind = this.#rankBehind(this.#writeOwnedPrefix(this.#prefixBytes, 0, consumer));
    return behind - this.#rankOf(this.#bytes, SECOND_KEY, this.#writeOwnedKey(consumer, id));
  }

  #rankOf(bytes: Bytes, offset: number, length: number): number {
    const { side } = this.#collection;
    side.seek(bytes, offset, length);
    return side.rank;
  }

  /** Rank behind all keys that begin with so many bytes of the prefix, and an id behind them. */
  #rankBehind(length: number): number {
    this.#prefixBytes.u8.fill(BEYOND, length, length + ID_KEY_BYTES_MAX + 1);
    return this.#rankOf(this.#prefixBytes, 0, length + ID_KEY_BYTES_MAX + 1);
  }

  // ---- finding and moving

  /** Finds and loads one by its id. */
  find(id: StreamId): boolean {
    const { side } = this.#collection;
    if (!side.seek(this.#bytes, 0, this.#writeKey(id))) return false;
    side.load();
    this.id.set(id);
    this.#readRecord(side.value.view, side.valueOffset);
    return true;
  }

  #readRecord(view: DataView, at: number): void {
    this.consumer = view.getUint32(at + PendingRecord.CONSUMER, true);
    this.deliveredMs = read48(view, at + PendingRecord.DELIVERED_AT);
    this.deliveries = read48(view, at + PendingRecord.DELIVERIES);
  }

  /** Loads the first of the group whose id is not below this one; false = there is none. */
  seek(id: StreamId): boolean {
    this.#prefix = this.#writePrefix(this.#prefixBytes, 0, SideKey.PENDING);
    this.#collection.side.seek(this.#bytes, 0, this.#writeKey(id));
    return this.#loadHere();
  }

  /** The same among those of a consumer: its id alone is loaded. */
  seekOwned(consumer: number, id: StreamId): boolean {
    this.#prefix = this.#writeOwnedPrefix(this.#prefixBytes, 0, consumer);
    this.#collection.side.seek(this.#bytes, SECOND_KEY, this.#writeOwnedKey(consumer, id));
    return this.#loadHere();
  }

  /** Loads the last of the group; false = there is none. */
  seekLast(): boolean {
    this.#prefix = this.#writePrefix(this.#prefixBytes, 0, SideKey.PENDING);
    const { side } = this.#collection;
    this.#prefixBytes.u8.fill(BEYOND, this.#prefix, this.#prefix + ID_KEY_BYTES_MAX + 1);
    side.seek(this.#prefixBytes, 0, this.#prefix + ID_KEY_BYTES_MAX + 1);
    return side.previous() && this.#loadHere();
  }

  /** To the next one in the order of the last seek. */
  next(): boolean {
    return this.#collection.side.next() && this.#loadHere();
  }

  #loadHere(): boolean {
    const { side } = this.#collection;
    if (side.atEnd) return false;
    side.load();
    const { key, keyOffset } = side;
    const prefix = this.#prefixBytes.u8;
    for (let i = 0; i < this.#prefix; i++) if (key.u8[keyOffset + i] !== prefix[i]) return false;
    this.id.readKey(key, keyOffset + this.#prefix);
    if (prefix[0] === SideKey.PENDING) this.#readRecord(side.value.view, side.valueOffset);
    return true;
  }

  // ---- changing. The position is lost

  /** Adds one that is not there: `id` is pending for `consumer`. */
  add(id: StreamId, consumer: number, deliveredMs: number, deliveries: number): Change {
    this.consumer = consumer;
    this.deliveredMs = deliveredMs;
    this.deliveries = deliveries;
    this.#writeRecord();
    set(byId, 0, this.#writeKey(id), RECORD, PendingRecord.BYTES);
    set(owned, SECOND_KEY, this.#writeOwnedKey(consumer, id), RECORD, 0);
    return this.#collection.insertSideBoth(this.#bytes, byId, owned);
  }

  /** Stores what has been set of the one that was found, for `consumer`, who may be another one than before. */
  save(consumer: number): Change {
    const collection = this.#collection;
    const { side } = collection;
    const before = this.consumer;
    collection.beginSteps(4);
    if (consumer !== before) {
      const length = this.#writeOwnedKey(consumer, this.id);
      const change = collection.insertSide(this.#bytes, SECOND_KEY, length, this.#bytes, RECORD, 0);
      if (change !== Change.DONE) return change;
      if (side.seek(this.#bytes, SECOND_KEY, this.#writeOwnedKey(before, this.id))) collection.removeSide();
    }
    this.consumer = consumer;
    this.#writeRecord();
    if (!side.seek(this.#bytes, 0, this.#writeKey(this.id))) throw new Error('a pending entry is gone');
    mustBeDone(collection.replaceSide(this.#bytes, RECORD, PendingRecord.BYTES));
    return Change.DONE;
  }

  /** Removes the one that was found. */
  remove(): void {
    const collection = this.#collection;
    const { side } = collection;
    collection.beginSteps(2);
    if (side.seek(this.#bytes, 0, this.#writeKey(this.id))) collection.removeSide();
    if (side.seek(this.#bytes, SECOND_KEY, this.#writeOwnedKey(this.consumer, this.id))) collection.removeSide();
  }

  /** Removes all of a consumer; returns how many there were. */
  removeOwned(consumer: number): number {
    let removed = 0;
    for (; this.seekOwned(consumer, FIRST); removed++) {
      this.consumer = consumer;
      this.remove();
    }
    return removed;
  }
}

const FIRST = new StreamId();
const byId: SideElement = { keyOffset: 0, keyLength: 0, valueOffset: 0, valueLength: 0 };
const owned: SideElement = { keyOffset: 0, keyLength: 0, valueOffset: 0, valueLength: 0 };

function write48(view: DataView, at: number, value: number): void {
  const high = Math.floor(value / WORD);
  view.setUint32(at, value - high * WORD, true);
  view.setUint16(at + 4, high, true);
}

function read48(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint16(at + 4, true) * WORD;
}
