/** The capacity tier's file is cut, or removed, while the server uses it: the server goes on, serves no zeros, and says what it has lost. */
import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const KEYS = 3000;
const CAPACITY_MIB = 48;
const LEFT_MIB = 10;
const valueAt = (i: number): string => `${i}:`.padEnd(12_000, 'v');

const pools: string[] = [];
afterAll(async () => {
  for (const pool of pools) await removePool(pool);
});

async function start(durability: string): Promise<{ server: TestServer; client: RawClient; file: string }> {
  const pool = await makePool();
  pools.push(pool);
  const args = [`--durability=${durability}`, '--maxmemory-policy=allkeys-lru', '--tier=file'];
  const server = await startTestServer({ pool, dram: '20mb', capacity: `${CAPACITY_MIB}mb`, args });
  const client = await RawClient.connect(server.redisPort);
  for (let i = 0; i < KEYS; i++) expect(await ask(client, `SET key:${i} ${valueAt(i)}`)).toBe('+OK');
  return { server, client, file: join(pool, 'capacity.entresol') };
}

async function ask(client: RawClient, request: string): Promise<string | null> {
  client.write(`${request}\r\n`);
  const line = await client.line();
  if (line === '$-1') return null;
  if (!line.startsWith('$')) return line;
  return (await client.read(Number(line.slice(1)) + 2)).subarray(0, -2).toString('latin1');
}

/** Keys that are there, each with its value. */
async function present(client: RawClient): Promise<number> {
  let count = 0;
  for (let i = 0; i < KEYS; i++) {
    const value = await ask(client, `GET key:${i}`);
    if (value === null) continue;
    expect(value === valueAt(i), `key:${i} is ${value.length} bytes, ${value.slice(0, 20)}`).toBe(true);
    count++;
  }
  return count;
}

it.each(['volatile', 'warm'])('cut short, durability %s', { timeout: 120_000 }, async (durability) => {
  const { server, client, file } = await start(durability);
  const before = await present(client);
  truncateSync(file, LEFT_MIB * 1024 * 1024);
  const after = await present(client);
  expect(after).toBeLessThan(before);
  expect(after).toBeGreaterThan(0);
  const lost = (CAPACITY_MIB - LEFT_MIB) * 1024 * 1024;
  for (let tries = 0; tries < 200 && !/cannot be read any more/.test(server.output()); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(server.output()).toMatch(/MiB of the capacity tier cannot be read any more: \d+ items are lost/);
  expect(await ask(client, 'INFO tiers')).toContain(`capacity_lost_bytes:${lost}`);
  const items = Number((await ask(client, 'DBSIZE'))?.slice(1));
  expect(await present(client)).toBe(items);
  // It goes on with what is left, in DRAM.
  for (let i = 0; i < KEYS; i++) expect(await ask(client, `SET new:${i} ${valueAt(i)}`)).toBe('+OK');
  expect(await ask(client, `GET new:${KEYS - 1}`)).toBe(valueAt(KEYS - 1));
  expect(await ask(client, 'DEL key:0')).toMatch(/^:[01]$/);
  client.destroy();
  await server.kill();
});

it('removed: nothing is lost while it runs', { timeout: 120_000 }, async () => {
  const { server, client, file } = await start('warm');
  const before = await present(client);
  rmSync(file);
  expect(await present(client)).toBe(before);
  expect(await ask(client, 'SET key:0 again')).toBe('+OK');
  client.destroy();
  await server.kill();
});
