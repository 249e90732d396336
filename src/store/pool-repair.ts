/**
 * Repairs a damaged pool, without a server: `entresol pool repair`.
 *
 * A volatile pool's index, tables and counts are made anew around what is sound in it (store/salvage), in a copy of the mapping, which is walked, written
 * beside the DRAM tier's file and takes its place. Of a warm or durable pool the medium has what a reboot keeps, with a check word on
 * each record: its DRAM tier is given up, and the next start rebuilds it from there. Invariant: until the end the damaged pool is what it was, but for zeros behind the
 * end of files that were cut short; in the capacity tier nothing changes but headers of dead records, which lead a walk through a log page again.
 */
import { existsSync, fsyncSync, ftruncateSync, renameSync, rmSync, writeSync } from 'node:fs';
import { Item } from '../layout/item.js';
import { locationOffset, Page, pageOffset } from '../layout/location.js';
import { Durability, PageKind, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { addon } from '../native/addon.js';
import { adoptCapacity, capacityIdentity, lengthenCapacity, readWarmFile } from './capacity-file.js';
import { PoolError } from './errors.js';
import { checkWord, type Geometry, judgeSuperblock, readSuperblock } from './format.js';
import { checkInvariants } from './invariants.js';
import { findDram, inUse, openTier, type StoreHandle } from './open.js';
import { claimAlone, copyStore, existingStore, type PoolCopy } from './pool-copy.js';
import { readPoolName } from './pool-name.js';
import { Salvage } from './salvage.js';
import { undoChanges } from './salvage-changes.js';
import { rebuildIndex } from './salvage-index.js';
import { mendDatabases, mendSizes, rebuildTables } from './salvage-tables.js';

export interface Repair {
  /**
   * sound: there was nothing to do. repaired: it is whole again. given-up: the DRAM tier is gone, the next start rebuilds it from the medium.
   * damaged: nothing was changed, `problem` says why.
   */
  readonly state: 'sound' | 'repaired' | 'given-up' | 'damaged';
  /** What was found first. */
  readonly problem: string;
  readonly items: number;
  /** Entries of the index that led to no sound item; collections that did not hold together; pieces of memory that nothing led to. */
  readonly torn: number;
  readonly broken: number;
  readonly orphans: number;
}

const NOTHING = { items: 0, torn: 0, broken: 0, orphans: 0 };
const DRAFT = '.repaired';

/** `hasLog`: the pool's folder holds an effect log. Throws PoolError: no pool, one in use, one whose header is damaged. */
export function repairPool(pool: string, hasLog: boolean): Repair {
  const { directory, claim } = claimAlone(pool);
  try {
    const path = findDram(directory, readPoolName(directory) ?? '');
    const cut = path === null ? '' : lengthenDram(path);
    const handle = existingStore(directory);
    const header = headerOf(handle.dramPath);
    const lost = capacityLoss(handle, header);
    const seen = cut === '' && lost === '' ? look(handle) : { items: 0, problem: cut === '' ? lost : cut };
    if (seen.problem === '') return { ...NOTHING, ...seen, state: 'sound' };
    return header.durability === Durability.VOLATILE
      ? salvage(handle, header, seen.problem, lost !== '')
      : giveUp(handle, header, seen.problem, lost !== '', hasLog);
  } finally {
    claim.release();
  }
}

/** What was cut off the DRAM tier's file is zeros again; returns what was missing, in words. Throws PoolError where a process has it open. */
function lengthenDram(path: string): string {
  const fd = openTier(path, false);
  try {
    if (inUse(fd)) throw new PoolError('POOL_BUSY', path, 'a process has the pool open: stop it first');
    const words = readSuperblock(fd);
    const bytes = addon.fileBytes(fd);
    const whole = words[Super.DRAM_ROOM_WORD] * Page.BYTES;
    const isOurs = words[Super.MAGIC_WORD] === Super.MAGIC && words[Super.VERSION_WORD] === Super.VERSION;
    if (!isOurs || words[Super.CHECK_WORD] !== checkWord(words) || bytes >= whole) return '';
    ftruncateSync(fd, whole);
    return `${path} has ${bytes} bytes, its header says ${whole}`;
  } finally {
    addon.closeFile(fd);
  }
}

interface Header extends Geometry {
  readonly identity: string;
  /** Identity and hash seed, as `format` takes them. */
  readonly random: Int32Array;
}

function headerOf(path: string): Header {
  const fd = openTier(path, false);
  try {
    const words = readSuperblock(fd);
    const { geometry, identity } = judgeSuperblock(words, path, addon.fileBytes(fd));
    const random = new Int32Array(6);
    random.set(words.subarray(Super.IDENTITY_WORD, Super.IDENTITY_WORD + 4));
    random.set([words[Super.SEED_LOW_WORD], words[Super.SEED_HIGH_WORD]], 4);
    return { ...geometry, identity, random };
  } finally {
    addon.closeFile(fd);
  }
}

/** What is wrong with the capacity file as a whole, in words; '' = nothing. */
function capacityLoss({ capacityPath }: StoreHandle, { identity, capacityRoom }: Header): string {
  if (capacityPath === null) return '';
  if (!existsSync(capacityPath)) return `${capacityPath} is missing`;
  const fd = openTier(capacityPath, false);
  try {
    return capacityIdentity(fd, capacityRoom) === identity ? '' : `${capacityPath} is too short or another pool's`;
  } finally {
    addon.closeFile(fd);
  }
}

/** The first thing that does not hold; '' = it is sound. */
function look(handle: StoreHandle): { items: number; problem: string } {
  const copy = copyStore(handle, null);
  try {
    return { items: checkInvariants(copy.attach()), problem: '' };
  } catch (error) {
    return { items: 0, problem: messageOf(error) };
  } finally {
    copy.close();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function giveUp(handle: StoreHandle, header: Header, problem: string, isLost: boolean, hasLog: boolean): Repair {
  const { dramPath, capacityPath } = handle;
  const { durability } = header;
  const survives = durability === Durability.DURABLE ? hasLog : capacityPath !== null && isReadable(capacityPath);
  if (!survives) {
    const wanted =
      durability === Durability.DURABLE ? 'its log is gone' : 'what its capacity file keeps for that is damaged';
    return {
      ...NOTHING,
      state: 'damaged',
      problem: `${problem}; and it cannot be rebuilt as after a reboot: ${wanted}`,
    };
  }
  // What a durable pool has in its capacity tier is in its log, too: the next start shall know the file for its own.
  if (isLost && capacityPath !== null) {
    lengthenCapacity(capacityPath, header.capacityPages, header.capacityRoom);
    adoptCapacity(capacityPath, header.capacityRoom, header.random, durability);
  }
  rmSync(dramPath);
  return { ...NOTHING, state: 'given-up', problem };
}

function isReadable(path: string): boolean {
  if (!existsSync(path)) return false;
  const fd = openTier(path, false);
  try {
    return readWarmFile(fd, path, 0) !== null;
  } finally {
    addon.closeFile(fd);
  }
}

function salvage(handle: StoreHandle, header: Header, problem: string, isLost: boolean): Repair {
  const { capacityPath } = handle;
  if (isLost && capacityPath !== null) lengthenCapacity(capacityPath, header.capacityPages, header.capacityRoom);
  const copy = mended(handle);
  try {
    const { memory } = copy;
    mendSizes(memory);
    const unknown = undoChanges(memory);
    mendDatabases(memory);
    const found = new Salvage(memory, (shard) => unknown.has(shard));
    found.run();
    const { fillers, doubtful, orphans } = rebuildTables(memory, found);
    const keyspace = copy.attach();
    const items = rebuildIndex(keyspace, found);
    checkInvariants(keyspace);
    copy.leave(keyspace);
    mendCapacity(handle, memory, fillers, doubtful);
    replaceDram(handle.dramPath, memory);
    if (isLost && capacityPath !== null)
      adoptCapacity(capacityPath, header.capacityRoom, header.random, header.durability);
    return { state: 'repaired', problem, items, torn: found.torn, broken: found.broken, orphans };
  } catch (error) {
    if (error instanceof PoolError) throw error;
    return { ...NOTHING, state: 'damaged', problem: `${problem}; and it could not be repaired: ${messageOf(error)}` };
  } finally {
    copy.close();
  }
}

/** A copy in which what died in the pool is mended, as far as the damage lets it. */
function mended(handle: StoreHandle): PoolCopy {
  const copy = copyStore(handle, null, { takesAny: true });
  try {
    copy.attach();
    return copy;
  } catch {
    // Half mended, it may be worse than it was.
    copy.close();
    return copyStore(handle, null, { takesAny: true });
  }
}

function mendCapacity(
  { capacityPath }: StoreHandle,
  memory: Memory,
  fillers: readonly { readonly page: number; readonly unit: number }[],
  doubtful: readonly number[],
): void {
  if (capacityPath === null) return;
  const fd = openTier(capacityPath, false);
  try {
    for (const page of doubtful) reserve(fd, capacityPath, page - memory.capacityBase, 1);
    for (const { page, unit } of fillers) {
      const { u8 } = memory.arenas[page >>> Page.ARENA_SHIFT];
      const at = (page - memory.capacityBase) * Page.BYTES + unit * Page.UNIT_BYTES;
      writeSync(fd, u8, locationOffset(page, unit), Item.HEADER_BYTES, at);
    }
  } finally {
    addon.closeFile(fd);
  }
}

function reserve(fd: number, path: string, page: number, pages: number): void {
  try {
    addon.reserve(fd, page * Page.BYTES, pages * Page.BYTES);
  } catch (error) {
    throw PoolError.from(error, path, `cannot reserve ${pages} MiB`);
  }
}

/** Writes the DRAM tier beside its file, with memory behind all pages but absent ones, and lets that take its place. */
function replaceDram(path: string, memory: Memory): void {
  const draft = path + DRAFT;
  rmSync(draft, { force: true });
  const fd = openTier(draft, true);
  try {
    for (let page = 0; page < memory.dramPages; page++) {
      const kind = memory.pageKind(page);
      if (kind === PageKind.ABSENT) continue;
      reserve(fd, draft, page, 1);
      if (kind === PageKind.FREE) continue;
      const { u8 } = memory.arenas[page >>> Page.ARENA_SHIFT];
      const first = pageOffset(page);
      for (let done = 0; done < Page.BYTES; ) {
        done += writeSync(fd, u8, first + done, Page.BYTES - done, page * Page.BYTES + done);
      }
    }
    ftruncateSync(fd, memory.dramRoom * Page.BYTES);
    fsyncSync(fd);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    addon.closeFile(fd);
  }
}
