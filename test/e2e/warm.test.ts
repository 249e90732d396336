/** A server with --durability warm, killed, and started again without its DRAM tier, as after a reboot. */
import { rmSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const KEYS = 4000;
const valueAt = (i: number): string => `${i}:`.padEnd(12_000, 'v');

const pools: string[] = [];
afterAll(async () => {
  for (const pool of pools) await removePool(pool);
});

const start = (pool: string): Promise<TestServer> =>
  startTestServer({
    pool,
    dram: '20mb',
    capacity: '64mb',
    args: ['--durability=warm', '--maxmemory-policy=allkeys-lru'],
  });

/** One request, its reply: the line, or the value; null for none. */
async function ask(client: RawClient, request: string): Promise<string | null> {
  client.write(`${request}\r\n`);
  const line = await client.line();
  if (line === '$-1') return null;
  if (!line.startsWith('$')) return line;
  const bytes = await client.read(Number(line.slice(1)) + 2);
  return bytes.subarray(0, -2).toString('latin1');
}

async function field(client: RawClient, name: string): Promise<number> {
  const info = await ask(client, 'INFO persistence');
  return Number(info?.match(new RegExp(`${name}:(\\d+)`))?.[1] ?? Number.NaN);
}

/** The next flush that begins from now on has ended. */
async function flushed(client: RawClient): Promise<void> {
  const since = (await field(client, 'warm_last_flush_time')) + 1;
  for (let i = 0; i < 300 && (await field(client, 'warm_last_flush_time')) <= since; i++) await sleep(100);
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it('has after a reboot what lay in the capacity tier, of the right age', { timeout: 120_000 }, async () => {
  const pool = await makePool();
  pools.push(pool);
  let server = await start(pool);
  let client = await RawClient.connect(server.redisPort);
  for (let i = 0; i < KEYS; i++) expect(await ask(client, `SET key:${i} ${valueAt(i)}`)).toBe('+OK');
  for (let i = 0; i < KEYS; i += 10) await ask(client, `SET key:${i} new`);
  for (let i = 1; i < KEYS; i += 10) await ask(client, `DEL key:${i}`);
  await flushed(client);
  const shm = server.output().match(/\/dev\/shm\/\S+/)?.[0] ?? '';
  await server.kill();
  client.socket.destroy();
  expect(shm).not.toBe('');
  rmSync(shm.replace(/[,;)]$/, ''));

  server = await start(pool);
  client = await RawClient.connect(server.redisPort);
  for (let i = 0; i < 300 && (await field(client, 'rebuild_in_progress')) === 1; i++) await sleep(100);
  let present = 0;
  for (let i = 0; i < KEYS; i++) {
    const value = await ask(client, `GET key:${i}`);
    if (value === null) continue;
    present++;
    expect(i % 10).not.toBe(1);
    expect(value).toBe(i % 10 === 0 ? 'new' : valueAt(i));
  }
  expect(present).toBeGreaterThan(KEYS / 4);
  expect(await field(client, 'rebuild_corrupt')).toBe(0);
  client.socket.destroy();
  await server.stop();

  // A stop that is none of the machine: everything is where it was.
  server = await start(pool);
  client = await RawClient.connect(server.redisPort);
  expect(await ask(client, 'DBSIZE')).toBe(`:${present}`);
  client.socket.destroy();
  await server.stop();
});
