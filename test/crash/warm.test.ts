/**
 * Reboots of a warm pool in the middle of everything: two processes at work, one of which kills itself at a random step in shared memory, or a
 * terminated worker thread; the other is killed with it, and the DRAM tier is gone. Nobody repairs anything. What comes back is what the keys
 * were, or nothing: whatever has been acknowledged since has let older copies go.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { CheckpointRestorer } from '../../src/commands/persistence/checkpoint-restorer.js';
import { defaultSettings } from '../../src/config/schema.js';
import { Persister } from '../../src/store/persister.js';
import { Rebuild } from '../../src/store/rebuild.js';
import { Arena } from './arena.js';

/** 200 before a release: npm run test:crash. */
const ROUNDS = Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 4);
const WRITER = fileURLToPath(new URL('./writer.mjs', import.meta.url));
const STEPS_MAX = 60_000;
const SETUP = { dramMib: 20, capacityMib: 24, policy: 'allkeys-lru', isWarm: true } as const;
/** Reboots of one pool, until another begins. */
const LIVES = 20;

/** Repeatable choices: a failing round prints its seed. */
let seed = Number(process.env.ENTRESOL_SEED ?? Date.now() & 0x7fffffff);
function random(limit: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor((seed / 0x80000000) * limit);
}

let arena: Arena | null = null;
afterEach(() => arena?.close());

const ended = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`)));

function optionsOf(id: number, round: number, dieAt: number): object {
  const { handle, ackPath } = arena!;
  const firstStamp = (round + 1) * 100_000;
  return {
    handle,
    ackPath,
    id,
    dieAt,
    firstStamp,
    large: 600_000,
    exclusive: true,
    writesBehind: true,
    seed: random(1 << 30) + 1,
  };
}

function spawnWriter(options: object): ChildProcess {
  return spawn(process.execPath, [WRITER, JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

/** Rebuilds what came back, and compares it with what the writers had written. */
function look({ keyspace }: Arena): void {
  const rebuild = new Rebuild(keyspace, new CheckpointRestorer(keyspace, defaultSettings()));
  for (let hasMore = true; hasMore; ) {
    keyspace.enterBatch();
    keyspace.refreshClock();
    hasMore = rebuild.step();
    keyspace.leaveBatch();
  }
  // It is at its end when that is on the medium.
  new Persister(keyspace).run();
  arena!.check();
  for (const id of [0, 1, 2]) arena!.checkWriter(id);
}

describe('a reboot', () => {
  it(
    `after kill -9, or terminate(), at ${ROUNDS} random steps`,
    async () => {
      let present = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const start = seed;
        arena ??= new Arena(SETUP);
        const bystander = spawnWriter(optionsOf(1, round, 0));
        const bystanderEnded = ended(bystander);
        await new Promise((resolve) => bystander.once('message', resolve));
        if (round % 4 === 3) {
          const progress = new SharedArrayBuffer(64);
          const worker = new Worker(WRITER, { workerData: { ...optionsOf(2, round, 0), progress } });
          await new Promise((resolve) => worker.once('message', resolve));
          await new Promise((resolve) => setTimeout(resolve, random(200)));
          await worker.terminate();
        } else {
          const writer = spawnWriter(optionsOf(0, round, 1 + random(STEPS_MAX)));
          expect(await ended(writer), `seed ${start}`).toBe('SIGKILL');
        }
        bystander.kill('SIGKILL');
        await bystanderEnded;
        const medium = readFileSync(arena.handle.capacityPath!);
        const acknowledged = readFileSync(arena.ackPath);
        arena.close();
        arena = null;
        arena = new Arena({ ...SETUP, medium, acknowledged });
        try {
          look(arena);
        } catch (error) {
          throw new Error(`round ${round}, seed ${start}: ${error instanceof Error ? error.message : error}`, {
            cause: error,
          });
        }
        present += arena.keyspace.stats().items;
        if (round % LIVES !== LIVES - 1) continue;
        arena.close();
        arena = null;
      }
      expect(present).toBeGreaterThan(0);
    },
    60_000 + ROUNDS * 15_000,
  );
});
