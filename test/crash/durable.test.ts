/**
 * A durable pool whose server is killed at random points of a recorded workload, with and without its DRAM tier (a reboot takes that):
 * every answered write is there, at most the one under way besides, and no transaction or script in part.
 */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { stateAfter, WorkloadClient } from '../helpers/durable-workload.js';
import { makePool, removePool } from '../helpers/pool.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

/** 200 before a release: npm run test:crash. */
const ROUNDS = Math.min(200, Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 2));
const CLIENTS = 5;
const STEPS_MAX = 1_000_000;

let seed = Number(process.env.ENTRESOL_SEED ?? 4711);
function random(limit: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor((seed / 0x80000000) * limit);
}

const pools: string[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await removePool(pool);
});

function start(pool: string, policy: string, workers: number): Promise<TestServer> {
  return startTestServer({
    pool,
    workers,
    dram: '64mb',
    args: [
      '--durability=durable',
      `--appendfsync=${policy}`,
      // What is evicted for want of room is begun anew by the next INCR, and no reboot has lost it.
      '--maxmemory-policy=noeviction',
      // Small enough that checkpoints are made under way.
      '--auto-aof-rewrite-min-size=200kb',
    ],
  });
}

function dramOf(server: TestServer): string {
  const path = /\/dev\/shm\/entresol-[^\s,;)]+/.exec(server.output())?.[0];
  if (path === undefined) throw new Error('the server has not said where its DRAM tier is');
  return path;
}

const connectAll = (server: TestServer): Promise<WorkloadClient[]> =>
  Promise.all(
    Array.from({ length: CLIENTS }, (_, i) =>
      WorkloadClient.connect(`client${i}`, server.redisPort, server.memcachedPort),
    ),
  );

/** How many steps a client's keys show, from `least` to `most`; fails if it is none of these. */
async function stepsShown(client: WorkloadClient, least: number, most: number, what: string): Promise<number> {
  const state = await client.readState();
  const shown = JSON.stringify(state);
  for (let steps = most; steps >= least; steps--) {
    if (JSON.stringify(stateAfter(steps)) === shown) return steps;
  }
  expect(state, `${what}: ${client.name} between ${least} and ${most} steps`).toEqual(stateAfter(least));
  return -1;
}

const RUNS: [policy: string, workers: number][] = [
  ['always', 2],
  ['everysec', 2],
];
if (ROUNDS > 2) RUNS.push(['always', 1], ['everysec', 1]);

it.each(RUNS)('keeps what was answered: %s, %i workers', { timeout: 1_200_000 }, async (policy, workers) => {
  const pool = await makePool();
  pools.push(pool);
  const done: number[] = Array.from({ length: CLIENTS }, () => 0);
  let server = await start(pool, policy, workers);
  for (let round = 0; round < ROUNDS; round++) {
    const isReboot = round % 2 === 0;
    const what = `seed ${process.env.ENTRESOL_SEED ?? 4711}, round ${round}, ${policy}`;
    const clients = await connectAll(server);
    clients.forEach((client, i) => {
      client.acknowledged = done[i];
    });
    const runs = clients.map((client) => client.run(STEPS_MAX));
    await sleep(200 + random(800));
    await server.kill();
    const answered = await Promise.all(runs);
    for (const client of clients) client.close();
    if (isReboot) rmSync(dramOf(server));

    server = await start(pool, policy, workers);
    const readers = await connectAll(server);
    // What everysec loses is what was answered last, and of each client a beginning is left.
    const mayLose = policy === 'everysec' && isReboot;
    for (const [i, reader] of readers.entries()) {
      done[i] = await stepsShown(reader, mayLose ? 0 : answered[i], answered[i] + 1, what);
    }
    for (const reader of readers) reader.close();
    // A clean end now and then.
    if (round % 3 !== 1) continue;
    await server.stop();
    server = await start(pool, policy, workers);
  }
  await server.stop();
});
