/**
 * The name of a pool's files in /dev/shm: its directory's name and a random part that the directory keeps in `pool.id`.
 *
 * A restart finds its memory by it; a new directory never meets the memory of an old one, even of the same path and inode.
 * Invariant: pool.id appears whole or not at all, and never changes.
 */
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PoolError } from './errors.js';
import { randomBytes } from './random.js';

const ID_FILE = 'pool.id';
const ID_PATTERN = /^[0-9a-f]{16}$/;

/** The name of the pool in `directory`, or null when none has been made there. */
export function readPoolName(directory: string): string | null {
  const path = join(directory, ID_FILE);
  let id: string;
  try {
    id = readFileSync(path, 'latin1').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw PoolError.from(error, path, "cannot read the pool's identity");
  }
  if (!ID_PATTERN.test(id)) throw new PoolError('POOL_FOREIGN', path, 'this is not the identity of an Entresol pool');
  return `entresol-${basename(directory)}-${id}`;
}

/** The name of the pool in `directory`; gives it one when it has none. */
export function makePoolName(directory: string): string {
  const known = readPoolName(directory);
  if (known !== null) return known;
  const path = join(directory, ID_FILE);
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(draft, `${randomBytes(8).toString('hex')}\n`);
    linkSync(draft, path);
  } catch (error) {
    // Another process was faster: its name counts.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw PoolError.from(error, path, "cannot write the pool's identity");
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return makePoolName(directory);
}
