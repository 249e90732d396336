/** The `memcached` package from npm against a real server. */
import Memcached from 'memcached';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../helpers/server.js';

describe('the memcached package', () => {
  let server: TestServer;
  let client: Memcached;

  beforeAll(async () => {
    server = await startTestServer({ workers: 2 });
    client = new Memcached(`127.0.0.1:${server.memcachedPort}`, { retries: 0, timeout: 5000 });
  });

  afterAll(async () => {
    client?.end();
    await server?.stop();
  });

  /** Calls a method of the client with a callback as its last argument. */
  function call(method: string, ...args: readonly unknown[]): Promise<unknown> {
    const run = (client as unknown as Record<string, (...all: unknown[]) => void>)[method];
    return new Promise((resolve, reject) => {
      run.call(client, ...args, (error: unknown, result: unknown) => {
        if (error === undefined || error === null) resolve(result);
        else reject(error);
      });
    });
  }

  it('stores and gets strings, numbers, booleans, buffers and objects', async () => {
    for (const value of ['text', 17, true, { a: [1, 'two'] }, Buffer.from([0, 13, 10, 255])]) {
      expect(await call('set', 'k', value, 60)).toBe(true);
      expect(await call('get', 'k')).toEqual(value);
    }
    expect(await call('get', 'nosuch')).toBe(undefined);
    const long = 'x'.repeat(900_000);
    expect(await call('set', 'long', long, 0)).toBe(true);
    expect((await call('get', 'long')) === long).toBe(true);
  });

  it('adds, replaces, appends, prepends, touches and deletes', async () => {
    expect(await call('add', 'a', 'b', 0)).toBe(true);
    await expect(call('add', 'a', 'c', 0)).rejects.toThrow('Item is not stored');
    expect(await call('replace', 'a', 'm', 0)).toBe(true);
    expect(await call('append', 'a', 'z')).toBe(true);
    expect(await call('prepend', 'a', 'a')).toBe(true);
    expect(await call('get', 'a')).toBe('amz');
    expect(await call('touch', 'a', 100)).toBe(true);
    expect(await call('del', 'a')).toBe(true);
    expect(await call('get', 'a')).toBe(undefined);
  });

  it('checks and sets', async () => {
    await call('set', 'c', 'one', 0);
    const got = (await call('gets', 'c')) as { c: string; cas: string };
    expect(got.c).toBe('one');
    expect(await call('cas', 'c', 'two', got.cas, 0)).toBe(true);
    expect(await call('cas', 'c', 'three', got.cas, 0)).toBe(false);
    expect(await call('get', 'c')).toBe('two');
  });

  it('increments and decrements', async () => {
    await call('set', 'n', 10, 0);
    expect(await call('incr', 'n', 5)).toBe(15);
    expect(await call('decr', 'n', 20)).toBe(0);
    expect(await call('incr', 'nosuch', 5)).toBe(false);
  });

  it('gets many keys at once', async () => {
    const keys = Array.from({ length: 100 }, (_, i) => `many${i}`);
    await Promise.all(keys.map((key, i) => call('set', key, i, 0)));
    const got = await call('getMulti', keys);
    expect(got).toEqual(Object.fromEntries(keys.map((key, i) => [key, i])));
  });

  it('reads version, stats, settings, slabs and items', async () => {
    const [{ version }] = (await call('version')) as { version: string }[];
    expect(version).toMatch(/^1\.6\./);
    const [stats] = (await call('stats')) as Record<string, unknown>[];
    expect(stats.curr_items).toBeGreaterThan(0);
    expect(stats.tier_dram_hits).toBeGreaterThanOrEqual(0);
    expect(stats.tier_write_amplification).toBeDefined();
    expect(((await call('settings')) as Record<string, unknown>[])[0].item_size_max).toBe(1048576);
    expect(Object.keys(((await call('slabs')) as object[])[0]).length).toBeGreaterThan(0);
    expect(Object.keys(((await call('items')) as object[])[0]).length).toBeGreaterThan(0);
  });

  it('flushes', async () => {
    await call('set', 'f', 'x', 0);
    await call('flush');
    expect(await call('get', 'f')).toBe(undefined);
  });
});
