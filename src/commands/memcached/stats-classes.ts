/**
 * stats items and stats slabs: what the slab classes hold, and what has been counted for them (layout/class-counters).
 *
 * Items above 256 KiB own whole pages, and those of the capacity tier lie in its log: they are in no class, and in no line here.
 */
import { ClassCounter } from '../../layout/class-counters.js';
import type { MemcachedContext } from './context.js';
import type { Lines } from './stats.js';

const OF_ITEMS: readonly (readonly [name: string, counter: ClassCounter])[] = [
  ['evicted', ClassCounter.evicted],
  ['evicted_nonzero', ClassCounter.evictedExpiring],
  ['outofmemory', ClassCounter.outOfMemory],
  ['reclaimed', ClassCounter.expired],
  ['expired_unfetched', ClassCounter.expiredUnfetched],
  ['evicted_unfetched', ClassCounter.evictedUnfetched],
  ['evicted_active', ClassCounter.evictedActive],
  ['crawler_reclaimed', ClassCounter.sweepRemoved],
  ['crawler_items_checked', ClassCounter.swept],
  ['lrutail_reflocked', ClassCounter.pinned],
  ['direct_reclaims', ClassCounter.roomsMade],
];

const OF_REQUESTS: readonly (readonly [name: string, counter: ClassCounter])[] = [
  ['get_hits', ClassCounter.getHits],
  ['cmd_set', ClassCounter.sets],
  ['delete_hits', ClassCounter.deleteHits],
  ['incr_hits', ClassCounter.incrHits],
  ['decr_hits', ClassCounter.decrHits],
  ['cas_hits', ClassCounter.casHits],
  ['cas_badval', ClassCounter.casBadval],
  ['touch_hits', ClassCounter.touchHits],
];

export function itemsStats({ keyspace, totals }: MemcachedContext): Lines {
  const lines: Lines = [];
  for (const { slabClass, usedChunks } of keyspace.stats().classes) {
    if (usedChunks === 0) continue;
    const line = (name: string, value: number): void => void lines.push([`items:${slabClass}:${name}`, value]);
    line('number', usedChunks);
    for (const [name, counter] of OF_ITEMS) line(name, totals.classTotal(slabClass, counter));
    line('evicted_time', totals.lastEvictedIdleS(slabClass));
    // Readers hold copies or pins, never an item that nobody lets go.
    line('tailrepairs', 0);
  }
  return lines;
}

export function slabsStats({ keyspace, totals }: MemcachedContext): Lines {
  const { classes, slabBytes, largeBytes } = keyspace.stats();
  const lines: Lines = [];
  for (const { slabClass, chunkBytes, chunksPerPage, pages, usedChunks } of classes) {
    const totalChunks = pages * chunksPerPage;
    const line = (name: string, value: number): void => void lines.push([`${slabClass}:${name}`, value]);
    line('chunk_size', chunkBytes);
    line('chunks_per_page', chunksPerPage);
    line('total_pages', pages);
    line('total_chunks', totalChunks);
    line('used_chunks', usedChunks);
    line('free_chunks', totalChunks - usedChunks);
    line('free_chunks_end', 0);
    for (const [name, counter] of OF_REQUESTS) line(name, totals.classTotal(slabClass, counter));
  }
  lines.push(['active_slabs', classes.length], ['total_malloced', slabBytes + largeBytes]);
  return lines;
}
