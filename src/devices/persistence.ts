/** What makes a write to the capacity tier durable there, and whether it then is. */
import type { Subject } from './subject.js';

/**
 * cache: a store is durable at once (eADR). flush: once its cache line is written back (ADR). emulated: as flush, on memory that may
 * lose everything. msync: the kernel writes the page to the medium. none: gone with the power.
 */
export type Persistence = 'cache' | 'flush' | 'emulated' | 'msync' | 'none';

export const PERSISTENCE_WORDS: Readonly<Record<Persistence, string>> = {
  cache: 'real: stores are durable at once (eADR)',
  flush: 'real: stores are durable once flushed (ADR)',
  emulated: 'flushed like persistent memory, but nothing shows that the memory keeps its contents',
  msync: 'by msync: the kernel writes pages to the device',
  none: 'none: contents end with the power',
};

export function persistenceOf({ kind, dax, block }: Subject, tier: 'none' | 'dax' | 'numa' | 'file'): Persistence {
  if (tier === 'none' || tier === 'numa' || kind === 'tmpfs' || kind === 'numa-node') return 'none';
  if (tier === 'file' || !dax.isSync) return 'msync';
  if (block?.region?.origin !== 'hardware') return 'emulated';
  return block.region.persistenceDomain === 'cpu_cache' ? 'cache' : 'flush';
}
