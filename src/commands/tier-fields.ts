/** What INFO's section tiers and memcached's stats say about the two tiers, their sizes, and how they share the work. Owns nothing. */
import { getSystemErrorName } from 'node:util';
import type { StoreStats } from '../store/statistics.js';

export function tierFields(stats: StoreStats): readonly (readonly [string, string | number])[] {
  const reads = stats.hits + stats.misses;
  const dramHits = stats.hits - stats.capacityHits;
  return [
    ['dram_bytes', stats.dramBytes],
    ['dram_free_bytes', stats.dramFreeBytes],
    ['dram_target_bytes', stats.dramTargetBytes],
    ['capacity_bytes', stats.capacityBytes],
    ['capacity_free_bytes', stats.capacityFreeBytes],
    ['capacity_target_bytes', stats.capacityTargetBytes],
    ['resize_error', stats.resizeErrno === 0 ? 'none' : getSystemErrorName(-stats.resizeErrno)],
    ['dram_hits', dramHits],
    ['dram_hit_ratio', ratio(dramHits, reads)],
    ['capacity_hits', stats.capacityHits],
    ['capacity_hit_ratio', ratio(stats.capacityHits, reads)],
    ['items_demoted', stats.demoted],
    ['demoted_bytes', stats.demotedBytes],
    ['items_demoted_clean', stats.demotedClean],
    ['items_promoted', stats.promoted],
    ['promoted_bytes', stats.promotedBytes],
    ['writes_avoided', stats.writesAvoided],
    ['write_bytes_avoided', stats.writeBytesAvoided],
    ['items_written_behind', stats.writtenBehind],
    ['written_behind_bytes', stats.writtenBehindBytes],
    ['capacity_bytes_written', stats.capacityBytesWritten],
    ['capacity_lost_bytes', stats.capacityLostBytes],
    ['write_amplification', ratio(stats.capacityBytesWritten, stats.demotedBytes + stats.writtenBehindBytes)],
    ['capacity_page_writes_max', stats.capacityPageWritesMax],
    ['capacity_page_writes_mean', stats.capacityPageWritesMean.toFixed(4)],
  ];
}

function ratio(part: number, whole: number): string {
  return (whole === 0 ? 0 : part / whole).toFixed(4);
}
