/**
 * @keyv/redis at work, alone and under cache-manager: this server where programs have had a Redis. (Our own store for Keyv, without a
 * server, is tested beside its code.)
 */
import KeyvRedis, { createKeyv, Keyv } from '@keyv/redis';
import { createCache } from 'cache-manager';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../helpers/server.js';

let server: TestServer;
let url = '';

beforeAll(async () => {
  server = await startTestServer({ workers: 2, memcachedPort: 0 });
  url = `redis://127.0.0.1:${server.redisPort}`;
});

afterAll(async () => {
  await server?.stop();
});

describe('@keyv/redis', () => {
  it('stores, expires, iterates and clears by namespace', async () => {
    const users = createKeyv(url, { namespace: 'users' });
    const pages = createKeyv(url, { namespace: 'pages' });
    for (let i = 0; i < 200; i++) await users.set(`u${i}`, { id: i, name: `user ${i}` });
    await pages.set('p', 'page');
    await users.set('short', 1, 100);
    expect(await users.get('u7')).toEqual({ id: 7, name: 'user 7' });
    expect(await users.getMany(['u1', 'none', 'u2'])).toMatchObject([{ id: 1 }, undefined, { id: 2 }]);
    await expect.poll(() => users.get('short'), { timeout: 10_000 }).toBeUndefined();
    const seen = new Set<string>();
    for await (const [key] of users.iterator!({})) seen.add(key as string);
    expect(seen.size).toBe(200);
    expect(await users.delete('u7')).toBe(true);
    expect(await users.has('u7')).toBe(false);
    await users.clear();
    expect(await users.get('u1')).toBeUndefined();
    expect(await pages.get('p')).toBe('page');
    await Promise.all([users.disconnect(), pages.disconnect()]);
  });

  it('serves cache-manager: one computation for many who ask', async () => {
    const keyv = new Keyv({ store: new KeyvRedis(url), namespace: 'cache' });
    const cache = createCache({ stores: [keyv], ttl: 60_000 });
    let computed = 0;
    const compute = async (): Promise<string> => {
      computed++;
      await new Promise((done) => setTimeout(done, 50));
      return 'expensive';
    };
    const answers = await Promise.all(Array.from({ length: 20 }, () => cache.wrap('key', compute)));
    expect(new Set(answers)).toEqual(new Set(['expensive']));
    expect(computed).toBe(1);
    expect(await cache.wrap('key', compute)).toBe('expensive');
    expect(computed).toBe(1);
    expect(
      await cache.mset([
        { key: 'a', value: 1 },
        { key: 'b', value: 2 },
      ]),
    ).toBeDefined();
    expect(await cache.mget(['a', 'b'])).toEqual([1, 2]);
    await cache.del('a');
    expect(await cache.get('a')).toBeUndefined();
    await keyv.disconnect();
  });
});
