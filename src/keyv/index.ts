/**
 * A Keyv store over the embedded cache, and by Keyv one of cache-manager (6 and later):
 *
 *     import { open } from 'entresol';
 *     import { EntresolStore } from 'entresol/keyv';
 *     const cache = await open({ path: './cache' });
 *     const keyv = new Keyv({ store: new EntresolStore(cache) });
 *     const manager = createCache({ stores: [keyv] });
 *
 * Keyv is not imported: the store has the shape that Keyv 5 asks for. Values are what Keyv's serializer makes of them, text or bytes.
 * Invariant: a store touches the keys of its Keyv's namespace in its view of the cache, and no others.
 */
import { EventEmitter } from 'node:events';
import type { Cache } from '../embed/index.js';

export interface EntresolStoreEntry {
  readonly key: string;
  readonly value: unknown;
  /** Milliseconds. */
  readonly ttl?: number;
}

export class EntresolStore extends EventEmitter {
  /** Keyv uses iterators of the dialects that it knows alone. What is meant is: keys can be listed. */
  readonly opts = { dialect: 'redis', url: '' };
  /** Set by Keyv, which also puts it in front of the keys. */
  namespace: string | undefined;
  readonly #cache: Cache;

  /** The cache stays the caller's: disconnect() does not close it. Several stores may share one. */
  constructor(cache: Cache) {
    super();
    this.#cache = cache;
  }

  // biome-ignore lint/suspicious/noExplicitAny: Keyv's own type: what the serializer made of the value
  async get(key: string): Promise<any> {
    return this.#cache.get(key);
  }

  // biome-ignore lint/suspicious/noExplicitAny: see get
  async getMany(keys: string[]): Promise<any[]> {
    return this.#cache.mget(keys);
  }

  async set(key: string, value: unknown, ttl?: number): Promise<boolean> {
    if (typeof value !== 'string' && !(value instanceof Uint8Array)) {
      throw new TypeError(`entresol/keyv: the serializer must make text or bytes, not ${typeof value}`);
    }
    // A time that is over already: there is nothing to keep.
    if (ttl !== undefined && ttl <= 0) {
      this.#cache.delete(key);
      return true;
    }
    return this.#cache.set(key, value, ttl === undefined ? undefined : { ttl });
  }

  async setMany(entries: readonly EntresolStoreEntry[]): Promise<void> {
    for (const { key, value, ttl } of entries) await this.set(key, value, ttl);
  }

  async has(key: string): Promise<boolean> {
    return this.#cache.has(key);
  }

  async hasMany(keys: string[]): Promise<boolean[]> {
    return keys.map((key) => this.#cache.has(key));
  }

  async delete(key: string): Promise<boolean> {
    return this.#cache.delete(key);
  }

  /** True when at least one of them was there. */
  async deleteMany(keys: string[]): Promise<boolean> {
    let deleted = false;
    for (const key of keys) deleted = this.#cache.delete(key) || deleted;
    return deleted;
  }

  /** Deletes the keys of the namespace; those of the whole view without one. */
  async clear(): Promise<void> {
    for (const key of this.#cache.keys(this.#prefix(this.namespace))) this.#cache.delete(key);
  }

  // biome-ignore lint/suspicious/noExplicitAny: see get
  async *iterator(namespace?: string): AsyncGenerator<any, void> {
    for (const key of this.#cache.keys(this.#prefix(namespace))) {
      const value = this.#cache.get(key);
      if (value !== undefined) yield [key, value];
    }
  }

  async disconnect(): Promise<void> {
    // Nothing is held but the cache, which is not ours.
  }

  #prefix(namespace: string | undefined): string {
    return namespace === undefined ? '' : `${namespace}:`;
  }
}
