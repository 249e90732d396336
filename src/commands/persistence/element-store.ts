/**
 * Storing collections element by element, as RESTORE and the loading of files do: with the limits of the settings, so that each gets the
 * form that its own commands would have given it.
 *
 * The key's lock is held. An element that is there already is refused: `Stored.TWICE`.
 */
import type { Settings } from '../../config/index.js';
import type { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { Change, type Collection, HASHES, LISTS, SETS, SORTED_SETS } from '../../store/collections/collection.js';
import { HashMark } from '../../store/collections/forms.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Added, addMember } from '../sets/set-members.js';
import type { GatheredValue } from './gathered-value.js';

export const enum Stored {
  DONE = 0,
  TWICE = 1,
  NO_MEMORY = 2,
}

/** What storing needs to know: a command's context has it, and so has the loading of a file. */
export interface Storing {
  readonly keyspace: Keyspace;
  readonly environment: { readonly settings: Readonly<Settings> };
}

function stored(change: Change): Stored {
  return change === Change.DONE ? Stored.DONE : Stored.NO_MEMORY;
}

export class ElementStore {
  readonly collection: Collection;

  readonly #storing: Storing;
  #keyHash = 0;
  /** Elements that are to come, as far as it is known. */
  #hint = 1;

  constructor(storing: Storing) {
    this.#storing = storing;
    this.collection = storing.keyspace.collections[0];
  }

  /** Begins a collection that is to take the place of what a key has: see store/collections/draft. */
  openDraft(shape: typeof LISTS, hash: number, key: Bytes, offset: number, length: number, hint: number): void {
    this.collection.openDraft(shape, hash, key, offset, length);
    this.#begin(shape, hash, hint);
  }

  /** Opens the collection of a key that does not exist yet. */
  open(shape: typeof LISTS, hash: number, db: number, key: Bytes, offset: number, length: number, hint: number): void {
    this.collection.open(shape, hash, db, key, offset, length);
    this.#begin(shape, hash, hint);
  }

  #begin(shape: typeof LISTS, hash: number, hint: number): void {
    const { collection } = this;
    this.#keyHash = hash;
    this.#hint = hint;
    const { settings } = this.#storing.environment;
    if (shape === HASHES) {
      collection.packedEntriesMax = settings.hashMaxListpackEntries;
      collection.packedElementMax = settings.hashMaxListpackValue;
    } else if (shape === SORTED_SETS) {
      collection.packedEntriesMax = settings.zsetMaxListpackEntries;
      collection.packedElementMax = settings.zsetMaxListpackValue;
    } else if (shape === LISTS && settings.listMaxListpackSize > 0) {
      collection.packedEntriesMax = settings.listMaxListpackSize;
    }
  }

  push(bytes: Bytes, offset: number, length: number): Stored {
    this.collection.toEnd();
    return stored(this.collection.insert(bytes, offset, length));
  }

  addMember(bytes: Bytes, offset: number, length: number): Stored {
    switch (addMember(this.#storing, this.collection, bytes, offset, length, this.#hint)) {
      case Added.NEW:
        return Stored.DONE;
      case Added.PRESENT:
        return Stored.TWICE;
      default:
        return Stored.NO_MEMORY;
    }
  }

  addScored(score: number, bytes: Bytes, offset: number, length: number): Stored {
    if (this.collection.seekKey(bytes, offset, length)) return Stored.TWICE;
    return stored(this.collection.insertScored(score, bytes, offset, length));
  }

  addPair(
    bytes: Bytes,
    offset: number,
    length: number,
    value: Bytes,
    valueOffset: number,
    valueLength: number,
    expiryMs: number,
  ): Stored {
    const hash = this.collection;
    if (hash.seekKey(bytes, offset, length)) return Stored.TWICE;
    const change = hash.insertPair(bytes, offset, length, value, valueOffset, valueLength, expiryMs);
    if (change !== Change.DONE || expiryMs === 0) return stored(change);
    this.#storing.keyspace.noteFieldExpiry(this.#keyHash);
    return (hash.marks & HashMark.EXPIRES) !== 0 ? Stored.DONE : stored(hash.setMarks(HashMark.EXPIRES));
  }

  /** Element `i` of what has been gathered. */
  addGathered({ type, keys, values, numbers }: GatheredValue, i: number): Stored {
    const { bytes } = keys;
    const offset = keys.offsets[i];
    const length = keys.lengths[i];
    switch (type) {
      case ItemType.LIST:
        return this.push(bytes, offset, length);
      case ItemType.SET:
        return this.addMember(bytes, offset, length);
      case ItemType.ZSET:
        return this.addScored(numbers[i], bytes, offset, length);
      default:
        return this.addPair(bytes, offset, length, values.bytes, values.offsets[i], values.lengths[i], numbers[i]);
    }
  }

  /** Deletes what there is of it. */
  undo(): void {
    if (this.collection.exists) this.collection.removeKey();
  }
}

export { HASHES, LISTS, SETS, SORTED_SETS };
