/**
 * The attachment of one participant to an open pool: its mapping, its seat, its keyspace.
 *
 * Invariant: a participant's byte in the control file is locked from before its seat is taken until its descriptor closes, however it dies.
 */
import { DeviceCharge } from '../devices/model/charge.js';
import { PRESETS } from '../devices/model/presets.js';
import { Bytes } from '../layout/bytes.js';
import { Ring } from '../layout/effects.js';
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
import { PoolError } from './errors.js';
import { checkSuperblock } from './format.js';
import { Keyspace } from './keyspace.js';
import { openTier, type StoreHandle } from './open.js';
import { randomWords } from './random.js';
import { collectDead, collectLocked, restoreParticipant } from './repair.js';
import { capacityMapOptions } from './tier.js';

/** Arena ranges mapped in this thread: an ArrayBuffer may wrap an address once a thread. */
const wrapped = new Map<number, Bytes>();

function mapBytes(fd: number, offset: number, bytes: number, options: MapOptions): Bytes {
  const arena = addon.mapArena(fd, offset, bytes, options);
  let range = wrapped.get(arena);
  if (range === undefined) {
    range = Bytes.ofPool(addon.wrapArena(arena), arena);
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
    mapTier(arenas, mapFd, geometry.dramRoom, { hugePages: handle.hugePages });
  } finally {
    addon.closeFile(mapFd);
  }
  if (handle.capacityPath !== null) {
    const capacityFd = openTier(handle.capacityPath, false);
    const options = capacityMapOptions(handle.tier, handle.numaNode, handle.hugePages);
    mapTier(arenas, capacityFd, geometry.capacityRoom, options);
    addon.closeFile(capacityFd);
  }
  const memory = new Memory(arenas, fd);
  if (handle.emulate !== undefined) memory.charge = new DeviceCharge(PRESETS[handle.emulate]);
  memory.dramPath = handle.dramPath;
  memory.capacityPath = handle.capacityPath ?? '';
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
  ctl[at + Participant.INCARNATION_WORD] = randomWords(1)[0];
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
  if (memory.isDurable) openRing(memory, pool, path);
  const keyspace = new Keyspace({ memory, journal, held, pool, slabs, log, pins: new Pins(memory, journal, held) });
  memory.repairDead = (dead) => restoreParticipant(memory, dead);
  // In a batch: what is mended lies in others' shards, where an exclusive participant would not expect it.
  keyspace.enterBatch();
  collectDead(keyspace);
  keyspace.leaveBatch();
  return keyspace;
}

/** Gives the seat a ring for its effects, if it has none from an earlier owner. */
function openRing(memory: Memory, pool: PagePool, path: string): void {
  const word = memory.participantWord(memory.self) + Participant.RING_WORD;
  if (memory.ctl[word] !== NO_PAGE) return;
  const page = pool.takeDram(PageKind.TAKEN, 0, 0);
  if (page === NO_PAGE) {
    throw new PoolError('POOL_FULL', path, 'the DRAM tier has no page left for the effects of one more participant');
  }
  const first = pageOffset(page) >>> 2;
  memory.arenas[page >>> Page.ARENA_SHIFT].i32.fill(0, first, first + (Ring.DATA_BYTE >>> 2));
  memory.ctl[memory.pageInfo(page)] = PageKind.EFFECTS;
  Atomics.store(memory.ctl, word, page);
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
