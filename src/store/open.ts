/**
 * Opening a pool: files, format, and the attachment of one participant.
 *
 * `openStore` makes or checks the two tiers' files and returns a plain-data handle that threads and processes pass around; `attach` maps
 * them and takes a participant's seat. Invariant: a participant's byte in the control file is locked from before its seat is taken until
 * its descriptor closes, however it dies.
 */
import { getRandomValues } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Bytes } from '../layout/bytes.js';
import { Page, pageOffset } from '../layout/location.js';
import {
  ParticipantPage as P,
  PageInfo,
  PageKind,
  Participant,
  ParticipantState,
  Super,
} from '../layout/superblock.js';
import { CapacityLog } from '../memory/capacity-log.js';
import { Held } from '../memory/held.js';
import { Journal } from '../memory/journal.js';
import { Lone } from '../memory/lone.js';
import { Memory } from '../memory/memory.js';
import { NO_PAGE, PagePool } from '../memory/page-pool.js';
import { Pins } from '../memory/pins.js';
import { Slabs } from '../memory/slabs.js';
import { addon, type MapOptions } from '../native/addon.js';
import { makeDirectory, waitForByte } from './claim.js';
import { PoolError } from './errors.js';
import { capacityIdentity, checkSuperblock, countItems, format, type Geometry, planGeometry } from './format.js';
import { Keyspace } from './keyspace.js';
import { POLICY_NAMES, type PolicyName } from './policy.js';
import { makePoolName, readPoolName } from './pool-name.js';
import { collectDead, collectLocked, restoreParticipant } from './repair.js';
import { capacityMapOptions, capacityPath, chooseTier, SHM, type TierChoice, type TierName } from './tier.js';

export interface StoreOptions {
  /** Directory of the pool: the capacity file lives in it. */
  readonly pool: string;
  /** Bytes of each tier, rounded down to whole pages; 0 capacity = DRAM only. */
  readonly dramBytes: number;
  readonly capacityBytes: number;
  readonly policy?: PolicyName;
  /** A power of two. */
  readonly shards?: number;
  /** What the capacity tier is made of (store/tier); default auto. */
  readonly tier?: TierChoice;
  /** Node of the numa tier. */
  readonly numaNode?: number;
  readonly hugePages?: boolean;
}

/** What another thread or process needs to attach: paths and sizes, nothing more. */
export interface StoreHandle {
  readonly dramPath: string;
  /** Absent without a capacity tier. */
  readonly capacityPath: string | null;
  readonly tier: TierName;
  readonly numaNode: number;
  readonly hugePages: boolean;
}

/** Byte of the control file that a formatting process locks. */
const FORMAT_BYTE = 200;

/**
 * Opens a pool, making it when there is none. Throws PoolError: a file of another program or version, a damaged one, no
 * space, no permission.
 */
export function openStore(options: StoreOptions): StoreHandle {
  const directory = resolve(options.pool);
  makeDirectory(directory);
  const capacityBytes = options.tier === 'none' ? 0 : options.capacityBytes;
  const geometry = planGeometry(options.dramBytes, capacityBytes, options.shards ?? DEFAULT_SHARDS);
  const numaNode = options.numaNode ?? 0;
  const { tier } = chooseTier(options.tier ?? 'auto', directory, geometry.capacityPages, numaNode);
  const name = makePoolName(directory);
  const handle: StoreHandle = {
    dramPath: dramPath(directory, name, geometry),
    capacityPath: capacityPath(tier, directory, name),
    tier,
    numaNode,
    hugePages: options.hugePages ?? false,
  };
  const fd = openTier(handle.dramPath, true);
  const isNew = addon.fileBytes(fd) === 0;
  try {
    waitForByte(fd, FORMAT_BYTE, handle.dramPath, FORMAT_WAIT_MS);
    prepare(fd, handle, geometry, options);
    addon.unlockByte(fd, FORMAT_BYTE);
  } catch (error) {
    // What this call has made and could not finish takes no memory afterwards.
    if (isNew) rmSync(handle.dramPath, { force: true });
    throw error;
  } finally {
    addon.closeFile(fd);
  }
  return handle;
}

/**
 * The handle of a pool that exists already, with whatever sizes it has; null when there is none. Throws PoolError for a file that
 * is not a whole pool of this version.
 */
export function findStore(pool: string): StoreHandle | null {
  const directory = resolve(pool);
  if (!existsSync(directory)) return null;
  const name = readPoolName(directory);
  if (name === null) return null;
  const paths = dramPaths(directory, name).filter((path) => existsSync(path));
  if (paths.length === 0) return null;
  const fd = openTier(paths[0], false);
  try {
    const { ready, tier, numaNode } = checkSuperblock(fd, paths[0], addon.fileBytes(fd));
    if (!ready) return null;
    return {
      dramPath: paths[0],
      capacityPath: capacityPath(tier, directory, name),
      tier,
      numaNode,
      hugePages: false,
    };
  } finally {
    addon.closeFile(fd);
  }
}

/** Where the DRAM tier's file may be: in /dev/shm, or beside the capacity file where that is too small. */
function dramPaths(directory: string, name: string): [string, string] {
  return [join(SHM, name), join(directory, 'dram.entresol')];
}

const DEFAULT_SHARDS = 256;

/** The DRAM tier's file: in /dev/shm, named after the pool's directory, so that a restart finds it; else beside the capacity file. */
function dramPath(directory: string, name: string, geometry: Geometry): string {
  const [inMemory, beside] = dramPaths(directory, name);
  if (existsSync(inMemory)) return inMemory;
  if (existsSync(beside)) return beside;
  const room = existsSync(SHM) ? addon.fileSystem(SHM).freeBytes : 0;
  return room >= geometry.dramPages * Page.BYTES ? inMemory : beside;
}

export function openTier(path: string, create: boolean): number {
  try {
    return addon.openFile(path, create, false);
  } catch (error) {
    throw PoolError.from(error, path, 'cannot open the file');
  }
}

const FORMAT_WAIT_MS = 30_000;

function inUse(fd: number): boolean {
  for (let p = 0; p < Participant.MAX; p++) if (addon.isByteLocked(fd, p)) return true;
  return false;
}

/** Formats new files; checks old ones. A pool of other sizes is formatted anew only when it is empty and nobody uses it. */
function prepare(fd: number, handle: StoreHandle, geometry: Geometry, options: StoreOptions): void {
  const bytes = addon.fileBytes(fd);
  if (bytes !== 0) {
    const existing = checkSuperblock(fd, handle.dramPath, bytes);
    if (existing.ready) {
      const isSame = sameGeometry(existing.geometry, geometry) && existing.tier === handle.tier;
      if (isSame && capacityMatches(handle, existing.identity, geometry)) {
        setPolicy(fd, existing.geometry, options);
        return;
      }
      refuseIfUsed(fd, handle, existing.geometry, isSame);
    }
  }
  format(fd, handle, geometry, randomWords(), () => inUse(fd));
  setPolicy(fd, geometry, options);
}

function refuseIfUsed(fd: number, handle: StoreHandle, has: Geometry, isSame: boolean): void {
  const sizes = `${has.dramPages} MiB of DRAM and ${has.capacityPages} MiB of capacity`;
  if (inUse(fd)) {
    throw new PoolError(
      'POOL_BUSY',
      handle.dramPath,
      `the pool is in use with ${sizes}: stop its users, or ask for these sizes`,
    );
  }
  const items = countItems(fd, has);
  if (items === 0) return;
  if (isSame) {
    throw new PoolError(
      'POOL_CORRUPT',
      handle.capacityPath ?? handle.dramPath,
      `the capacity file is missing, too short or another pool's, while ${handle.dramPath} holds ${items} items; put it back, or remove both to begin with an empty pool`,
    );
  }
  throw new PoolError(
    'POOL_SIZE',
    handle.dramPath,
    `the pool holds ${items} items in ${sizes} (tier and number of shards are fixed too); ask for these sizes, or remove the file to begin with an empty pool`,
  );
}

function sameGeometry(a: Geometry, b: Geometry): boolean {
  return a.dramPages === b.dramPages && a.capacityPages === b.capacityPages && a.shardShift === b.shardShift;
}

/** True when the capacity file is the one that the DRAM tier's locations mean. */
function capacityMatches(handle: StoreHandle, identity: string, geometry: Geometry): boolean {
  if (handle.capacityPath === null) return true;
  if (!existsSync(handle.capacityPath)) return false;
  const fd = openTier(handle.capacityPath, false);
  try {
    return capacityIdentity(fd, geometry.capacityPages) === identity;
  } finally {
    addon.closeFile(fd);
  }
}

function randomWords(): Int32Array {
  return getRandomValues(new Int32Array(6));
}

function setPolicy(fd: number, geometry: Geometry, options: StoreOptions): void {
  if (options.policy === undefined) return;
  const arena = addon.mapArena(fd, 0, Math.min(geometry.dramPages, Page.ARENA_PAGES) * Page.BYTES, {});
  new Int32Array(addon.wrapArena(arena))[Super.POLICY_WORD] = POLICY_NAMES.indexOf(options.policy);
  addon.releaseArena(arena);
}

/** Arena ranges mapped in this thread: an ArrayBuffer may wrap an address once a thread. */
const wrapped = new Map<number, Bytes>();

function mapBytes(fd: number, offset: number, bytes: number, options: MapOptions): Bytes {
  const arena = addon.mapArena(fd, offset, bytes, options);
  let range = wrapped.get(arena);
  if (range === undefined) {
    range = new Bytes(addon.wrapArena(arena), arena);
    wrapped.set(arena, range);
  }
  return range;
}

/** Maps the pool into this thread and takes a seat. Throws PoolError when all seats are taken. */
export function attach(handle: StoreHandle): Keyspace {
  const fd = openTier(handle.dramPath, false);
  addon.closeAtExit(fd);
  try {
    return attachTo(handle, fd);
  } catch (error) {
    addon.closeFile(fd);
    throw error;
  }
}

function attachTo(handle: StoreHandle, fd: number): Keyspace {
  const { geometry, identity, ready } = checkSuperblock(fd, handle.dramPath, addon.fileBytes(fd));
  if (!ready) throw new PoolError('POOL_BUSY', handle.dramPath, 'the pool is being prepared, or that was cut short');
  const arenas: Bytes[] = [];
  // Mapped through a descriptor of its own: a mapping keeps its open file alive, and with it the byte locks, beyond the close by
  // which a participant's death in a living process is recognised.
  const mapFd = openTier(handle.dramPath, false);
  try {
    mapTier(arenas, mapFd, geometry.dramPages, { hugePages: handle.hugePages });
  } finally {
    addon.closeFile(mapFd);
  }
  if (handle.capacityPath !== null) {
    const capacityFd = openTier(handle.capacityPath, false);
    const options = capacityMapOptions(handle.tier, handle.numaNode, handle.hugePages);
    mapTier(arenas, capacityFd, geometry.capacityPages, options);
    addon.closeFile(capacityFd);
  }
  const memory = new Memory(arenas, fd);
  const seat = takeSeat(memory, fd, handle.dramPath);
  // With the seat's byte locked nobody formats the pool any more: is it still the one that was mapped?
  const now = checkSuperblock(fd, handle.dramPath, addon.fileBytes(fd));
  if (!now.ready || now.identity !== identity) {
    throw new PoolError('POOL_BUSY', handle.dramPath, 'the pool is being prepared anew by another process');
  }
  return sit(memory, seat, handle.dramPath);
}

function mapTier(arenas: Bytes[], fd: number, pages: number, options: MapOptions): void {
  for (let page = 0; page < pages; page += Page.ARENA_PAGES) {
    const count = Math.min(Page.ARENA_PAGES, pages - page);
    arenas.push(mapBytes(fd, page * Page.BYTES, count * Page.BYTES, options));
  }
}

/** A seat in memory that is mapped already. */
export function attachMapped(memory: Memory, path: string): Keyspace {
  return sit(memory, takeSeat(memory, memory.controlFd, path), path);
}

/** Locks the byte of a seat that nobody lives in. A dead participant's seat is left to the repair. */
function takeSeat(memory: Memory, fd: number, path: string): number {
  for (let p = 0; p < Participant.MAX; p++) {
    if (!addon.lockByte(fd, p)) continue;
    if (memory.ctl[memory.participantWord(p) + Participant.STATE_WORD] === ParticipantState.FREE) return p;
    addon.unlockByte(fd, p);
  }
  throw new PoolError('POOL_FULL', path, `all ${Participant.MAX} seats of the pool are taken`);
}

function sit(memory: Memory, seat: number, path: string): Keyspace {
  const { ctl } = memory;
  memory.lockMark = seat + 1;
  memory.self = seat;
  const at = memory.participantWord(seat);
  ctl[at + Participant.PAGE_WORD] = NO_PAGE;
  ctl[at + Participant.PID_WORD] = process.pid;
  ctl[at + Participant.IN_BATCH_WORD] = 0;
  ctl[at + Participant.UNBATCHED_WORD] = 0;
  ctl[at + Participant.INCARNATION_WORD] = getRandomValues(new Int32Array(1))[0];
  // Before this seat can mark a batch: whoever closes the gate looks at the seats below the bound only.
  for (let seats = Atomics.load(ctl, Super.SEATS_WORD); seats < seat + 1; ) {
    const seen = Atomics.compareExchange(ctl, Super.SEATS_WORD, seats, seat + 1);
    if (seen === seats) break;
    seats = seen;
  }
  // From here a death is found and mended: what it has taken by then is marked as its own.
  Atomics.store(ctl, at + Participant.STATE_WORD, ParticipantState.ARRIVING);
  Lone.end(memory, (dead) => restoreParticipant(memory, dead));
  const page = takeFirstPage(memory);
  if (page === NO_PAGE) {
    Atomics.store(ctl, at + Participant.STATE_WORD, ParticipantState.FREE);
    throw new PoolError('POOL_FULL', path, 'the DRAM tier has no page left for one more participant');
  }
  ctl[at + Participant.PAGE_WORD] = page;
  ctl[memory.pageInfo(page)] = PageKind.PARTICIPANT;
  memory.become(seat);
  Atomics.store(ctl, at + Participant.STATE_WORD, ParticipantState.ACTIVE);
  const journal = new Journal(memory, memory.own, memory.ownBase);
  const held = new Held(memory);
  const pool = new PagePool(memory, journal);
  const slabs = new Slabs(memory, journal, held, pool);
  const log = new CapacityLog(memory, pool);
  const keyspace = new Keyspace({ memory, journal, held, pool, slabs, log, pins: new Pins(memory, journal, held) });
  memory.repairDead = (dead) => keyspace.restoreDead(dead);
  // In a batch: what is mended lies in others' shards, where an exclusive participant would not expect it.
  keyspace.enterBatch();
  collectDead(keyspace);
  keyspace.leaveBatch();
  return keyspace;
}

/** A cleared DRAM page for a participant, which cannot journal yet: the page's mark alone says whose it is. */
function takeFirstPage(memory: Memory): number {
  const { ctl } = memory;
  memory.lock(Super.PAGE_LOCK_WORD);
  let page = NO_PAGE;
  for (let p = 1; p < memory.dramPages && page === NO_PAGE; p++) if (memory.pageKind(p) === PageKind.FREE) page = p;
  if (page !== NO_PAGE) {
    ctl[memory.pageInfo(page)] = PageKind.TAKEN | (memory.lockMark << 16);
    ctl[Super.DRAM_FREE_WORD]--;
  }
  memory.unlock(Super.PAGE_LOCK_WORD);
  if (page === NO_PAGE) return NO_PAGE;
  const first = pageOffset(page) >>> 2;
  memory.arenas[page >>> Page.ARENA_SHIFT].i32.fill(0, first, first + P.UNDO_WORD);
  for (let i = 1; i < PageInfo.WORDS; i++) ctl[memory.pageInfo(page) + i] = 0;
  return page;
}

/** Gives everything back and leaves the seat. The keyspace must not be used afterwards. */
export function detach(keyspace: Keyspace): void {
  const { memory } = keyspace;
  keyspace.dropStaged();
  keyspace.gate.lone.resign();
  // As after a death, but by itself: parked items, pins, spare chunks, the open log page, its own page.
  Atomics.store(memory.ctl, memory.participantWord(memory.self) + Participant.STATE_WORD, ParticipantState.RESTORED);
  keyspace.enterBatch();
  collectLocked(keyspace, memory.self);
  keyspace.leaveBatch();
  addon.closeFile(memory.controlFd);
}
