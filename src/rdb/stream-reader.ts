/**
 * Reading a stream of RDB into a sink.
 *
 * Invariant: ids ascend, counts are those of what is there, each pending entry belongs to one consumer: what a sink gets can be stored as it is.
 */
import { Bytes } from '../layout/bytes.js';
import { ItemType } from '../layout/item.js';
import { NO_COUNTER } from '../layout/stream.js';
import { copyBytes } from '../native/copy.js';
import { StreamId } from '../store/streams/stream-id.js';
import { RdbType } from './format.js';
import { ListpackReader } from './packed/listpack.js';
import { type RdbReader, StringSlot } from './reader.js';
import type { ValueSink } from './sink.js';
import { EntryFlag, EntryOverhead, ID_BYTES, readId } from './stream-format.js';

const TWO_32 = 0x1_0000_0000;
/** Of one that is pending, in the list of all: id, delivered at, deliveries. */
const PENDING_BYTES_MIN = ID_BYTES + 8 + 1;
/** Halves of an id, delivered at, deliveries. */
const PENDING_WORDS = 6;

export class StreamReader {
  readonly #reader: RdbReader;
  readonly #listpack = new ListpackReader();
  readonly #nodeId = new StringSlot();
  readonly #blob = new StringSlot();
  readonly #text = new StringSlot();
  readonly #first = new StreamId();
  readonly #id = new StreamId();
  readonly #last = new StreamId();
  readonly #maxDeleted = new StreamId();
  readonly #groupLast = new StreamId();

  /** Names and values of an entry: those of the node stand in front. */
  #bytes = Bytes.allocate(4096);
  #used = 0;
  #nodeBytes = 0;
  #args = new Int32Array(64);
  /** (offset, length) of the names of the node. */
  #names = new Int32Array(32);
  #nameCount = 0;

  /** What is pending in the group: PENDING_WORDS numbers each, and whether a consumer has it. */
  #pending = new Float64Array(0);
  #isOwned = new Uint8Array(0);
  #pendingCount = 0;

  constructor(reader: RdbReader) {
    this.#reader = reader;
  }

  read(type: number, sink: ValueSink): void {
    const reader = this.#reader;
    sink.begin(ItemType.STREAM, -1);
    this.#last.setZero();
    const nodes = reader.count(2);
    let entries = 0;
    for (let i = 0; i < nodes; i++) entries += this.#readNode(sink);
    if (reader.length() !== entries) reader.fail('a stream has another number of entries than it says');
    const id = this.#id;
    this.#readIdPair(id);
    if (id.compare(this.#last) < 0) reader.fail('the last id of a stream is below that of an entry');
    this.#last.set(id);
    this.#maxDeleted.setZero();
    let added = entries;
    if (type !== RdbType.STREAM_LISTPACKS) {
      this.#readIdPair(id);
      this.#readIdPair(this.#maxDeleted);
      added = reader.length();
      if (added < entries) reader.fail('a stream has more entries than were ever added');
    }
    sink.state(this.#last, this.#maxDeleted, added);
    this.#readGroups(type, sink);
  }

  #readIdPair(id: StreamId): void {
    const reader = this.#reader;
    reader.wide();
    id.msHigh = reader.high >>> 0;
    id.msLow = reader.low >>> 0;
    reader.wide();
    id.seqHigh = reader.high >>> 0;
    id.seqLow = reader.low >>> 0;
  }

  // ---- entries

  #readNode(sink: ValueSink): number {
    const reader = this.#reader;
    const listpack = this.#listpack;
    reader.string(this.#nodeId);
    if (this.#nodeId.length !== ID_BYTES) reader.fail('the id of a node of a stream is none');
    readId(this.#nodeId.bytes, this.#nodeId.offset, this.#first);
    reader.passing(this.#blob);
    listpack.open(this.#blob);
    const count = this.#integer();
    const deleted = this.#integer();
    if (count < 0 || deleted < 0) this.#damaged();
    this.#readNames();
    let live = 0;
    let gone = 0;
    while (listpack.next(this.#text)) {
      if (this.#readEntry(sink)) live++;
      else gone++;
    }
    if (live !== count || gone !== deleted || live + gone === 0) this.#damaged();
    return live;
  }

  #damaged(): never {
    this.#reader.fail('a node of a stream is damaged');
  }

  #next(): StringSlot {
    if (!this.#listpack.next(this.#text)) this.#damaged();
    return this.#text;
  }

  /** A count: an integer of 32 bits. */
  #integer(): number {
    this.#next();
    return this.#value();
  }

  #value(): number {
    const { isInteger, high, low } = this.#listpack;
    if (!isInteger || high !== low >> 31) this.#damaged();
    return low;
  }

  #readNames(): void {
    const count = this.#integer();
    if (count < 0 || count > this.#blob.length) this.#damaged();
    if (count * 2 > this.#names.length) this.#names = new Int32Array(count * 2);
    this.#used = 0;
    for (let i = 0; i < count; i++) {
      this.#names[i * 2] = this.#used;
      this.#names[i * 2 + 1] = this.#keep(this.#next());
    }
    this.#nameCount = count;
    this.#nodeBytes = this.#used;
    if (this.#integer() !== 0) this.#damaged();
  }

  /** Copies a string behind the others; returns its length. */
  #keep({ bytes, offset, length }: StringSlot): number {
    if (this.#used + length > this.#bytes.length) {
      const larger = Bytes.allocate(Math.max(this.#bytes.length * 2, this.#used + length));
      copyBytes(larger, 0, this.#bytes, 0, this.#used);
      this.#bytes = larger;
    }
    copyBytes(this.#bytes, this.#used, bytes, offset, length);
    this.#used += length;
    return length;
  }

  /** The entry whose flags have been read; false = it is deleted. */
  #readEntry(sink: ValueSink): boolean {
    const flags = this.#value();
    if ((flags & ~(EntryFlag.DELETED | EntryFlag.SAME_NAMES)) !== 0) this.#damaged();
    this.#readDistance();
    const hasSameNames = (flags & EntryFlag.SAME_NAMES) !== 0;
    const pairs = hasSameNames ? this.#nameCount : this.#integer();
    if (pairs < 1 || pairs > this.#blob.length) this.#damaged();
    if (pairs * 4 > this.#args.length) this.#args = new Int32Array(pairs * 4);
    const args = this.#args;
    this.#used = this.#nodeBytes;
    for (let i = 0; i < pairs; i++) {
      if (hasSameNames) {
        args[i * 4] = this.#names[i * 2];
        args[i * 4 + 1] = this.#names[i * 2 + 1];
      } else {
        args[i * 4] = this.#used;
        args[i * 4 + 1] = this.#keep(this.#next());
      }
      args[i * 4 + 2] = this.#used;
      args[i * 4 + 3] = this.#keep(this.#next());
    }
    const elements = hasSameNames ? pairs + EntryOverhead.SAME_NAMES : pairs * 2 + EntryOverhead.OWN_NAMES;
    if (this.#integer() !== elements) this.#damaged();
    if ((flags & EntryFlag.DELETED) !== 0) return false;
    if (this.#id.compare(this.#last) <= 0) this.#reader.fail('the ids of a stream do not ascend');
    this.#last.set(this.#id);
    sink.entry(this.#id, this.#bytes, args, pairs);
    return true;
  }

  /** The id: the node's and two distances, modulo 2^64. */
  #readDistance(): void {
    const listpack = this.#listpack;
    const id = this.#id;
    const first = this.#first;
    this.#next();
    if (!listpack.isInteger) this.#damaged();
    let low = first.msLow + (listpack.low >>> 0);
    id.msHigh = (first.msHigh + listpack.high + (low >= TWO_32 ? 1 : 0)) >>> 0;
    id.msLow = low >>> 0;
    this.#next();
    if (!listpack.isInteger) this.#damaged();
    low = first.seqLow + (listpack.low >>> 0);
    id.seqHigh = (first.seqHigh + listpack.high + (low >= TWO_32 ? 1 : 0)) >>> 0;
    id.seqLow = low >>> 0;
  }

  // ---- groups

  #readGroups(type: number, sink: ValueSink): void {
    const reader = this.#reader;
    const names = new Set<string>();
    for (let groups = reader.count(4); groups > 0; groups--) {
      const name = this.#text;
      reader.string(name);
      this.#once(names);
      this.#readIdPair(this.#groupLast);
      let read = Number.NaN;
      if (type !== RdbType.STREAM_LISTPACKS) {
        reader.wide();
        read = reader.high < 0 ? NO_COUNTER : reader.high * TWO_32 + (reader.low >>> 0);
      }
      sink.group(name.bytes, name.offset, name.length, this.#groupLast, read);
      this.#readPending();
      this.#readConsumers(type, sink);
      for (let i = 0; i < this.#pendingCount; i++) {
        if (this.#isOwned[i] === 0) reader.fail('a pending entry has no consumer');
      }
    }
  }

  /** The name in #text must not have come before. */
  #once(names: Set<string>): void {
    const { bytes, offset, length } = this.#text;
    const name = Buffer.from(bytes.u8.subarray(offset, offset + length)).toString('latin1');
    if (names.has(name)) this.#reader.fail('a group or consumer comes twice');
    names.add(name);
  }

  #readPending(): void {
    const reader = this.#reader;
    const count = reader.count(PENDING_BYTES_MIN);
    this.#pendingCount = count;
    this.#pending = new Float64Array(count * PENDING_WORDS);
    this.#isOwned = new Uint8Array(count);
    const id = this.#id;
    const before = this.#first;
    before.setZero();
    for (let i = 0; i < count; i++) {
      this.#readRawId(id);
      if (i > 0 && id.compare(before) <= 0) reader.fail('the ids of pending entries do not ascend');
      before.set(id);
      const at = i * PENDING_WORDS;
      this.#pending[at] = id.msHigh;
      this.#pending[at + 1] = id.msLow;
      this.#pending[at + 2] = id.seqHigh;
      this.#pending[at + 3] = id.seqLow;
      this.#pending[at + 4] = reader.int64();
      this.#pending[at + 5] = reader.length();
    }
  }

  #readRawId(id: StreamId): void {
    const reader = this.#reader;
    reader.need(ID_BYTES);
    readId(reader.bytes, reader.at, id);
    reader.at += ID_BYTES;
  }

  #readConsumers(type: number, sink: ValueSink): void {
    const reader = this.#reader;
    const names = new Set<string>();
    for (let consumers = reader.count(10); consumers > 0; consumers--) {
      const name = this.#text;
      reader.string(name);
      this.#once(names);
      const seenMs = reader.int64();
      const activeMs = type === RdbType.STREAM_LISTPACKS_3 ? reader.int64() : seenMs;
      if (seenMs < 0 || activeMs < -1) reader.fail('a consumer was seen at a time that is none');
      sink.consumer(name.bytes, name.offset, name.length, seenMs, activeMs);
      for (let owned = reader.count(ID_BYTES); owned > 0; owned--) {
        this.#readRawId(this.#id);
        const at = this.#take() * PENDING_WORDS;
        sink.pending(this.#id, this.#pending[at + 4], this.#pending[at + 5]);
      }
    }
  }

  /** The place of this id among what is pending, which no consumer has had yet. */
  #take(): number {
    let low = 0;
    let high = this.#pendingCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compareTo(middle) <= 0) high = middle;
      else low = middle + 1;
    }
    if (low >= this.#pendingCount || this.#compareTo(low) !== 0 || this.#isOwned[low] !== 0) {
      this.#reader.fail('what is pending for a consumer is not pending for its group');
    }
    this.#isOwned[low] = 1;
    return low;
  }

  #compareTo(i: number): number {
    const at = i * PENDING_WORDS;
    const list = this.#pending;
    const { msHigh, msLow, seqHigh, seqLow } = this.#id;
    return msHigh - list[at] || msLow - list[at + 1] || seqHigh - list[at + 2] || seqLow - list[at + 3];
  }
}
