/** entresol pool repair as a process: of pools that servers have left, damaged; volatile, warm and durable; killed while at it. Needs the build. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Super } from '../../src/layout/superblock.js';
import { dramOf } from '../helpers/old-pool.js';
import { makePool, removePool } from '../helpers/pool.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { entresol } from './command.js';

const COMMAND = fileURLToPath(new URL('../../bin/entresol.js', import.meta.url));
const KEYS = 2000;
const SIZES = { dram: '16mb', capacity: '16mb' };

let pool: string;
beforeEach(async () => {
  pool = await makePool();
});
afterEach(() => removePool(pool));

const valueAt = (i: number): string => `${i}:`.padEnd(3000, 'v');

async function fill(server: TestServer): Promise<void> {
  const client = new Redis(server.redisPort);
  for (let first = 0; first < KEYS; first += 500) {
    const batch = client.pipeline();
    for (let i = first; i < first + 500; i++) batch.set(`key:${i}`, valueAt(i));
    await batch.exec();
  }
  await client.rpush('list', ...Array.from({ length: 1000 }, (_, i) => `element ${i}`));
  client.disconnect();
}

/** Keys that are there, each with its value. */
async function present(server: TestServer): Promise<number> {
  const client = new Redis(server.redisPort);
  while ((await client.info('persistence')).includes('rebuild_in_progress:1')) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const values = await client.mget(Array.from({ length: KEYS }, (_, i) => `key:${i}`));
  client.disconnect();
  values.forEach((value, i) => {
    if (value !== null) expect(value).toBe(valueAt(i));
  });
  return values.filter((value) => value !== null).length;
}

/** The directory of the index leads nowhere. */
function damage(): void {
  const fd = openSync(dramOf(pool), 'r+');
  const word = Buffer.alloc(4);
  readSync(fd, word, 0, 4, Super.DIRECTORY_WORD * 4);
  writeSync(fd, Buffer.alloc(4), 0, 4, word.readInt32LE(0) * 4);
  closeSync(fd);
}

async function repair(): Promise<Record<string, unknown>> {
  const { code, out } = await entresol(['pool', 'repair', pool, '--json']);
  return { code, ...(JSON.parse(out) as object) };
}

it('a volatile pool keeps all that is sound, also when its server was killed and the first repair, too', async () => {
  const server = await startTestServer({ pool, ...SIZES, args: ['--maxmemory-policy=noeviction'] });
  await fill(server);
  expect(await repair()).toMatchObject({ state: 'unreadable', code: 'POOL_BUSY' });
  await server.kill();
  damage();
  const before = readFileSync(dramOf(pool));
  const child = spawn(process.execPath, [COMMAND, 'pool', 'repair', pool], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  // Into the middle of it: its new file is there.
  while (!existsSync(`${dramOf(pool)}.repaired`) && child.exitCode === null) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  child.kill('SIGKILL');
  await ended;
  if (existsSync(`${dramOf(pool)}.repaired`)) expect(readFileSync(dramOf(pool)).equals(before)).toBe(true);
  const outcome = await repair();
  expect(outcome).toMatchObject({ code: 0, items: KEYS + 1 });
  expect(['repaired', 'sound']).toContain(outcome.state);
  expect(existsSync(`${dramOf(pool)}.repaired`)).toBe(false);
  expect(statSync(dramOf(pool)).size).toBe(before.length);
  expect((await entresol(['pool', 'check', pool])).out).toContain(': sound');
  const again = await startTestServer({ pool, ...SIZES });
  expect(await present(again)).toBe(KEYS);
  await again.stop();
});

it.each([
  ['warm', 100],
  ['durable', KEYS],
])('a %s pool is rebuilt by its next start from what it keeps for a reboot', async (durability, least) => {
  const options = { pool, ...SIZES, args: ['--maxmemory-policy=noeviction', `--durability=${durability}`] };
  const server = await startTestServer(options);
  await fill(server);
  await server.stop();
  damage();
  expect(await entresol(['pool', 'check', pool])).toMatchObject({ code: 1 });
  expect(await repair()).toMatchObject({ code: 0, state: 'given-up' });
  const again = await startTestServer(options);
  expect(await present(again)).toBeGreaterThanOrEqual(least);
  await again.stop();
  expect(await entresol(['pool', 'check', pool])).toMatchObject({ code: 0 });
});
