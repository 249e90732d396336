/**
 * Death under load: processes killed by SIGKILL at a random moment, or by themselves at a random step in shared memory, and worker threads
 * terminated, while others go on. After each death the invariants hold, every acknowledged write is there, and nothing stays locked.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import { Arena, type ArenaOptions } from './arena.js';

/** 500 before a release: npm run test:crash. */
const ROUNDS = Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 5);
const WRITER = fileURLToPath(new URL('./writer.mjs', import.meta.url));
const STEPS_MAX = 60_000;

interface Setup extends ArenaOptions {
  readonly name: string;
  readonly large: number;
  /** Sizes of the tiers in MiB between which the writers go. */
  readonly resizes?: readonly (readonly [number, number])[];
}

const SETUPS: readonly Setup[] = [
  { name: 'with room', dramMib: 96, capacityMib: 0, policy: 'noeviction', large: 1_500_000 },
  {
    name: 'evicting over two tiers that grow and shrink',
    dramMib: 20,
    capacityMib: 24,
    policy: 'allkeys-lru',
    large: 600_000,
    resizes: [
      [20, 24],
      [32, 16],
      [18, 40],
    ],
  },
  { name: 'in a warm pool', dramMib: 20, capacityMib: 24, policy: 'allkeys-lru', large: 600_000, isWarm: true },
];

/** Repeatable choices: a failing round prints its seed. */
let seed = Number(process.env.ENTRESOL_SEED ?? Date.now() & 0x7fffffff);
function random(limit: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor((seed / 0x80000000) * limit);
}

function ended(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`)));
}

describe.each(SETUPS)('death of a participant, $name', (setup) => {
  const arena = new Arena(setup);
  const progress = new Int32Array(new SharedArrayBuffer(64));
  const common = {
    handle: arena.handle,
    ackPath: arena.ackPath,
    large: setup.large,
    resizes: setup.resizes,
    // Making room in the middle of a command of several keys settles its first part: whole commands need room.
    atomicGroups: setup.policy === 'noeviction',
    exclusive: true,
    writesBehind: setup.isWarm === true,
    progress: progress.buffer,
  };
  const survivor = new Worker(WRITER, {
    workerData: { ...common, id: 7, seed: 77, dieAt: 0, firstStamp: 1 },
    stderr: false,
  });
  const survived = new Promise<number>((resolve) => survivor.once('exit', resolve));
  afterAll(async () => {
    await survivor.terminate();
    await arena.collect(1);
    arena.check();
    arena.close();
  });

  async function afterDeath(id: number, what: string): Promise<void> {
    try {
      expect(await arena.collect(2), 'seats taken').toBe(2);
      arena.check();
      arena.checkWriter(id);
      const before = Atomics.load(progress, 8);
      const end = Date.now() + 5000;
      while (Atomics.load(progress, 8) === before && Date.now() < end) await new Promise((r) => setTimeout(r, 1));
      expect(Atomics.load(progress, 8), 'the survivor goes on').toBeGreaterThan(before);
    } catch (error) {
      throw new Error(`${what}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }

  function spawnWriter(id: number, round: number, dieAt: number): ChildProcess {
    const options = {
      ...common,
      progress: undefined,
      id,
      seed: random(1 << 30) + 1,
      dieAt,
      firstStamp: (round + 1) * 100_000,
    };
    return spawn(process.execPath, [WRITER, JSON.stringify(options)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  it(
    `kill -9 at ${ROUNDS} random moments and at as many steps`,
    async () => {
      for (let round = 0; round < ROUNDS * 2; round++) {
        const id = round % 7;
        const start = seed;
        const isStep = round % 2 === 1;
        // Few steps die on arrival, many in full swing.
        const dieAt = isStep ? 1 + random(round % 4 === 1 ? 60 : STEPS_MAX) : 0;
        const child = spawnWriter(id, round, dieAt);
        const end = ended(child);
        if (!isStep) {
          await new Promise((resolve) => child.once('message', resolve));
          await new Promise((resolve) => setTimeout(resolve, random(80)));
          child.kill('SIGKILL');
        }
        expect(await end, `seed ${start}`).toBe('SIGKILL');
        await afterDeath(id, `round ${round}, seed ${start}, step ${dieAt}`);
      }
    },
    60_000 + ROUNDS * 15_000,
  );

  it(
    `terminate() at ${ROUNDS} random moments`,
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const id = round % 7;
        const start = seed;
        const worker = new Worker(WRITER, {
          workerData: {
            ...common,
            id,
            seed: random(1 << 30) + 1,
            dieAt: 0,
            firstStamp: (round + 1) * 100_000 + 50_000_000,
          },
        });
        const exit = new Promise((resolve) => worker.once('exit', resolve));
        await new Promise((resolve) => worker.once('message', resolve));
        await new Promise((resolve) => setTimeout(resolve, random(40)));
        await worker.terminate();
        await exit;
        await afterDeath(id, `round ${round}, seed ${start}`);
      }
    },
    60_000 + ROUNDS * 15_000,
  );

  it('the survivor has seen nothing wrong', async () => {
    Atomics.store(progress, 0, 1);
    expect(await survived).toBe(0);
    arena.check();
    arena.checkWriter(7);
    expect(await arena.collect(1)).toBe(1);
  });
});
