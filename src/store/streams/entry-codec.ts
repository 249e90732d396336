/**
 * The value of a stream's entry: field names and values as bytes, written from a request and read field by field.
 *
 * Owns: the bytes of the entry that was written last and of the schema that was read last. Invariant: a schema is never changed or removed
 * while its stream exists, so that its number in an entry always finds the names that the entry was written with.
 */
import { Bytes, bytesEqual } from '../../layout/bytes.js';
import { EntryLength, SchemaRecord, SideKey, StreamMeta } from '../../layout/stream.js';
import { copyBytes } from '../../native/copy.js';
import { Change, type Collection } from '../collections/collection.js';

/** A stream has so many schemas at most, of so many bytes: names that come again rarely, or are long, stay in their entries. */
const SCHEMAS_MAX = 100;
const SCHEMA_BYTES_MAX = 500;
/** What is kept between entries. */
const KEPT_BYTES_MAX = 65_536;
const LENGTH_BYTES_MAX = 5;
/** Length and name of no pair are shorter than so many bytes each. */
const SCHEMA_KEY_BYTES = 2;

export class EntryCodec {
  // ---- the entry that was written
  value = Bytes.allocate(4096);
  valueLength = 0;

  // ---- the entry that is read
  /** Pairs of it, and how many are left. */
  pairs = 0;
  nameBytes: Bytes;
  nameOffset = 0;
  nameLength = 0;
  fieldBytes: Bytes;
  fieldOffset = 0;
  fieldLength = 0;

  readonly #schema = Bytes.allocate(SCHEMA_BYTES_MAX + SchemaRecord.FIELDS + LENGTH_BYTES_MAX);
  /** Number of the schema that is there, 0 = none. */
  #schemaNumber = 0;
  #schemaPairs = 0;
  #schemaNames = 0;
  readonly #key = Bytes.allocate(SCHEMA_KEY_BYTES);
  #at = 0;
  #namesAt = 0;
  #isInline = false;

  constructor() {
    this.nameBytes = this.value;
    this.fieldBytes = this.value;
  }

  /** Another stream is open. */
  reset(): void {
    this.#schemaNumber = 0;
  }

  // ---- writing

  /**
   * Writes the entry of `pairs` names and values, whose (offset, length) pairs stand in `args` from `first` on. The names become those
   * of a schema when the entry before had the same: `head` says so, and is changed.
   */
  write(stream: Collection, head: Int32Array, input: Bytes, args: Int32Array, first: number, pairs: number): void {
    const hash = hashNames(input, args, first, pairs);
    const schema = this.#chooseSchema(stream, head, hash, input, args, first, pairs);
    let bytes = 1 + LENGTH_BYTES_MAX;
    for (let i = 0; i < pairs * 2; i++) bytes += LENGTH_BYTES_MAX + args[first + i * 2 + 1];
    this.#makeRoom(bytes);
    const { value } = this;
    value.u8[0] = schema;
    let at = 1;
    if (schema === 0) at = writeLength(value, at, pairs);
    const end = first + pairs * 4;
    for (let i = first; i < end; i += 4) {
      if (schema === 0) at = writeBytes(value, at, input, args[i], args[i + 1]);
      at = writeBytes(value, at, input, args[i + 2], args[i + 3]);
    }
    this.valueLength = at;
  }

  #makeRoom(bytes: number): void {
    const kept = this.value.length;
    if (bytes > kept || kept > KEPT_BYTES_MAX) this.value = Bytes.allocate(Math.max(4096, bytes));
  }

  /** Number of the schema with these names, 0 = they stay in the entry. */
  #chooseSchema(
    stream: Collection,
    head: Int32Array,
    hash: number,
    input: Bytes,
    args: Int32Array,
    first: number,
    pairs: number,
  ): number {
    const comesAgain = head[StreamMeta.NAMES_HASH_WORD] === hash;
    head[StreamMeta.NAMES_HASH_WORD] = hash;
    let schema = comesAgain ? head[StreamMeta.SCHEMA_WORD] : 0;
    if (schema !== 0) {
      this.#seekSchema(stream, schema);
      if (this.#hasNames(stream, input, args, first, pairs)) return schema;
    }
    const count = head[StreamMeta.SCHEMAS_WORD];
    schema = count === 0 ? 0 : this.#findSchema(stream, hash, input, args, first, pairs);
    if (schema === 0 && comesAgain && count < SCHEMAS_MAX && stream.exists && !stream.isPacked) {
      if (this.#addSchema(stream, count + 1, hash, input, args, first, pairs)) {
        schema = count + 1;
        head[StreamMeta.SCHEMAS_WORD] = schema;
        // At once: the entry itself may find no memory, or make room and so settle what is done so far.
        stream.setMeta(StreamMeta.SCHEMAS_WORD, schema);
      }
    }
    head[StreamMeta.SCHEMA_WORD] = schema;
    return schema;
  }

  /** True when the schema on which the side tree stands has these names. */
  #hasNames({ side }: Collection, input: Bytes, args: Int32Array, first: number, pairs: number): boolean {
    const { value: from } = side;
    let at = readLength(from, side.valueOffset + SchemaRecord.FIELDS);
    if (lengthRead !== pairs) return false;
    const end = first + pairs * 4;
    for (let i = first; i < end; i += 4) {
      const length = args[i + 1];
      at = readLength(from, at);
      if (lengthRead !== length || !bytesEqual(from, at, input, args[i], length)) return false;
      at += length;
    }
    return true;
  }

  #findSchema(stream: Collection, hash: number, input: Bytes, args: Int32Array, first: number, pairs: number): number {
    const { side } = stream;
    let more = side.first();
    for (let number = 1; more; number++, more = side.next()) {
      side.load();
      if (side.key.u8[side.keyOffset] !== SideKey.SCHEMA) return 0;
      if (side.value.view.getInt32(side.valueOffset + SchemaRecord.HASH, true) !== hash) continue;
      if (this.#hasNames(stream, input, args, first, pairs)) return number;
    }
    return 0;
  }

  #addSchema(
    stream: Collection,
    number: number,
    hash: number,
    input: Bytes,
    args: Int32Array,
    first: number,
    pairs: number,
  ): boolean {
    let bytes = 0;
    const end = first + pairs * 4;
    for (let i = first; i < end; i += 4) bytes += LENGTH_BYTES_MAX + args[i + 1];
    if (bytes > SCHEMA_BYTES_MAX) return false;
    const to = this.#schema;
    this.#schemaNumber = 0;
    to.view.setInt32(SchemaRecord.HASH, hash, true);
    let at = writeLength(to, SchemaRecord.FIELDS, pairs);
    for (let i = first; i < end; i += 4) at = writeBytes(to, at, input, args[i], args[i + 1]);
    this.#writeKey(number);
    return stream.insertSide(this.#key, 0, SCHEMA_KEY_BYTES, to, 0, at) === Change.DONE;
  }

  #writeKey(schema: number): void {
    this.#key.u8[0] = SideKey.SCHEMA;
    this.#key.u8[1] = schema;
  }

  #seekSchema({ side }: Collection, schema: number): void {
    this.#writeKey(schema);
    if (!side.seek(this.#key, 0, SCHEMA_KEY_BYTES)) throw new Error(`a stream has no schema ${schema}`);
    side.load();
  }

  #loadSchema(stream: Collection, schema: number): void {
    if (this.#schemaNumber === schema) return;
    const { side } = stream;
    this.#seekSchema(stream, schema);
    copyBytes(this.#schema, 0, side.value, side.valueOffset, side.valueLength);
    this.#schemaNames = readLength(this.#schema, SchemaRecord.FIELDS);
    this.#schemaPairs = lengthRead;
    this.#schemaNumber = schema;
  }

  // ---- reading

  /** Begins to read the value of the stream's loaded element. The side tree's position is lost. */
  read(stream: Collection): void {
    const { value, valueOffset } = stream;
    const schema = value.u8[valueOffset];
    if (this.fieldBytes !== value) this.fieldBytes = value;
    this.#isInline = schema === 0;
    if (schema === 0) {
      this.#at = readLength(value, valueOffset + 1);
      this.pairs = lengthRead;
      if (this.nameBytes !== value) this.nameBytes = value;
      return;
    }
    this.#loadSchema(stream, schema);
    if (this.nameBytes !== this.#schema) this.nameBytes = this.#schema;
    this.#at = valueOffset + 1;
    this.#namesAt = this.#schemaNames;
    this.pairs = this.#schemaPairs;
  }

  /** Reads the next name and value; as often as there are pairs. */
  next(): void {
    const { fieldBytes } = this;
    if (this.#isInline) {
      this.nameOffset = readLength(fieldBytes, this.#at);
      this.nameLength = lengthRead;
      this.#at = this.nameOffset + this.nameLength;
    } else {
      this.nameOffset = readLength(this.#schema, this.#namesAt);
      this.nameLength = lengthRead;
      this.#namesAt = this.nameOffset + this.nameLength;
    }
    this.fieldOffset = readLength(fieldBytes, this.#at);
    this.fieldLength = lengthRead;
    this.#at = this.fieldOffset + this.fieldLength;
  }
}

/** What readLength has found. */
let lengthRead = 0;

function readLength(from: Bytes, at: number): number {
  const first = from.u8[at];
  if (first < EntryLength.TWO_BYTES) {
    lengthRead = first;
    return at + 1;
  }
  if (first === EntryLength.TWO_BYTES) {
    lengthRead = from.view.getUint16(at + 1, true);
    return at + 3;
  }
  lengthRead = from.view.getUint32(at + 1, true);
  return at + LENGTH_BYTES_MAX;
}

function writeLength(to: Bytes, at: number, length: number): number {
  if (length < EntryLength.TWO_BYTES) {
    to.u8[at] = length;
    return at + 1;
  }
  if (length <= 0xffff) {
    to.u8[at] = EntryLength.TWO_BYTES;
    to.view.setUint16(at + 1, length, true);
    return at + 3;
  }
  to.u8[at] = EntryLength.FOUR_BYTES;
  to.view.setUint32(at + 1, length, true);
  return at + LENGTH_BYTES_MAX;
}

function writeBytes(to: Bytes, at: number, from: Bytes, offset: number, length: number): number {
  const start = writeLength(to, at, length);
  copyBytes(to, start, from, offset, length);
  return start + length;
}

/** Tells most sets of names apart; never 0. */
function hashNames(input: Bytes, args: Int32Array, first: number, pairs: number): number {
  const { u8 } = input;
  let hash = pairs;
  const end = first + pairs * 4;
  for (let i = first; i < end; i += 4) {
    const offset = args[i];
    const length = args[i + 1];
    hash = Math.imul(hash ^ length, 0x0100_0193);
    // Few names differ only in other places; which names they are is compared in any case.
    for (let k = 0; k < length; k += length > 32 ? 5 : 1) hash = Math.imul(hash ^ u8[offset + k], 0x0100_0193);
  }
  return hash | 1;
}
