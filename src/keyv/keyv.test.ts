/** The store under Keyv's own published tests, and under cache-manager. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import keyvTestSuite, { keyvIteratorTests } from '@keyv/test-suite';
import { createCache } from 'cache-manager';
import Keyv, { type KeyvStoreAdapter } from 'keyv';
import * as vitest from 'vitest';
import { removePool } from '../../test/helpers/pool.js';
import { type Cache, open } from '../embed/index.js';
import { EntresolStore } from './index.js';

const { afterAll, beforeAll, describe, expect, it } = vitest;

let path: string;
let cache: Cache;

beforeAll(async () => {
  path = mkdtempSync(join(tmpdir(), 'entresol-keyv-'));
  cache = await open({ path, dram: '32mb' });
});

afterAll(async () => {
  cache.close();
  await removePool(path);
});

const store = (): EntresolStore => new EntresolStore(cache);

// biome-ignore lint/suspicious/noExplicitAny: the suite asks for a vitest of its own version
const runner = vitest as any;
keyvTestSuite(runner, Keyv, store);
keyvIteratorTests(runner, Keyv, store);

describe('EntresolStore', () => {
  it('has the type that Keyv asks for', () => {
    const adapter: KeyvStoreAdapter = store();
    expect(adapter.opts).toEqual({ dialect: 'redis', url: '' });
  });

  it('keeps to its namespace and its view', async () => {
    cache.set('mine', 'untouched');
    const inView = new Keyv({ store: new EntresolStore(cache.namespace('view')), namespace: 'n' });
    await inView.set('k', 1);
    expect(cache.get('view:n:k')).toBe('{"value":1}');
    await new Keyv({ store: store(), namespace: 'n' }).clear();
    expect(await inView.get('k')).toBe(1);
    await inView.clear();
    expect(await inView.get('k')).toBeUndefined();
    expect(cache.get('mine')).toBe('untouched');
  });

  it('lets the cache expire what has a time to live', async () => {
    const keyv = new Keyv({ store: store() });
    await keyv.set('k', 'v', 5000);
    expect(cache.ttl('keyv:k')).toBeGreaterThan(4000);
    expect(cache.ttl('keyv:k')).toBeLessThanOrEqual(5000);
    await store().set('keyv:k', 'text', 0);
    expect(await keyv.get('k')).toBeUndefined();
  });

  it('says when the serializer leaves what it cannot store', async () => {
    await expect(store().set('k', { an: 'object' })).rejects.toThrow('must make text or bytes, not object');
  });
});

describe('cache-manager', () => {
  it('works over it', async () => {
    const manager = createCache({ stores: [new Keyv({ store: store(), namespace: 'cm' })] });
    await manager.set('a', { n: 1 }, 10_000);
    await manager.mset<unknown>([
      { key: 'b', value: [2] },
      { key: 'c', value: 'three', ttl: 40 },
    ]);
    expect(await manager.mget(['a', 'b', 'c', 'd'])).toEqual([{ n: 1 }, [2], 'three', undefined]);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(await manager.get('c')).toBeUndefined();

    let computed = 0;
    const compute = async (): Promise<number> => ++computed;
    expect(await Promise.all([manager.wrap('w', compute), manager.wrap('w', compute)])).toEqual([1, 1]);
    expect(await manager.wrap('w', compute)).toBe(1);

    expect(await manager.ttl('a')).toBeGreaterThan(Date.now());
    await manager.del('a');
    expect(await manager.get('a')).toBeUndefined();
    await manager.clear();
    expect(await manager.mget(['b', 'w'])).toEqual([undefined, undefined]);
  });
});
