/**
 * Hashes of the keys of a batch of requests, taken before any of them runs, so that the cache misses of all keys overlap.
 *
 * Owns: the hashes. Invariant: a hash that `take` gives is that of the key in the database for which it was added: whoever changes the
 * database in the middle of a batch looks no more, or calls `forget`.
 */
import type { Keyspace } from '../store/keyspace.js';

/** Fewer requests than this are not worth two passes over their keys. */
const REQUESTS_MIN = 4;

export class BatchHashes {
  readonly #keyspace: Keyspace;
  readonly #hashes: Int32Array;
  /** Place of a request's hash among #wanted, counted from 1; 0 = it has none. */
  readonly #places: Uint8Array;
  readonly #wanted: Int32Array;
  #count = 0;

  /** For batches of up to `requestsMax` requests, at most 255. */
  constructor(keyspace: Keyspace, requestsMax: number) {
    this.#keyspace = keyspace;
    this.#hashes = new Int32Array(requestsMax);
    this.#places = new Uint8Array(requestsMax);
    this.#wanted = new Int32Array(requestsMax);
  }

  pays(requestCount: number): boolean {
    return requestCount >= REQUESTS_MIN && this.#keyspace.prefetchWorthwhile;
  }

  begin(): void {
    this.#count = 0;
  }

  /** Request `i` has no key that is known beforehand. */
  skip(i: number): void {
    this.#places[i] = 0;
  }

  add(i: number, hash: number): void {
    this.#hashes[i] = hash;
    this.#wanted[this.#count++] = hash;
    this.#places[i] = this.#count;
  }

  /** Starts loading the buckets and items of all that were added. */
  load(): void {
    this.#keyspace.prefetch(this.#wanted, this.#count);
  }

  has(i: number): boolean {
    return this.#places[i] !== 0;
  }

  /** The hash of request `i`, which is about to run; its item is most likely where it was seen. */
  take(i: number): number {
    this.#keyspace.expect(this.#places[i] - 1);
    return this.#hashes[i];
  }

  /** Keys lie in another database from here on. */
  forget(): void {
    this.#places.fill(0);
  }
}
