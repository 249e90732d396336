/**
 * Reboots of a server with --durability warm: two workers under load and an attached process, killed at a random moment, the DRAM tier deleted.
 * The processes die, not the machine: what they had stored in the capacity tier is all there, so each key is as it was last, or absent.
 */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { attach, detach } from '../../src/store/attach.js';
import { findStore } from '../../src/store/open.js';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { checkWriter } from './acknowledged.js';
import { WRITERS } from './arena.js';
import { OWN_KEYS } from './values.mjs';

/** 200 before a release: npm run test:crash. */
const ROUNDS = Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 2);
const WRITER = fileURLToPath(new URL('./writer.mjs', import.meta.url));
const CLIENTS = 3;
const KEYS = 300;
const LOAD_MS = 1200;

let seed = Number(process.env.ENTRESOL_SEED ?? Date.now() & 0x7fffffff);
function random(limit: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor((seed / 0x80000000) * limit);
}

const pools: string[] = [];
afterAll(async () => {
  for (const pool of pools) await removePool(pool);
});

const start = (pool: string): Promise<TestServer> =>
  startTestServer({
    pool,
    workers: 2,
    dram: '20mb',
    capacity: '40mb',
    args: ['--durability=warm', '--maxmemory-policy=allkeys-lru'],
  });

async function ask(client: RawClient, ...words: string[]): Promise<string | null> {
  client.write(`*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`);
  const line = await client.line();
  if (line === '$-1') return null;
  if (!line.startsWith('$')) return line;
  return (await client.read(Number(line.slice(1)) + 2)).subarray(0, -2).toString('latin1');
}

/** A small store has not always room for one more item of 30 KB: the key is then what it was. */
function isRefused(reply: string | null): boolean {
  if (reply?.startsWith('-') !== true) return false;
  expect(reply).toMatch(/^-OOM/);
  return true;
}

/** What each key may be: what was acknowledged last, and what has been asked for since. */
const known = new Map<string, (string | null)[]>();

/** One request on a key that no other client writes. */
async function act(client: RawClient, id: number, stamp: number): Promise<void> {
  const key = `key:${id}:${random(KEYS)}`;
  const [now = null] = known.get(key) ?? [];
  const kind = random(10);
  if (kind < 4) {
    await ask(client, 'GET', key);
    return;
  }
  const next =
    kind === 4
      ? null
      : kind === 5
        ? `${now ?? ''}+${stamp}`
        : `${stamp}:`.padEnd(
            random(8) === 0 ? 30_000 + random(9000) : random(3000),
            String.fromCharCode(97 + (stamp % 26)),
          );
  if (kind === 5) {
    // The key may have been evicted: it is begun anew then.
    const tail = `+${stamp}`;
    known.set(key, [now, next, tail]);
    const length = await ask(client, 'APPEND', key, tail);
    if (isRefused(length)) known.set(key, [now]);
    else known.set(key, [length === `:${tail.length}` ? tail : next]);
    return;
  }
  known.set(key, [now, next]);
  const reply = next === null ? await ask(client, 'DEL', key) : await ask(client, 'SET', key, next);
  known.set(key, [isRefused(reply) ? now : next]);
}

/** Asks until the connection breaks, or for so long. */
async function load(client: RawClient, id: number, round: number): Promise<void> {
  try {
    for (let step = 0; ; step++) await act(client, id, round * 1_000_000 + step);
  } catch {
    // The server has been killed.
  }
}

async function compare(client: RawClient): Promise<number> {
  let present = 0;
  for (const [key, may] of known) {
    const value = await ask(client, 'GET', key);
    if (value !== null) {
      present++;
      const list = may.map((one) => one?.slice(0, 20) ?? 'absent').join(', ');
      expect(may.includes(value), `${key} is ${value.slice(0, 20)}...${value.slice(-20)}, may be ${list}`).toBe(true);
    }
    known.set(key, [value]);
  }
  return present;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it(`${ROUNDS} reboots of a server in use`, { timeout: 60_000 + ROUNDS * 30_000 }, async () => {
  const pool = await makePool();
  pools.push(pool);
  const ackPath = join(pool, 'acknowledged');
  writeFileSync(ackPath, Buffer.alloc(WRITERS * OWN_KEYS * 8));
  let present = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const what = `round ${round}, seed ${seed}`;
    const server = await start(pool);
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => RawClient.connect(server.redisPort)));
    const isRebuilding = async (): Promise<boolean> => {
      const info = await ask(clients[0], 'INFO', 'persistence');
      return info?.includes('rebuild_in_progress:1') === true;
    };
    for (let tries = 0; tries < 300 && (await isRebuilding()); tries++) await sleep(50);
    const handle = findStore(pool)!;
    try {
      present += await compare(clients[0]);
      const keyspace = attach(handle);
      checkWriter(keyspace, ackPath, 0, true);
      detach(keyspace);
    } catch (error) {
      throw new Error(`${what}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
    const options = { handle, ackPath, id: 0, seed: random(1 << 30) + 1, dieAt: 0, firstStamp: (round + 1) * 100_000 };
    const writer = spawn(process.execPath, [WRITER, JSON.stringify({ ...options, large: 0, exclusive: true })], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const ended = new Promise((resolve) => writer.once('exit', resolve));
    await new Promise((resolve) => writer.once('message', resolve));
    const loads = clients.map((client, id) => load(client, id, round));
    await sleep(LOAD_MS / 2 + random(LOAD_MS));
    // At the same moment, as near as signals come to it.
    writer.kill('SIGKILL');
    await server.kill();
    await ended;
    for (const client of clients) client.socket.destroy();
    await Promise.all(loads);
    rmSync(handle.dramPath);
  }
  expect(present).toBeGreaterThan(0);
});
