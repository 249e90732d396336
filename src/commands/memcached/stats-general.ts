/** The lines of `stats` without argument. */
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
    ['hash_bytes', store.metadataBytes],
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
    // Readers hold copies or pins, which the hand passes over.
    ['lrutail_reflocked', 0],
  );
  for (const [name, value] of tierFields(store)) lines.push([`tier_${name}`, value]);
  return lines;
}
