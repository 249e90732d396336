/** The `memjs` package from npm, which speaks the binary protocol and authenticates with SASL, against real servers. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import memjs from 'memjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const QUIET = { timeout: 5, retries: 1, logger: { log: () => undefined } };

describe('memjs', () => {
  let server: TestServer;
  let client: memjs.Client;

  beforeAll(async () => {
    server = await startTestServer({ workers: 2 });
    client = memjs.Client.create(`127.0.0.1:${server.memcachedPort}`, QUIET);
  });

  afterAll(async () => {
    client?.close();
    await server?.stop();
  });

  it('sets, gets and deletes, small and large', async () => {
    for (const value of ['text', '', 'x'.repeat(900_000)]) {
      expect(await client.set('k', value, { expires: 60 })).toBe(true);
      const { value: got } = await client.get('k');
      expect(got!.toString() === value).toBe(true);
    }
    expect(await client.delete('k')).toBe(true);
    expect(await client.delete('k')).toBe(false);
    expect((await client.get('k')).value).toBe(null);
  });

  it('adds, replaces, appends and touches', async () => {
    expect(await client.add('a', 'b', {})).toBe(true);
    expect(await client.add('a', 'c', {})).toBe(false);
    expect(await client.replace('a', 'm', {})).toBe(true);
    expect(await client.replace('nosuch', 'm', {})).toBe(false);
    expect(await client.append('a', 'z')).toBe(true);
    expect((await client.get('a')).value!.toString()).toBe('mz');
    expect(await client.touch('a', 100)).toBe(true);
    expect(await client.touch('nosuch', 100)).toBe(false);
  });

  it('increments and decrements', async () => {
    expect((await client.increment('n', 5, { initial: 10 })).value).toBe(10);
    expect((await client.increment('n', 5, {})).value).toBe(15);
    expect((await client.decrement('n', 20, {})).value).toBe(0);
  });

  it('keeps many requests of many keys apart', async () => {
    const keys = Array.from({ length: 300 }, (_, i) => `many${i}`);
    await Promise.all(keys.map((key) => client.set(key, `value of ${key}`, {})));
    const got = await Promise.all(keys.map((key) => client.get(key)));
    expect(got.map(({ value }) => value!.toString())).toEqual(keys.map((key) => `value of ${key}`));
  });

  it('reads statistics and flushes', async () => {
    const stats = await new Promise<Record<string, string>>((resolve, reject) =>
      client.stats((error, _server, lines) => (error ? reject(error) : resolve(lines!))),
    );
    expect(Number(stats.curr_items)).toBeGreaterThan(0);
    await client.flush();
    expect((await client.get('many1')).value).toBe(null);
  });
});

describe('memjs with SASL', () => {
  let pool: string;
  let server: TestServer;

  beforeAll(async () => {
    pool = await makePool();
    const file = join(pool, 'users');
    await writeFile(file, 'ann:secret\nbob:more:secret\n');
    server = await startTestServer({ args: [`--memcached-auth-file=${file}`] });
  });

  afterAll(async () => {
    await server?.stop();
    await removePool(pool);
  });

  async function roundTrip(username?: string, password?: string): Promise<string> {
    const client = memjs.Client.create(`127.0.0.1:${server.memcachedPort}`, { ...QUIET, username, password });
    try {
      await client.set('k', username ?? 'nobody', {});
      return (await client.get('k')).value!.toString();
    } finally {
      client.close();
    }
  }

  it('lets the users of the file in, and nobody else', async () => {
    expect(await roundTrip('ann', 'secret')).toBe('ann');
    expect(await roundTrip('bob', 'more:secret')).toBe('bob');
    await expect(roundTrip('ann', 'wrong')).rejects.toThrow();
    await expect(roundTrip()).rejects.toThrow();
  });
});
