/**
 * rate-limiter-flexible and redlock at work: programs that live in small Lua scripts, counters and keys that expire.
 */
import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../helpers/server.js';

interface Lock {
  extend(ms: number): Promise<Lock>;
  unlock(): Promise<void>;
}
interface LockManager {
  lock(resource: string | readonly string[], ms: number): Promise<Lock>;
}
const Redlock = createRequire(import.meta.url)('redlock') as new (clients: Redis[], options: object) => LockManager;

let servers: TestServer[] = [];
let clients: Redis[] = [];

beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => startTestServer({ memcachedPort: 0, dram: '32mb' })));
  clients = servers.map(({ redisPort }) => new Redis({ port: redisPort }));
});

afterAll(async () => {
  for (const client of clients) client.disconnect();
  await Promise.all(servers.map((server) => server.stop()));
});

describe('rate-limiter-flexible', () => {
  it('lets so many through in each period, whoever asks at the same time', async () => {
    const limiter = new RateLimiterRedis({ storeClient: clients[0], points: 10, duration: 2, keyPrefix: 'limit' });
    const asked = await Promise.allSettled(Array.from({ length: 50 }, () => limiter.consume('user')));
    expect(asked.filter(({ status }) => status === 'fulfilled').length).toBe(10);
    const refused = asked.find(({ status }) => status === 'rejected') as PromiseRejectedResult;
    const { msBeforeNext, remainingPoints } = refused.reason as RateLimiterRes;
    expect(remainingPoints).toBe(0);
    expect(msBeforeNext).toBeGreaterThan(0);
    expect(msBeforeNext).toBeLessThanOrEqual(2000);
    expect((await limiter.consume('other')).remainingPoints).toBe(9);
    await expect
      .poll(
        () =>
          limiter.consume('user').then(
            () => true,
            () => false,
          ),
        { timeout: 10_000 },
      )
      .toBe(true);
  });

  it('blocks, rewards, gives back and forgets', async () => {
    const limiter = new RateLimiterRedis({
      storeClient: clients[0],
      points: 2,
      duration: 60,
      blockDuration: 60,
      keyPrefix: 'block',
    });
    await limiter.consume('k', 2);
    await expect(limiter.consume('k')).rejects.toMatchObject({ remainingPoints: 0 });
    expect((await limiter.get('k'))?.consumedPoints).toBe(3);
    await limiter.delete('k');
    expect(await limiter.get('k')).toBeNull();
    expect((await limiter.penalty('k', 1)).consumedPoints).toBe(1);
    expect((await limiter.reward('k', 1)).consumedPoints).toBe(0);
  });
});

describe('redlock', () => {
  it('locks on three servers: one at a time, for as long as it says', async () => {
    const redlock = new Redlock(clients, { retryCount: 200, retryDelay: 20, retryJitter: 20 });
    let holders = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      const lock = await redlock.lock('resource', 20_000);
      most = Math.max(most, ++holders);
      await new Promise((done) => setTimeout(done, 20));
      holders--;
      await lock.unlock();
    };
    await Promise.all(Array.from({ length: 10 }, work));
    expect(most).toBe(1);
    for (const client of clients) expect(await client.exists('resource')).toBe(0);
  });

  it('extends a lock, loses it when its time is up, and refuses others meanwhile', async () => {
    const redlock = new Redlock(clients, { retryCount: 0 });
    const lock = await redlock.lock(['a', 'b'], 20_000);
    await expect(redlock.lock('b', 1000)).rejects.toThrow();
    const extended = await lock.extend(300);
    await expect
      .poll(
        () =>
          redlock.lock('b', 100).then(
            () => true,
            () => false,
          ),
        { timeout: 10_000 },
      )
      .toBe(true);
    await expect(extended.extend(1000)).rejects.toThrow();
  });
});
