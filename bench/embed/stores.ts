/**
 * The caches that the embedded comparison measures, behind one small door: ours, lru-cache (a JavaScript Map inside one
 * process, returns a reference) and lmdb (shared between processes, returns a copy, as ours does).
 */
import { open as openLmdb } from 'lmdb';
import { LRUCache } from 'lru-cache';

export type StoreName = 'entresol' | 'lru-cache' | 'lmdb';

export interface EmbeddedStore {
  set(key: string, value: Uint8Array): void;
  get(key: string): { readonly length: number } | undefined;
  close(): Promise<void>;
}

/** The part of our library that is measured; the library is loaded from the build, so its types are not at hand here. */
interface Library {
  open(options: { path?: string; dram?: number }): Promise<{
    get(key: string): Uint8Array | string | undefined;
    set(key: string, value: Uint8Array): unknown;
    close(): unknown;
  }>;
}

/** Room per item beyond its value; generous, so that nothing is evicted. */
const ITEM_BYTES = 220;
const MIN_DRAM_BYTES = 64 * 2 ** 20;

async function openOurs(path: string, keyCount: number, valueBytes: number): Promise<EmbeddedStore> {
  const specifier: string = 'entresol';
  const library = (await import(specifier)) as Library;
  const dram = Math.max(MIN_DRAM_BYTES, keyCount * (ITEM_BYTES + valueBytes));
  const cache = await library.open({ path, dram });
  return {
    set: (key, value) => void cache.set(key, value),
    get: (key) => cache.get(key),
    close: async () => void (await cache.close()),
  };
}

function openLru(keyCount: number): EmbeddedStore {
  const cache = new LRUCache<string, Uint8Array>({ max: keyCount });
  return {
    set: (key, value) => void cache.set(key, Uint8Array.prototype.slice.call(value)),
    get: (key) => cache.get(key),
    close: async () => cache.clear(),
  };
}

function openLmdbStore(path: string): EmbeddedStore {
  const database = openLmdb<Buffer, string>({ path, encoding: 'binary', noSync: true });
  return {
    set: (key, value) => database.putSync(key, Buffer.from(value)),
    get: (key) => database.get(key),
    close: () => database.close(),
  };
}

export async function openStore(
  name: StoreName,
  path: string,
  keyCount: number,
  valueBytes: number,
): Promise<EmbeddedStore> {
  if (name === 'lru-cache') return openLru(keyCount);
  if (name === 'lmdb') return openLmdbStore(path);
  return openOurs(path, keyCount, valueBytes);
}
