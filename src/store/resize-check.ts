/**
 * Whether a tier can have another size: asked before anything is changed, so that whoever asks for it hears why not.
 *
 * Owns nothing; reads the page table without locks, so what it says of a store at work is an estimate. Invariant: under a policy that evicts,
 * only sizes without room for what cannot go are refused; under noeviction, those without room for what is there.
 */
import { dirname } from 'node:path';
import { Page } from '../layout/location.js';
import { PageInfo, PageKind, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { dataReserveOf } from '../memory/page-pool.js';
import { CLASS_CHUNKS, CLASS_COUNT } from '../memory/slab-classes.js';
import { addon } from '../native/addon.js';
import { Policy } from './policy.js';

/** Pages for data that a DRAM tier has at least. */
const DATA_PAGES_MIN = 4;
/** Of the capacity tier that cannot be used under noeviction: what reclaim keeps free, and what is not worth compacting. */
const UNUSABLE_DIVISOR = 6;

export interface SizeProblem {
  readonly setting: 'dram' | 'capacity';
  readonly reason: string;
}

interface Use {
  /** DRAM pages that stay what they are. */
  fixed: number;
  /** DRAM pages that the items of slab classes fill, if each class had only full pages but one. */
  slab: number;
  dramLarge: number;
  capacityLarge: number;
  /** Log pages, if there were no dead items in them. */
  log: number;
}

/** What speaks against these sizes (bytes); null = nothing. `mustKeep`: nothing may be evicted for it, whatever the policy. */
export function findSizeProblem(
  memory: Memory,
  dramBytes: number,
  capacityBytes: number,
  mustKeep: boolean,
): SizeProblem | null {
  const dram = Math.floor(dramBytes / Page.BYTES);
  const capacity = Math.floor(capacityBytes / Page.BYTES);
  const { dramSize, dramRoom, dramPath, capacitySize, capacityRoom, capacityPath } = memory;
  const dramReason =
    roomProblem(dram, dramRoom) ?? (dram > dramSize ? spaceProblem(dramPath, dram - dramSize) : undefined);
  if (dramReason !== undefined) return { setting: 'dram', reason: dramReason };
  if (capacityRoom === 0 && capacity > 0)
    return { setting: 'capacity', reason: 'the pool was made without a capacity tier' };
  if (capacityRoom > 0) {
    const reason =
      capacity === 0
        ? 'a capacity tier that is there cannot go: at least 16 MiB'
        : (roomProblem(capacity, capacityRoom) ??
          (capacity > capacitySize ? spaceProblem(capacityPath, capacity - capacitySize) : undefined));
    if (reason !== undefined) return { setting: 'capacity', reason };
  }
  return dram < dramSize || capacity < capacitySize ? fitProblem(memory, dram, capacity, mustKeep) : null;
}

function roomProblem(pages: number, room: number): string | undefined {
  if (pages <= room) return undefined;
  return `the pool was made for at most ${room} MiB (growth-room); a larger one needs a new pool`;
}

function spaceProblem(path: string, pages: number): string | undefined {
  const { freeBytes } = addon.fileSystem(dirname(path));
  if (freeBytes >= pages * Page.BYTES) return undefined;
  return `no space left: ${pages} MiB more are needed in ${dirname(path)}, ${Math.floor(freeBytes / Page.BYTES)} MiB are free`;
}

function fitProblem(memory: Memory, dram: number, capacity: number, mustKeep: boolean): SizeProblem | null {
  const use = measure(memory);
  const least = use.fixed + dataReserveOf(dram) + DATA_PAGES_MIN;
  if (dram < memory.dramSize && dram < least) {
    return { setting: 'dram', reason: `index, reserves and other metadata take ${least} MiB` };
  }
  if (!mustKeep && memory.ctl[Super.POLICY_WORD] !== Policy.NO_EVICTION) return null;
  const usable = capacity - Math.max(2, Math.ceil(capacity / UNUSABLE_DIVISOR));
  const inCapacity = use.log + use.capacityLarge;
  if (capacity < memory.capacitySize && inCapacity > usable) {
    return {
      setting: 'capacity',
      reason: `what the capacity tier holds does not fit: ${inCapacity} MiB of items, which may not be evicted`,
    };
  }
  const inDram = use.fixed + use.slab + use.dramLarge + dataReserveOf(dram);
  const movable = memory.capacityRoom === 0 ? 0 : Math.min(use.slab, Math.max(0, usable - inCapacity));
  if (dram < memory.dramSize && inDram - movable > dram) {
    return {
      setting: 'dram',
      reason: `what the pool holds does not fit: it takes ${inDram - movable} MiB, and nothing may be evicted`,
    };
  }
  return null;
}

const IS_FIXED: ReadonlySet<number> = new Set([
  PageKind.META,
  PageKind.INDEX,
  PageKind.PARTICIPANT,
  PageKind.TAKEN,
  PageKind.MAILBOX,
  PageKind.WAITS,
  PageKind.INTEREST,
  PageKind.LENT,
  PageKind.RETURNING,
  PageKind.WRITTEN_KEYS,
  PageKind.EFFECTS,
]);

function measure(memory: Memory): Use {
  const { ctl, dramPages, capacityBase, capacityPages } = memory;
  const use: Use = { fixed: 0, slab: 0, dramLarge: 0, capacityLarge: 0, log: 0 };
  const chunks = new Float64Array(CLASS_COUNT);
  for (let page = 0; page < dramPages; page++) {
    const info = memory.pageInfo(page);
    const kind = ctl[info] & 0xff;
    if (IS_FIXED.has(kind)) use.fixed++;
    else if (kind === PageKind.LARGE || kind === PageKind.LARGE_REST) use.dramLarge++;
    else if (kind === PageKind.SLAB)
      chunks[(ctl[info] >>> 8) & 0xff] += ctl[info + PageInfo.CARVED_WORD] - ctl[info + PageInfo.FREE_COUNT_WORD];
  }
  for (let c = 0; c < CLASS_COUNT; c++) use.slab += Math.ceil(chunks[c] / CLASS_CHUNKS[c]);
  let liveUnits = 0;
  for (let page = capacityBase; page < capacityBase + capacityPages; page++) {
    const info = memory.pageInfo(page);
    const kind = ctl[info] & 0xff;
    if (kind === PageKind.LARGE || kind === PageKind.LARGE_REST) use.capacityLarge++;
    else if (kind === PageKind.LOG_OPEN || kind === PageKind.LOG_SEALED)
      liveUnits += ctl[info + PageInfo.FREE_COUNT_WORD];
    else if (kind === PageKind.UNSCANNED) liveUnits += Page.UNITS;
  }
  use.log = Math.ceil(liveUnits / Page.UNITS);
  return use;
}
