/** Temporary pools: a folder, and the DRAM tier's file that the store keeps for it in /dev/shm. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPoolName } from '../../src/store/pool-name.js';

const SHM = '/dev/shm';

export function makePool(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'entresol-test-'));
}

/** Removes the folder and what the pool has in shared memory. */
export async function removePool(pool: string): Promise<void> {
  const own = readPoolName(pool);
  if (own !== null) {
    for (const name of await readdir(SHM)) if (name.startsWith(own)) await rm(join(SHM, name), { force: true });
  }
  await rm(pool, { recursive: true, force: true });
}
