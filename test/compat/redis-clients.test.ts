/** The clients that people use, against a real server of two workers: ioredis, the redis package, redis-cli, redis-benchmark. */
import { execFileSync } from 'node:child_process';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../helpers/server.js';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ workers: 2, memcachedPort: 0, args: ['--requirepass=secret'] });
});

afterAll(async () => {
  await server?.stop();
});

describe('ioredis', () => {
  let redis: Redis;

  beforeAll(() => {
    redis = new Redis({ port: server.redisPort, password: 'secret', connectionName: 'tests', db: 2 });
  });

  afterAll(() => {
    redis.disconnect();
  });

  it('stores and gets', async () => {
    expect(await redis.set('k', 'v', 'EX', 100)).toBe('OK');
    expect(await redis.get('k')).toBe('v');
    expect(await redis.ttl('k')).toBe(100);
    expect(await redis.getBuffer('k')).toEqual(Buffer.from('v'));
    expect(await redis.mget('k', 'none')).toEqual(['v', null]);
    const binary = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    await redis.set(binary, binary);
    expect(await redis.getBuffer(binary)).toEqual(binary);
    expect(await redis.incr('n')).toBe(1);
    expect(await redis.incrby('n', 41)).toBe(42);
    await expect(redis.incr('k')).rejects.toThrow('ERR value is not an integer or out of range');
  });

  it('pipelines', async () => {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 2000; i++) pipeline.set(`p${i}`, `value ${i}`).get(`p${i}`);
    const results = await pipeline.exec();
    expect(results?.length).toBe(4000);
    expect(results?.every(([error]) => error === null)).toBe(true);
    expect(results?.[3999][1]).toBe('value 1999');
  });

  it('transactions', async () => {
    expect(await redis.multi().set('a', '1').incr('a').get('a').exec()).toEqual([
      [null, 'OK'],
      [null, 2],
      [null, '2'],
    ]);
    await redis.watch('a');
    const other = redis.duplicate();
    await other.set('a', '5');
    other.disconnect();
    expect(await redis.multi().get('a').exec()).toBeNull();
  });

  it('scans', async () => {
    const keys = new Set<string>();
    for await (const batch of redis.scanStream({ match: 'p1*', count: 100 })) {
      for (const key of batch as string[]) keys.add(key);
    }
    expect(keys.size).toBe(1111);
  });

  it('large values', async () => {
    const value = Buffer.alloc(3_000_000, 'abc');
    await redis.set('large', value);
    expect((await redis.getBuffer('large'))?.equals(value)).toBe(true);
  });

  it('asks about the server and its clients', async () => {
    expect(await redis.client('GETNAME')).toBe('tests');
    expect(await redis.client('LIST')).toContain('name=tests');
    expect(await redis.info('server')).toContain('redis_version:7.');
    expect(await redis.config('GET', 'maxclients')).toEqual(['maxclients', expect.any(String)]);
    expect(await redis.call('COMMAND', 'GETKEYS', 'SET', 'x', 'y')).toEqual(['x']);
    expect(await redis.dbsize()).toBeGreaterThan(2000);
    expect(await redis.flushdb()).toBe('OK');
    expect(await redis.dbsize()).toBe(0);
  });
});

describe.each([2, 3] as const)('the redis package, RESP%i', (RESP) => {
  const client = createClientFor(RESP);

  function createClientFor(version: 2 | 3) {
    return () => createClient({ url: `redis://:secret@127.0.0.1:${server.redisPort}/3`, RESP: version, name: 'node' });
  }

  it('works', async () => {
    const redis = client();
    await redis.connect();
    expect(await redis.ping()).toBe('PONG');
    expect(await redis.set('k', 'v', { expiration: { type: 'EX', value: 100 }, condition: 'NX' })).toBe('OK');
    expect(await redis.set('k', 'v', { condition: 'NX' })).toBeNull();
    expect(await redis.get('k')).toBe('v');
    expect(await redis.multi().set('a', '1').get('a').exec()).toEqual(['OK', '1']);
    expect(await redis.configGet('maxclients')).toMatchObject({ maxclients: expect.any(String) });
    expect(await redis.clientInfo()).toMatchObject({ name: 'node', db: 3 });
    expect((await redis.commandInfo(['get']))[0]).toMatchObject({ name: 'get', arity: 2, firstKeyIndex: 1 });
    expect(await redis.commandCount()).toBeGreaterThan(50);
    const many = await Promise.all(Array.from({ length: 500 }, (_, i) => redis.set(`m${i}`, `${i}`)));
    expect(new Set(many)).toEqual(new Set(['OK']));
    await expect(redis.sendCommand(['NOPE'])).rejects.toThrow("ERR unknown command 'NOPE'");
    await redis.flushDb();
    await redis.close();
  });

  it('refuses a wrong password', async () => {
    const url = `redis://:wrong@127.0.0.1:${server.redisPort}`;
    const redis = createClient({ url, RESP, socket: { reconnectStrategy: false } });
    redis.on('error', () => {});
    await expect(redis.connect()).rejects.toThrow('WRONGPASS');
  });
});

function has(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!has('redis-cli'))('redis-cli', () => {
  const run = (...words: string[]): string =>
    execFileSync('redis-cli', ['-p', String(server.redisPort), '-a', 'secret', '--no-auth-warning', ...words], {
      encoding: 'utf8',
    }).trim();

  it('runs commands in both versions of the protocol', () => {
    expect(run('SET', 'k', 'hello world')).toBe('OK');
    expect(run('GET', 'k')).toBe('hello world');
    expect(run('-3', 'CONFIG', 'GET', 'maxclients')).toMatch(/maxclients/);
    expect(run('CLIENT', 'INFO')).toContain('id=');
    expect(run('COMMAND', 'DOCS', 'get')).toContain('Returns the value of a string key.');
    expect(run('FLUSHALL')).toBe('OK');
  });

  it('inserts by pipe', () => {
    const args = ['-p', String(server.redisPort), '-a', 'secret', '--no-auth-warning', '--pipe'];
    const input = Array.from({ length: 1000 }, (_, i) => `SET pipe${i} ${i}\r\n`).join('');
    expect(execFileSync('redis-cli', args, { input, encoding: 'utf8' })).toContain('errors: 0, replies: 1000');
  });
});

describe.skipIf(!has('redis-benchmark'))('redis-benchmark', () => {
  it('runs its tests of strings', () => {
    const args = ['-p', String(server.redisPort), '-a', 'secret', '-n', '2000', '-P', '16', '-r', '1000', '--csv'];
    const output = execFileSync('redis-benchmark', [...args, '-t', 'ping,set,get,incr,mset'], { encoding: 'utf8' });
    for (const name of ['PING_INLINE', 'SET', 'GET', 'INCR', 'MSET']) expect(output).toContain(name);
    expect(output).not.toMatch(/error/i);
  });
});
