/** Durable pools through sockets: what is there after a reboot, a full disk, damage to the log. The crash tests are test/crash/durable.test.ts. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { open } from '../../src/embed/index.js';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { parseReply, replyEnd } from '../helpers/resp-reply.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const pools: string[] = [];
const mounts: string[] = [];
const clients: RawClient[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const pool of pools.splice(0)) await removePool(pool);
  for (const mount of mounts.splice(0)) {
    spawnSync('umount', ['-l', mount]);
    rmSync(mount, { recursive: true, force: true });
  }
});

async function poolOf(): Promise<string> {
  const pool = await makePool();
  pools.push(pool);
  return pool;
}

function start(pool: string, ...args: string[]): Promise<TestServer> {
  return startTestServer({
    pool,
    dram: '64mb',
    args: ['--durability=durable', '--maxmemory-policy=noeviction', ...args],
  });
}

async function connect(port: number): Promise<RawClient> {
  const client = await RawClient.connect(port);
  clients.push(client);
  return client;
}

async function ask(client: RawClient, ...words: (string | number)[]): Promise<unknown> {
  client.write(`*${words.length}\r\n${words.map((word) => `$${String(word).length}\r\n${word}\r\n`).join('')}`);
  let end = -1;
  await client.until(() => {
    end = replyEnd(client.text, 0);
    return end >= 0;
  }, 'a reply');
  return parseReply((await client.read(end)).toString('latin1'));
}

/** Ends the process, and takes the DRAM tier away as a reboot does. */
async function reboot(server: TestServer): Promise<void> {
  const path = /\/dev\/shm\/entresol-[^\s,;)]+/.exec(server.output())?.[0];
  expect(path).toBeDefined();
  await server.kill();
  rmSync(path as string);
}

it('has everything after a reboot: all types, databases, blocked clients, flags, embedded writes', {
  timeout: 120_000,
}, async () => {
  const pool = await poolOf();
  let server = await start(pool, '--appendfsync=always', '--workers=2');
  let client = await connect(server.redisPort);
  const waiting = await connect(server.redisPort);
  for (const request of [
    'SET string value EX 1000',
    'SET gone value PX 1',
    'RPUSH list a b c d',
    'RPOPLPUSH list other',
    'HSET hash f 1 g 2',
    'HEXPIRE hash 1000 FIELDS 1 g',
    'SADD set a b c',
    'SPOP set',
    'ZADD zset 1.5 a -inf b',
    'GEOADD geo 13.4 52.5 berlin',
    'XADD stream * f v',
    'XGROUP CREATE stream group 0',
    'XREADGROUP GROUP group consumer STREAMS stream >',
    'PFADD hll a b c',
    'SETBIT bits 77 1',
    'SET number 10',
    'INCRBYFLOAT number 0.1',
    'SELECT 3',
    'SET elsewhere x',
    'COPY elsewhere copied DB 5',
    'SWAPDB 5 6',
    'SELECT 7',
    'SET flushed x',
    'FLUSHDB',
    'SELECT 0',
    'RENAME other renamed',
    'EXPIRE renamed 500',
  ]) {
    expect(String(await ask(client, ...request.split(' '))), request).not.toMatch(/^-[A-Z]/);
  }
  waiting.write('BLPOP queue 0\r\n');
  await sleep(100);
  await ask(client, 'RPUSH', 'queue', 'first', 'second');
  await waiting.until(() => waiting.text.includes('first'), 'the element');
  const memcached = await connect(server.memcachedPort);
  await memcached.ask('set mc 77 1000 5\r\nhello\r\n', 'STORED\r\n');
  memcached.write('gets mc\r\n');
  const version = await memcached.line();
  const cache = await open({ path: pool });
  cache.set('embedded', 'value', { ttl: 100_000 });
  cache.incr('counter', 5);
  cache.close();
  await sleep(300);
  const digest = await ask(client, 'DEBUG', 'DIGEST');
  const expiry = await ask(client, 'PEXPIRETIME', 'string');
  await reboot(server);

  server = await start(pool, '--appendfsync=always', '--workers=2');
  client = await connect(server.redisPort);
  expect(await ask(client, 'DEBUG', 'DIGEST')).toBe(digest);
  expect(await ask(client, 'PEXPIRETIME', 'string')).toBe(expiry);
  expect(await ask(client, 'LRANGE', 'queue', 0, -1)).toEqual(['second']);
  expect(await ask(client, 'GET', 'embedded')).toBe('value');
  const again = await connect(server.memcachedPort);
  await again.ask('gets mc\r\n', `${version}\r\nhello\r\nEND\r\n`);
  await ask(client, 'SET', 'after', 'clean');
  await server.stop();

  server = await start(pool);
  client = await connect(server.redisPort);
  expect(await ask(client, 'GET', 'after')).toBe('clean');
  await ask(client, 'SET', 'later', '1');
  await sleep(1500);
  await reboot(server);
  server = await start(pool);
  client = await connect(server.redisPort);
  expect([await ask(client, 'GET', 'after'), await ask(client, 'GET', 'later')]).toEqual(['clean', '1']);
  await server.stop();
});

/** A file system of so many MiB; null where none can be mounted. */
function mountSmall(mib: number): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'entresol-test-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', folder]);
  if (status !== 0) {
    rmSync(folder, { recursive: true });
    return null;
  }
  mounts.push(folder);
  return folder;
}

it('refuses writes while the disk is full, and goes on when there is room', { timeout: 180_000 }, async (context) => {
  const folder = mountSmall(40);
  if (folder === null) return context.skip('mounting a file system needs root');
  const pool = join(folder, 'pool');
  pools.push(pool);
  let server = await start(pool, '--appendfsync=always', '--auto-aof-rewrite-percentage=0');
  let client = await connect(server.redisPort);
  const value = 'v'.repeat(100_000);
  let stored = 0;
  let answer: unknown = 'OK';
  for (; answer === 'OK' && stored < 1000; stored++)
    answer = await ask(client, 'SET', `key:${stored % 300}`, `${stored}${value}`);
  stored--;
  const misconf = '-MISCONF Errors writing to the AOF file: No space left on device';
  expect(answer).toBe(misconf);
  expect(stored).toBeGreaterThan(100);
  // Reads go on; writes of all kinds do not.
  expect(await ask(client, 'STRLEN', 'key:0')).toBeGreaterThan(100_000);
  expect(await ask(client, 'EVAL', "return redis.call('SET', 'k', 'v')", 0)).toContain('MISCONF');
  await ask(client, 'MULTI');
  expect(await ask(client, 'INCR', 'n')).toBe(misconf);
  expect(await ask(client, 'EXEC')).toContain('EXECABORT');
  const memcached = await connect(server.memcachedPort);
  await memcached.ask('set mc 0 0 1\r\nx\r\n', 'SERVER_ERROR the effect log cannot be written\r\n');
  await memcached.ask('get key:none\r\n', 'END\r\n');
  const cache = await open({ path: pool });
  expect(() => cache.set('embedded', 'x')).toThrow(/effect log/);
  cache.close();

  expect(spawnSync('mount', ['-o', 'remount,size=200m', folder]).status).toBe(0);
  for (let i = 0; i < 100 && answer !== 'OK'; i++) {
    answer = await ask(client, 'SET', 'room', 'again');
    await sleep(100);
  }
  expect(answer).toBe('OK');
  const digest = await ask(client, 'DEBUG', 'DIGEST');
  await reboot(server);
  server = await start(pool, '--appendfsync=always');
  client = await connect(server.redisPort);
  expect(await ask(client, 'DEBUG', 'DIGEST')).toBe(digest);
  await server.stop();
});

it('cuts off a torn end of the log, and refuses one that is damaged before it', { timeout: 120_000 }, async () => {
  const pool = await poolOf();
  let server = await start(pool, '--appendfsync=always');
  let client = await connect(server.redisPort);
  // So much that the next segment is reserved already.
  const large = 'v'.repeat(1 << 20);
  for (let i = 0; i < 9; i++) expect(await ask(client, 'SET', 'large', large)).toBe('OK');
  for (let i = 0; i < 50; i++) expect(await ask(client, 'SET', `key:${i}`, `value ${i}`)).toBe('OK');
  await reboot(server);
  const folder = join(pool, 'effects');
  const logs = readdirSync(folder).filter((name) => name.startsWith('log-'));
  expect(logs).toHaveLength(2);
  const fd = openSync(join(folder, logs[0]), 'r+');
  const bytes = Buffer.alloc(16 << 20);
  readSync(fd, bytes, 0, bytes.length, 0);
  const last = bytes.lastIndexOf('value 49');
  const early = bytes.indexOf('value 10');
  expect([last > early, early > 0]).toEqual([true, true]);

  writeSync(fd, 'V', early);
  await expect(start(pool)).rejects.toThrow(/damaged at byte \d+, in the middle of what was written down for good/);
  writeSync(fd, 'v', early);
  writeSync(fd, 'V', last);
  closeSync(fd);
  server = await start(pool, '--appendfsync=always');
  client = await connect(server.redisPort);
  expect(server.output()).toContain('cut short by a crash');
  expect(await ask(client, 'DBSIZE')).toBe(50);
  expect(await ask(client, 'GET', 'key:48')).toBe('value 48');
  await server.stop();
});

it('commands of several turns are there whole after a reboot', { timeout: 120_000 }, async () => {
  const pool = await poolOf();
  let server = await start(pool, '--appendfsync=always');
  let client = await connect(server.redisPort);
  const numbers = Array.from({ length: 5000 }, (_, i) => i);
  await ask(client, 'RPUSH', 'list', ...numbers.map((i) => `e${i % 3}`));
  await ask(client, 'RPUSH', 'trimmed', ...numbers);
  await ask(client, 'ZADD', 'zset', ...numbers.flatMap((i) => [i, `m${i}`]));
  await ask(client, 'SADD', 'set', ...numbers);
  await ask(client, 'SET', 'bits', 'some bits '.repeat(30_000));
  for (const request of [
    'LREM list 0 e1',
    'LINSERT list AFTER e2 x',
    'LTRIM trimmed 1000 -1001',
    'LPOP trimmed 1100',
    'ZREMRANGEBYRANK zset 500 2000',
    'ZPOPMAX zset 1200',
    'SPOP set 2000',
    'BITOP NOT other bits',
  ]) {
    expect(String(await ask(client, ...request.split(' ')))).not.toMatch(/^-/);
  }
  const looks = ['LRANGE list 0 -1', 'LRANGE trimmed 0 -1', 'ZRANGE zset 0 -1 WITHSCORES', 'BITCOUNT other'];
  const content = async (): Promise<unknown[]> => {
    const all: unknown[] = [];
    for (const look of looks) all.push(await ask(client, ...look.split(' ')));
    all.push(((await ask(client, 'SMEMBERS', 'set')) as string[]).sort());
    return all;
  };
  const before = await content();
  await reboot(server);
  server = await start(pool, '--appendfsync=always');
  client = await connect(server.redisPort);
  expect(await content()).toEqual(before);
  await server.stop();
});
