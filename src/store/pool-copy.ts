/**
 * A pool looked at without a server: mapped copy-on-write, so that whatever is repaired or counted in it stays in this process.
 *
 * Owns the mappings, and where it is opened by a path the exclusive claim on the pool. Invariant: neither tier's file is changed, also when
 * what died in the pool is mended in the copy.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Bytes } from '../layout/bytes.js';
import { Page } from '../layout/location.js';
import { Participant, ParticipantState } from '../layout/superblock.js';
import { Memory } from '../memory/memory.js';
import { addon } from '../native/addon.js';
import { attachMapped, detach } from './attach.js';
import { capacityIdentity } from './capacity-file.js';
import { type Claim, claimPool } from './claim.js';
import { PoolError } from './errors.js';
import { type Existing, judgeSuperblock, readSuperblock } from './format.js';
import type { Keyspace } from './keyspace.js';
import { findStore, openTier, type StoreHandle } from './open.js';
import { readPoolName } from './pool-name.js';
import { findStrayLock } from './stray-locks.js';

export class PoolCopy {
  readonly handle: StoreHandle;
  readonly existing: Existing;
  readonly memory: Memory;
  readonly #claim: Claim | null;
  #isOpen = true;

  constructor(handle: StoreHandle, existing: Existing, memory: Memory, claim: Claim | null) {
    this.handle = handle;
    this.existing = existing;
    this.memory = memory;
    this.#claim = claim;
  }

  /** Process ids of participants that ended without leaving: the next to open the pool mends what they left. */
  deaths(): number[] {
    const { memory } = this;
    const pids: number[] = [];
    for (let p = 0; p < Participant.MAX; p++) {
      const at = memory.participantWord(p);
      if (memory.ctl[at + Participant.STATE_WORD] === ParticipantState.FREE) continue;
      pids.push(memory.ctl[at + Participant.PID_WORD]);
    }
    return pids;
  }

  /** Takes a seat in the copy, which mends it as a start of the server would mend the pool. */
  attach(): Keyspace {
    const stray = findStrayLock(this.memory);
    if (stray !== '') throw new PoolError('POOL_CORRUPT', this.handle.dramPath, stray);
    return attachMapped(this.memory, this.handle.dramPath);
  }

  /** Leaves the seat: afterwards the copy is that of a pool that nobody has open. No seat can be taken any more. */
  leave(keyspace: Keyspace): void {
    this.#isOpen = false;
    detach(keyspace);
  }

  close(): void {
    for (const { arena } of this.memory.arenas) addon.releaseArena(arena);
    if (this.#isOpen) addon.closeFile(this.memory.controlFd);
    this.#claim?.release();
  }
}

/** The folder of a pool, which this process has for itself alone. Throws PoolError: POOL_MISSING, POOL_BUSY naming the server's process. */
export function claimAlone(pool: string): { readonly directory: string; readonly claim: Claim } {
  const directory = resolve(pool);
  if (!existsSync(directory) || readPoolName(directory) === null) {
    throw new PoolError('POOL_MISSING', directory, 'no pool is there');
  }
  return { directory, claim: claimPool(directory, 'exclusive') };
}

/** Throws PoolError: POOL_MISSING, POOL_BUSY naming the server's process, or what is wrong with the files. */
export function openPoolCopy(pool: string): PoolCopy {
  const { directory, claim } = claimAlone(pool);
  try {
    return copyStore(existingStore(directory), claim);
  } catch (error) {
    claim.release();
    throw error;
  }
}

/** Throws PoolError where nothing is in the memory of the pool in a folder. */
export function existingStore(directory: string): StoreHandle {
  const handle = findStore(directory);
  if (handle !== null) return handle;
  throw new PoolError('POOL_MISSING', directory, 'the pool holds nothing: its DRAM tier is gone, as after a reboot');
}

/**
 * A copy of a pool that the caller has claimed; `close` gives `claim` up. `header`: what the superblock says in the copy, where that is not what the
 * file says. `takesAny`: the capacity file need not say whose it is.
 */
export function copyStore(
  handle: StoreHandle,
  claim: Claim | null,
  { header, takesAny = false }: { readonly header?: Int32Array; readonly takesAny?: boolean } = {},
): PoolCopy {
  const fd = openTier(handle.dramPath, false);
  const arenas: Bytes[] = [];
  try {
    const existing = judgeSuperblock(header ?? readSuperblock(fd), handle.dramPath, addon.fileBytes(fd));
    mapTier(arenas, fd, existing.geometry.dramRoom);
    if (handle.capacityPath !== null) mapCapacity(arenas, handle.capacityPath, existing, takesAny);
    if (header !== undefined) arenas[0].i32.set(header);
    return new PoolCopy(handle, existing, new Memory(arenas, fd), claim);
  } catch (error) {
    for (const { arena } of arenas) addon.releaseArena(arena);
    addon.closeFile(fd);
    throw error;
  }
}

function mapCapacity(arenas: Bytes[], path: string, { geometry, identity }: Existing, takesAny: boolean): void {
  if (!existsSync(path)) throw new PoolError('POOL_CORRUPT', path, 'the capacity file is missing');
  const fd = openTier(path, false);
  try {
    if (!takesAny && capacityIdentity(fd, geometry.capacityRoom) !== identity) {
      throw new PoolError('POOL_CORRUPT', path, "the capacity file is too short or another pool's");
    }
    mapTier(arenas, fd, geometry.capacityRoom);
  } finally {
    addon.closeFile(fd);
  }
}

function mapTier(arenas: Bytes[], fd: number, pages: number): void {
  for (let page = 0; page < pages; page += Page.ARENA_PAGES) {
    const bytes = Math.min(Page.ARENA_PAGES, pages - page) * Page.BYTES;
    const arena = addon.mapArena(fd, page * Page.BYTES, bytes, { copyOnWrite: true });
    arenas.push(Bytes.ofPool(addon.wrapArena(arena), arena));
  }
}
