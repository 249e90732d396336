/**
 * Storing a collection that comes as a payload, as DUMP writes it: for RESTORE, and for what a warm pool gets back after a reboot.
 *
 * The key's lock is held. Owns the value in hand. Invariant: the payload has been read and checked to its end before the store is touched; the
 * collection is made as a draft, which takes the key's place in one step: without memory for it the key stays as it was.
 */
import type { Settings } from '../../config/index.js';
import type { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { RdbError } from '../../rdb/format.js';
import { RdbReader } from '../../rdb/reader.js';
import { ValueReader } from '../../rdb/value-reader.js';
import type { Collection } from '../../store/collections/collection.js';
import { publish } from '../../store/collections/draft.js';
import type { Keyspace } from '../../store/keyspace.js';
import { ElementStore, HASHES, LISTS, SETS, SORTED_SETS, Stored, type Storing } from './element-store.js';
import { GatheredValue } from './gathered-value.js';
import { isLarge, storeLarge } from './large-value.js';
import { StreamStore } from './stream-store.js';

/** Where a value goes. */
export interface Target {
  readonly hash: number;
  readonly db: number;
  readonly key: Bytes;
  readonly offset: number;
  readonly length: number;
}

export class ValueStore {
  readonly gathered: GatheredValue;
  readonly #keyspace: Keyspace;
  readonly #settings: Readonly<Settings>;
  readonly #elements: ElementStore;
  readonly #streams: StreamStore;
  readonly #reader = new RdbReader();
  readonly #payloads = new ValueReader(this.#reader);

  constructor(storing: Storing) {
    this.#keyspace = storing.keyspace;
    this.#settings = storing.environment.settings;
    this.gathered = new GatheredValue(storing.keyspace);
    this.#elements = new ElementStore(storing);
    this.#streams = new StreamStore(storing.keyspace);
  }

  /** Reads the payload whole, type and value, into `gathered`; false = something is wrong with it. */
  gather(payload: Bytes, offset: number, length: number): boolean {
    this.#reader.openMemory(payload, offset, length);
    try {
      this.#payloads.read(this.#reader.byte(), this.gathered);
      if (this.#reader.left === 0) return true;
    } catch (error) {
      if (!(error instanceof RdbError)) throw error;
    }
    this.gathered.clear();
    return false;
  }

  /** Stores the collection that has been gathered from the payload; false = no memory. */
  store(payload: Bytes, offset: number, length: number, target: Target): boolean {
    return this.gathered.type === ItemType.STREAM
      ? this.#storeStream(payload, offset, length, target)
      : this.#storeElements(target);
  }

  #storeElements(target: Target): boolean {
    const into = this.#elements;
    const { count, type } = this.gathered;
    into.openDraft(shapeOf(type), target.hash, target.key, target.offset, target.length, count);
    if (isLarge(this.#settings, type, count)) {
      if (!storeLarge(this.#keyspace, target.hash, this.gathered, into.collection)) return false;
      return this.#replaceBy(into.collection, target);
    }
    for (let i = 0; i < count; i++) {
      if (into.addGathered(this.gathered, i) === Stored.DONE) continue;
      into.undo();
      return false;
    }
    return this.#replaceBy(into.collection, target);
  }

  /** Reads the payload once more. */
  #storeStream(payload: Bytes, offset: number, length: number, target: Target): boolean {
    const streams = this.#streams;
    streams.openDraft(target.hash, target.key, target.offset, target.length);
    this.#reader.openMemory(payload, offset, length);
    try {
      this.#payloads.read(this.#reader.byte(), streams);
      return this.#replaceBy(streams.collection, target);
    } catch (error) {
      if (!(error instanceof RdbError)) throw error;
      streams.undo();
      return false;
    }
  }

  /** Gives the key to the draft; false = no memory: the draft is gone. */
  #replaceBy(draft: Collection, { hash, db, key, offset, length }: Target): boolean {
    return publish(this.#keyspace, draft, hash, db, key, offset, length);
  }
}

function shapeOf(type: ItemType): typeof LISTS {
  if (type === ItemType.LIST) return LISTS;
  if (type === ItemType.SET) return SETS;
  return type === ItemType.ZSET ? SORTED_SETS : HASHES;
}
