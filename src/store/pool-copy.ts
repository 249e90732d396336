/**
 * A pool looked at without a server: mapped copy-on-write, so that whatever is repaired or counted in it stays in this process.
 *
 * Owns the exclusive claim on the pool while it is open, and the mappings. Invariant: neither tier's file is changed, also when
 * what died in the pool is mended in the copy.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Bytes } from '../layout/bytes.js';
import { Page } from '../layout/location.js';
import { Participant, ParticipantState } from '../layout/superblock.js';
import { Memory } from '../memory/memory.js';
import { addon } from '../native/addon.js';
import { attachMapped } from './attach.js';
import { capacityIdentity } from './capacity-file.js';
import { type Claim, claimPool } from './claim.js';
import { PoolError } from './errors.js';
import { checkSuperblock, type Existing } from './format.js';
import type { Keyspace } from './keyspace.js';
import { findStore, openTier, type StoreHandle } from './open.js';
import { readPoolName } from './pool-name.js';

export class PoolCopy {
  readonly handle: StoreHandle;
  readonly existing: Existing;
  readonly memory: Memory;
  readonly #claim: Claim;

  constructor(handle: StoreHandle, existing: Existing, memory: Memory, claim: Claim) {
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
    return attachMapped(this.memory, this.handle.dramPath);
  }

  close(): void {
    for (const { arena } of this.memory.arenas) addon.releaseArena(arena);
    addon.closeFile(this.memory.controlFd);
    this.#claim.release();
  }
}

/** Throws PoolError: POOL_MISSING, POOL_BUSY naming the server's process, or what is wrong with the files. */
export function openPoolCopy(pool: string): PoolCopy {
  const directory = resolve(pool);
  if (!existsSync(directory) || readPoolName(directory) === null) {
    throw new PoolError('POOL_MISSING', directory, 'no pool is there');
  }
  const claim = claimPool(directory, 'exclusive');
  try {
    const handle = findStore(directory);
    if (handle === null) {
      throw new PoolError(
        'POOL_MISSING',
        directory,
        'the pool holds nothing: its DRAM tier is gone, as after a reboot',
      );
    }
    return mapCopy(handle, claim);
  } catch (error) {
    claim.release();
    throw error;
  }
}

function mapCopy(handle: StoreHandle, claim: Claim): PoolCopy {
  const fd = openTier(handle.dramPath, false);
  const arenas: Bytes[] = [];
  try {
    const existing = checkSuperblock(fd, handle.dramPath, addon.fileBytes(fd));
    mapTier(arenas, fd, existing.geometry.dramRoom);
    if (handle.capacityPath !== null) mapCapacity(arenas, handle.capacityPath, existing);
    return new PoolCopy(handle, existing, new Memory(arenas, fd), claim);
  } catch (error) {
    for (const { arena } of arenas) addon.releaseArena(arena);
    addon.closeFile(fd);
    throw error;
  }
}

function mapCapacity(arenas: Bytes[], path: string, { geometry, identity }: Existing): void {
  if (!existsSync(path)) throw new PoolError('POOL_CORRUPT', path, 'the capacity file is missing');
  const fd = openTier(path, false);
  try {
    if (capacityIdentity(fd, geometry.capacityRoom) !== identity) {
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
