/**
 * A stream that a command has open: its entries, and what it knows of itself.
 *
 *   stream.open(collection)                     // one of STREAMS; it need not exist yet
 *   stream.append(id, input, args, first, pairs)
 *   for (let more = stream.seek(id); more; more = stream.next()) {
 *     stream.load();                            // stream.id, stream.entry.pairs
 *     for (let i = stream.entry.pairs; i > 0; i--) { stream.entry.next(); ... entry.nameOffset, entry.fieldOffset }
 *   }
 *
 * The collection's rules hold: the key's lock, and byte ranges that are valid until the next change. Layout: layout/stream. Invariant: no
 * entry's id is above `lastId`; what `open` has read is what the meta words hold, once the command has saved it.
 */
import { Bytes } from '../../layout/bytes.js';
import { ID_KEY_BYTES_MAX, NO_COUNTER, StreamMeta } from '../../layout/stream.js';
import { Change, type Collection } from '../collections/collection.js';
import { EntryCodec } from './entry-codec.js';
import { StreamId } from './stream-id.js';

export class Stream {
  collection!: Collection;
  readonly lastId = new StreamId();
  /** The largest id that was deleted, other than by trimming. */
  readonly maxDeletedId = new StreamId();
  /** How many entries were ever added. */
  entriesAdded = 0;

  /** Id of the entry that `load` has read. */
  readonly id = new StreamId();
  readonly entry = new EntryCodec();

  readonly #head = new Int32Array(StreamMeta.WORDS);
  readonly #view = new DataView(this.#head.buffer);
  readonly #key = Bytes.allocate(ID_KEY_BYTES_MAX);
  readonly #firstId = new StreamId();
  #isFirstKnown = false;

  open(collection: Collection): void {
    if (this.collection !== collection) this.collection = collection;
    this.entry.reset();
    this.#isFirstKnown = false;
    const head = this.#head;
    if (collection.exists) collection.readMetas(head);
    else head.fill(0);
    this.lastId.readWords(this.#view, StreamMeta.LAST_ID_WORD * 4);
    this.maxDeletedId.readWords(this.#view, StreamMeta.MAX_DELETED_ID_WORD * 4);
    this.entriesAdded = this.#view.getFloat64(StreamMeta.ENTRIES_ADDED_WORD * 4, true);
  }

  get length(): number {
    return this.collection.count;
  }

  /** Stores what has been set. The key exists. */
  save(): Change {
    this.lastId.writeWords(this.#view, StreamMeta.LAST_ID_WORD * 4);
    this.maxDeletedId.writeWords(this.#view, StreamMeta.MAX_DELETED_ID_WORD * 4);
    this.#view.setFloat64(StreamMeta.ENTRIES_ADDED_WORD * 4, this.entriesAdded, true);
    return this.collection.setMetas(this.#head);
  }

  /** A number that no group of this stream has had; to be saved. */
  takeGroupNumber(): number {
    return ++this.#head[StreamMeta.NEXT_GROUP_WORD];
  }

  /** Entries left of the node in front, where a trim has cut it; 0 = it is whole. To be saved. */
  get firstNode(): number {
    return this.length === 0 ? 0 : this.#head[StreamMeta.FIRST_NODE_WORD];
  }

  set firstNode(entries: number) {
    this.#head[StreamMeta.FIRST_NODE_WORD] = entries;
  }

  // ---- changing

  /**
   * Appends an entry, whose id is above lastId; makes the key when it does not exist. Names and values: (offset, length) pairs in `args` from
   * `first` on, none of them a collection's bytes.
   */
  append(id: StreamId, input: Bytes, args: Int32Array, first: number, pairs: number): Change {
    const { collection, entry } = this;
    collection.beginSteps(3);
    if (this.length === 0) this.firstNode = 0;
    entry.write(collection, this.#head, input, args, first, pairs);
    const length = id.writeKey(this.#key, 0);
    collection.toEnd();
    const { value, valueLength } = entry;
    const change = collection.insertPair(this.#key, 0, length, value, 0, valueLength, 0);
    if (change !== Change.DONE) return change;
    this.#isFirstKnown = false;
    this.lastId.set(id);
    this.entriesAdded++;
    return this.save();
  }

  /** Deletes an entry; false = there is none, or no memory. To be saved. */
  delete(id: StreamId): boolean {
    if (!this.find(id) || this.collection.remove() !== Change.DONE) return false;
    this.#isFirstKnown = false;
    if (id.compare(this.maxDeletedId) > 0) this.maxDeletedId.set(id);
    return true;
  }

  /** Removes so many entries, which there are, from the front; returns how many have gone: none when there is no memory for it. */
  removeFirst(count: number): number {
    const { collection } = this;
    this.#isFirstKnown = false;
    if (count === 0) return 0;
    return collection.removeRange(0, count) === Change.DONE ? count : 0;
  }

  // ---- moving

  first(): boolean {
    return this.collection.first();
  }

  last(): boolean {
    return this.collection.last();
  }

  next(): boolean {
    return this.collection.next();
  }

  previous(): boolean {
    return this.collection.previous();
  }

  /** To the first entry whose id is not below this one; false = there is none, the position is at the end. */
  seek(id: StreamId): boolean {
    this.find(id);
    return !this.collection.atEnd;
  }

  /** The same; true when it has this id. */
  find(id: StreamId): boolean {
    return this.collection.seekKey(this.#key, 0, id.writeKey(this.#key, 0));
  }

  /** Reads the id at the position. */
  loadId(): void {
    const { collection } = this;
    collection.load();
    this.id.readKey(collection.key, collection.keyOffset);
  }

  /** Reads the entry at the position. The side tree's position is lost. */
  load(): void {
    this.loadId();
    this.entry.read(this.collection);
  }

  /** Id of the first entry, 0-0 without entries. The position is lost, unless `findFirst` has been called since the last change. */
  get firstId(): StreamId {
    if (!this.#isFirstKnown) this.findFirst();
    return this.#firstId;
  }

  findFirst(): void {
    this.#firstId.setZero();
    if (this.first()) {
      this.loadId();
      this.#firstId.set(this.id);
    }
    this.#isFirstKnown = true;
  }

  /** Id of the last entry into `id`; false without entries. */
  loadLastId(): boolean {
    if (!this.last()) return false;
    this.loadId();
    return true;
  }

  // ---- how far a group has read: by Redis's rules. As firstId

  /** True when an entry behind `id` may have been deleted: entries between it and the end cannot be told from counters. */
  hasHoleBehind(id: StreamId): boolean {
    const { maxDeletedId } = this;
    if (this.length === 0 || maxDeletedId.isZero || this.firstId.compare(maxDeletedId) > 0) return false;
    return id.compare(maxDeletedId) <= 0;
  }

  /** How many entries were ever added up to this id, NO_COUNTER when that cannot be told. */
  countUpTo(id: StreamId): number {
    const { entriesAdded, length } = this;
    if (entriesAdded === 0) return 0;
    const toLast = id.compare(this.lastId);
    if (toLast === 0 || (length === 0 && toLast < 0)) return entriesAdded;
    if (toLast > 0) return NO_COUNTER;
    const first = this.firstId;
    if (!this.maxDeletedId.isZero && this.maxDeletedId.compare(first) >= 0) return NO_COUNTER;
    const toFirst = id.compare(first);
    if (toFirst < 0) return entriesAdded - length;
    return toFirst === 0 ? entriesAdded - length + 1 : NO_COUNTER;
  }
}
