/** What memcached's limit of item memory (-m, cache_memlimit) is in our settings, without a capacity tier. */

/** Beside the items, in MiB: the first pages of Cache Meta and index, and one for each worker, which maxmemory counts too. */
const META_MIB = 2;
/** Room of the DRAM tier for more index and for reserves: a fixed part, and one that grows with the items. */
const RESERVE_MIB = 16;
const RESERVE_RATIO = 8;

export interface MemcachedMemory {
  /** maxmemory */
  readonly usedMib: number;
  /** dram */
  readonly dramMib: number;
}

export function memcachedMemory(itemsMib: number, workers: number): MemcachedMemory {
  const usedMib = itemsMib + META_MIB + workers;
  return { usedMib, dramMib: usedMib + RESERVE_MIB + Math.ceil(itemsMib / RESERVE_RATIO) };
}
