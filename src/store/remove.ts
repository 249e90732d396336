/** Removing a whole pool: its directory and its memory. Never one that somebody uses. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Participant } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { PoolError } from './errors.js';
import { readPoolName } from './pool-name.js';
import { SHM } from './tier.js';

/** Removes the pool in `directory`, if there is one, and the directory. Throws PoolError when a process is attached to it. */
export function removeStore(directory: string): void {
  const path = resolve(directory);
  if (!existsSync(path)) return;
  const name = readPoolName(path);
  if (name !== null) {
    // The DRAM tier's file may lie in either place, with other files of the pool beside it.
    const inMemory = existsSync(SHM) ? readdirSync(SHM).filter((file) => file.startsWith(name)) : [];
    const files = [...inMemory.map((file) => join(SHM, file)), join(path, 'dram.entresol')].filter(existsSync);
    for (const file of files) refuseIfUsed(file);
    for (const file of files) rmSync(file, { force: true });
  }
  rmSync(path, { recursive: true, force: true });
}

function refuseIfUsed(file: string): void {
  const fd = addon.openFile(file, false, false);
  try {
    for (let participant = 0; participant < Participant.MAX; participant++) {
      if (addon.isByteLocked(fd, participant)) throw new PoolError('POOL_BUSY', file, 'the pool is in use');
    }
  } finally {
    addon.closeFile(fd);
  }
}
