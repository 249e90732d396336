/**
 * What the capacity tier of a pool is made of, and how it is mapped.
 *
 *     dax    a file on a DAX file system: mapped with MAP_SYNC, so that flushed stores are durable without a system call
 *     numa   CXL or persistent memory that the kernel shows as a NUMA node: a file in /dev/shm bound to that node
 *     file   an ordinary file, for machines without either
 *     auto   dax where files of the pool's directory can be mapped with MAP_SYNC, else file
 *
 * Owns the choice; the mapping itself is memory's. Errors say what the path is and which tier would do.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type DaxProbe, probeDax } from '../devices/dax-probe.js';
import { addon, type MapOptions } from '../native/addon.js';
import { PoolError } from './errors.js';

export const TIER_NAMES = ['none', 'dax', 'numa', 'file'] as const;
/** The tier of an open pool; its index in TIER_NAMES stands in the superblock. */
export type TierName = (typeof TIER_NAMES)[number];
/** What may be asked for. */
export type TierChoice = TierName | 'auto';

const CAPACITY_FILE = 'capacity.entresol';
export const SHM = '/dev/shm';
const NODES = '/sys/devices/system/node';

export interface TierDecision {
  readonly tier: TierName;
  /** Why it is this one, for people. */
  readonly reason: string;
}

/**
 * The tier for a pool's directory, which exists; throws PoolError when the machine cannot give what was asked for. `dax` is what
 * probeDax found there.
 */
export function chooseTier(
  choice: TierChoice,
  directory: string,
  capacityPages: number,
  numaNode: number,
  dax: DaxProbe = probeDax(directory),
): TierDecision {
  if (choice === 'none' || capacityPages === 0) return { tier: 'none', reason: 'no capacity tier was asked for' };
  const { type } = addon.fileSystem(directory);
  if (choice === 'auto') return chooseFor(type, dax);
  if (choice === 'dax' && !dax.isSync) throw new PoolError('POOL_IO', directory, daxRefusal(type, dax));
  if (choice === 'numa' && !existsSync(join(NODES, `node${numaNode}`))) {
    throw new PoolError('POOL_IO', directory, `the machine has no NUMA node ${numaNode}; name one with --numa-node`);
  }
  return { tier: choice, reason: `--tier ${choice}` };
}

function chooseFor(type: string, dax: DaxProbe): TierDecision {
  if (dax.isSync) return { tier: 'dax', reason: `${type} with DAX here grants MAP_SYNC` };
  if (dax.obstacle !== '') return { tier: 'file', reason: `DAX could not be tried on ${type} here (${dax.obstacle})` };
  if (dax.isDax) return { tier: 'file', reason: `${type} with DAX here refuses MAP_SYNC, so it is flushed by msync` };
  return { tier: 'file', reason: `${type} here is not mounted for DAX` };
}

function daxRefusal(type: string, dax: DaxProbe): string {
  if (dax.obstacle !== '') return `DAX could not be tried on the ${type} file system here (${dax.obstacle})`;
  if (dax.isDax) return `the device under the ${type} file system here refuses MAP_SYNC; use --tier file`;
  return `the ${type} file system here is not mounted for DAX; use --tier file, or mount it with -o dax`;
}

/** Path of the capacity file; null without a capacity tier. `name` tells pools in /dev/shm apart. */
export function capacityPath(tier: TierName, directory: string, name: string): string | null {
  if (tier === 'none') return null;
  return tier === 'numa' ? join(SHM, `${name}-capacity`) : join(directory, CAPACITY_FILE);
}

export function capacityMapOptions(tier: TierName, numaNode: number, hugePages: boolean): MapOptions {
  if (tier === 'dax') return { hugePages, sync: true };
  return tier === 'numa' ? { hugePages, numaNode } : { hugePages };
}
