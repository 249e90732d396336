/**
 * getOrCompute: one computation for a key at a time, across threads and processes.
 *
 * Within a thread, callers share a promise. Across them the computing one holds a lease: a key of its own in the store with its seat in
 * the pool, which tells whether it lives, and a time limit. Whoever finds a lease waits; when its holder has died, or its time is over, the next takes it. Invariant: a
 * lease is removed by its holder only, unless that is dead or late.
 */
import type { Memory } from '../memory/memory.js';
import type { Cache, Value } from './cache.js';
import { CacheError } from './errors.js';

export interface ComputeOptions {
  /** Time to live of the computed value in milliseconds; absent = no expiry. */
  readonly ttl?: number;
  /** Longest a computation may take before another caller starts its own. Default 30,000 ms. */
  readonly computeTimeout?: number;
  /** Longest to wait for another's computation before failing. Default: twice computeTimeout. */
  readonly waitTimeout?: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const FIRST_WAIT_MS = 1;
const LONGEST_WAIT_MS = 20;
/** NUL first: no client's key begins so by accident. */
export const LEASE_PREFIX = '\0entresol-lease:';

export class Computations {
  readonly #memory: Memory;
  /** The whole store's view: leases are named by full keys. */
  readonly #root: () => Cache;
  readonly #running = new Map<string, Promise<string>>();
  #count = 0;

  constructor(memory: Memory, root: () => Cache) {
    this.#memory = memory;
    this.#root = root;
  }

  getOrCompute(
    cache: Cache,
    prefix: string,
    key: string,
    compute: () => Value | Promise<Value>,
    options: ComputeOptions | undefined,
  ): Promise<string> {
    // Leases and promises are known by the key's text.
    if (typeof key !== 'string') throw new CacheError('ERR_ENTRESOL_KEY', 'the key of getOrCompute is a string');
    const value = cache.get(key);
    if (value !== undefined) return Promise.resolve(value);
    const name = prefix + key;
    const running = this.#running.get(name);
    if (running !== undefined) return running;
    const started = this.#takeTurn(cache, name, key, compute, options ?? {}).finally(() => this.#running.delete(name));
    this.#running.set(name, started);
    return started;
  }

  async #takeTurn(
    cache: Cache,
    name: string,
    key: string,
    compute: () => Value | Promise<Value>,
    options: ComputeOptions,
  ): Promise<string> {
    const timeout = options.computeTimeout ?? DEFAULT_TIMEOUT_MS;
    const giveUpAt = Date.now() + (options.waitTimeout ?? 2 * timeout);
    const leaseKey = LEASE_PREFIX + name;
    const { self } = this.#memory;
    const lease = `${self}:${this.#memory.incarnation(self)}:${++this.#count}`;
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      if (this.#root().set(leaseKey, lease, { ttl: timeout, only: 'absent' })) break;
      if (this.#isOrphaned(leaseKey)) continue;
      if (Date.now() > giveUpAt) {
        throw new CacheError(
          'ERR_ENTRESOL_COMPUTE_TIMEOUT',
          `another caller has been computing ${JSON.stringify(key)} for too long`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      const value = cache.get(key);
      if (value !== undefined) return value;
    }
    try {
      // Somebody may have finished between our look and our lease.
      const value = cache.get(key);
      if (value !== undefined) return value;
      const computed = await compute();
      cache.set(key, computed, options.ttl === undefined ? undefined : { ttl: options.ttl });
      return typeof computed === 'string' ? computed : Buffer.from(computed).toString('utf8');
    } finally {
      this.#root().deleteIf(leaseKey, lease);
    }
  }

  /** Removes the lease of a holder that is gone, its seat perhaps taken by another; true when there is no such lease any more. */
  #isOrphaned(leaseKey: string): boolean {
    const lease = this.#root().get(leaseKey);
    if (lease === undefined) return true;
    const [seat, incarnation] = lease.split(':', 2).map(Number);
    if (this.#memory.isAlive(seat) && this.#memory.incarnation(seat) === incarnation) return false;
    return this.#root().deleteIf(leaseKey, lease);
  }
}
