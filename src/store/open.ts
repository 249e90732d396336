/**
 * Opening a pool: its two tiers' files are made, or checked.
 *
 * `openStore` returns a plain-data handle that threads and processes pass around and attach to (attach.ts). It is all of the store that the
 * main thread of a server loads. Invariant: a pool that holds data, or is in use, is never formatted.
 */
import { existsSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type DaxProbe, probeDax } from '../devices/dax-probe.js';
import type { PresetName } from '../devices/model/presets.js';
import { Bytes } from '../layout/bytes.js';
import { Page } from '../layout/location.js';
import { Durability, Participant, Super } from '../layout/superblock.js';
import { Memory } from '../memory/memory.js';
import { addon } from '../native/addon.js';
import { capacityIdentity, readWarmFile, type WarmFile } from './capacity-file.js';
import { makeDirectory, waitForByte } from './claim.js';
import { PoolError } from './errors.js';
import { checkSuperblock, countItems, type Existing, format, type Geometry, planGeometry } from './format.js';
import { POLICY_NAMES, type PolicyName } from './policy.js';
import { makePoolName, readPoolName } from './pool-name.js';
import { randomWords } from './random.js';
import { findSizeProblem, type SizeProblem } from './resize-check.js';
import { capacityPath, chooseTier, SHM, type TierChoice, type TierDecision, type TierName } from './tier.js';

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
  /** Device whose time accesses to the capacity tier are charged (devices/model); default none. */
  readonly emulate?: PresetName;
  /** How many times its size each tier of a new pool can become. Default 4. */
  readonly growth?: number;
  /** A pool of other sizes is taken as it is where it can get these without losing anything (setTargets); else it is refused. */
  readonly mayResize?: boolean;
  /** What survives a reboot of the machine: nothing, what lies in the capacity tier, or (a server writes the log) all. Default volatile. */
  readonly durability?: 'volatile' | 'warm' | 'durable';
}

/** What another thread or process needs to attach: paths and sizes, nothing more. */
export interface StoreHandle {
  readonly dramPath: string;
  /** Absent without a capacity tier. */
  readonly capacityPath: string | null;
  readonly tier: TierName;
  readonly numaNode: number;
  readonly hugePages: boolean;
  readonly emulate?: PresetName;
  /** It has just been made: whatever it held before is gone. */
  readonly isNew: boolean;
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
  const durability = DURABILITIES[options.durability ?? 'volatile'];
  const geometry = planGeometry(
    options.dramBytes,
    capacityBytes,
    options.shards ?? DEFAULT_SHARDS,
    durability,
    options.growth ?? DEFAULT_GROWTH,
  );
  const numaNode = options.numaNode ?? 0;
  const { tier } = decideTier(options.tier ?? 'auto', directory, geometry.capacityPages, numaNode);
  const name = makePoolName(directory);
  const handle: StoreHandle = {
    dramPath: dramPath(directory, name, geometry),
    capacityPath: capacityPath(tier, directory, name),
    tier,
    numaNode,
    hugePages: options.hugePages ?? false,
    emulate: options.emulate,
    isNew: false,
  };
  const fd = openTier(handle.dramPath, true);
  const isNew = addon.fileBytes(fd) === 0;
  try {
    waitForByte(fd, FORMAT_BYTE, handle.dramPath, FORMAT_WAIT_MS);
    const isFormatted = prepare(fd, handle, geometry, options);
    addon.unlockByte(fd, FORMAT_BYTE);
    return { ...handle, isNew: isFormatted };
  } catch (error) {
    // What this call has made and could not finish takes no memory afterwards.
    if (isNew) rmSync(handle.dramPath, { force: true });
    throw error;
  } finally {
    addon.closeFile(fd);
  }
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
  const path = findDram(directory, name);
  if (path === null) return null;
  const fd = openTier(path, false);
  try {
    const existing = checkSuperblock(fd, path, addon.fileBytes(fd));
    return existing.ready ? handleOf(directory, name, path, existing) : null;
  } finally {
    addon.closeFile(fd);
  }
}

/** The DRAM tier's file of a pool; null when there is none, as after a reboot. */
export function findDram(directory: string, name: string): string | null {
  return dramPaths(directory, name).find((path) => existsSync(path)) ?? null;
}

/** The handle of a pool whose DRAM tier lies at `path`, by what its superblock says. */
export function handleOf(directory: string, name: string, path: string, { tier, numaNode }: Existing): StoreHandle {
  return {
    dramPath: path,
    capacityPath: capacityPath(tier, directory, name),
    tier,
    numaNode,
    hugePages: false,
    isNew: false,
  };
}

/**
 * chooseTier for a directory that may hold a pool: with auto, one that holds data keeps the tier that it was made with, also when the
 * folder has become DAX since.
 */
export function decideTier(
  choice: TierChoice,
  directory: string,
  capacityPages: number,
  numaNode: number,
  dax: DaxProbe = probeDax(directory),
): TierDecision {
  const made = choice === 'auto' && capacityPages > 0 ? tierInUse(directory) : null;
  if (made === null) return chooseTier(choice, directory, capacityPages, numaNode, dax);
  const { tier } = chooseTier(made, directory, capacityPages, numaNode, dax);
  return { tier, reason: 'the pool was made so' };
}

/** The tier of a pool that holds data, if it is one that auto can choose. */
function tierInUse(directory: string): 'file' | 'dax' | null {
  const handle = findStore(directory);
  if (handle === null || (handle.tier !== 'file' && handle.tier !== 'dax')) return null;
  const fd = openTier(handle.dramPath, false);
  try {
    const { ready, geometry } = checkSuperblock(fd, handle.dramPath, addon.fileBytes(fd));
    return ready && countItems(fd, geometry) > 0 ? handle.tier : null;
  } finally {
    addon.closeFile(fd);
  }
}

/** Where the DRAM tier's file may be: in /dev/shm, or beside the capacity file where that is too small. */
function dramPaths(directory: string, name: string): [string, string] {
  return [join(SHM, name), join(directory, 'dram.entresol')];
}

const DEFAULT_SHARDS = 256;
const DEFAULT_GROWTH = 4;
const DURABILITIES = { volatile: Durability.VOLATILE, warm: Durability.WARM, durable: Durability.DURABLE } as const;

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
/** The identity, the seed of the hash, and the epoch of the log. */
const RANDOM_WORDS = 7;

/** A participant lives in the pool. */
export function inUse(fd: number): boolean {
  for (let p = 0; p < Participant.MAX; p++) if (addon.isByteLocked(fd, p)) return true;
  return false;
}

/** Formats new files: true; checks old ones. A pool of other sizes is formatted anew only when it is empty and nobody uses it. */
function prepare(fd: number, handle: StoreHandle, geometry: Geometry, options: StoreOptions): boolean {
  const bytes = addon.fileBytes(fd);
  if (bytes !== 0) {
    const existing = checkSuperblock(fd, handle.dramPath, bytes);
    if (existing.ready) {
      const isKin = sameKind(existing.geometry, geometry) && existing.tier === handle.tier;
      const isWhole = isKin && capacityMatches(handle, existing.identity, existing.geometry);
      const isSame = isKin && sameSizes(existing.geometry, geometry);
      if (isWhole && (isSame || (options.mayResize === true && canResize(fd, handle, existing.geometry, geometry)))) {
        setPolicy(fd, existing.geometry, options);
        return false;
      }
      refuseIfUsed(fd, handle, existing.geometry, isSame);
    }
  }
  const warm = geometry.durability === Durability.WARM ? findWarm(handle, geometry) : null;
  const made = warm === null ? geometry : { ...geometry, capacityRoom: warm.room };
  format(fd, handle, made, randomWords(RANDOM_WORDS), warm, () => inUse(fd));
  setPolicy(fd, made, options);
  // One that is to be rebuilt after a reboot is none to load a file of older data into.
  return warm === null;
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
    `the pool holds ${items} items in ${sizes} (tier, durability and number of shards are fixed too); ask for these sizes, or remove the file to begin with an empty pool`,
  );
}

function sameKind(a: Geometry, b: Geometry): boolean {
  return a.shardShift === b.shardShift && a.durability === b.durability;
}

function sameSizes(a: Geometry, b: Geometry): boolean {
  return a.dramPages === b.dramPages && a.capacityPages === b.capacityPages;
}

/**
 * True for a pool in use, or with data, that can get the sizes of `wanted`. Throws PoolError when something speaks against them; what is
 * there is not evicted by a start: it may have been begun with a wrong option.
 */
function canResize(fd: number, handle: StoreHandle, has: Geometry, wanted: Geometry): boolean {
  if (!inUse(fd) && countItems(fd, has) === 0) return false;
  const problem = checkSizes(handle, wanted.dramPages * Page.BYTES, wanted.capacityPages * Page.BYTES, true);
  if (problem === null) return true;
  const asked = `${wanted.dramPages} MiB of DRAM and ${wanted.capacityPages} MiB of capacity`;
  const sizes = `${has.dramPages} and ${has.capacityPages} MiB`;
  throw new PoolError(
    'POOL_SIZE',
    handle.dramPath,
    `the pool has ${sizes} and cannot get ${asked}: ${problem.setting}: ${problem.reason}. Ask for the sizes that it has; CONFIG SET ${problem.setting} can change them then`,
  );
}

/** What speaks against these sizes, for whoever has no seat in the pool (see findSizeProblem). */
export function checkSizes(
  handle: StoreHandle,
  dramBytes: number,
  capacityBytes: number,
  mustKeep = false,
): SizeProblem | null {
  const fd = openTier(handle.dramPath, false);
  try {
    const { geometry } = checkSuperblock(fd, handle.dramPath, addon.fileBytes(fd));
    const arena = addon.mapArena(fd, 0, Math.min(geometry.dramRoom, Page.ARENA_PAGES) * Page.BYTES, {});
    try {
      const memory = new Memory([new Bytes(addon.wrapArena(arena), arena)], fd);
      memory.dramPath = handle.dramPath;
      memory.capacityPath = handle.capacityPath ?? '';
      return findSizeProblem(memory, dramBytes, capacityBytes, mustKeep);
    } finally {
      addon.releaseArena(arena);
    }
  } finally {
    addon.closeFile(fd);
  }
}

/** What the capacity file holds from before a reboot; null = nothing that can be used. */
function findWarm({ capacityPath: path }: StoreHandle, geometry: Geometry): WarmFile | null {
  if (path === null || !existsSync(path)) return null;
  const fd = openTier(path, false);
  try {
    return readWarmFile(fd, path, geometry.capacityPages);
  } finally {
    addon.closeFile(fd);
  }
}

/** True when the capacity file is the one that the DRAM tier's locations mean. */
function capacityMatches(handle: StoreHandle, identity: string, { capacityRoom }: Geometry): boolean {
  if (handle.capacityPath === null) return true;
  if (!existsSync(handle.capacityPath)) return false;
  const fd = openTier(handle.capacityPath, false);
  try {
    return capacityIdentity(fd, capacityRoom) === identity;
  } finally {
    addon.closeFile(fd);
  }
}

function setPolicy(fd: number, geometry: Geometry, options: StoreOptions): void {
  if (options.policy === undefined) return;
  const arena = addon.mapArena(fd, 0, Math.min(geometry.dramPages, Page.ARENA_PAGES) * Page.BYTES, {});
  new Int32Array(addon.wrapArena(arena))[Super.POLICY_WORD] = POLICY_NAMES.indexOf(options.policy);
  addon.releaseArena(arena);
}
