/**
 * The embedded cache: synchronous calls on the same memory that the server and other threads and processes use.
 *
 * Owns: nothing but its seat in the pool. Invariant: each call locks one shard at a time, for the in-memory work only, and first looks
 * whether the store gate is closed.
 */
import { constants } from 'node:buffer';
import { types } from 'node:util';
import { type Bytes, bytesEqual } from '../layout/bytes.js';
import { Item, ItemType } from '../layout/item.js';
import { copyBytes } from '../native/copy.js';
import { readText } from '../native/text.js';
import type { Keyspace } from '../store/keyspace.js';
import type { StoreStats } from '../store/statistics.js';
import { CacheError } from './errors.js';
import { type Computations, type ComputeOptions, LEASE_PREFIX } from './get-or-compute.js';
import { Scratch } from './text.js';

export type Key = string | Uint8Array;
export type Value = string | Uint8Array;

export interface SetOptions {
  /** Time to live in milliseconds; absent = no expiry. */
  readonly ttl?: number;
  /** Keep the expiry that the key has. */
  readonly keepTtl?: boolean;
  /** Store only if the key is absent ('absent') or present ('present'). */
  readonly only?: 'absent' | 'present';
}

/** What the views of one cache share. */
export interface CacheSeat {
  readonly keyspace: Keyspace;
  closed: boolean;
  /** Calls until the clock is read again. */
  clockCalls: number;
  readonly close: () => void;
  readonly computations: Computations;
}

const NAMESPACE_SEPARATOR = ':';
const NO_EXPIRY = 0;
/** Reading the clock costs a tenth of a get, so only each so many calls do it, and each that depends on the time; the seat's timer does it too. */
const CALLS_PER_CLOCK = 32;
const MAX_EXPIRY_MS = 2 ** 47;
/** What the engine puts into one string; a value may have a little more. */
const STRING_MAX_BYTES = constants.MAX_STRING_LENGTH;

/**
 * A cache, or a namespace of one. Values are strings (UTF-8) or bytes; both are the same bytes in the store, so what was set as a string can
 * be read as bytes and by Redis and memcached clients of database 0.
 */
export class Cache {
  readonly #seat: CacheSeat;
  readonly #keyspace: Keyspace;
  readonly #prefix: string;
  readonly #key = new Scratch();
  readonly #value = new Scratch();

  /** Use `open`. */
  constructor(seat: CacheSeat, prefix: string) {
    this.#seat = seat;
    this.#keyspace = seat.keyspace;
    this.#prefix = prefix;
  }

  /** A view whose keys all begin with `name` and a colon. Clients of the server see the full keys. */
  namespace(name: string): Cache {
    return new Cache(this.#seat, this.#prefix + name + NAMESPACE_SEPARATOR);
  }

  /** The value as a string, or undefined. Counts as a use. */
  get(key: Key): string | undefined {
    const keyspace = this.#keyspace;
    const hash = this.#lock(key);
    let text: string | undefined;
    if (this.#find(hash)) {
      if (keyspace.type !== ItemType.STRING) this.#rejectType(hash);
      if (keyspace.valueLength > STRING_MAX_BYTES) this.#rejectLength(hash);
      keyspace.access();
      text = readText(keyspace.value, keyspace.valueOffset, keyspace.valueLength);
    } else {
      keyspace.miss();
    }
    keyspace.unlock(hash);
    return text;
  }

  /** A copy of the value's bytes, or undefined. Counts as a use. */
  getBytes(key: Key): Uint8Array | undefined {
    const keyspace = this.#keyspace;
    const hash = this.#lock(key);
    let bytes: Uint8Array | undefined;
    if (this.#find(hash)) {
      if (keyspace.type !== ItemType.STRING) this.#rejectType(hash);
      keyspace.access();
      bytes = keyspace.value.u8.slice(keyspace.valueOffset, keyspace.valueOffset + keyspace.valueLength);
    } else {
      keyspace.miss();
    }
    keyspace.unlock(hash);
    return bytes;
  }

  /** The values of several keys, each read on its own. */
  mget(keys: readonly Key[]): (string | undefined)[] {
    return keys.map((key) => this.get(key));
  }

  /** True when the key exists. Does not count as a use. */
  has(key: Key): boolean {
    const hash = this.#lock(key);
    const found = this.#find(hash);
    this.#keyspace.unlock(hash);
    return found;
  }

  /**
   * Stores a value. Returns false only when `only` forbade it.
   * @throws CacheError ERR_ENTRESOL_OUT_OF_MEMORY, ERR_ENTRESOL_KEY, ERR_ENTRESOL_VALUE, ERR_ENTRESOL_OPTION
   */
  set(key: Key, value: Value, options?: SetOptions): boolean {
    const keyspace = this.#keyspace;
    this.#checkLog();
    const source = this.#encodeValue(value);
    const ttlMs = options?.ttl === undefined ? NO_EXPIRY : this.#expiry(options.ttl);
    const only = options?.only;
    if (only !== undefined && only !== 'absent' && only !== 'present') {
      throw new CacheError('ERR_ENTRESOL_OPTION', `only is 'absent' or 'present', not ${String(only)}`);
    }
    const hash = this.#lock(key);
    if (ttlMs !== NO_EXPIRY) this.#readClock();
    let expiryMs = ttlMs === NO_EXPIRY ? NO_EXPIRY : keyspace.nowMs + ttlMs;
    try {
      const found = this.#find(hash);
      if (found && keyspace.isLfu) keyspace.use();
      if (options !== undefined && (only !== undefined || options.keepTtl === true)) {
        if ((only === 'absent' && found) || (only === 'present' && !found)) return false;
        if (options.keepTtl === true && found) expiryMs = keyspace.expiryMs;
      }
      this.#store(hash, source.bytes, source.length, expiryMs, found);
      return true;
    } finally {
      keyspace.unlock(hash);
    }
  }

  /** Stores a value under the key's lock: over the old one where its chunk serves. */
  #store(hash: number, source: Bytes, length: number, expiryMs: number, found: boolean): void {
    const keyspace = this.#keyspace;
    if (found && keyspace.overwrite(source, 0, length, 0, expiryMs)) return;
    const key = this.#key;
    if (!keyspace.stage(hash, 0, key.bytes, 0, key.length, length)) throw outOfMemory();
    copyBytes(keyspace.staged, keyspace.stagedOffset, source, 0, length);
    if (!keyspace.commit(ItemType.STRING, 0, 0, expiryMs)) throw outOfMemory();
  }

  /** Removes a key; true when it existed. */
  delete(key: Key): boolean {
    this.#checkLog();
    const hash = this.#lock(key);
    if (this.#keyspace.isRebuilding) this.#keyspace.noteWritten(hash);
    const found = this.#find(hash);
    if (found) this.#keyspace.remove();
    this.#keyspace.unlock(hash);
    return found;
  }

  /** Removes a key if it has this value, in one step (to give back a lock that others may have taken over); true when it did. */
  deleteIf(key: Key, value: Value): boolean {
    const keyspace = this.#keyspace;
    this.#checkLog();
    const expected = this.#encodeValue(value);
    const hash = this.#lock(key);
    const matches =
      this.#find(hash) &&
      keyspace.type === ItemType.STRING &&
      keyspace.valueLength === expected.length &&
      bytesEqual(keyspace.value, keyspace.valueOffset, expected.bytes, 0, expected.length);
    if (matches) keyspace.remove();
    keyspace.unlock(hash);
    return matches;
  }

  /**
   * Adds `by` to the decimal integer at a key (0 when absent; its expiry stays) and returns the sum.
   * @throws CacheError ERR_ENTRESOL_NOT_AN_INTEGER when the value or the sum is not an integer below 2^53
   */
  incr(key: Key, by = 1): number {
    this.#checkLog();
    const keyspace = this.#keyspace;
    const hash = this.#lock(key);
    try {
      let sum = by;
      let expiryMs = NO_EXPIRY;
      const found = this.#find(hash);
      if (found) {
        if (keyspace.type !== ItemType.STRING) throw wrongType();
        const text = readText(keyspace.value, keyspace.valueOffset, keyspace.valueLength);
        sum += /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
        expiryMs = keyspace.expiryMs;
        if (keyspace.isLfu) keyspace.use();
      }
      if (!Number.isSafeInteger(sum)) {
        throw new CacheError('ERR_ENTRESOL_NOT_AN_INTEGER', 'the value or the sum is not an integer below 2^53');
      }
      this.#value.write(String(sum));
      this.#store(hash, this.#value.bytes, this.#value.length, expiryMs, found);
      return sum;
    } finally {
      keyspace.unlock(hash);
    }
  }

  /** Milliseconds that a key has left; Infinity without expiry; undefined when absent. */
  ttl(key: Key): number | undefined {
    const keyspace = this.#keyspace;
    const hash = this.#lock(key);
    let left: number | undefined;
    if (this.#find(hash)) {
      const { expiryMs } = keyspace;
      left = expiryMs === NO_EXPIRY ? Number.POSITIVE_INFINITY : expiryMs - keyspace.nowMs;
    }
    keyspace.unlock(hash);
    return left;
  }

  /** Sets the time to live in milliseconds (Infinity = none); false when the key is absent. */
  expire(key: Key, ttl: number): boolean {
    this.#checkLog();
    const keyspace = this.#keyspace;
    const ttlMs = ttl === Number.POSITIVE_INFINITY ? NO_EXPIRY : this.#expiry(ttl);
    const hash = this.#lock(key);
    const found = this.#find(hash);
    this.#readClock();
    if (found) keyspace.setExpiry(ttlMs === NO_EXPIRY ? NO_EXPIRY : keyspace.nowMs + ttlMs);
    keyspace.unlock(hash);
    return found;
  }

  /**
   * The value of a key, computed and stored when absent. However many threads and processes ask at once, one computes and the
   * others wait for it; when it fails or dies, the next one computes.
   */
  getOrCompute(key: string, compute: () => Value | Promise<Value>, options?: ComputeOptions): Promise<string> {
    this.#checkOpen();
    return this.#seat.computations.getOrCompute(this, this.#prefix, key, compute, options);
  }

  /**
   * The keys of this view that begin with `prefix`, in no order, without the view's own prefix. A key that is there from beginning to
   * end comes at least once, whatever else changes meanwhile; deleting on the way is fine.
   */
  *keys(prefix = ''): Generator<string, void> {
    const keyspace = this.#keyspace;
    const wanted = this.#prefix + prefix;
    let found: string[] = [];
    const visit = (at: Keyspace): void => {
      const key = readText(at.keyBytes, at.keyOffset, at.keyLength);
      if (key.startsWith(wanted) && !key.startsWith(LEASE_PREFIX)) found.push(key.slice(this.#prefix.length));
    };
    let cursor = 0;
    do {
      this.#checkOpen();
      keyspace.setClock(Date.now());
      keyspace.enterBatch();
      cursor = keyspace.scan(0, cursor, visit);
      keyspace.leaveBatch();
      yield* found;
      found = [];
    } while (cursor !== 0);
  }

  /** Counters and sizes of the whole store, all participants together. */
  stats(): StoreStats {
    this.#checkOpen();
    return this.#keyspace.stats();
  }

  /** Number of keys in the whole store's database 0. */
  get size(): number {
    this.#checkOpen();
    return this.#keyspace.size(0);
  }

  /** Empties database 0 (all namespaces). */
  clear(): void {
    this.#checkOpen();
    this.#checkLog();
    this.#keyspace.closeGate();
    this.#keyspace.flush(0);
    this.#keyspace.openGate();
  }

  /** Leaves the pool. All views of this cache are closed; the data stay for others. */
  close(): void {
    this.#seat.close();
  }

  #checkOpen(): void {
    if (this.#seat.closed) throw new CacheError('ERR_ENTRESOL_CLOSED', 'the cache is closed');
  }

  /** In a durable pool, what cannot be written down is not done. */
  #checkLog(): void {
    const { effects } = this.#keyspace.feed;
    if (effects !== null && effects.refusal !== 0) {
      throw new CacheError(
        'ERR_ENTRESOL_LOG',
        'the effect log of the pool cannot be written (a full disk?): see the log of its server',
      );
    }
  }

  /** Encodes the key and locks its shard; returns the hash. */
  #lock(key: Key): number {
    this.#checkOpen();
    const scratch = this.#key;
    if (typeof key === 'string') scratch.write(this.#prefix === '' ? key : this.#prefix + key);
    else if (!types.isUint8Array(key)) throw wrongArgument('ERR_ENTRESOL_KEY', 'key', key);
    else if (this.#prefix === '') scratch.writeBytes(key);
    else scratch.writeBytes(Buffer.concat([Buffer.from(this.#prefix), key]));
    if (scratch.length > Item.MAX_KEY_BYTES) {
      throw new CacheError(
        'ERR_ENTRESOL_KEY',
        `a key has at most ${Item.MAX_KEY_BYTES} bytes, this one ${scratch.length}`,
      );
    }
    const keyspace = this.#keyspace;
    if (this.#seat.clockCalls-- <= 0) this.#readClock();
    const hash = keyspace.hash(0, scratch.bytes, 0, scratch.length);
    keyspace.lockUnbatched(hash);
    return hash;
  }

  /** The clock may lag behind while `find` runs; an item that may have expired since is looked at again. */
  #find(hash: number): boolean {
    const keyspace = this.#keyspace;
    const { bytes, length } = this.#key;
    if (!keyspace.find(hash, 0, bytes, 0, length)) return false;
    if (!keyspace.index.hasExpiry) return true;
    this.#readClock();
    return keyspace.find(hash, 0, bytes, 0, length);
  }

  /** A third of what reading the clock through the addon costs. */
  #readClock(): void {
    this.#seat.clockCalls = CALLS_PER_CLOCK;
    this.#keyspace.setClock(Date.now());
  }

  #rejectLength(hash: number): never {
    const { valueLength } = this.#keyspace;
    this.#keyspace.unlock(hash);
    throw new CacheError(
      'ERR_ENTRESOL_VALUE',
      `a string has at most ${STRING_MAX_BYTES} bytes here, this value ${valueLength}: use getBytes`,
    );
  }

  #rejectType(hash: number): never {
    this.#keyspace.unlock(hash);
    throw wrongType();
  }

  #encodeValue(value: Value): Scratch {
    const scratch = this.#value;
    if (typeof value === 'string') scratch.write(value);
    else if (types.isUint8Array(value)) scratch.writeBytes(value);
    else throw wrongArgument('ERR_ENTRESOL_VALUE', 'value', value);
    if (scratch.length > Item.MAX_VALUE_BYTES) {
      throw new CacheError(
        'ERR_ENTRESOL_VALUE',
        `a value has at most ${Item.MAX_VALUE_BYTES} bytes, this one ${scratch.length}`,
      );
    }
    return scratch;
  }

  /** Checks a time to live and returns it. */
  #expiry(ttl: number): number {
    if (typeof ttl !== 'number' || !(ttl > 0) || ttl > MAX_EXPIRY_MS) {
      throw new CacheError('ERR_ENTRESOL_OPTION', `a time to live is a positive number of milliseconds, not ${ttl}`);
    }
    return Math.ceil(ttl);
  }
}

function outOfMemory(): CacheError {
  return new CacheError('ERR_ENTRESOL_OUT_OF_MEMORY', 'the store is full and its policy lets nothing be evicted');
}

/** Programs without types pass numbers and the like: stored as they come, they would be taken for empty. */
function wrongArgument(code: 'ERR_ENTRESOL_KEY' | 'ERR_ENTRESOL_VALUE', name: string, argument: unknown): CacheError {
  const kind = argument === null ? 'null' : typeof argument;
  return new CacheError(
    code,
    `a ${name} is a string or a Uint8Array, not ${kind === 'object' ? 'another object' : kind}`,
  );
}

function wrongType(): CacheError {
  return new CacheError('ERR_ENTRESOL_WRONG_TYPE', 'the key holds a value that is not a string');
}
