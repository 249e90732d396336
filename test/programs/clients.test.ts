/**
 * The two Redis packages of Node.js at longer work than test/compat has: scripts as commands, subscriptions, blocking consumers, and a
 * server that goes and comes back under its clients.
 */
import { Redis } from 'ioredis';
import { createClient, defineScript } from 'redis';
import { afterEach, describe, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { freePorts } from '../helpers/ports.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

let server: TestServer;

afterEach(async () => {
  await server?.stop();
});

const ADD_UNLESS = `
local now = tonumber(redis.call('GET', KEYS[1]) or '0')
if now + ARGV[1] > tonumber(ARGV[2]) then return -1 end
return redis.call('INCRBY', KEYS[1], ARGV[1])`;

describe('ioredis', () => {
  it('runs scripts as commands, in pipelines and transactions too', async () => {
    server = await startTestServer({ workers: 2, memcachedPort: 0 });
    const redis = new Redis({ port: server.redisPort, keyPrefix: 'app:' });
    redis.defineCommand('addUnless', { numberOfKeys: 1, lua: ADD_UNLESS });
    const own = redis as Redis & { addUnless(key: string, by: number, most: number): Promise<number> };
    expect(await own.addUnless('n', 5, 10)).toBe(5);
    const replies = await Promise.all(Array.from({ length: 20 }, () => own.addUnless('n', 1, 10)));
    expect(replies.filter((reply) => reply > 0).length).toBe(5);
    // The server has forgotten the script: the client sends it again.
    await redis.script('FLUSH');
    expect(await own.addUnless('n', 1, 10)).toBe(-1);
    const results = await redis.multi().set('m', 1).incr('m').hset('h', { a: 1, b: 2 }).hgetall('h').exec();
    expect(results?.map(([, value]) => value)).toEqual(['OK', 2, 2, { a: '1', b: '2' }]);
    expect(await redis.exists('n')).toBe(1);
    redis.disconnect();
  });

  it('finds its subscriptions and its data again after the server was killed and started again', async () => {
    const pool = await makePool();
    const [redisPort] = await freePorts(1);
    const start = (): Promise<TestServer> => startTestServer({ pool, redisPort, memcachedPort: 0 });
    server = await start();
    const options = { port: redisPort, retryStrategy: () => 50, maxRetriesPerRequest: null };
    const [subscriber, client] = [new Redis(options), new Redis(options)];
    for (const each of [subscriber, client]) each.on('error', () => {});
    const got: string[] = [];
    subscriber.on('message', (_channel, message) => got.push(message));
    await subscriber.subscribe('news');
    await client.set('kept', 'value');
    expect(await client.publish('news', 'before')).toBe(1);
    await expect.poll(() => got).toEqual(['before']);
    await server.kill();
    const pending = client.get('kept');
    server = await start();
    expect(await pending).toBe('value');
    await expect.poll(() => client.publish('news', 'after'), { timeout: 20_000 }).toBe(1);
    await expect.poll(() => got.includes('after')).toBe(true);
    for (const each of [subscriber, client]) each.disconnect();
    await server.stop();
    await removePool(pool);
  });

  it('does not ask for a cluster where there is none, and consumes a queue that others fill', async () => {
    server = await startTestServer({ workers: 2, memcachedPort: 0 });
    const redis = new Redis({ port: server.redisPort });
    expect(await redis.info('cluster')).toContain('cluster_enabled:0');
    await expect(redis.cluster('INFO')).rejects.toThrow('This instance has cluster support disabled');
    const COUNT = 300;
    const consumers = Array.from({ length: 4 }, () => redis.duplicate());
    const taken: string[] = [];
    const consume = async (consumer: Redis): Promise<void> => {
      while (taken.length < COUNT) {
        const found = await consumer.blpop('queue', 0.5);
        if (found !== null) taken.push(found[1]);
      }
    };
    const consuming = Promise.all(consumers.map(consume));
    for (let i = 0; i < COUNT; i++) await redis.rpush('queue', `${i}`);
    await consuming;
    expect(new Set(taken).size).toBe(COUNT);
    for (const each of [redis, ...consumers]) each.disconnect();
  });
});

describe('redis', () => {
  it('runs scripts as methods, transactions, pub/sub and client-side caching', async () => {
    server = await startTestServer({ workers: 2, memcachedPort: 0 });
    const addUnless = defineScript({
      NUMBER_OF_KEYS: 1,
      SCRIPT: ADD_UNLESS,
      parseCommand(parser, key: string, by: number, most: number) {
        parser.pushKey(key);
        parser.push(`${by}`, `${most}`);
      },
      transformReply: (reply: unknown) => reply as number,
    });
    const client = createClient({
      url: `redis://127.0.0.1:${server.redisPort}`,
      RESP: 3,
      clientSideCache: { ttl: 0, maxEntries: 0 },
      scripts: { addUnless },
    });
    await client.connect();
    expect(await client.addUnless('n', 4, 5)).toBe(4);
    expect(await client.addUnless('n', 4, 5)).toBe(-1);
    expect(await client.multi().set('a', 1).incr('a').hSet('h', { f: 'v' }).hGetAll('h').exec()).toEqual([
      'OK',
      2,
      1,
      { f: 'v' },
    ]);
    const other = client.duplicate({ clientSideCache: undefined });
    await other.connect();
    const got: string[] = [];
    const listener = other.duplicate();
    await listener.connect();
    await listener.pSubscribe('ch*', (message) => got.push(message));
    await other.publish('channel', 'hello');
    await expect.poll(() => got).toEqual(['hello']);
    // Cached here until somebody else changes it.
    expect(await client.get('a')).toBe('2');
    await other.set('a', '3');
    await expect.poll(() => client.get('a')).toBe('3');
    for (const each of [client, other, listener]) each.destroy();
  });
});
