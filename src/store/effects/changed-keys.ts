/**
 * The keys that the running command has changed so far, each once, with what is to be written down of it.
 *
 * Owns copies of their names: the items that they were seen in may move or go. Invariant: an entry's number stays the same until `clear`.
 */
import { type Bytes, bytesEqual } from '../../layout/bytes.js';
import { RecordBuffer } from './record-buffer.js';

/** What has happened to a key. */
export const enum Mark {
  /** Its value has changed in a way that only its state can tell. */
  STATE = 1,
  /** Its expiry has changed. */
  EXPIRY = 2,
  /** Commands that have been written down tell. */
  COMMAND = 4,
}

const FIRST_KEYS = 64;
/** From so many on they are looked up by hash. */
const TABLE_FROM = 16;
const WORDS = 5;
const HASH = 0;
const DATABASE = 1;
const OFFSET = 2;
const LENGTH = 3;
const MARKS = 4;

export class ChangedKeys {
  count = 0;
  readonly names = new RecordBuffer();

  #entries = new Int32Array(FIRST_KEYS * WORDS);
  /** Entry numbers + 1 by hash, open addressing; in use from TABLE_FROM keys on. */
  #table = new Int32Array(FIRST_KEYS * 4);

  hash(i: number): number {
    return this.#entries[i * WORDS + HASH];
  }
  /** The physical one. */
  database(i: number): number {
    return this.#entries[i * WORDS + DATABASE];
  }
  offset(i: number): number {
    return this.#entries[i * WORDS + OFFSET];
  }
  length(i: number): number {
    return this.#entries[i * WORDS + LENGTH];
  }
  marks(i: number): number {
    return this.#entries[i * WORDS + MARKS];
  }

  add(hash: number, database: number, bytes: Bytes, offset: number, length: number, mark: Mark): void {
    // First the entry: what it is written to may grow for it.
    const i = this.#entryOf(hash, database, bytes, offset, length);
    this.#entries[i * WORDS + MARKS] |= mark;
  }

  /** Marks of a key; 0 = it has not changed. */
  marksOf(hash: number, database: number, bytes: Bytes, offset: number, length: number): number {
    const i = this.#find(hash, database, bytes, offset, length);
    return i < 0 ? 0 : this.marks(i);
  }

  clear(): void {
    if (this.count >= TABLE_FROM) this.#table.fill(0);
    this.count = 0;
    this.names.clear();
  }

  #entryOf(hash: number, database: number, bytes: Bytes, offset: number, length: number): number {
    const found = this.#find(hash, database, bytes, offset, length);
    if (found >= 0) return found;
    const i = this.count++;
    if (this.count * WORDS > this.#entries.length) this.#grow();
    const at = i * WORDS;
    this.#entries[at + HASH] = hash;
    this.#entries[at + DATABASE] = database;
    this.#entries[at + OFFSET] = this.names.length;
    this.#entries[at + LENGTH] = length;
    this.#entries[at + MARKS] = 0;
    this.names.raw(bytes, offset, length);
    if (this.count === TABLE_FROM) for (let k = 0; k < this.count; k++) this.#enter(k);
    else if (this.count > TABLE_FROM) this.#enter(i);
    return i;
  }

  #find(hash: number, database: number, bytes: Bytes, offset: number, length: number): number {
    if (this.count < TABLE_FROM) {
      for (let i = 0; i < this.count; i++) if (this.#is(i, hash, database, bytes, offset, length)) return i;
      return -1;
    }
    const mask = this.#table.length - 1;
    for (let at = hash & mask; this.#table[at] !== 0; at = (at + 1) & mask) {
      const i = this.#table[at] - 1;
      if (this.#is(i, hash, database, bytes, offset, length)) return i;
    }
    return -1;
  }

  #is(i: number, hash: number, database: number, bytes: Bytes, offset: number, length: number): boolean {
    const at = i * WORDS;
    const entries = this.#entries;
    return (
      entries[at + HASH] === hash &&
      entries[at + DATABASE] === database &&
      entries[at + LENGTH] === length &&
      bytesEqual(this.names.bytes, entries[at + OFFSET], bytes, offset, length)
    );
  }

  #enter(i: number): void {
    const mask = this.#table.length - 1;
    let at = this.hash(i) & mask;
    while (this.#table[at] !== 0) at = (at + 1) & mask;
    this.#table[at] = i + 1;
  }

  #grow(): void {
    const entries = new Int32Array(this.#entries.length * 2);
    entries.set(this.#entries);
    this.#entries = entries;
    this.#table = new Int32Array(this.#table.length * 2);
    for (let k = 0; k < this.count - 1; k++) this.#enter(k);
  }
}
