/**
 * The memory figures that INFO and MEMORY STATS share.
 *
 * Owns the peak: the most that this worker's INFO and MEMORY STATS have seen, since nothing else adds all of it up.
 */
import { Counter } from '../../layout/counters.js';
import type { StoreStats } from '../../store/statistics.js';
import type { Context } from '../context.js';

export interface MemoryFigures {
  /** Data, metadata, and what clients hold. */
  readonly used: number;
  readonly peak: number;
  readonly overhead: number;
  /** Items in use, and the pages they lie in. */
  readonly live: number;
  readonly paged: number;
  /** What clients hold outside the store. */
  readonly clients: number;
}

let peakBytes = 0;

export function memoryFigures({ environment: { totals } }: Context, stats: StoreStats): MemoryFigures {
  const clients = totals.total(Counter.heldBytes);
  const overhead = stats.metadataBytes + clients + totals.total(Counter.messageBytes);
  const live = stats.slabUsedBytes + stats.largeBytes + stats.logLiveBytes;
  const used = overhead + live;
  peakBytes = Math.max(peakBytes, used);
  const paged = stats.slabBytes + stats.largeBytes + stats.logBytes;
  return { used, peak: peakBytes, overhead, live, paged, clients };
}
