/**
 * Writing a stream: its entries in nodes as XADD would have filled them, then its groups.
 *
 * Invariant: `plan` and `write` see the same entries (see value-writer).
 */
import { Bytes } from '../layout/bytes.js';
import type { Collection } from '../store/collections/collection.js';
import { StreamGroups } from '../store/streams/groups.js';
import { PendingEntries } from '../store/streams/pending.js';
import { Stream } from '../store/streams/stream.js';
import { StreamId } from '../store/streams/stream-id.js';
import { Version } from './format.js';
import { entryBytes, integerEntryBytes, ListpackWriter } from './packed/listpack.js';
import { EntryFlag, EntryOverhead, ID_BYTES, writeId } from './stream-format.js';
import type { RdbWriter } from './writer.js';

/** Header and end of a listpack. */
const EMPTY_BYTES = 7;
const NODE_MAX_BYTES = 1 << 30;
const ZERO = new StreamId();

export class StreamWriter {
  /** Redis's stream-node-max-bytes and stream-node-max-entries. */
  nodeBytesMax = 4096;
  nodeEntriesMax = 100;

  readonly #writer: RdbWriter;
  /** Between two entries; true = others have been let at the stream, which has been opened anew at the same place. */
  readonly #pause: () => boolean;
  readonly #stream = new Stream();
  readonly #groups = new StreamGroups(this.#stream);
  readonly #pending = new PendingEntries(this.#stream, this.#groups);
  readonly #node = new ListpackWriter();
  readonly #rawId = Bytes.allocate(ID_BYTES);

  /** Entries of each node. */
  #counts = new Int32Array(64);
  #nodes = 0;
  // ---- the node in hand
  readonly #first = new StreamId();
  #names: Uint8Array[] = [];
  #bytes = 0;
  #entries = 0;

  constructor(writer: RdbWriter, pause: () => boolean) {
    this.#writer = writer;
    this.#pause = pause;
  }

  /** Finds out where nodes begin. */
  plan(collection: Collection): void {
    const stream = this.#stream;
    stream.open(collection);
    this.#nodes = 0;
    for (let more = stream.first(); more; more = stream.next()) {
      stream.load();
      const size = this.#textBytes();
      if (this.#nodes === 0 || this.#isFull(size)) this.#beginNode();
      this.#bytes += this.#entryBytes();
      this.#counts[this.#nodes - 1] = ++this.#entries;
      this.#rest(collection);
    }
  }

  #rest(collection: Collection): void {
    if (this.#pause()) this.#stream.open(collection);
  }

  /** Bytes of the loaded entry's names and values. */
  #textBytes(): number {
    const { entry } = this.#stream;
    let bytes = 0;
    for (let i = entry.pairs; i > 0; i--) {
      entry.next();
      bytes += entry.nameLength + entry.fieldLength;
    }
    // To be read again from its beginning.
    entry.read(this.#stream.collection);
    return bytes;
  }

  #isFull(size: number): boolean {
    const limit = this.nodeBytesMax === 0 ? NODE_MAX_BYTES : Math.min(this.nodeBytesMax, NODE_MAX_BYTES);
    const bytes = this.#bytes + integerEntryBytes(0, this.#entries);
    return bytes + size >= limit || (this.nodeEntriesMax !== 0 && this.#entries >= this.nodeEntriesMax);
  }

  /** The loaded entry is the first of a node. */
  #beginNode(): void {
    const { entry, id, collection } = this.#stream;
    this.#first.set(id);
    this.#names = [];
    this.#bytes = EMPTY_BYTES + integerEntryBytes(0, 0) + integerEntryBytes(0, entry.pairs) + integerEntryBytes(0, 0);
    for (let i = entry.pairs; i > 0; i--) {
      entry.next();
      const { nameBytes, nameOffset, nameLength } = entry;
      this.#names.push(nameBytes.u8.slice(nameOffset, nameOffset + nameLength));
      this.#bytes += entryBytes(nameBytes, nameOffset, nameLength);
    }
    entry.read(collection);
    this.#entries = 0;
    if (this.#nodes === this.#counts.length) {
      const larger = new Int32Array(this.#nodes * 2);
      larger.set(this.#counts);
      this.#counts = larger;
    }
    this.#nodes++;
  }

  /** The loaded entry has the names of its node. */
  #hasSameNames(): boolean {
    const { entry, collection } = this.#stream;
    const names = this.#names;
    let isSame = entry.pairs === names.length;
    for (let i = 0; isSame && i < names.length; i++) {
      entry.next();
      const { nameBytes, nameOffset, nameLength } = entry;
      const name = names[i];
      isSame = name.length === nameLength;
      for (let k = 0; isSame && k < nameLength; k++) isSame = name[k] === nameBytes.u8[nameOffset + k];
    }
    entry.read(collection);
    return isSame;
  }

  /** What the loaded entry adds to its node. */
  #entryBytes(): number {
    const { entry, id } = this.#stream;
    const hasSameNames = this.#hasSameNames();
    const { pairs } = entry;
    distance(id.msHigh, id.msLow, this.#first.msHigh, this.#first.msLow);
    let bytes = integerEntryBytes(0, 0) + integerEntryBytes(distanceHigh, distanceLow);
    distance(id.seqHigh, id.seqLow, this.#first.seqHigh, this.#first.seqLow);
    bytes += integerEntryBytes(distanceHigh, distanceLow) + integerEntryBytes(0, elementsOf(pairs, hasSameNames));
    if (!hasSameNames) bytes += integerEntryBytes(0, pairs);
    for (let i = pairs; i > 0; i--) {
      entry.next();
      if (!hasSameNames) bytes += entryBytes(entry.nameBytes, entry.nameOffset, entry.nameLength);
      bytes += entryBytes(entry.fieldBytes, entry.fieldOffset, entry.fieldLength);
    }
    return bytes;
  }

  /** Writes what has been planned. */
  write(collection: Collection, version: number): void {
    const stream = this.#stream;
    this.#writer.lengthOf(this.#nodes);
    let node = 0;
    let left = 0;
    for (let more = stream.first(); more; more = stream.next()) {
      stream.load();
      if (left === 0) {
        left = this.#counts[node++];
        this.#writeHead(left);
      }
      this.#writeEntry();
      if (--left === 0) {
        this.#node.finish();
        this.#writer.string(this.#node.bytes, 0, this.#node.length);
      }
      this.#rest(collection);
    }
    this.#writer.lengthOf(stream.length);
    this.#writeIdPair(stream.lastId);
    this.#writeIdPair(stream.firstId);
    this.#writeIdPair(stream.maxDeletedId);
    this.#writer.lengthOf(stream.entriesAdded);
    this.#writeGroups(version);
  }

  /** The node's id, and what stands in front of its entries. */
  #writeHead(count: number): void {
    const node = this.#node;
    this.#beginNode();
    writeId(this.#rawId, 0, this.#first);
    this.#writer.string(this.#rawId, 0, ID_BYTES);
    node.begin();
    node.addInteger(0, count);
    node.addInteger(0, 0);
    node.addInteger(0, this.#names.length);
    for (const name of this.#names) node.add(Bytes.from(name), 0, name.length);
    node.addInteger(0, 0);
  }

  #writeEntry(): void {
    const node = this.#node;
    const { entry, id } = this.#stream;
    const hasSameNames = this.#hasSameNames();
    const { pairs } = entry;
    node.addInteger(0, hasSameNames ? EntryFlag.SAME_NAMES : 0);
    distance(id.msHigh, id.msLow, this.#first.msHigh, this.#first.msLow);
    node.addInteger(distanceHigh, distanceLow);
    distance(id.seqHigh, id.seqLow, this.#first.seqHigh, this.#first.seqLow);
    node.addInteger(distanceHigh, distanceLow);
    if (!hasSameNames) node.addInteger(0, pairs);
    for (let i = pairs; i > 0; i--) {
      entry.next();
      if (!hasSameNames) node.add(entry.nameBytes, entry.nameOffset, entry.nameLength);
      node.add(entry.fieldBytes, entry.fieldOffset, entry.fieldLength);
    }
    node.addInteger(0, elementsOf(pairs, hasSameNames));
  }

  #writeIdPair(id: StreamId): void {
    this.#writer.wide(id.msHigh, id.msLow);
    this.#writer.wide(id.seqHigh, id.seqLow);
  }

  #writeRawId(id: StreamId): void {
    writeId(this.#rawId, 0, id);
    this.#writer.raw(this.#rawId, 0, ID_BYTES);
  }

  // ---- groups

  #writeGroups(version: number): void {
    const writer = this.#writer;
    const groups = this.#groups;
    const pending = this.#pending;
    const count = groups.count;
    writer.lengthOf(count);
    for (let i = 0; i < count; i++) {
      groups.loadGroup(i);
      writer.string(groups.nameBytes, groups.nameOffset, groups.nameLength);
      this.#writeIdPair(groups.lastId);
      if (groups.entriesRead < 0) writer.wide(-1, -1);
      else writer.lengthOf(groups.entriesRead);
      writer.lengthOf(pending.count);
      for (let more = pending.seek(ZERO); more; more = pending.next()) {
        this.#writeRawId(pending.id);
        writer.int64(pending.deliveredMs);
        writer.lengthOf(pending.deliveries);
      }
      this.#writeConsumers(version);
    }
  }

  #writeConsumers(version: number): void {
    const writer = this.#writer;
    const groups = this.#groups;
    const pending = this.#pending;
    const consumers = groups.consumerCount;
    writer.lengthOf(consumers);
    for (let i = 0; i < consumers; i++) {
      groups.loadConsumer(i);
      writer.string(groups.nameBytes, groups.nameOffset, groups.nameLength);
      writer.int64(groups.seenMs);
      if (version >= Version.REDIS_7_2) writer.int64(groups.activeMs);
      const { consumer } = groups;
      writer.lengthOf(pending.countOf(consumer));
      for (let more = pending.seekOwned(consumer, ZERO); more; more = pending.next()) this.#writeRawId(pending.id);
    }
  }
}

function elementsOf(pairs: number, hasSameNames: boolean): number {
  return hasSameNames ? pairs + EntryOverhead.SAME_NAMES : pairs * 2 + EntryOverhead.OWN_NAMES;
}

/** What `distance` has found: signed halves. */
let distanceHigh = 0;
let distanceLow = 0;

/** a - b, modulo 2^64. */
function distance(aHigh: number, aLow: number, bHigh: number, bLow: number): void {
  distanceLow = (aLow - bLow) | 0;
  distanceHigh = (aHigh - bHigh - (aLow < bLow ? 1 : 0)) | 0;
}
