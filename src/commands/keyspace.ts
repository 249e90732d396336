/**
 * What commands need of the store: the store's Keyspace implements it, one object for each participant.
 *
 * Executors lock, handlers never do. Numbers are small integers or doubles; nothing here allocates unless it says so.
 * `h` is what `hash` returned for the key. Invariant: the item cursor (type, value ...) is valid from a successful `find`
 * to the next find, stage, commit, remove or unlock.
 */
import type { Bytes } from '../layout/bytes.js';

export const enum ItemType {
  STRING = 1,
}

/** `encoding` of strings that APPEND or SETRANGE made: OBJECT ENCODING says raw. */
export const RAW_ENCODING = 1;

/** Where a connection keeps a staged item while its value arrives over several turns. */
export interface StageSlot {
  readonly parked: boolean;
}

export interface LockSet {
  clear(): void;
  add(h: number): void;
  acquire(): void;
  release(): void;
}

export interface Keyspace {
  /** Wall-clock milliseconds, refreshed once a turn. */
  readonly nowMs: number;
  readonly lockSet: LockSet;

  hash(db: number, bytes: Bytes, offset: number, length: number): number;
  lock(h: number): void;
  unlock(h: number): void;
  closeGate(): void;
  openGate(): void;
  enterBatch(): void;
  leaveBatch(): void;

  find(h: number, db: number, bytes: Bytes, offset: number, length: number): boolean;
  /** The found item. */
  readonly type: number;
  readonly encoding: number;
  readonly value: Bytes;
  readonly valueOffset: number;
  readonly valueLength: number;
  readonly clientFlags: number;
  /** Wall-clock milliseconds, 0 = never. */
  readonly expiryMs: number;
  readonly version: number;
  readonly accessAgeS: number;
  readonly frequency: number;
  /** Counts a read of the found item for the replacement policy. */
  access(): void;

  stage(h: number, db: number, bytes: Bytes, offset: number, length: number, valueLength: number): boolean;
  readonly staged: Bytes;
  readonly stagedOffset: number;
  commit(type: number, encoding: number, clientFlags: number, expiryMs: number): void;
  dropStaged(): void;
  createSlot(): StageSlot;
  parkStaged(slot: StageSlot): void;
  unparkStaged(slot: StageSlot): void;
  dropParked(slot: StageSlot): void;

  edit(offset: number, length: number): boolean;
  resize(newLength: number): boolean;
  remove(): void;
  setExpiry(ms: number): void;
  pin(): number;
  unpin(token: number): void;
  watchSignature(h: number, db: number, bytes: Bytes, offset: number, length: number): number;

  size(db: number): number;
  expiring(db: number): number;
  flush(db: number): void;
  flushAll(): void;
  swapDatabases(a: number, b: number): void;
  scan(db: number, cursor: number, visit: (keyspace: Keyspace) => void): number;
  readonly keyBytes: Bytes;
  readonly keyOffset: number;
  readonly keyLength: number;
  /** Allocates. */
  randomKey(db: number): Uint8Array | null;
  /** Bytes that the found item occupies, metadata included. */
  memoryUsage(): number;

  /** True when the index is so large that looking ahead pays. */
  readonly prefetchWorthwhile: boolean;
  prefetchBucket(h: number): void;
  prefetchItem(h: number): void;
}
