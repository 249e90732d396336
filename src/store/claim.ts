/**
 * Claims on a pool: at most one server, any number of embedding threads beside it, or one exclusive user alone.
 *
 * Owns `pool.lock` in the pool's directory: byte locks of open file descriptions, and the process id of the
 * server or the exclusive user. A file of its own,
 * not the DRAM tier's: two machines or containers may share the directory and not /dev/shm. Invariant: a claim ends with its
 * descriptor, so the kernel takes back what a dead process held, and no lock is ever stale.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { addon } from '../native/addon.js';
import { PoolError } from './errors.js';

/** What a user of the pool is: `shared` tolerates others, a `server` other users but no other server, `exclusive` nobody. */
export type ClaimKind = 'shared' | 'server' | 'exclusive';

const LOCK_FILE = 'pool.lock';
const SERVER_BYTE = 0;
/** Every user holds it: shared, or alone. */
const USERS_BYTE = 1;
/** Held while locks and the process id change together. */
const CHANGE_BYTE = 2;
const CHANGE_WAIT_MS = 5000;

export class Claim {
  #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Idempotent. */
  release(): void {
    if (this.#fd < 0) return;
    addon.closeFile(this.#fd);
    this.#fd = -1;
  }
}

/**
 * Claims the pool in a directory (made when absent) until `release` or the end of this thread.
 * @throws PoolError POOL_BUSY naming the process that is in the way; POOL_IO
 */
export function claimPool(pool: string, kind: ClaimKind): Claim {
  const directory = resolve(pool);
  makeDirectory(directory);
  const path = join(directory, LOCK_FILE);
  let fd: number;
  try {
    fd = addon.openFile(path, true, false);
  } catch (error) {
    throw PoolError.from(error, path, 'cannot open the file');
  }
  try {
    addon.closeAtExit(fd);
    waitForByte(fd, CHANGE_BYTE, path);
    take(fd, kind, directory, path);
    addon.unlockByte(fd, CHANGE_BYTE);
    return new Claim(fd);
  } catch (error) {
    addon.closeFile(fd);
    throw error;
  }
}

function take(fd: number, kind: ClaimKind, directory: string, path: string): void {
  if (kind === 'exclusive') {
    if (!addon.lockByte(fd, USERS_BYTE)) {
      if (addon.isByteLocked(fd, SERVER_BYTE)) throw serverRuns(directory, path);
      if (!addon.lockByteShared(fd, USERS_BYTE)) throw isExclusive(directory, path);
      throw new PoolError('POOL_BUSY', directory, 'others have the pool open: nobody can have it alone (exclusive)');
    }
  } else if (!addon.lockByteShared(fd, USERS_BYTE)) {
    throw isExclusive(directory, path);
  }
  if (kind === 'server' && !addon.lockByte(fd, SERVER_BYTE)) throw serverRuns(directory, path);
  if (kind === 'shared') return;
  try {
    writeFileSync(path, `${process.pid}\n`);
  } catch (error) {
    throw PoolError.from(error, path, 'cannot write the file');
  }
}

function serverRuns(directory: string, path: string): PoolError {
  return new PoolError('POOL_BUSY', directory, `a server runs on this pool already, process ${holder(path)}`);
}

function isExclusive(directory: string, path: string): PoolError {
  return new PoolError(
    'POOL_BUSY',
    directory,
    `process ${holder(path)} has the pool open for itself alone (exclusive)`,
  );
}

/** Process id of the server or the exclusive user, of which there is one. */
function holder(path: string): string {
  return readFileSync(path, 'latin1').trim();
}

/** Takes a byte that others hold for moments only. */
export function waitForByte(fd: number, byte: number, path: string, waitMs = CHANGE_WAIT_MS): void {
  const end = addon.monotonicMs() + waitMs;
  while (!addon.lockByte(fd, byte)) {
    if (addon.monotonicMs() > end) {
      throw new PoolError('POOL_BUSY', path, `another process has been preparing the pool for ${waitMs / 1000} s`);
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
}

export function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true });
  } catch (error) {
    throw PoolError.from(error, directory, 'cannot make the pool directory');
  }
}
