/**
 * Storing the keys of an RDB file as they are read.
 *
 * Owns: the key in hand, and the counts. Invariant: between `key` and `loaded` the key's shard is locked; a key is there whole, or not at all
 * when its value turns out to be damaged (`abandon`). Keys that have expired are read and dropped.
 */
import type { Settings } from '../../config/index.js';
import type { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import type { FileSink } from '../../rdb/file-reader.js';
import { RdbError } from '../../rdb/format.js';
import type { StringSlot } from '../../rdb/reader.js';
import type { ValueSink } from '../../rdb/sink.js';
import type { Keyspace } from '../../store/keyspace.js';
import { restoreUse } from '../../store/restored-use.js';
import type { StreamId } from '../../store/streams/stream-id.js';
import { ElementStore, HASHES, LISTS, SETS, SORTED_SETS, Stored } from './element-store.js';
import { GatheredValue } from './gathered-value.js';
import { isLarge, storeLarge } from './large-value.js';
import { NO_MEMORY_LEFT, StreamStore } from './stream-store.js';

const MAX_KEY_BYTES = 65_535;

/** Larger collections are stored element by element: what is gathered lies outside the pool. */
const GATHERED_MAX = 1 << 22;
const GATHERED_BYTES_MAX = 256 * 1024 * 1024;

/** Takes a value that nobody wants. */
const NOWHERE: ValueSink = {
  begin: () => undefined,
  text: () => undefined,
  element: () => undefined,
  scored: () => undefined,
  pair: () => undefined,
  entry: () => undefined,
  state: () => undefined,
  group: () => undefined,
  consumer: () => undefined,
  pending: () => undefined,
};

export class LoadSink implements FileSink, ValueSink {
  loadedKeys = 0;
  expiredKeys = 0;
  /** 'KEY (MODULE)' of those that belong to modules, the first few, and how many there are. */
  readonly moduleKeys: string[] = [];
  moduleKeyCount = 0;
  readonly libraries: Buffer[] = [];

  readonly #keyspace: Keyspace;
  readonly #settings: Readonly<Settings>;
  readonly #elements: ElementStore;
  readonly #streams: StreamStore;
  /** A large collection is gathered first. */
  readonly #gathered: GatheredValue;
  #isGathered = false;
  readonly #replaces: boolean;
  #db = 0;
  #hash = 0;
  #isLocked = false;
  #isDropped = false;
  #key!: StringSlot;
  #type: ItemType = ItemType.NONE;
  #expiryMs = 0;
  #idleS = -1;
  #frequency = -1;

  /** `replaces`: a key that is there already is replaced, else it is an error. */
  constructor(keyspace: Keyspace, settings: Readonly<Settings>, replaces = false) {
    this.#replaces = replaces;
    this.#keyspace = keyspace;
    this.#settings = settings;
    this.#elements = new ElementStore({ keyspace, environment: { settings } });
    this.#streams = new StreamStore(keyspace);
    this.#gathered = new GatheredValue(keyspace);
  }

  select(db: number): void {
    const { databases } = this.#settings;
    if (db >= databases) {
      throw new RdbError(`it has a database ${db}, and the setting databases allows 0 to ${databases - 1}`);
    }
    this.#db = db;
  }

  key(key: StringSlot, expiryMs: number, idleS: number, frequency: number): ValueSink {
    const keyspace = this.#keyspace;
    this.#isDropped = expiryMs !== 0 && expiryMs <= keyspace.nowMs;
    if (this.#isDropped) return NOWHERE;
    if (key.length > MAX_KEY_BYTES)
      throw new RdbError(`a key has ${key.length} bytes, and ${MAX_KEY_BYTES} is the most`);
    this.#key = key;
    this.#expiryMs = expiryMs;
    this.#idleS = idleS;
    this.#frequency = frequency;
    this.#hash = keyspace.hash(this.#db, key.bytes, key.offset, key.length);
    keyspace.lock(this.#hash);
    this.#isLocked = true;
    if (this.#find()) {
      if (!this.#replaces) throw new RdbError(`the key '${nameOf(key)}' is there twice`);
      keyspace.remove();
    }
    return this;
  }

  #find(): boolean {
    const { bytes, offset, length } = this.#key;
    return this.#keyspace.find(this.#hash, this.#db, bytes, offset, length);
  }

  begin(type: ItemType, count: number): void {
    this.#type = type;
    if (type === ItemType.STRING) return;
    const { bytes, offset, length } = this.#key;
    if (type === ItemType.STREAM) return this.#streams.open(this.#hash, this.#db, bytes, offset, length);
    const shape =
      type === ItemType.LIST ? LISTS : type === ItemType.SET ? SETS : type === ItemType.ZSET ? SORTED_SETS : HASHES;
    this.#elements.open(shape, this.#hash, this.#db, bytes, offset, length, Math.max(1, count));
    // Lists come in their order.
    this.#isGathered = type !== ItemType.LIST && count <= GATHERED_MAX && isLarge(this.#settings, type, count);
    if (this.#isGathered) this.#gathered.begin(type);
  }

  /** After each gathered element: they may have become too many bytes. */
  #checkBytes(): void {
    const { keys, values } = this.#gathered;
    if (keys.bytes.length + values.bytes.length > GATHERED_BYTES_MAX) this.#spill();
  }

  text(bytes: Bytes, offset: number, length: number): void {
    const keyspace = this.#keyspace;
    const key = this.#key;
    if (!keyspace.stage(this.#hash, this.#db, key.bytes, key.offset, key.length, length))
      throw new RdbError(NO_MEMORY_LEFT);
    copyBytes(keyspace.staged, keyspace.stagedOffset, bytes, offset, length);
    if (!keyspace.commit(ItemType.STRING, 0, 0, this.#expiryMs)) throw new RdbError(NO_MEMORY_LEFT);
  }

  element(bytes: Bytes, offset: number, length: number): void {
    if (this.#isGathered) {
      this.#gathered.element(bytes, offset, length);
      return this.#checkBytes();
    }
    const elements = this.#elements;
    check(
      this.#type === ItemType.LIST ? elements.push(bytes, offset, length) : elements.addMember(bytes, offset, length),
    );
  }

  scored(score: number, bytes: Bytes, offset: number, length: number): void {
    if (this.#isGathered) {
      this.#gathered.scored(score, bytes, offset, length);
      return this.#checkBytes();
    }
    check(this.#elements.addScored(score, bytes, offset, length));
  }

  pair(
    bytes: Bytes,
    offset: number,
    length: number,
    value: Bytes,
    valueOffset: number,
    valueLength: number,
    expiryMs: number,
  ): void {
    if (expiryMs !== 0 && expiryMs <= this.#keyspace.nowMs) return;
    if (this.#isGathered) {
      this.#gathered.pair(bytes, offset, length, value, valueOffset, valueLength, expiryMs);
      return this.#checkBytes();
    }
    check(this.#elements.addPair(bytes, offset, length, value, valueOffset, valueLength, expiryMs));
  }

  entry(id: StreamId, bytes: Bytes, args: Int32Array, pairs: number): void {
    this.#streams.entry(id, bytes, args, pairs);
  }

  state(lastId: StreamId, maxDeletedId: StreamId, entriesAdded: number): void {
    this.#streams.state(lastId, maxDeletedId, entriesAdded);
  }

  group(bytes: Bytes, offset: number, length: number, lastId: StreamId, entriesRead: number): void {
    this.#streams.group(bytes, offset, length, lastId, entriesRead);
  }

  consumer(bytes: Bytes, offset: number, length: number, seenMs: number, activeMs: number): void {
    this.#streams.consumer(bytes, offset, length, seenMs, activeMs);
  }

  pending(id: StreamId, deliveredMs: number, deliveries: number): void {
    this.#streams.pending(id, deliveredMs, deliveries);
  }

  loaded(): void {
    if (this.#isDropped) {
      this.expiredKeys++;
      return;
    }
    const keyspace = this.#keyspace;
    if (this.#isGathered) this.#storeGathered();
    const isString = this.#type === ItemType.STRING;
    const mustBeFound = !isString && (this.#expiryMs !== 0 || this.#idleS >= 0 || this.#frequency >= 0);
    // A hash all of whose fields have run out is not there.
    if (!mustBeFound || this.#find()) {
      if (mustBeFound && this.#expiryMs !== 0) keyspace.setExpiry(this.#expiryMs);
      restoreUse(keyspace, this.#idleS, this.#frequency);
    }
    this.loadedKeys++;
    this.#unlock();
  }

  #storeGathered(): void {
    const gathered = this.#gathered;
    const { type, count } = gathered;
    // Of a hash's fields many may have run out.
    if (!isLarge(this.#settings, type, count)) return this.#spill();
    this.#isGathered = false;
    const isStored = storeLarge(this.#keyspace, this.#hash, gathered, this.#elements.collection);
    gathered.clear();
    if (!isStored) throw new RdbError(NO_MEMORY_LEFT);
  }

  /** What has been gathered is stored as it came, and so is what follows. */
  #spill(): void {
    const gathered = this.#gathered;
    this.#isGathered = false;
    for (let i = 0; i < gathered.count; i++) check(this.#elements.addGathered(gathered, i));
    gathered.clear();
  }

  library(code: Uint8Array): void {
    this.libraries.push(Buffer.from(code));
  }

  /** Until whoever loads ends it. */
  base(): void {
    this.#keyspace.holdExpiry(true);
  }

  module(key: StringSlot, name: string): void {
    if (this.moduleKeyCount++ < 10) this.moduleKeys.push(`${nameOf(key)} (${name})`);
  }

  /** After an error: releases the lock, if there is one. */
  abandon(): void {
    if (!this.#isLocked) return;
    this.#isGathered = false;
    this.#gathered.clear();
    this.#keyspace.dropStaged();
    this.#unlock();
  }

  #unlock(): void {
    this.#isLocked = false;
    this.#keyspace.unlock(this.#hash);
  }
}

function check(stored: Stored): void {
  if (stored === Stored.TWICE) throw new RdbError('an element comes twice');
  if (stored === Stored.NO_MEMORY) throw new RdbError(NO_MEMORY_LEFT);
}

function nameOf({ bytes, offset, length }: StringSlot): string {
  return Buffer.from(bytes.u8.slice(offset, offset + Math.min(length, 100))).toString();
}
