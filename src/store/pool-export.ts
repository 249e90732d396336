/**
 * Everything that a pool holds as newline JSON: one line an item, in no particular order within a database.
 *
 *     {"db":0,"key":"greeting","type":"string","value":"hello","expiresAtMs":1893456000000,"flags":3}
 *
 *     list, set   ["a","b"]                     zset    [["member",1.5],["other","inf"]]
 *     hash        [["field","value"],["field that expires","value",1893456000000]]
 *     stream      [["1-0",["field","value"]]], and beside it lastId, maxDeletedId, entriesAdded, groups
 *     group       {"name":"g","lastId":"1-0","entriesRead":1,"consumers":[{"name":"c","seenAtMs":1,"activeAtMs":null}],
 *                  "pending":[["1-0","c",deliveredAtMs,deliveries]]}
 *
 * Bytes are a JSON string where they are valid UTF-8 of at most 1 MiB, else {"base64":"..."}. What has expired is left out. Invariant: bytes come out as they were; no line is ever whole in memory, so its length has no limit.
 */
import { isUtf8 } from 'node:buffer';
import { writeSync } from 'node:fs';
import type { Bytes } from '../layout/bytes.js';
import { ItemType } from '../layout/item.js';
import { NO_COUNTER } from '../layout/stream.js';
import { Database } from '../layout/superblock.js';
import { type Collection, HASHES, LISTS, SETS, type Shape, SORTED_SETS, STREAMS } from './collections/collection.js';
import type { Keyspace } from './keyspace.js';
import { scanBucket } from './scan.js';
import { StreamGroups } from './streams/groups.js';
import { PendingEntries } from './streams/pending.js';
import { Stream } from './streams/stream.js';
import { StreamId } from './streams/stream-id.js';

const TEXT_MAX_BYTES = 1 << 20;
/** A multiple of three: the parts' base64 can be put together. */
const BASE64_STEP_BYTES = 3 << 16;
const FLUSH_CHARACTERS = 1 << 16;
const AGAIN_MS = 5;

/** Text to a descriptor, a good deal at a time, whether that blocks or not. */
export class TextOutput {
  readonly #fd: number;
  #held = '';

  constructor(fd: number) {
    this.#fd = fd;
  }

  add(text: string): void {
    this.#held += text;
    if (this.#held.length >= FLUSH_CHARACTERS) this.flush();
  }

  flush(): void {
    const bytes = Buffer.from(this.#held, 'utf8');
    this.#held = '';
    writeFully(this.#fd, bytes, 0, bytes.length);
  }
}

/** Writes bytes[from, end) to a descriptor, whether that blocks or not. */
export function writeFully(fd: number, bytes: Uint8Array, from: number, end: number): void {
  for (let at = from; at < end; ) {
    try {
      at += writeSync(fd, bytes, at, end - at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS);
    }
  }
}

/** Short bytes as JSON. */
function jsonOf({ u8 }: Pick<Bytes, 'u8'>, offset: number, length: number): string {
  const bytes = Buffer.from(u8.buffer, u8.byteOffset + offset, length);
  return isUtf8(bytes) ? JSON.stringify(bytes.toString('utf8')) : `{"base64":"${bytes.toString('base64')}"}`;
}

export class PoolExport {
  /** Items written. */
  items = 0;
  readonly #keyspace: Keyspace;
  readonly #out: TextOutput;
  readonly #stream = new Stream();
  readonly #groups = new StreamGroups(this.#stream);
  readonly #pending = new PendingEntries(this.#stream, this.#groups);
  readonly #first = new StreamId();

  /** `keyspace`: of a participant that is alone in its pool, or of a copy. */
  constructor(keyspace: Keyspace, out: TextOutput) {
    this.#keyspace = keyspace;
    this.#out = out;
  }

  run(nowMs: number): void {
    this.#keyspace.setClock(nowMs);
    for (let db = 0; db < Database.LOGICAL; db++) {
      if (this.#keyspace.databases.size(db) === 0) continue;
      const visit = (): void => this.#item(db);
      for (let cursor = 0; ; ) {
        cursor = scanBucket(this.#keyspace, db, cursor, visit);
        if (cursor === 0) break;
      }
    }
    this.#out.flush();
  }

  #item(db: number): void {
    const { keyBytes, keyOffset, keyLength, expiryMs, clientFlags, type } = this.#keyspace;
    this.#out.add(`{"db":${db},"key":`);
    this.#bytes(keyBytes, keyOffset, keyLength);
    if (expiryMs !== 0) this.#out.add(`,"expiresAtMs":${expiryMs}`);
    if (clientFlags !== 0) this.#out.add(`,"flags":${clientFlags >>> 0}`);
    this.#value(type);
    this.#out.add('}\n');
    this.items++;
  }

  #value(type: number): void {
    switch (type) {
      case ItemType.STRING: {
        const { value, valueOffset, valueLength } = this.#keyspace;
        this.#out.add(',"type":"string","value":');
        return this.#bytes(value, valueOffset, valueLength);
      }
      case ItemType.LIST:
        return this.#elements('list', LISTS, (list) => this.#key(list));
      case ItemType.SET:
        return this.#elements('set', SETS, (set) => this.#key(set));
      case ItemType.ZSET:
        return this.#elements('zset', SORTED_SETS, (set) => this.#member(set));
      case ItemType.HASH:
        return this.#elements('hash', HASHES, (hash) => this.#field(hash));
      case ItemType.STREAM:
        return this.#entries();
      default:
        throw new Error(`an item of type ${type}`);
    }
  }

  #elements(name: string, shape: Shape, write: (collection: Collection) => void): void {
    const [collection] = this.#keyspace.collections;
    collection.openFound(shape);
    this.#out.add(`,"type":"${name}","value":[`);
    let isFirst = true;
    for (let more = collection.first(); more; more = collection.next()) {
      collection.load();
      if (collection.expiryMs !== 0 && collection.expiryMs <= this.#keyspace.nowMs) continue;
      if (!isFirst) this.#out.add(',');
      isFirst = false;
      write(collection);
    }
    this.#out.add(']');
  }

  #key({ key, keyOffset, keyLength }: Collection): void {
    this.#bytes(key, keyOffset, keyLength);
  }

  #member(set: Collection): void {
    const { score } = set;
    this.#out.add('[');
    this.#key(set);
    this.#out.add(Number.isFinite(score) ? `,${JSON.stringify(score)}]` : `,"${score < 0 ? '-' : ''}inf"]`);
  }

  #field(hash: Collection): void {
    this.#out.add('[');
    this.#key(hash);
    this.#out.add(',');
    this.#bytes(hash.value, hash.valueOffset, hash.valueLength);
    this.#out.add(hash.expiryMs === 0 ? ']' : `,${hash.expiryMs}]`);
  }

  #entries(): void {
    const [collection] = this.#keyspace.collections;
    collection.openFound(STREAMS);
    const stream = this.#stream;
    stream.open(collection);
    const { lastId, maxDeletedId, entriesAdded } = stream;
    this.#out.add(
      `,"type":"stream","lastId":"${lastId}","maxDeletedId":"${maxDeletedId}","entriesAdded":${entriesAdded}`,
    );
    this.#out.add(',"value":[');
    let isFirst = true;
    for (let more = stream.first(); more; more = stream.next()) {
      stream.load();
      this.#out.add(`${isFirst ? '' : ','}["${stream.id}",[`);
      isFirst = false;
      this.#pairs(stream);
      this.#out.add(']]');
    }
    this.#out.add('],"groups":[');
    const { count } = this.#groups;
    for (let i = 0; i < count; i++) {
      if (i > 0) this.#out.add(',');
      this.#groups.loadGroup(i);
      this.#group();
    }
    this.#out.add(']');
  }

  /** The group that is loaded. */
  #group(): void {
    const groups = this.#groups;
    const { lastId, entriesRead, nameBytes, nameOffset, nameLength } = groups;
    this.#out.add('{"name":');
    this.#bytes(nameBytes, nameOffset, nameLength);
    this.#out.add(`,"lastId":"${lastId}","entriesRead":${entriesRead === NO_COUNTER ? null : entriesRead}`);
    this.#out.add(',"consumers":[');
    const names = new Map<number, string>();
    const { consumerCount } = groups;
    for (let i = 0; i < consumerCount; i++) {
      groups.loadConsumer(i);
      const name = jsonOf(groups.nameBytes, groups.nameOffset, groups.nameLength);
      names.set(groups.consumer, name);
      const active = groups.activeMs < 0 ? null : groups.activeMs;
      this.#out.add(`${i > 0 ? ',' : ''}{"name":${name},"seenAtMs":${groups.seenMs},"activeAtMs":${active}}`);
    }
    this.#out.add('],"pending":[');
    this.#first.setZero();
    const pending = this.#pending;
    let isFirst = true;
    for (let more = pending.seek(this.#first); more; more = pending.next()) {
      const { id, consumer, deliveredMs, deliveries } = pending;
      this.#out.add(`${isFirst ? '' : ','}["${id}",${names.get(consumer)},${deliveredMs},${deliveries}]`);
      isFirst = false;
    }
    this.#out.add(']}');
  }

  #pairs({ entry }: Stream): void {
    for (let i = entry.pairs; i > 0; i--) {
      entry.next();
      this.#bytes(entry.nameBytes, entry.nameOffset, entry.nameLength);
      this.#out.add(',');
      this.#bytes(entry.fieldBytes, entry.fieldOffset, entry.fieldLength);
      if (i > 1) this.#out.add(',');
    }
  }

  #bytes({ u8 }: Bytes, offset: number, length: number): void {
    const bytes = Buffer.from(u8.buffer, u8.byteOffset + offset, length);
    if (length <= TEXT_MAX_BYTES) {
      this.#out.add(jsonOf({ u8 }, offset, length));
      return;
    }
    this.#out.add('{"base64":"');
    for (let at = 0; at < length; at += BASE64_STEP_BYTES) {
      this.#out.add(bytes.toString('base64', at, Math.min(length, at + BASE64_STEP_BYTES)));
    }
    this.#out.add('"}');
  }
}
