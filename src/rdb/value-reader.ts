/**
 * Reading one value of RDB, in whichever of Redis's encodings it comes, into a sink.
 *
 * Invariant: what a sink gets is what the bytes say, whole elements, checked; empty collections and odd pairs are refused, as no Redis
 * writes them. Hostile bytes cost no more than their length allows.
 */
import { ItemType } from '../layout/item.js';
import { QuicklistNode, RdbType } from './format.js';
import { IntsetReader } from './packed/intset.js';
import { ListpackReader } from './packed/listpack.js';
import { ZiplistReader } from './packed/ziplist.js';
import { ZipmapReader } from './packed/zipmap.js';
import { type RdbReader, StringSlot } from './reader.js';
import type { ValueSink } from './sink.js';
import { StreamReader } from './stream-reader.js';

/** What all four packed forms have in common. */
interface PackedReader {
  open(blob: StringSlot): void;
  next(slot: StringSlot): boolean;
}

/** The latest expiry of a field that Redis knows. */
const FIELD_EXPIRY_MAX_MS = 2 ** 48 - 2;
/** Old sorted sets: what stands in place of a length. */
const SCORE_NAN = 253;
const SCORE_INFINITE = 254;
const SCORE_MINUS_INFINITE = 255;
const SCORE = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

export class ValueReader {
  readonly #reader: RdbReader;
  readonly #streams: StreamReader;
  readonly #listpack = new ListpackReader();
  readonly #ziplist = new ZiplistReader();
  readonly #zipmap = new ZipmapReader();
  readonly #intset = new IntsetReader();
  readonly #blob = new StringSlot();
  readonly #key = new StringSlot();
  readonly #value = new StringSlot();
  readonly #third = new StringSlot();

  constructor(reader: RdbReader) {
    this.#reader = reader;
    this.#streams = new StreamReader(reader);
  }

  /** Reads the value of a type that stands before the position. */
  read(type: number, sink: ValueSink): void {
    switch (type) {
      case RdbType.STRING:
        sink.begin(ItemType.STRING, 1);
        this.#reader.passing(this.#key);
        return sink.text(this.#key.bytes, this.#key.offset, this.#key.length);
      case RdbType.LIST:
        return this.#elements(ItemType.LIST, sink);
      case RdbType.SET:
        return this.#elements(ItemType.SET, sink);
      case RdbType.ZSET:
      case RdbType.ZSET_2:
        return this.#scored(type === RdbType.ZSET_2, sink);
      case RdbType.HASH:
        return this.#pairs(sink);
      case RdbType.HASH_METADATA:
        return this.#expiringPairs(this.#earliest(), sink);
      case RdbType.HASH_METADATA_PRE_GA:
        return this.#expiringPairs(-1, sink);
      case RdbType.LIST_ZIPLIST:
        return this.#packedElements(ItemType.LIST, this.#ziplist, sink);
      case RdbType.SET_INTSET:
        return this.#packedElements(ItemType.SET, this.#intset, sink);
      case RdbType.SET_LISTPACK:
        return this.#packedElements(ItemType.SET, this.#listpack, sink);
      case RdbType.ZSET_ZIPLIST:
        return this.#packedScored(this.#ziplist, sink);
      case RdbType.ZSET_LISTPACK:
        return this.#packedScored(this.#listpack, sink);
      case RdbType.HASH_ZIPMAP:
        return this.#packedPairs(this.#zipmap, sink);
      case RdbType.HASH_ZIPLIST:
        return this.#packedPairs(this.#ziplist, sink);
      case RdbType.HASH_LISTPACK:
        return this.#packedPairs(this.#listpack, sink);
      case RdbType.HASH_LISTPACK_EX:
        this.#earliest();
        return this.#packedTriples(sink);
      case RdbType.HASH_LISTPACK_EX_PRE_GA:
        return this.#packedTriples(sink);
      case RdbType.LIST_QUICKLIST:
      case RdbType.LIST_QUICKLIST_2:
        return this.#quicklist(type === RdbType.LIST_QUICKLIST_2, sink);
      case RdbType.STREAM_LISTPACKS:
      case RdbType.STREAM_LISTPACKS_2:
      case RdbType.STREAM_LISTPACKS_3:
        return this.#streams.read(type, sink);
      default:
        this.#reader.fail(`values of type ${type} are not known`);
    }
  }

  // ---- one string after the other

  #count(bytesEach: number): number {
    const count = this.#reader.count(bytesEach);
    if (count === 0) this.#empty();
    return count;
  }

  #empty(): never {
    this.#reader.fail('a collection is empty');
  }

  #elements(type: ItemType, sink: ValueSink): void {
    const slot = this.#key;
    const count = this.#count(1);
    sink.begin(type, count);
    for (let i = 0; i < count; i++) {
      this.#reader.passing(slot);
      sink.element(slot.bytes, slot.offset, slot.length);
    }
  }

  #scored(isBinary: boolean, sink: ValueSink): void {
    const reader = this.#reader;
    const slot = this.#key;
    const count = this.#count(2);
    sink.begin(ItemType.ZSET, count);
    for (let i = 0; i < count; i++) {
      reader.string(slot);
      const score = isBinary ? reader.double() : this.#oldScore();
      if (Number.isNaN(score)) reader.fail('a score is not a number');
      sink.scored(score, slot.bytes, slot.offset, slot.length);
    }
  }

  #oldScore(): number {
    const reader = this.#reader;
    const length = reader.byte();
    if (length === SCORE_NAN) return Number.NaN;
    if (length === SCORE_INFINITE) return Number.POSITIVE_INFINITY;
    if (length === SCORE_MINUS_INFINITE) return Number.NEGATIVE_INFINITY;
    reader.need(length);
    const slot = this.#value;
    slot.bytes = reader.bytes;
    slot.offset = reader.at;
    slot.length = length;
    reader.at += length;
    return scoreOf(slot);
  }

  #pairs(sink: ValueSink): void {
    const reader = this.#reader;
    const count = this.#count(2);
    sink.begin(ItemType.HASH, count);
    for (let i = 0; i < count; i++) {
      reader.string(this.#key);
      reader.passing(this.#value);
      this.#pair(0, sink);
    }
  }

  #pair(expiryMs: number, sink: ValueSink): void {
    const key = this.#key;
    const value = this.#value;
    sink.pair(key.bytes, key.offset, key.length, value.bytes, value.offset, value.length, expiryMs);
  }

  // ---- fields with an expiry

  /** The earliest expiry, which stands in front: the others are kept as their distance from it. */
  #earliest(): number {
    const ms = this.#reader.int64();
    if (!(ms >= 0 && ms <= FIELD_EXPIRY_MAX_MS + 1)) this.#reader.fail('the expiry of a field is out of range');
    return ms;
  }

  /** `earliestMs` -1: expiries are kept as they are. */
  #expiringPairs(earliestMs: number, sink: ValueSink): void {
    const reader = this.#reader;
    const count = this.#count(3);
    sink.begin(ItemType.HASH, count);
    for (let i = 0; i < count; i++) {
      const kept = reader.length();
      const expiryMs = kept === 0 || earliestMs < 0 ? kept : kept + earliestMs - 1;
      if (expiryMs > FIELD_EXPIRY_MAX_MS) reader.fail('the expiry of a field is out of range');
      reader.string(this.#key);
      reader.passing(this.#value);
      this.#pair(expiryMs, sink);
    }
  }

  #packedTriples(sink: ValueSink): void {
    const listpack = this.#listpack;
    const third = this.#third;
    this.#open(listpack);
    sink.begin(ItemType.HASH, -1);
    let count = 0;
    for (; listpack.next(this.#key); count++) {
      if (!listpack.next(this.#value) || !listpack.next(third)) this.#reader.fail('a field has no value');
      const expiryMs = listpack.high * 0x1_0000_0000 + (listpack.low >>> 0);
      if (!listpack.isInteger || !(expiryMs >= 0 && expiryMs <= FIELD_EXPIRY_MAX_MS)) {
        this.#reader.fail('the expiry of a field is out of range');
      }
      this.#pair(expiryMs, sink);
    }
    if (count === 0) this.#empty();
  }

  // ---- packed in one string

  #open(packed: PackedReader): void {
    this.#reader.passing(this.#blob);
    packed.open(this.#blob);
  }

  #packedElements(type: ItemType, packed: PackedReader, sink: ValueSink): void {
    this.#open(packed);
    sink.begin(type, -1);
    if (this.#eachElement(packed, sink) === 0) this.#empty();
  }

  #eachElement(packed: PackedReader, sink: ValueSink): number {
    const slot = this.#key;
    let count = 0;
    for (; packed.next(slot); count++) sink.element(slot.bytes, slot.offset, slot.length);
    return count;
  }

  #packedScored(packed: PackedReader, sink: ValueSink): void {
    const key = this.#key;
    this.#open(packed);
    sink.begin(ItemType.ZSET, -1);
    let count = 0;
    for (; packed.next(key); count++) {
      if (!packed.next(this.#value)) this.#reader.fail('a member has no score');
      const score = scoreOf(this.#value);
      if (Number.isNaN(score)) this.#reader.fail('a score is not a number');
      sink.scored(score, key.bytes, key.offset, key.length);
    }
    if (count === 0) this.#empty();
  }

  #packedPairs(packed: PackedReader, sink: ValueSink): void {
    this.#open(packed);
    sink.begin(ItemType.HASH, -1);
    let count = 0;
    for (; packed.next(this.#key); count++) {
      if (!packed.next(this.#value)) this.#reader.fail('a field has no value');
      this.#pair(0, sink);
    }
    if (count === 0) this.#empty();
  }

  #quicklist(hasContainers: boolean, sink: ValueSink): void {
    const reader = this.#reader;
    const nodes = this.#count(1);
    sink.begin(ItemType.LIST, -1);
    for (let i = 0; i < nodes; i++) {
      const container = hasContainers ? reader.length() : QuicklistNode.PACKED;
      if (container === QuicklistNode.PLAIN) {
        reader.passing(this.#key);
        sink.element(this.#key.bytes, this.#key.offset, this.#key.length);
        continue;
      }
      if (container !== QuicklistNode.PACKED) reader.fail('a node of a list is of an unknown kind');
      const packed = hasContainers ? this.#listpack : this.#ziplist;
      this.#open(packed);
      if (this.#eachElement(packed, sink) === 0) this.#empty();
    }
  }
}

/** NaN when it is none. */
function scoreOf({ bytes, offset, length }: StringSlot): number {
  if (length < 1 || length > 128) return Number.NaN;
  let text = '';
  for (let i = 0; i < length; i++) text += String.fromCharCode(bytes.u8[offset + i]);
  if (SCORE.test(text)) return Number(text);
  const infinity = /^([+-]?)inf(inity)?$/i.exec(text);
  if (infinity === null) return Number.NaN;
  return infinity[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
