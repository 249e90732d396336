/**
 * Consumer groups of an open stream, and the consumers of the group that was found last.
 *
 * Owns: what is known of that group and of that consumer, to be changed and saved. Groups and consumers stand in the order of their names.
 * Layout: layout/stream. Invariant: a consumer has its record by name and its name by number, or neither; numbers are never given twice.
 */
import { Bytes } from '../../layout/bytes.js';
import { ConsumerRecord, GroupRecord, NO_COUNTER, OrderedNumber, SideKey } from '../../layout/stream.js';
import { copyBytes } from '../../native/copy.js';
import { Change, type Collection } from '../collections/collection.js';
import type { SideElement } from '../collections/side-tree.js';
import type { Stream } from './stream.js';
import { orderedLow, readOrdered, StreamId, writeOrdered } from './stream-id.js';

/** Kind and group, in front of a consumer's name. */
const PREFIX_BYTES_MAX = 1 + OrderedNumber.SMALL_BYTES_MAX;
/** Key of a consumer's name: kind, group, consumer; and one byte behind the last of them. */
const NUMBER_KEY_BYTES_MAX = PREFIX_BYTES_MAX + OrderedNumber.SMALL_BYTES_MAX;
const BEYOND = 0xff;

export class StreamGroups {
  // ---- the group
  number = 0;
  readonly lastId = new StreamId();
  /** How many of the entries ever added it has read, NO_COUNTER when that cannot be told. */
  entriesRead = NO_COUNTER;
  #nextConsumer = 0;

  // ---- the consumer
  consumer = 0;
  /** When it asked for entries last, and when it was given some (-1 = never). */
  seenMs = 0;
  activeMs = -1;

  /** Name of the group or consumer that `loadGroup`, `loadConsumer` or `findName` have come to. */
  nameBytes: Bytes;
  nameOffset = 0;
  nameLength = 0;

  readonly #stream: Stream;
  /** Keys of the group and the consumer that were found. */
  #groupKey = Bytes.allocate(256);
  #groupKeyLength = 0;
  #consumerKey = Bytes.allocate(256);
  #consumerKeyLength = 0;
  /** Records on their way into the tree, and short keys. */
  readonly #record = Bytes.allocate(GroupRecord.BYTES);
  readonly #short = Bytes.allocate(NUMBER_KEY_BYTES_MAX + 1);

  constructor(stream: Stream) {
    this.#stream = stream;
    this.nameBytes = this.#record;
  }

  get #collection(): Collection {
    return this.#stream.collection;
  }

  // ---- groups

  get count(): number {
    return this.#rankOf(SideKey.GROUP + 1) - this.#rankOf(SideKey.GROUP);
  }

  #rankOf(kind: number): number {
    const { side } = this.#collection;
    this.#short.u8[0] = kind;
    side.seek(this.#short, 0, 1);
    return side.rank;
  }

  /** Loads group `index` in the order of names. */
  loadGroup(index: number): void {
    const { side } = this.#collection;
    side.seekRank(this.#rankOf(SideKey.GROUP) + index);
    side.load();
    this.#readGroup(side.value.view, side.valueOffset);
    this.#groupKeyLength = side.keyLength;
    this.#groupKey = roomFor(this.#groupKey, side.keyLength);
    copyBytes(this.#groupKey, 0, side.key, side.keyOffset, side.keyLength);
    this.nameBytes = side.key;
    this.nameOffset = side.keyOffset + 1;
    this.nameLength = side.keyLength - 1;
  }

  /** Finds a group by its name. */
  find(bytes: Bytes, offset: number, length: number): boolean {
    const { side } = this.#collection;
    this.#groupKeyLength = 1 + length;
    this.#groupKey = roomFor(this.#groupKey, 1 + length);
    this.#groupKey.u8[0] = SideKey.GROUP;
    copyBytes(this.#groupKey, 1, bytes, offset, length);
    if (!this.#collection.exists || !side.seek(this.#groupKey, 0, this.#groupKeyLength)) return false;
    side.load();
    this.#readGroup(side.value.view, side.valueOffset);
    return true;
  }

  #readGroup(view: DataView, at: number): void {
    this.number = view.getUint32(at + GroupRecord.NUMBER, true);
    this.lastId.readWords(view, at + GroupRecord.LAST_ID);
    this.entriesRead = view.getFloat64(at + GroupRecord.ENTRIES_READ, true);
    this.#nextConsumer = view.getUint32(at + GroupRecord.NEXT_CONSUMER, true);
  }

  #writeGroup(): void {
    const { view } = this.#record;
    view.setUint32(GroupRecord.NUMBER, this.number, true);
    this.lastId.writeWords(view, GroupRecord.LAST_ID);
    view.setFloat64(GroupRecord.ENTRIES_READ, this.entriesRead, true);
    view.setUint32(GroupRecord.NEXT_CONSUMER, this.#nextConsumer, true);
  }

  /** Makes a group of the name that `find` has not found; the key exists. */
  create(lastId: StreamId, entriesRead: number): Change {
    const collection = this.#collection;
    collection.beginSteps(2);
    this.number = this.#stream.takeGroupNumber();
    this.lastId.set(lastId);
    this.entriesRead = entriesRead;
    this.#nextConsumer = 0;
    this.#writeGroup();
    const change = collection.insertSide(this.#groupKey, 0, this.#groupKeyLength, this.#record, 0, GroupRecord.BYTES);
    return change === Change.DONE ? this.#stream.save() : change;
  }

  /** Stores what has been set. */
  save(): void {
    const collection = this.#collection;
    this.#writeGroup();
    if (!collection.side.seek(this.#groupKey, 0, this.#groupKeyLength)) throw new Error('a group is gone');
    mustBeDone(collection.replaceSide(this.#record, 0, GroupRecord.BYTES));
  }

  /** Removes the group, which has no consumers any more. */
  remove(): void {
    const collection = this.#collection;
    if (collection.side.seek(this.#groupKey, 0, this.#groupKeyLength)) collection.removeSide();
  }

  // ---- consumers

  get consumerCount(): number {
    const { side } = this.#collection;
    const length = this.#writeShort(SideKey.CONSUMER_NAME);
    side.seek(this.#short, 0, length);
    const first = side.rank;
    this.#short.u8[length] = BEYOND;
    side.seek(this.#short, 0, length + 1);
    return side.rank - first;
  }

  /** Writes kind and group; returns their length. */
  #writeShort(kind: number): number {
    this.#short.u8[0] = kind;
    return writeOrdered(this.#short.u8, 1, 0, this.number);
  }

  /** Loads consumer `index` of the group in the order of names. */
  loadConsumer(index: number): void {
    const { side } = this.#collection;
    const prefix = this.#writeShort(SideKey.CONSUMER);
    side.seek(this.#short, 0, prefix);
    side.seekRank(side.rank + index);
    side.load();
    this.#readConsumer(side.value.view, side.valueOffset);
    this.#consumerKeyLength = side.keyLength;
    this.#consumerKey = roomFor(this.#consumerKey, side.keyLength);
    copyBytes(this.#consumerKey, 0, side.key, side.keyOffset, side.keyLength);
    this.nameBytes = side.key;
    this.nameOffset = side.keyOffset + prefix;
    this.nameLength = side.keyLength - prefix;
  }

  /** Finds a consumer of the group by its name. */
  findConsumer(bytes: Bytes, offset: number, length: number): boolean {
    const { side } = this.#collection;
    const prefix = this.#writeShort(SideKey.CONSUMER);
    this.#consumerKeyLength = prefix + length;
    this.#consumerKey = roomFor(this.#consumerKey, prefix + length);
    copyBytes(this.#consumerKey, 0, this.#short, 0, prefix);
    copyBytes(this.#consumerKey, prefix, bytes, offset, length);
    if (!side.seek(this.#consumerKey, 0, this.#consumerKeyLength)) return false;
    side.load();
    this.#readConsumer(side.value.view, side.valueOffset);
    return true;
  }

  #readConsumer(view: DataView, at: number): void {
    this.consumer = view.getUint32(at + ConsumerRecord.NUMBER, true);
    this.seenMs = view.getFloat64(at + ConsumerRecord.SEEN, true);
    this.activeMs = view.getFloat64(at + ConsumerRecord.ACTIVE, true);
  }

  #writeConsumer(view: DataView, at: number): void {
    view.setUint32(at + ConsumerRecord.NUMBER, this.consumer, true);
    view.setFloat64(at + ConsumerRecord.SEEN, this.seenMs, true);
    view.setFloat64(at + ConsumerRecord.ACTIVE, this.activeMs, true);
  }

  /** Makes a consumer of the name that `findConsumer` has not found. */
  createConsumer(seenMs: number, activeMs = -1): Change {
    this.consumer = ++this.#nextConsumer;
    this.seenMs = seenMs;
    this.activeMs = activeMs;
    const prefix = writeOrdered(this.#consumerKey.u8, 1, 0, this.number);
    const nameLength = this.#consumerKeyLength - prefix;
    const numberLength = this.#writeNumberKey(this.consumer);
    // Both keys, the record and the name, one behind the other.
    const recordAt = this.#consumerKeyLength;
    const numberAt = recordAt + ConsumerRecord.BYTES;
    this.#consumerKey = roomFor(this.#consumerKey, numberAt + numberLength, this.#consumerKeyLength);
    const bytes = this.#consumerKey;
    this.#writeConsumer(bytes.view, recordAt);
    copyBytes(bytes, numberAt, this.#short, 0, numberLength);
    set(one, 0, this.#consumerKeyLength, recordAt, ConsumerRecord.BYTES);
    set(other, numberAt, numberLength, prefix, nameLength);
    const change = this.#collection.insertSideBoth(bytes, one, other);
    if (change === Change.DONE) this.save();
    else this.#nextConsumer--;
    return change;
  }

  #writeNumberKey(consumer: number): number {
    return writeOrdered(this.#short.u8, this.#writeShort(SideKey.CONSUMER_NAME), 0, consumer);
  }

  saveConsumer(): void {
    const collection = this.#collection;
    this.#writeConsumer(this.#record.view, 0);
    if (!collection.side.seek(this.#consumerKey, 0, this.#consumerKeyLength)) throw new Error('a consumer is gone');
    mustBeDone(collection.replaceSide(this.#record, 0, ConsumerRecord.BYTES));
  }

  /** Removes the consumer, of which nothing is pending any more. */
  removeConsumer(): void {
    const collection = this.#collection;
    const { side } = collection;
    collection.beginSteps(2);
    if (side.seek(this.#consumerKey, 0, this.#consumerKeyLength)) collection.removeSide();
    if (side.seek(this.#short, 0, this.#writeNumberKey(this.consumer))) collection.removeSide();
  }

  /** Finds the name of a consumer of the group by its number. */
  findName(consumer: number): void {
    const { side } = this.#collection;
    if (!side.seek(this.#short, 0, this.#writeNumberKey(consumer))) throw new Error(`consumer ${consumer} has no name`);
    side.load();
    this.nameBytes = side.value;
    this.nameOffset = side.valueOffset;
    this.nameLength = side.valueLength;
  }
}

const one: SideElement = { keyOffset: 0, keyLength: 0, valueOffset: 0, valueLength: 0 };
const other: SideElement = { keyOffset: 0, keyLength: 0, valueOffset: 0, valueLength: 0 };

export function set(
  element: SideElement,
  keyOffset: number,
  keyLength: number,
  valueOffset: number,
  valueLength: number,
): void {
  element.keyOffset = keyOffset;
  element.keyLength = keyLength;
  element.valueOffset = valueOffset;
  element.valueLength = valueLength;
}

/** Bytes with room for so many, the first `kept` of them as they are. */
function roomFor(bytes: Bytes, length: number, kept = 0): Bytes {
  if (length <= bytes.length) return bytes;
  const larger = Bytes.allocate(length * 2);
  copyBytes(larger, 0, bytes, 0, kept);
  return larger;
}

/** A record is written over one of the same length, which needs no memory. */
export function mustBeDone(change: Change): void {
  if (change !== Change.DONE) throw new Error('a record did not fit where one lay');
}

/** Number in a key at `offset`. */
export function numberAt(bytes: Bytes, offset: number): number {
  readOrdered(bytes.u8, offset);
  return orderedLow;
}
