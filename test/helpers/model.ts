/**
 * A store and a plain Map side by side: each operation runs on both, and what the store answers is held against the Map.
 *
 * With `mayLose` (an evicting policy) a read may miss, and the Map then forgets the key; it must never see a wrong or older value.
 * Invariant: `model` holds exactly what the store must (or, with `mayLose`, at most may) hold at `nowMs`.
 */
import { Bytes } from '../../src/layout/bytes.js';
import type { Keyspace, StageSlot } from '../../src/store/keyspace.js';

export interface Entry {
  value: Uint8Array;
  flags: number;
  expiryMs: number;
  version: number;
}

const STRING = 1;
export const FIRST_MS = 1_700_000_000_000;

/** Bytes that tell key, write and position: a foreign, older or shifted value shows. */
export function fillValue(key: string, write: number, length: number): Uint8Array {
  const pattern = Buffer.from(`<${key}#${write}>`);
  return length === 0 ? new Uint8Array(0) : new Uint8Array(Buffer.alloc(length, pattern));
}

export class Mirror {
  readonly model: Map<string, Entry>[] = [];
  nowMs = FIRST_MS;
  refused = 0;
  #writes = 0;
  readonly #parked: { slot: StageSlot; db: number; key: string; value: Uint8Array }[] = [];
  readonly #pins: { token: number; bytes: Bytes; offset: number; value: Uint8Array }[] = [];

  constructor(
    readonly keyspace: Keyspace,
    readonly mayLose: boolean,
    readonly mayRefuse: boolean,
  ) {
    for (let db = 0; db < 16; db++) this.model.push(new Map());
    keyspace.setClock(this.nowMs);
    keyspace.enterBatch();
  }

  /** Ends the history: nothing parked, pinned or locked is left. */
  close(): void {
    for (const { slot } of this.#parked.splice(0)) this.keyspace.dropParked(slot);
    while (this.#pins.length > 0) this.unpin(0);
    this.flushAll();
    this.keyspace.leaveBatch();
  }

  #locked<T>(db: number, key: string, run: (hash: number, bytes: Bytes) => T): T {
    const { keyspace } = this;
    const bytes = Bytes.from(key);
    const hash = keyspace.hash(db, bytes, 0, bytes.length);
    keyspace.lock(hash);
    try {
      return run(hash, bytes);
    } finally {
      keyspace.unlock(hash);
    }
  }

  #expected(db: number, key: string): Entry | undefined {
    const entry = this.model[db].get(key);
    if (entry !== undefined && entry.expiryMs !== 0 && entry.expiryMs <= this.nowMs) {
      this.model[db].delete(key);
      return undefined;
    }
    return entry;
  }

  /** Holds the result of a find against the Map. Lock held. */
  #compare(found: boolean, db: number, key: string): boolean {
    const { keyspace } = this;
    const entry = this.#expected(db, key);
    if (!found) {
      if (entry !== undefined) {
        if (!this.mayLose) throw new Error(`${db}/${key} is lost`);
        this.model[db].delete(key);
      }
      return false;
    }
    if (entry === undefined) throw new Error(`${db}/${key} should not be there`);
    const { valueOffset, valueLength } = keyspace;
    const actual = keyspace.value.u8.subarray(valueOffset, valueOffset + valueLength);
    if (Buffer.compare(actual, entry.value) !== 0) {
      throw new Error(
        `${db}/${key}: wrong value ${valueLength} bytes ${Buffer.from(actual.subarray(0, 40))}, not ${entry.value.length} bytes ${Buffer.from(entry.value.subarray(0, 40))}`,
      );
    }
    if (keyspace.clientFlags !== entry.flags) throw new Error(`${db}/${key}: flags ${keyspace.clientFlags}`);
    if (keyspace.expiryMs !== entry.expiryMs) throw new Error(`${db}/${key}: expiry ${keyspace.expiryMs}`);
    if (keyspace.type !== STRING) throw new Error(`${db}/${key}: type ${keyspace.type}`);
    if (keyspace.version !== entry.version) {
      throw new Error(`${db}/${key}: version ${keyspace.version}, not ${entry.version}`);
    }
    return true;
  }

  #put(db: number, key: string, entry: Entry): void {
    const before = this.model[db].get(key);
    if (before !== undefined && entry.version <= before.version) {
      throw new Error(`${db}/${key}: version ${entry.version} after ${before.version}`);
    }
    this.model[db].set(key, entry);
  }

  #refuse(what: string): void {
    this.refused++;
    if (!this.mayRefuse) throw new Error(`${what} was refused ${JSON.stringify(this.keyspace.stats())}`);
  }

  get(db: number, key: string): boolean {
    return this.#locked(db, key, (hash, bytes) => {
      const found = this.keyspace.find(hash, db, bytes, 0, bytes.length);
      if (found) this.keyspace.access();
      return this.#compare(found, db, key);
    });
  }

  /** SET: stages before the lock; `looks` finds the key first, as SET NX or GET does. */
  set(db: number, key: string, length: number, flags = 0, ttlMs = 0, looks = false): boolean {
    const { keyspace } = this;
    const value = fillValue(key, ++this.#writes, length);
    const bytes = Bytes.from(key);
    const hash = keyspace.hash(db, bytes, 0, bytes.length);
    if (!keyspace.stage(hash, db, bytes, 0, bytes.length, length)) {
      this.#refuse(`set of ${length} bytes`);
      return false;
    }
    keyspace.staged.u8.set(value, keyspace.stagedOffset);
    return this.#commit(db, key, bytes, hash, value, flags, ttlMs, looks);
  }

  #commit(
    db: number,
    key: string,
    bytes: Bytes,
    hash: number,
    value: Uint8Array,
    flags: number,
    ttlMs: number,
    looks: boolean,
  ): boolean {
    const { keyspace } = this;
    const expiryMs = ttlMs === 0 ? 0 : this.nowMs + ttlMs;
    keyspace.lock(hash);
    if (looks) this.#compare(keyspace.find(hash, db, bytes, 0, bytes.length), db, key);
    const stored = keyspace.commit(STRING, 0, flags, expiryMs);
    if (stored) this.#put(db, key, { value, flags, expiryMs, version: keyspace.version });
    else this.#refuse('commit');
    keyspace.unlock(hash);
    return stored;
  }

  /** Read-modify-write under the lock: the new value is staged there. */
  append(db: number, key: string, extra: number): void {
    const { keyspace } = this;
    this.#locked(db, key, (hash, bytes) => {
      if (!this.#compare(keyspace.find(hash, db, bytes, 0, bytes.length), db, key)) return;
      const entry = this.model[db].get(key) as Entry;
      const value = Buffer.concat([entry.value, fillValue(key, ++this.#writes, extra)]);
      if (keyspace.edit(0, 0) && keyspace.resize(value.length)) {
        keyspace.value.u8.set(value.subarray(entry.value.length), keyspace.valueOffset + entry.value.length);
        this.#put(db, key, { ...entry, value, version: keyspace.version });
        return;
      }
      // The edit may have moved the version on before the resize was refused.
      if (keyspace.version > entry.version) entry.version = keyspace.version;
      if (!keyspace.stage(hash, db, bytes, 0, bytes.length, value.length)) {
        this.#refuse('append');
        return;
      }
      if (!keyspace.find(hash, db, bytes, 0, bytes.length)) throw new Error(`${db}/${key}: evicted though just found`);
      keyspace.staged.u8.set(value, keyspace.stagedOffset);
      if (!keyspace.commit(STRING, 1, entry.flags, entry.expiryMs)) this.#refuse('append');
      else this.#put(db, key, { ...entry, value, version: keyspace.version });
    });
  }

  edit(db: number, key: string, offset: number, length: number): void {
    const { keyspace } = this;
    this.#locked(db, key, (hash, bytes) => {
      if (!this.#compare(keyspace.find(hash, db, bytes, 0, bytes.length), db, key)) return;
      const entry = this.model[db].get(key) as Entry;
      const from = Math.min(offset, entry.value.length);
      const end = Math.min(from + length, entry.value.length);
      if (!keyspace.edit(from, end - from)) return;
      const value = entry.value.slice();
      value.set(fillValue(key, ++this.#writes, end - from), from);
      keyspace.value.u8.set(value.subarray(from, end), keyspace.valueOffset + from);
      this.#put(db, key, { ...entry, value, version: keyspace.version });
    });
  }

  truncate(db: number, key: string, length: number): void {
    const { keyspace } = this;
    this.#locked(db, key, (hash, bytes) => {
      if (!this.#compare(keyspace.find(hash, db, bytes, 0, bytes.length), db, key)) return;
      const entry = this.model[db].get(key) as Entry;
      const shorter = Math.min(length, entry.value.length);
      if (!keyspace.resize(shorter)) return;
      this.#put(db, key, { ...entry, value: entry.value.slice(0, shorter), version: keyspace.version });
    });
  }

  setExpiry(db: number, key: string, ttlMs: number): void {
    const { keyspace } = this;
    this.#locked(db, key, (hash, bytes) => {
      if (!this.#compare(keyspace.find(hash, db, bytes, 0, bytes.length), db, key)) return;
      const expiryMs = ttlMs === 0 ? 0 : this.nowMs + ttlMs;
      const before = keyspace.watchSignature(hash, db, bytes, 0, bytes.length);
      const had = keyspace.expiryMs;
      keyspace.setExpiry(expiryMs);
      (this.model[db].get(key) as Entry).expiryMs = expiryMs;
      const after = keyspace.watchSignature(hash, db, bytes, 0, bytes.length);
      if (had !== expiryMs && after === before) throw new Error(`${db}/${key}: signature stays ${after}`);
    });
  }

  delete(db: number, key: string): void {
    const { keyspace } = this;
    this.#locked(db, key, (hash, bytes) => {
      if (!this.#compare(keyspace.find(hash, db, bytes, 0, bytes.length), db, key)) return;
      keyspace.remove();
      this.model[db].delete(key);
      if (keyspace.find(hash, db, bytes, 0, bytes.length)) throw new Error(`${db}/${key}: found after its removal`);
    });
  }

  /** MSET: all keys locked, each staged under the locks. */
  setMany(db: number, keys: readonly string[], length: number): void {
    const { keyspace } = this;
    keyspace.lockSet.clear();
    const scratch = Bytes.allocate(64);
    for (const key of keys) {
      scratch.u8.set(Buffer.from(key));
      keyspace.lockSet.add(keyspace.hash(db, scratch, 0, key.length));
    }
    keyspace.lockSet.acquire();
    for (const key of keys) {
      // All keys stand at one place in one buffer, one after the other: the cursor must not be taken for another key's.
      scratch.u8.set(Buffer.from(key));
      const hash = keyspace.hash(db, scratch, 0, key.length);
      const value = fillValue(key, ++this.#writes, length);
      this.#compare(keyspace.find(hash, db, scratch, 0, key.length), db, key);
      if (!keyspace.stage(hash, db, scratch, 0, key.length, length)) {
        this.#refuse('mset');
        continue;
      }
      keyspace.staged.u8.set(value, keyspace.stagedOffset);
      if (keyspace.commit(STRING, 0, 0, 0)) {
        this.#put(db, key, { value, flags: 0, expiryMs: 0, version: keyspace.version });
      } else {
        this.#refuse('mset');
      }
    }
    keyspace.lockSet.release();
  }

  flush(db: number): void {
    this.keyspace.closeGate();
    this.keyspace.flush(db);
    this.keyspace.openGate();
    this.model[db].clear();
  }

  flushAll(): void {
    this.keyspace.closeGate();
    this.keyspace.flushAll();
    this.keyspace.openGate();
    for (const map of this.model) map.clear();
  }

  swap(a: number, b: number): void {
    this.keyspace.closeGate();
    this.keyspace.swapDatabases(a, b);
    this.keyspace.openGate();
    [this.model[a], this.model[b]] = [this.model[b], this.model[a]];
  }

  advance(ms: number): void {
    this.nowMs += ms;
    this.keyspace.setClock(this.nowMs);
  }

  background(): void {
    this.keyspace.background(200);
  }

  /** Begins to receive a value that arrives later. */
  park(db: number, key: string, length: number): void {
    const { keyspace } = this;
    const bytes = Bytes.from(key);
    const hash = keyspace.hash(db, bytes, 0, bytes.length);
    if (!keyspace.stage(hash, db, bytes, 0, bytes.length, length)) {
      this.#refuse('park');
      return;
    }
    const value = fillValue(key, ++this.#writes, length);
    keyspace.staged.u8.set(value, keyspace.stagedOffset);
    const slot: StageSlot = { held: 0, page: 0, unit: 0 };
    if (!keyspace.parkStaged(slot)) throw new Error('no parking place');
    this.#parked.push({ slot, db, key, value });
  }

  unpark(stores: boolean): void {
    const parked = this.#parked.shift();
    if (parked === undefined) return;
    const { keyspace } = this;
    if (!stores) {
      keyspace.dropParked(parked.slot);
      return;
    }
    keyspace.unparkStaged(parked.slot, parked.db);
    const bytes = Bytes.from(parked.key);
    const hash = keyspace.hash(parked.db, bytes, 0, bytes.length);
    this.#commit(parked.db, parked.key, bytes, hash, parked.value, 0, 0, false);
  }

  pin(db: number, key: string): void {
    const { keyspace } = this;
    this.#locked(db, key, (hash, bytes) => {
      if (!this.#compare(keyspace.find(hash, db, bytes, 0, bytes.length), db, key)) return;
      const token = keyspace.pin();
      if (token === 0) return;
      const { value, valueOffset } = keyspace;
      this.#pins.push({ token, bytes: value, offset: valueOffset, value: (this.model[db].get(key) as Entry).value });
    });
  }

  unpin(index: number): void {
    if (this.#pins.length === 0) return;
    const [pin] = this.#pins.splice(index % this.#pins.length, 1);
    const actual = pin.bytes.u8.subarray(pin.offset, pin.offset + pin.value.length);
    if (Buffer.compare(actual, pin.value) !== 0) throw new Error('a pinned value has changed');
    this.keyspace.unpin(pin.token);
  }

  /** SCAN from beginning to end, with writes in between: each key that is there throughout must be visited. */
  scan(db: number, betweenSteps: () => void): void {
    const { keyspace } = this;
    const before = new Map([...this.model[db]].map(([key, { version }]) => [key, version]));
    const seen = new Set<string>();
    let cursor = 0;
    do {
      cursor = keyspace.scan(db, cursor, (at) => {
        seen.add(Buffer.from(at.keyBytes.u8.subarray(at.keyOffset, at.keyOffset + at.keyLength)).toString());
      });
      betweenSteps();
    } while (cursor !== 0);
    for (const [key, version] of before) {
      // Written meanwhile, it may have been evicted in between.
      if (seen.has(key) || this.model[db].get(key)?.version !== version) continue;
      if (this.get(db, key)) throw new Error(`SCAN did not visit ${db}/${key}`);
    }
  }

  /** Every key of the Map is read, and sizes agree. */
  compareAll(): void {
    for (let db = 0; db < 16; db++) {
      for (const key of [...this.model[db].keys()]) this.get(db, key);
      const size = this.keyspace.size(db);
      if (!this.mayLose && size !== this.model[db].size) {
        throw new Error(`database ${db} counts ${size}, the model ${this.model[db].size}`);
      }
    }
  }
}
