/**
 * Tair's four ways to lay a cache out over persistent memory, played with the writes of our store.
 *
 * Only where structures lie and what the lock covers differs between the cases; all of them play the same recorded puts. Which of our
 * structures stand for Tair's is said here; what the model leaves out stands in put-model.ts and in docs/nvm.md.
 */
import { PRESETS } from '../devices/model/presets.js';
import { type PutCase, type PutCosts, type PutModelOptions, type PutOutcome, simulatePuts } from './put-model.js';
import type { PutTrace } from './put-trace.js';
import type { Structure } from './structures.js';

/** Page and slab metadata: the page table, and the slab managers' free chunks, of which each participant has some at hand. */
const METADATA: readonly Structure[] = [
  'page table',
  'slab class blocks',
  'superblock: page pool and log queue',
  'participant: magazines',
  'participant: allocator journal',
];
/** The items, and the hash map. Everything else Tair has not, or not in the cache's memory: it lies in DRAM in all cases. */
const ITEMS_AND_MAP: readonly Structure[] = [
  'slab pages',
  'index: locations',
  'index: clocks and expiry',
  'index directory',
];

export interface TairCase {
  readonly name: string;
  /** Published figures: writes a second, microseconds. DRAM's is given as about three times the first. */
  readonly published: { readonly perSecond: number; readonly latencyUs: number | null };
  readonly layout: PutCase;
}

const cached = new Set(METADATA);

export const TAIR_CASES: readonly TairCase[] = [
  {
    name: '1: all in NVM, items filled under the lock',
    published: { perSecond: 0.85e6, latencyUs: 40 },
    layout: { inDevice: new Set([...METADATA, ...ITEMS_AND_MAP]), cached, stagesUnderLock: true },
  },
  {
    name: '2: page and slab metadata in DRAM',
    published: { perSecond: 1.4e6, latencyUs: 12 },
    layout: { inDevice: new Set(ITEMS_AND_MAP), cached, stagesUnderLock: true },
  },
  {
    name: '3: items filled outside the lock too',
    published: { perSecond: 1.7e6, latencyUs: 9 },
    layout: { inDevice: new Set(ITEMS_AND_MAP), cached, stagesUnderLock: false },
  },
  {
    name: '4: all in DRAM',
    published: { perSecond: 3 * 0.85e6, latencyUs: null },
    layout: { inDevice: new Set(), cached, stagesUnderLock: false },
  },
];

/** Puts under way at once: 0.85 M/s times 40 us, Tair's first row. */
export const TAIR_THREADS = 34;
/** Bytes of an entry's value. */
export const TAIR_VALUE_BYTES = 100;

/**
 * The one number that is fitted: linkNs, so that with one lock and all in DRAM a put comes out at three times the published first row.
 * Staging is what it costs our store (ARCHITECTURE, section 4); the request's part does not count while the lock is the limit.
 */
export const TAIR_COSTS: PutCosts = { requestNs: 4000, stageNs: 100, linkNs: 390 };

export interface TairRow extends TairCase {
  readonly outcome: PutOutcome;
  /** Bytes a second that each DIMM is sent, and the busiest over the mean of the others. */
  readonly dimmBandwidth: readonly number[];
  readonly hotDimmRatio: number;
}

export function tairOptions(mapLocks: number, puts: number): PutModelOptions {
  return { device: PRESETS['optane-4'], costs: TAIR_COSTS, mapLocks, puts };
}

export function tairTable(trace: PutTrace, options: PutModelOptions): TairRow[] {
  return TAIR_CASES.map((theCase) => {
    const outcome = simulatePuts(trace, theCase.layout, options);
    const dimmBandwidth = outcome.dimms.map(({ writtenBytes }) => (writtenBytes * 1e9) / outcome.elapsedNs);
    return { ...theCase, outcome, dimmBandwidth, hotDimmRatio: hotRatio(dimmBandwidth) };
  });
}

/** 0 when nothing is written. */
function hotRatio(bandwidth: readonly number[]): number {
  const most = Math.max(...bandwidth);
  const others = bandwidth.reduce((sum, bytes) => sum + bytes, 0) - most;
  return others === 0 ? 0 : (most * (bandwidth.length - 1)) / others;
}
