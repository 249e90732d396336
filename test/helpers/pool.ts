/** Temporary pools: a folder, and the DRAM tier's file that the store keeps for it in /dev/shm. */
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SHM = '/dev/shm';

export function makePool(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'entresol-test-'));
}

/** Removes the folder and the DRAM tier, whose name ends with the folder's device and inode. */
export async function removePool(pool: string): Promise<void> {
  const { dev, ino } = await stat(pool);
  const ending = `-${dev.toString(16)}-${ino.toString(16)}`;
  for (const name of await readdir(SHM)) {
    if (name.startsWith('entresol-') && name.endsWith(ending)) await rm(join(SHM, name), { force: true });
  }
  await rm(pool, { recursive: true, force: true });
}
