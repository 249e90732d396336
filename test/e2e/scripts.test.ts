/** Scripts over several workers and restarts: what all know, what survives, and that a script is one step for everybody. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

const pools: string[] = [];
afterAll(async () => {
  for (const pool of pools) await removePool(pool);
});

async function send(client: RawClient, expected: string, ...words: string[]): Promise<void> {
  client.write(multibulk(words));
  await client.ask('', expected);
}

/** Connections until every worker has some: the kernel deals them out. */
async function connections(server: TestServer, count = 12): Promise<RawClient[]> {
  return Promise.all(Array.from({ length: count }, () => RawClient.connect(server.redisPort)));
}

describe('three workers', () => {
  it('know the scripts and functions of each other', async () => {
    const server = await startTestServer({ workers: 3 });
    const clients = await connections(server);
    const [first] = clients;
    await send(first, '$40\r\n4ca238f611c9d0ae4e9a75a5dbac22aedc379801\r\n', 'SCRIPT', 'LOAD', 'return 5');
    for (const client of clients)
      await send(client, ':5\r\n', 'EVALSHA', '4ca238f611c9d0ae4e9a75a5dbac22aedc379801', '0');
    const load = (value: number) => `#!lua name=l\nredis.register_function('f', function() return ${value} end)`;
    await send(first, '$1\r\nl\r\n', 'FUNCTION', 'LOAD', load(1));
    for (const client of clients) await send(client, ':1\r\n', 'FCALL', 'f', '0');
    await send(clients[5], '$1\r\nl\r\n', 'FUNCTION', 'LOAD', 'REPLACE', load(2));
    for (const client of clients) await send(client, ':2\r\n', 'FCALL', 'f', '0');
    await send(clients[3], '+OK\r\n', 'SCRIPT', 'FLUSH');
    await send(clients[7], '+OK\r\n', 'FUNCTION', 'FLUSH');
    for (const client of clients) {
      await send(
        client,
        '-NOSCRIPT No matching script. Please use EVAL.\r\n',
        'EVALSHA',
        '4ca238f611c9d0ae4e9a75a5dbac22aedc379801',
        '0',
      );
      await send(client, '-ERR Function not found\r\n', 'FCALL', 'f', '0');
    }
    for (const client of clients) client.destroy();
    await server.stop();
  });

  it('see each script as one step', async () => {
    const server = await startTestServer({ workers: 3 });
    const clients = await connections(server);
    const script =
      "local n=tonumber(redis.call('get',KEYS[1]) or 0) redis.call('set',KEYS[1],n+1) redis.call('set','undeclared',n+1) return 0";
    const rounds = 50;
    await Promise.all(
      clients.map(async (client) => {
        for (let i = 0; i < rounds; i++) await send(client, ':0\r\n', 'EVAL', script, '1', 'counter');
      }),
    );
    const total = String(clients.length * rounds);
    await send(clients[0], `*2\r\n$3\r\n${total}\r\n$3\r\n${total}\r\n`, 'MGET', 'counter', 'undeclared');
    for (const client of clients) client.destroy();
    await server.stop();
  });
});

describe('a restart', () => {
  const code = `#!lua name=kept\nredis.register_function('f', function(keys) return redis.call('get', keys[1]) end)`;

  it('keeps functions and what scripts have written, also after kill -9', async () => {
    const pool = await makePool();
    pools.push(pool);
    const before = await startTestServer({ pool });
    const client = await RawClient.connect(before.redisPort);
    await send(client, '$4\r\nkept\r\n', 'FUNCTION', 'LOAD', code);
    await send(client, '+OK\r\n', 'EVAL', "return redis.call('set',KEYS[1],ARGV[1])", '1', 'k', 'v');
    await before.kill();
    client.destroy();
    const after = await startTestServer({ pool });
    const again = await RawClient.connect(after.redisPort);
    await send(again, '$1\r\nv\r\n', 'FCALL', 'f', '1', 'k');
    again.destroy();
    await after.stop();
  });

  it('with a damaged file says so, and serves without functions', async () => {
    const pool = await makePool();
    pools.push(pool);
    const before = await startTestServer({ pool });
    const client = await RawClient.connect(before.redisPort);
    await send(client, '$4\r\nkept\r\n', 'FUNCTION', 'LOAD', code);
    client.destroy();
    await before.stop();
    const file = join(pool, 'functions.rdb');
    expect(existsSync(file)).toBe(true);
    writeFileSync(file, 'not what it was, at all');
    const after = await startTestServer({ pool });
    const again = await RawClient.connect(after.redisPort);
    await send(again, '-ERR Function not found\r\n', 'FCALL', 'f', '1', 'k');
    await vi.waitFor(() => expect(after.output()).toContain('a library of functions cannot be loaded'), 10_000);
    again.destroy();
    await after.stop();
  });
});

it('a script that takes too much memory gets an error, and the next one runs', async () => {
  const server = await startTestServer();
  const client = await RawClient.connect(server.redisPort);
  const grow = "local t={} local s=string.rep('x',1024*1024*16) for i=1,1000 do t[i]=s..i end return 1";
  client.write(multibulk(['EVAL', grow, '0']));
  await client.until(() => client.text.endsWith('\r\n'), 'a reply', 60_000);
  expect((await client.read(client.text.length)).toString()).toMatch(/^-ERR .*not enough memory/);
  await send(client, ':1\r\n', 'EVAL', 'return 1', '0');
  client.destroy();
  await server.stop();
});

it('replies and arguments larger than any buffer pass through a script', async () => {
  const server = await startTestServer();
  const client = await RawClient.connect(server.redisPort);
  const value = 'v'.repeat(3 * 1024 * 1024);
  const script =
    "redis.call('set',KEYS[1],ARGV[1]) redis.call('append',KEYS[1],ARGV[1]) return {redis.call('get',KEYS[1]),#ARGV[1]}";
  const expected = `*2\r\n$${value.length * 2}\r\n${value}${value}\r\n:${value.length}\r\n`;
  client.write(multibulk(['EVAL', script, '1', 'k', value]));
  expect((await client.read(expected.length)).toString('latin1') === expected).toBe(true);
  await send(client, `:${value.length * 2}\r\n`, 'STRLEN', 'k');
  client.destroy();
  await server.stop();
});

it('an error of a command in a script counts once, as the script fails or goes on', async () => {
  const server = await startTestServer();
  const client = await RawClient.connect(server.redisPort);
  await send(client, '+OK\r\n', 'SET', 's', 'abc');
  client.write(multibulk(['EVAL', "return redis.call('incr',KEYS[1])", '1', 's']));
  await client.until(() => client.text.endsWith('\r\n'), 'an error');
  await client.read(client.text.length);
  await send(client, ':1\r\n', 'EVAL', "redis.pcall('incr',KEYS[1]) return 1", '1', 's');
  client.write(multibulk(['INFO', 'everything']));
  await client.until(() => /\r\n\r\n$/.test(client.text) && client.text.includes('errorstat_'), 'INFO');
  expect(client.text).toContain('total_error_replies:2\r\n');
  expect(client.text).toContain('errorstat_ERR:count=2\r\n');
  expect(client.text).toMatch(/cmdstat_eval:calls=2,.*failed_calls=1\r\n/);
  expect(client.text).toMatch(/cmdstat_incr:calls=2,.*failed_calls=2\r\n/);
  client.destroy();
  await server.stop();
});
