/**
 * Brings a pool of the layout version before to the present one, without a server: `entresol pool upgrade`.
 *
 * What the new version would make of it is walked first, in a copy of the mapping, so that only a pool that is sound as one of the new
 * version becomes one. Then the trailer of the capacity file and the superblock are written, each in one piece, in this order. Invariant: whenever it is
 * cut off, the pool is one of the old version or one of the new; begun again, it goes on. Nothing is copied, so nothing of the pool is lost:
 * versions, uses, and what a warm or durable pool keeps over a reboot stay what they were.
 */
import { fsyncSync, statSync, writeSync } from 'node:fs';
import { Page } from '../layout/location.js';
import { Super } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { renewTrailer } from './capacity-file.js';
import { PoolError } from './errors.js';
import { judgeSuperblock, readSuperblock } from './format.js';
import { checkInvariants } from './invariants.js';
import { findDram, handleOf, inUse, openTier, type StoreHandle } from './open.js';
import { claimAlone, copyStore } from './pool-copy.js';
import { readPoolName } from './pool-name.js';
import { capacityPath } from './tier.js';
import { isWholeOld, OLD_VERSION, upgradedSuperblock } from './version-3.js';

export interface Upgrade {
  /** 'damaged': `problem` says why, and nothing was changed; 'kept': it had the present version. */
  readonly state: 'upgraded' | 'kept' | 'damaged';
  readonly from: number;
  readonly to: number;
  readonly problem: string;
  /** Items in it; null = its memory is gone, and what the capacity tier keeps of them comes back with the next start. */
  readonly items: number | null;
  /** Process ids of participants that ended without leaving: the next start mends what they left. */
  readonly deaths: readonly number[];
  /** Bytes that the tiers have, and can become. */
  readonly dramBytes: number;
  readonly capacityBytes: number;
}

const NOTHING = { problem: '', items: null, deaths: [], dramBytes: 0, capacityBytes: 0 };

/** Throws PoolError: no pool, one in use, one of a version that is neither the present one nor that before, one that is damaged. */
export function upgradePool(pool: string): Upgrade {
  const { directory, claim } = claimAlone(pool);
  try {
    const name = readPoolName(directory) ?? '';
    const path = findDram(directory, name);
    const header = path === null ? null : readHeader(path);
    if (path === null || header === null) return upgradeRest(directory);
    const from = header[Super.VERSION_WORD];
    if (from === Super.VERSION) return { ...NOTHING, state: 'kept', from, to: from };
    const upgraded = upgradedSuperblock(header);
    const existing = judgeSuperblock(upgraded, path, statSync(path).size);
    return upgradeWhole(handleOf(directory, name, path, existing), upgraded);
  } finally {
    claim.release();
  }
}

/** The superblock of a pool of either version; null when formatting was cut short: it holds nothing. */
function readHeader(path: string): Int32Array | null {
  const fd = openTier(path, false);
  try {
    const words = readSuperblock(fd);
    const version = words[Super.VERSION_WORD];
    const isOurs = words[Super.MAGIC_WORD] === Super.MAGIC && words[Super.READY_WORD] === 1;
    if (isOurs && version !== Super.VERSION && version !== OLD_VERSION) throw otherVersion(path, version);
    if (!isOurs || version === Super.VERSION) {
      return judgeSuperblock(words, path, addon.fileBytes(fd)).ready ? words : null;
    }
    if (!isWholeOld(words)) throw new PoolError('POOL_CORRUPT', path, 'the header is damaged');
    if (inUse(fd)) throw new PoolError('POOL_BUSY', path, 'a process has the pool open: stop it first');
    return words;
  } finally {
    addon.closeFile(fd);
  }
}

function upgradeWhole(handle: StoreHandle, header: Int32Array): Upgrade {
  const checked = walk(handle, header);
  if (checked.state === 'damaged') return checked;
  if (handle.capacityPath !== null) renewTrailer(handle.capacityPath, OLD_VERSION, false);
  const fd = openTier(handle.dramPath, false);
  try {
    // One page of the file: a process that is killed has written all of it or nothing.
    writeSync(fd, new Uint8Array(header.buffer), 0, Super.BYTES, 0);
    fsyncSync(fd);
  } finally {
    addon.closeFile(fd);
  }
  return checked;
}

function otherVersion(path: string, version: number): PoolError {
  const what = `the pool has layout version ${version}; this program upgrades version ${OLD_VERSION} to ${Super.VERSION}`;
  return new PoolError('POOL_VERSION', path, what);
}

/** Walks what the pool is with the new header, in a copy. */
function walk(handle: StoreHandle, header: Int32Array): Upgrade {
  const copy = copyStore(handle, null, { header });
  const known = {
    from: OLD_VERSION,
    to: Super.VERSION,
    deaths: copy.deaths(),
    dramBytes: copy.existing.geometry.dramPages * Page.BYTES,
    capacityBytes: copy.existing.geometry.capacityPages * Page.BYTES,
  };
  try {
    const items = checkInvariants(copy.attach());
    return { ...known, state: 'upgraded', problem: '', items };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { ...known, state: 'damaged', problem, items: null };
  } finally {
    copy.close();
  }
}

/** After a reboot: a warm pool is what its capacity file holds. Of others nothing is left that has a version. */
function upgradeRest(directory: string): Upgrade {
  const path = capacityPath('file', directory, '');
  const from = path === null ? 0 : renewTrailer(path, OLD_VERSION, true);
  if (from === 0) {
    throw new PoolError('POOL_MISSING', directory, 'the pool holds nothing: its DRAM tier is gone, as after a reboot');
  }
  if (from !== Super.VERSION && from !== OLD_VERSION) throw otherVersion(path ?? directory, from);
  return { ...NOTHING, state: from === Super.VERSION ? 'kept' : 'upgraded', from, to: Super.VERSION };
}
