/** The lines of `stats` without argument. */
import { ClassCounter } from '../../layout/class-counters.js';
import { Counter, SharedWord } from '../../layout/counters.js';
import { Page } from '../../layout/location.js';
import { tierFields } from '../tier-fields.js';
import { DB, type MemcachedContext } from './context.js';
import { itemLimit } from './maintenance.js';
import type { Lines } from './stats.js';
import { ENTRESOL_VERSION, VERSION } from './version.js';

/** Lines that are one counter, summed over the workers. */
const COUNTERS: readonly (readonly [name: string, counter: Counter])[] = [
  ['cmd_get', Counter.cmdGet],
  ['cmd_set', Counter.cmdSet],
  ['cmd_flush', Counter.cmdFlush],
  ['cmd_touch', Counter.cmdTouch],
  ['cmd_meta', Counter.cmdMeta],
  ['get_hits', Counter.getHits],
  ['get_misses', Counter.getMisses],
  ['get_expired', Counter.getExpired],
  ['get_flushed', Counter.getFlushed],
  ['delete_misses', Counter.deleteMisses],
  ['delete_hits', Counter.deleteHits],
  ['incr_misses', Counter.incrMisses],
  ['incr_hits', Counter.incrHits],
  ['decr_misses', Counter.decrMisses],
  ['decr_hits', Counter.decrHits],
  ['cas_misses', Counter.casMisses],
  ['cas_hits', Counter.casHits],
  ['cas_badval', Counter.casBadval],
  ['touch_hits', Counter.touchHits],
  ['touch_misses', Counter.touchMisses],
  ['store_too_large', Counter.storeTooLarge],
  ['store_no_memory', Counter.storeNoMemory],
  ['auth_cmds', Counter.authCmds],
  ['auth_errors', Counter.authErrors],
  ['idle_kicks', Counter.connectionsIdleClosed],
  ['bytes_read', Counter.bytesIn],
  ['bytes_written', Counter.bytesOut],
];

/** Lines that are the sum of a counter over the slab classes. */
const CLASS_COUNTERS: readonly (readonly [name: string, counter: ClassCounter])[] = [
  ['slab_reassign_rescues', ClassCounter.moved],
  ['slab_reassign_chunk_rescues', ClassCounter.nodesMoved],
  ['slab_reassign_evictions_nomem', ClassCounter.moveEvicted],
  ['slab_reassign_busy_items', ClassCounter.moveBusy],
  ['expired_unfetched', ClassCounter.expiredUnfetched],
  ['evicted_unfetched', ClassCounter.evictedUnfetched],
  ['evicted_active', ClassCounter.evictedActive],
  ['crawler_reclaimed', ClassCounter.sweepRemoved],
  ['crawler_items_checked', ClassCounter.swept],
  ['lrutail_reflocked', ClassCounter.pinned],
  ['direct_reclaims', ClassCounter.roomsMade],
];

/** What cannot happen here: there are no LRU segments and no thread for them, a page's free chunks are never in doubt, sockets have no queues of the network card. */
const NEVER = [
  'slab_reassign_inline_reclaim',
  'slab_reassign_busy_deletes',
  'lru_maintainer_juggles',
  'lru_bumps_dropped',
  'moves_to_cold',
  'moves_to_warm',
  'moves_within_lru',
  'malloc_fails',
  'unexpected_napi_ids',
  'round_robin_fallback',
];

export function generalStats(context: MemcachedContext): Lines {
  const { keyspace, settings, totals, control } = context;
  const store = keyspace.stats();
  const nowMs = keyspace.nowMs;
  const usage = process.resourceUsage();
  const lines: Lines = [
    ['pid', process.pid],
    ['uptime', control === null ? 0 : Math.max(0, Math.floor((nowMs - control.startedAtMs) / 1000))],
    ['time', Math.floor(nowMs / 1000)],
    ['version', VERSION],
    ['entresol_version', ENTRESOL_VERSION],
    ['pointer_size', 64],
    ['rusage_user', (usage.userCPUTime / 1e6).toFixed(6)],
    ['rusage_system', (usage.systemCPUTime / 1e6).toFixed(6)],
    ['max_connections', settings.maxclients],
    ['curr_connections', totals.total(Counter.connections)],
    ['total_connections', totals.total(Counter.connectionsAccepted)],
    ['rejected_connections', totals.total(Counter.connectionsRejected)],
    ['connection_structures', totals.total(Counter.connections)],
    // Replies and input lie in buffers that are there from the start: neither can run out of memory.
    ['response_obj_oom', 0],
    ['read_buf_oom', 0],
  ];
  for (const [name, counter] of COUNTERS) lines.push([name, totals.total(counter)]);
  lines.push(
    ['limit_maxbytes', itemLimit(context)],
    ['accepting_conns', 1],
    // Accepting never stops: connections above the limit are told so and closed.
    ['listen_disabled_num', 0],
    ['time_in_listen_disabled_us', 0],
    ['threads', settings.workers],
    ['conn_yields', totals.total(Counter.connectionYields)],
    // The index has any number of buckets: it grows by one at a time, within requests.
    ['hash_power_level', Math.floor(Math.log2(store.buckets))],
    ['hash_bytes', store.metadataBytes],
    ['hash_is_expanding', 0],
    ['slab_reassign_running', 0],
    ['slabs_moved', store.pagesMoved],
    ['slab_global_page_pool', Math.round(store.dramFreeBytes / Page.BYTES)],
    ['lru_crawler_running', 0],
    ['lru_crawler_starts', totals.sharedWord(SharedWord.lruCrawlerStarts)],
    ['log_worker_dropped', totals.total(Counter.logDropped)],
    ['log_worker_written', totals.total(Counter.logWritten)],
    ['log_watcher_skipped', totals.total(Counter.logSkipped)],
    ['log_watcher_sent', totals.total(Counter.logSent)],
    ['log_watchers', totals.sharedWord(SharedWord.watchers)],
    ['bytes', store.usedBytes - store.metadataBytes],
    ['curr_items', keyspace.size(DB)],
    ['total_items', store.stored],
    ['evictions', store.evicted],
    ['reclaimed', store.expired],
  );
  for (const [name, counter] of CLASS_COUNTERS) lines.push([name, totals.classSum(counter)]);
  for (const name of NEVER) lines.push([name, 0]);
  for (const [name, value] of tierFields(store)) lines.push([`tier_${name}`, value]);
  return lines;
}
