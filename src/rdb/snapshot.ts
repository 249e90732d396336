/**
 * Writing all keys of a store, alone (SAVE) or while others work (BGSAVE).
 *
 * Alone, the file is the store at one moment. Beside others each key is written as it is at the moment when its turn comes: whole, and once. It
 * is walked as SCAN walks: a key that is there from the beginning to the end and keeps its name is in the file; one that is renamed or moved
 * meanwhile may be in it under both names, or neither. A large value is read in slices, between which its lock is released: when it has
 * changed meanwhile it is begun anew, and after a few times read in one go. Invariant: no lock and no batch is held between two buckets.
 */
import { Bytes } from '../layout/bytes.js';
import { ItemType } from '../layout/item.js';
import { Database } from '../layout/superblock.js';
import { isPacked } from '../store/collections/forms.js';
import type { Keyspace } from '../store/keyspace.js';

/** A slice of a large value is read in this time. */
const SLICE_MS = 1;
/** Times that a value which others change is read in slices. */
const SLICED_TRIES = 4;
/** Databases have been emptied or exchanged: what has been written belongs to no single moment's databases. */
export class DatabasesChanged extends Error {
  override readonly name = 'DatabasesChanged';

  constructor() {
    super('databases were emptied or exchanged while they were saved');
  }
}

/** What the keys are written to: see RdbFileWriter. */
export interface SnapshotTarget {
  readonly values: { onPause: (() => void) | null };
  /** The keys that follow belong to this database, which has about so many. */
  database(db: number, keys: number, expiring: number): void;
  /** Writes the key that the keyspace's cursor stands on. */
  key(keyspace: Keyspace): void;
  /** The key in hand has not been written. */
  rewind(): void;
  /** No lock is held: a good time to empty buffers. */
  drain(): void;
}

/** Somebody has changed the value between two slices. */
class ValueChanged extends Error {
  override readonly name = 'ValueChanged';
}

export class Snapshot {
  readonly #keyspace: Keyspace;
  readonly #file: SnapshotTarget;
  readonly #isAlone: boolean;
  readonly #isStopped: () => boolean;
  /** Keys of trees in the bucket in hand. */
  readonly #large: Uint8Array[] = [];
  /** The physical databases as they were when it began. */
  readonly #physical = new Int32Array(Database.LOGICAL);
  #databases = 0;
  #db = 0;
  #hash = 0;
  #version = 0;
  #key = Bytes.allocate(0);
  #sliceEndMs = 0;

  /** Alone: the gate is closed. */
  constructor(keyspace: Keyspace, file: SnapshotTarget, isStopped: () => boolean) {
    this.#keyspace = keyspace;
    this.#file = file;
    this.#isStopped = isStopped;
    this.#isAlone = keyspace.gate.isExclusive;
  }

  /** Writes all databases. Throws DatabasesChanged. */
  write(databases: number): void {
    const keyspace = this.#keyspace;
    this.#databases = databases;
    for (let db = 0; db < databases; db++) this.#physical[db] = keyspace.physical(db);
    for (let db = 0; db < databases; db++) {
      const keys = keyspace.size(db);
      if (keys === 0) continue;
      this.#db = db;
      this.#file.database(db, keys, keyspace.expiring(db));
      let cursor = 0;
      do {
        cursor = this.#writeBucket(cursor);
      } while (cursor !== 0);
    }
    this.#checkDatabases();
  }

  #writeBucket(cursor: number): number {
    const keyspace = this.#keyspace;
    this.#large.length = 0;
    this.#begin();
    let next: number;
    try {
      this.#checkDatabases();
      next = keyspace.scan(this.#db, cursor, this.#visit);
      keyspace.forgetFinds();
    } finally {
      this.#end();
    }
    for (const key of this.#large) this.#writeLarge(key);
    this.#file.drain();
    return next;
  }

  #begin(): void {
    if (this.#isAlone) return;
    this.#keyspace.enterBatch();
    this.#keyspace.refreshClock();
  }

  #end(): void {
    if (!this.#isAlone) this.#keyspace.leaveBatch();
  }

  #checkDatabases(): void {
    if (this.#isStopped()) throw new Error('the server stops');
    for (let db = 0; db < this.#databases; db++) {
      if (this.#keyspace.physical(db) !== this.#physical[db]) throw new DatabasesChanged();
    }
  }

  /** Small values are written where they are met, under the shard's lock. */
  readonly #visit = (keyspace: Keyspace): void => {
    if (keyspace.type === ItemType.STRING || isPacked(keyspace)) {
      this.#file.key(keyspace);
      return;
    }
    const { keyBytes, keyOffset, keyLength } = keyspace;
    this.#large.push(keyBytes.u8.slice(keyOffset, keyOffset + keyLength));
  };

  // ---- trees

  /** Writes the tree of a key, if it is still there. */
  #writeLarge(key: Uint8Array): void {
    this.#key = Bytes.from(key);
    const { values } = this.#file;
    for (let tries = 1; ; tries++) {
      const mayPause = this.#isAlone || tries <= SLICED_TRIES;
      values.onPause = mayPause ? this.#pause : null;
      this.#begin();
      this.#lock();
      try {
        this.#checkDatabases();
        if (this.#find()) {
          this.#version = this.#keyspace.version;
          this.#file.key(this.#keyspace);
        }
        return;
      } catch (error) {
        if (!(error instanceof ValueChanged)) throw error;
        this.#file.rewind();
      } finally {
        this.#unlock();
        this.#end();
        values.onPause = null;
      }
    }
  }

  #lock(): void {
    this.#hash = this.#keyspace.hash(this.#db, this.#key, 0, this.#key.length);
    if (!this.#isAlone) this.#keyspace.lock(this.#hash);
    this.#sliceEndMs = performance.now() + SLICE_MS;
  }

  #unlock(): void {
    if (this.#isAlone) this.#keyspace.forgetFinds();
    else this.#keyspace.unlock(this.#hash);
  }

  #find(): boolean {
    return this.#keyspace.find(this.#hash, this.#db, this.#key, 0, this.#key.length);
  }

  /** Between two elements: lets others at the key when it has been held for long enough. */
  readonly #pause = (): void => {
    if (this.#isAlone) {
      this.#file.drain();
    } else if (performance.now() >= this.#sliceEndMs) {
      this.#unlock();
      this.#keyspace.leaveBatch();
      try {
        this.#file.drain();
      } finally {
        this.#keyspace.enterBatch();
        this.#lock();
      }
      this.#checkDatabases();
    } else {
      return;
    }
    if (!this.#find() || this.#keyspace.version !== this.#version) throw new ValueChanged();
  };
}
