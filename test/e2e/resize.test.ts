/**
 * CONFIG SET dram and capacity of a running server, with two workers and an embedding process beside them: what the clients see, what the files
 * take, and what a kill -9 in the middle leaves. Needs the build.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { readPoolName } from '../../src/store/pool-name.js';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { entresol } from './command.js';

const MIB = 1024 * 1024;
const EMBED = fileURLToPath(new URL('../../dist/embed/index.js', import.meta.url));
/** Rounds of kill -9: more with npm run test:crash. */
const ROUNDS = process.env.ENTRESOL_CRASH_ROUNDS === undefined ? 3 : 30;

const pools: string[] = [];
const children: ChildProcess[] = [];
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  for (const pool of pools) await removePool(pool);
});

async function newPool(): Promise<string> {
  const pool = await makePool();
  pools.push(pool);
  return pool;
}

async function ask(client: RawClient, request: string): Promise<string | null> {
  client.write(`${request}\r\n`);
  const line = await client.line();
  if (line === '$-1') return null;
  if (!line.startsWith('$')) return line;
  const bytes = await client.read(Number(line.slice(1)) + 2);
  return bytes.subarray(0, -2).toString('latin1');
}

const contentOf = (i: number): string => `${i}:`.padEnd(1000, 'v');

/** Until it is not refused for want of room: what was deleted leaves its pages in the background. */
async function asked(client: RawClient, request: string): Promise<string | null> {
  for (let i = 0; ; i++) {
    const reply = await ask(client, request);
    if (i === 100 || !reply?.endsWith('nothing may be evicted')) return reply;
    await sleep(50);
  }
}

async function fill(client: RawClient, from: number, end: number): Promise<void> {
  for (let first = from; first < end; first += 500) {
    const last = Math.min(end, first + 500);
    let requests = '';
    for (let i = first; i < last; i++) requests += `SET key:${i} ${contentOf(i)}\r\n`;
    await client.ask(requests, '+OK\r\n'.repeat(last - first));
  }
}

async function expectAll(client: RawClient, from: number, end: number): Promise<void> {
  for (let first = from; first < end; first += 500) {
    const last = Math.min(end, first + 500);
    let requests = '';
    let replies = '';
    for (let i = first; i < last; i++) {
      requests += `GET key:${i}\r\n`;
      replies += `$1000\r\n${contentOf(i)}\r\n`;
    }
    await client.ask(requests, replies);
  }
}

async function tiers(client: RawClient): Promise<Map<string, string>> {
  const info = (await ask(client, 'INFO tiers')) ?? '';
  return new Map(info.split('\r\n').map((line) => line.split(':') as [string, string]));
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function resized(client: RawClient, dramMib: number, capacityMib: number): Promise<void> {
  const wanted = [dramMib * MIB, capacityMib * MIB];
  let has: number[] = [];
  for (let i = 0; i < 600; i++) {
    const fields = await tiers(client);
    has = [Number(fields.get('dram_bytes')), Number(fields.get('capacity_bytes'))];
    if (has[0] === wanted[0] && has[1] === wanted[1]) break;
    await sleep(50);
  }
  expect(has).toEqual(wanted);
}

const mibOf = (path: string): number => Math.round((statSync(path).blocks * 512) / MIB);

/**
 * What the files take, when blocks have been given back: pages count as gone a moment before. Of the capacity file up to `over` MiB more: a file
 * system with large folios (ext4 of Linux 6.16 on) keeps two neighbouring pages in one, and takes memory for the hole when the other is written.
 */
async function filesTake(paths: readonly string[], wanted: readonly number[], over: number): Promise<void> {
  const isSo = (): boolean => {
    const [dram, capacity] = paths.map(mibOf);
    return dram === wanted[0] && capacity >= wanted[1] && capacity <= wanted[1] + over;
  };
  for (let i = 0; i < 100 && !isSo(); i++) await sleep(50);
  expect({ isSo: isSo(), takes: paths.map(mibOf) }).toMatchObject({ isSo: true });
}

/** A process that has the pool open, and sets and gets keys of its own until it is told to end: then it prints how many it has found wrong. */
function embedder(pool: string): { stop(): Promise<string> } {
  const code = `
    import { open } from ${JSON.stringify(EMBED)};
    const cache = await open({ path: ${JSON.stringify(pool)} });
    let done = 0, wrong = 0, isOver = false;
    process.stdin.on('data', () => { isOver = true; });
    while (!isOver) {
      for (let i = 0; i < 200; i++) {
        const key = 'own:' + (done % 500), value = key + '='.repeat(done % 1500);
        cache.set(key, value);
        if (cache.get(key) !== value) wrong++;
        done++;
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    console.log(JSON.stringify({ wrong, isBusy: done > 1000 }));
    cache.close();
    process.exit(0);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  let out = '';
  child.stdout.on('data', (text) => {
    out += text;
  });
  const ended = new Promise<string>((resolve) => child.on('exit', () => resolve(out.trim())));
  return {
    stop: () => {
      child.stdin.write('end');
      return ended;
    },
  };
}

async function expectSound(pool: string): Promise<void> {
  const { code, out, err } = await entresol(['pool', 'check', pool]);
  expect({ code, err, out }).toMatchObject({ code: 0, err: '' });
}

it('grows and shrinks both tiers under load of workers and an embedding process', { timeout: 120_000 }, async () => {
  const pool = await newPool();
  const sizes = { dram: '32mb', capacity: '32mb' };
  const server = await startTestServer({ pool, ...sizes, workers: 2, args: ['--maxmemory-policy=noeviction'] });
  const dramPath = join('/dev/shm', readPoolName(pool) ?? '');
  const capacityPath = join(pool, 'capacity.entresol');
  const client = await RawClient.connect(server.redisPort);
  const beside = embedder(pool);
  await fill(client, 0, 35_000);

  expect(await ask(client, 'CONFIG SET dram 48mb capacity 100mb')).toBe('+OK');
  await fill(client, 35_000, 45_000);
  await resized(client, 48, 100);
  await filesTake([dramPath, capacityPath], [48, 101], 0);
  await fill(client, 45_000, 80_000);
  await expectAll(client, 0, 80_000);

  const failed = (name: string): string => `-ERR CONFIG SET failed (possibly related to argument '${name}') - `;
  const refused = await ask(client, 'CONFIG SET capacity 16mb');
  expect(refused).toMatch(
    /^-ERR CONFIG SET failed \(possibly related to argument 'capacity'\) - what the capacity tier/,
  );
  expect(await ask(client, 'CONFIG SET dram 129mb')).toBe(
    `${failed('dram')}the pool was made for at most 128 MiB (growth-room); a larger one needs a new pool`,
  );
  expect(await ask(client, 'CONFIG SET capacity 0')).toMatch(/cannot go/);
  client.write('MULTI\r\nCONFIG SET capacity 20mb\r\nEXEC\r\n');
  expect([await client.line(), await client.line(), await client.line(), await client.line()]).toEqual([
    '+OK',
    '+QUEUED',
    '*1',
    expect.stringMatching(/^-ERR CONFIG SET failed .*'capacity'/),
  ]);
  client.write('CONFIG GET dram\r\n');
  expect([
    await client.line(),
    await client.line(),
    await client.line(),
    await client.line(),
    await client.line(),
  ]).toEqual(['*2', '$4', 'dram', '$8', String(48 * MIB)]);

  for (let first = 20_000; first < 80_000; first += 500) {
    await ask(client, `DEL ${Array.from({ length: 500 }, (_, i) => `key:${first + i}`).join(' ')}`);
  }
  expect(await ask(client, 'CONFIG SET capacity 32mb')).toBe('+OK');
  await resized(client, 48, 32);
  expect(await asked(client, 'CONFIG SET dram 24mb')).toBe('+OK');
  await resized(client, 24, 32);
  await filesTake([dramPath, capacityPath], [24, 33], 8);
  await expectAll(client, 0, 20_000);
  expect(JSON.parse(await beside.stop())).toEqual({ wrong: 0, isBusy: true });
  client.destroy();
  await server.stop();
  await expectSound(pool);
});

it('a kill -9 in the middle loses nothing, and the next start goes on', { timeout: 300_000 }, async () => {
  const pool = await newPool();
  const start = (dram: number, capacity: number): Promise<TestServer> =>
    startTestServer({
      pool,
      dram: `${dram}mb`,
      capacity: `${capacity}mb`,
      workers: 2,
      args: ['--maxmemory-policy=noeviction'],
    });
  const sizes: readonly (readonly [number, number])[] = [
    [40, 32],
    [64, 80],
    [28, 24],
  ];
  let [dram, capacity] = sizes[0];
  let server = await start(dram, capacity);
  let client = await RawClient.connect(server.redisPort);
  await fill(client, 0, 15_000);
  for (let round = 1; round <= ROUNDS; round++) {
    [dram, capacity] = sizes[round % sizes.length];
    expect(await ask(client, `CONFIG SET dram ${dram}mb capacity ${capacity}mb`)).toBe('+OK');
    client.write(`SET round ${round}\r\n`);
    expect(await client.line()).toBe('+OK');
    await sleep(Math.random() * 60);
    await server.kill();
    client.destroy();
    await expectSound(pool);
    server = await start(dram, capacity);
    client = await RawClient.connect(server.redisPort);
    expect(await ask(client, 'GET round')).toBe(String(round));
    await expectAll(client, 0, 15_000);
    await resized(client, dram, capacity);
  }
  client.destroy();
  await server.stop();
  await expectSound(pool);
});
