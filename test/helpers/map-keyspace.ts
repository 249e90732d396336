/**
 * A Keyspace in plain Maps: for handler tests that need no mapped memory, and as the model that the real one is compared with.
 *
 * It checks the contract as it goes: a handler that reads a key without its lock, stages twice, or leaves something
 * staged fails the test. Single-threaded: locks only count.
 */
import type { Keyspace, LockSet, StageSlot } from '../../src/commands/keyspace.js';
import { Bytes, NO_ARENA } from '../../src/layout/bytes.js';

interface Item {
  type: number;
  encoding: number;
  clientFlags: number;
  expiryMs: number;
  version: number;
  value: Uint8Array;
}

interface Staged {
  readonly db: number;
  readonly key: string;
  readonly value: Bytes;
}

class Slot implements StageSlot {
  held: Staged | null = null;
  get parked(): boolean {
    return this.held !== null;
  }
}

export class MapKeyspace implements Keyspace {
  nowMs = 1_700_000_000_000;
  type = 0;
  encoding = 0;
  value: Bytes = Bytes.allocate(0);
  valueOffset = 0;
  valueLength = 0;
  clientFlags = 0;
  expiryMs = 0;
  version = 0;
  accessAgeS = 0;
  frequency = 0;
  keyBytes: Bytes = Bytes.allocate(0);
  readonly keyOffset = 0;
  keyLength = 0;
  readonly stagedOffset = 0;
  prefetchWorthwhile = false;
  /** Makes stage() fail, as a full store does. */
  full = false;
  pinned = 0;

  readonly lockSet: LockSet = {
    clear: () => this.#wanted.clear(),
    add: (h) => this.#wanted.add(h),
    acquire: () => {
      for (const h of this.#wanted) this.lock(h);
    },
    release: () => {
      for (const h of this.#wanted) this.unlock(h);
    },
  };

  readonly #databases = Array.from({ length: 16 }, () => new Map<string, Item>());
  readonly #locked = new Set<number>();
  readonly #wanted = new Set<number>();
  #gateClosed = false;
  #version = 0;
  #staged: Staged | null = null;
  #found: { readonly db: number; readonly key: string; readonly item: Item } | null = null;

  /** Fails when a command left locks or staged memory behind. */
  checkIdle(): void {
    if (this.#locked.size > 0) throw new Error('a lock is still held');
    if (this.#gateClosed) throw new Error('the gate is still closed');
    if (this.#staged !== null) throw new Error('an item is still staged');
  }

  hash(db: number, bytes: Bytes, offset: number, length: number): number {
    let h = db + 1;
    for (let i = 0; i < length; i++) h = (Math.imul(h, 31) + bytes.u8[offset + i]) | 0;
    return h;
  }

  lock(h: number): void {
    if (this.#locked.has(h)) throw new Error('locked twice');
    this.#locked.add(h);
  }

  unlock(h: number): void {
    if (!this.#locked.delete(h)) throw new Error('not locked');
    this.#found = null;
  }

  closeGate(): void {
    this.#gateClosed = true;
  }

  openGate(): void {
    if (!this.#gateClosed) throw new Error('the gate is open');
    this.#gateClosed = false;
  }

  enterBatch(): void {}
  leaveBatch(): void {}

  find(h: number, db: number, bytes: Bytes, offset: number, length: number): boolean {
    if (h !== this.hash(db, bytes, offset, length)) throw new Error('find with a foreign hash');
    this.#requireLock(h);
    const key = text(bytes, offset, length);
    const item = this.#live(db, key);
    if (item === undefined) {
      this.#found = null;
      return false;
    }
    this.#point(db, key, item);
    return true;
  }

  access(): void {
    this.#current();
  }

  stage(h: number, db: number, bytes: Bytes, offset: number, length: number, valueLength: number): boolean {
    if (this.#staged !== null) throw new Error('staged twice');
    if (h !== this.hash(db, bytes, offset, length)) throw new Error('stage with a foreign hash');
    if (this.full) return false;
    this.#staged = { db, key: text(bytes, offset, length), value: Bytes.allocate(valueLength) };
    return true;
  }

  get staged(): Bytes {
    if (this.#staged === null) throw new Error('nothing staged');
    return this.#staged.value;
  }

  commit(type: number, encoding: number, clientFlags: number, expiryMs: number): void {
    const staged = this.#staged;
    if (staged === null) throw new Error('nothing staged');
    const key = Bytes.from(Buffer.from(staged.key, 'latin1'));
    this.#requireLock(this.hash(staged.db, key, 0, key.length));
    this.#staged = null;
    const item = { type, encoding, clientFlags, expiryMs, version: ++this.#version, value: staged.value.u8 };
    this.#databases[staged.db].set(staged.key, item);
    this.#found = null;
  }

  dropStaged(): void {
    if (this.#staged === null) throw new Error('nothing staged');
    this.#staged = null;
  }

  createSlot(): StageSlot {
    return new Slot();
  }

  parkStaged(slot: StageSlot): void {
    (slot as Slot).held = this.#staged;
    this.#staged = null;
  }

  unparkStaged(slot: StageSlot): void {
    if (this.#staged !== null) throw new Error('staged twice');
    this.#staged = (slot as Slot).held;
    (slot as Slot).held = null;
  }

  dropParked(slot: StageSlot): void {
    if (!slot.parked) throw new Error('nothing parked');
    (slot as Slot).held = null;
  }

  edit(offset: number, length: number): boolean {
    const { item } = this.#current();
    if (offset < 0 || offset + length > item.value.length) throw new Error('edit outside the value');
    item.version = ++this.#version;
    return true;
  }

  resize(newLength: number): boolean {
    const { item } = this.#current();
    if (newLength > item.value.length) return false;
    item.value = item.value.slice(0, newLength);
    item.version = ++this.#version;
    this.#refresh();
    return true;
  }

  remove(): void {
    const { db, key } = this.#current();
    this.#databases[db].delete(key);
    this.#found = null;
  }

  setExpiry(ms: number): void {
    const { item } = this.#current();
    item.expiryMs = ms;
    item.version = ++this.#version;
    this.#refresh();
  }

  pin(): number {
    return ++this.pinned;
  }

  unpin(): void {
    this.pinned--;
  }

  watchSignature(h: number, db: number, bytes: Bytes, offset: number, length: number): number {
    this.#requireLock(h);
    return this.#live(db, text(bytes, offset, length))?.version ?? 0;
  }

  size(db: number): number {
    return this.#databases[db].size;
  }

  expiring(db: number): number {
    return [...this.#databases[db].values()].filter((item) => item.expiryMs > 0).length;
  }

  flush(db: number): void {
    this.#databases[db].clear();
  }

  flushAll(): void {
    for (const database of this.#databases) database.clear();
  }

  swapDatabases(a: number, b: number): void {
    [this.#databases[a], this.#databases[b]] = [this.#databases[b], this.#databases[a]];
  }

  /** The cursor is the position in insertion order: enough for tests that do not write between calls. */
  scan(db: number, cursor: number, visit: (keyspace: Keyspace) => void): number {
    const keys = [...this.#databases[db].keys()];
    const key = keys[cursor];
    if (key === undefined) return 0;
    const item = this.#live(db, key);
    if (item !== undefined) {
      this.#point(db, key, item);
      this.keyBytes = Bytes.from(Buffer.from(key, 'latin1'));
      this.keyLength = key.length;
      visit(this);
    }
    return cursor + 1 < keys.length ? cursor + 1 : 0;
  }

  randomKey(db: number): Uint8Array | null {
    for (const key of [...this.#databases[db].keys()]) {
      if (this.#live(db, key) !== undefined) return Uint8Array.from(Buffer.from(key, 'latin1'));
    }
    return null;
  }

  memoryUsage(): number {
    const { key, item } = this.#current();
    return 56 + key.length + item.value.length;
  }

  prefetchBucket(): void {}
  prefetchItem(): void {}

  #live(db: number, key: string): Item | undefined {
    const item = this.#databases[db].get(key);
    if (item !== undefined && item.expiryMs !== 0 && item.expiryMs <= this.nowMs) {
      this.#databases[db].delete(key);
      return undefined;
    }
    return item;
  }

  #requireLock(h: number): void {
    if (!this.#gateClosed && !this.#locked.has(h)) throw new Error('key touched without its lock');
  }

  #point(db: number, key: string, item: Item): void {
    this.#found = { db, key, item };
    this.#refresh();
  }

  #refresh(): void {
    const { item } = this.#current();
    this.type = item.type;
    this.encoding = item.encoding;
    this.clientFlags = item.clientFlags;
    this.expiryMs = item.expiryMs;
    this.version = item.version;
    // A view on the same memory, so that edits in place arrive.
    this.value = new Bytes(item.value.buffer, NO_ARENA);
    this.valueLength = item.value.length;
  }

  #current(): { readonly db: number; readonly key: string; readonly item: Item } {
    if (this.#found === null) throw new Error('the cursor is on no item');
    return this.#found;
  }
}

function text(bytes: Bytes, offset: number, length: number): string {
  return Buffer.from(bytes.u8.subarray(offset, offset + length)).toString('latin1');
}
