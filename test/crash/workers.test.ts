/**
 * Several worker threads on one store, nobody dying: shared keys are never torn or foreign, groups of keys change as one, exclusive
 * sections and everybody's background work in between; afterwards the invariants hold and every acknowledged write is there.
 */
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { Arena, type ArenaOptions } from './arena.js';

const WRITER = fileURLToPath(new URL('./writer.mjs', import.meta.url));
const WORKERS = 3;
/** Longer by ENTRESOL_CRASH_ROUNDS: a tenth of a second for each. */
const RUN_MS = 2000 + Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 0) * 100;

const SETUPS: readonly (ArenaOptions & { readonly name: string; readonly large: number })[] = [
  { name: 'with room', dramMib: 96, capacityMib: 0, policy: 'noeviction', large: 1_500_000 },
  { name: 'evicting over two tiers', dramMib: 20, capacityMib: 24, policy: 'allkeys-lru', large: 600_000 },
  { name: 'evicting in DRAM', dramMib: 20, capacityMib: 0, policy: 'allkeys-lfu', large: 300_000 },
];

it.each(SETUPS)(
  '$name',
  async (setup) => {
    const arena = new Arena(setup);
    const progress = new Int32Array(new SharedArrayBuffer(64));
    const exits = Array.from({ length: WORKERS }, (_, id) => {
      const worker = new Worker(WRITER, {
        workerData: {
          handle: arena.handle,
          ackPath: arena.ackPath,
          large: setup.large,
          atomicGroups: true,
          exclusive: true,
          progress: progress.buffer,
          id,
          seed: Date.now() + id,
          dieAt: 0,
          firstStamp: id * 10_000_000 + 1,
        },
      });
      return new Promise((resolve, reject) => {
        worker.once('exit', resolve);
        worker.once('error', reject);
      });
    });
    // On a busy machine a thread takes seconds to start.
    for (let id = 0; id < WORKERS; id++) {
      while (Atomics.load(progress, 1 + id) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const end = Date.now() + RUN_MS;
    while (Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      arena.check();
    }
    Atomics.store(progress, 0, 1);
    expect(await Promise.all(exits)).toEqual(Array(WORKERS).fill(0));
    for (let id = 0; id < WORKERS; id++) {
      expect(progress[1 + id], `turns of worker ${id}`).toBeGreaterThan(0);
      arena.checkWriter(id);
    }
    arena.check();
    arena.close();
  },
  60_000 + RUN_MS,
);
