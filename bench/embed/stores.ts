/**
 * The caches that the embedded comparison measures, behind one small door: ours, lru-cache (a JavaScript Map inside one
 * process, returns a reference) and lmdb (shared between processes, returns a copy, as ours does).
 */
import { open as openLmdb } from 'lmdb';
import { LRUCache } from 'lru-cache';

export type StoreName = 'entresol' | 'lru-cache' | 'lmdb';

/** What is stored and read: strings, or bytes. */
export type ValueKind = 'text' | 'bytes';

export interface EmbeddedStore {
  set(key: string, value: string): void;
  get(key: string): { readonly length: number } | undefined;
  close(): Promise<void>;
}

export interface StoreOrder {
  readonly store: StoreName;
  readonly path: string;
  readonly values: ValueKind;
  readonly keyCount: number;
  readonly valueBytes: number;
}

/** The part of our library that is measured; the library is loaded from the build, so its types are not at hand here. */
interface Library {
  open(options: { path: string; dram: number; capacity: number }): Promise<{
    get(key: string): string | undefined;
    getBytes(key: string): Uint8Array | undefined;
    set(key: string, value: string): boolean;
    close(): void;
  }>;
}

/** Room per item beyond its value; generous, so that nothing is evicted. */
const ITEM_BYTES = 220;
const MIN_DRAM_BYTES = 64 * 2 ** 20;

async function openOurs(order: StoreOrder): Promise<EmbeddedStore> {
  const specifier: string = 'entresol';
  const library = (await import(specifier)) as Library;
  const dram = Math.max(MIN_DRAM_BYTES, order.keyCount * (ITEM_BYTES + order.valueBytes));
  const cache = await library.open({ path: order.path, dram, capacity: 0 });
  return {
    set: (key, value) => void cache.set(key, value),
    get: order.values === 'text' ? (key) => cache.get(key) : (key) => cache.getBytes(key),
    close: async () => cache.close(),
  };
}

function openLru(order: StoreOrder): EmbeddedStore {
  const cache = new LRUCache<string, string | Uint8Array>({ max: order.keyCount });
  return {
    set: (key, value) => void cache.set(key, order.values === 'text' ? value : Buffer.from(value)),
    get: (key) => cache.get(key),
    close: async () => cache.clear(),
  };
}

function openLmdbStore(order: StoreOrder): EmbeddedStore {
  const encoding = order.values === 'text' ? 'string' : 'binary';
  const database = openLmdb<string | Buffer, string>({ path: order.path, encoding, noSync: true });
  return {
    set: (key, value) => database.putSync(key, order.values === 'text' ? value : Buffer.from(value)),
    get: (key) => database.get(key),
    close: () => database.close(),
  };
}

export async function openStore(order: StoreOrder): Promise<EmbeddedStore> {
  if (order.store === 'lru-cache') return openLru(order);
  if (order.store === 'lmdb') return openLmdbStore(order);
  return openOurs(order);
}
