/**
 * INFO: sections of `name:value` lines, with the field names that Redis's tools (redis_exporter, dashboards) look for.
 *
 * Invariant: a field that is shown is true. What has no counterpart here (fork times, replication buffers ...) is left out,
 * or 0 where tools insist on the field and 0 is the truth.
 */
import { hostname, release, totalmem, type } from 'node:os';
import { CommandStat, Counter, Saving, SharedWord } from '../../layout/counters.js';
import { ERROR_NAMES_MAX } from '../../layout/error-names.js';
import { Super } from '../../layout/superblock.js';
import { ERROR_CODES } from '../../protocol/resp/error-codes.js';
import type { StoreStats } from '../../store/statistics.js';
import { REDIS_VERSION } from '../clients/connection.js';
import type { Context } from '../context.js';
import { durableFields } from '../effects.js';
import { changesSinceSave, saveState } from '../persistence/save-state.js';
import { tierFields } from '../tier-fields.js';
import { latencyPercentiles } from './latency.js';
import { memoryFigures } from './memory-figures.js';

type Field = readonly [name: string, value: string | number];
type Section = (context: Context, stats: StoreStats) => readonly Field[];

const SECTIONS: Readonly<Record<string, Section>> = {
  Server: serverSection,
  Clients: clientsSection,
  Memory: memorySection,
  Persistence: persistenceSection,
  Stats: statsSection,
  Replication: replicationSection,
  CPU: cpuSection,
  Modules: () => [],
  Commandstats: commandStatsSection,
  Latencystats: latencyStatsSection,
  Errorstats: errorStatsSection,
  Cluster: () => [['cluster_enabled', 0]],
  Keyspace: keyspaceSection,
  Tiers: tiersSection,
};

/** Shown only when asked for, or with ALL and EVERYTHING. */
const NOT_DEFAULT = new Set(['commandstats', 'latencystats', 'tiers']);

export function info(context: Context): void {
  context.reply.verbatim('txt', infoText(context));
}

function infoText(context: Context): string {
  const wanted = new Set<string>();
  for (let i = 1; i < context.argc; i++) wanted.add(context.argString(i).toLowerCase());
  const isDefault = wanted.size === 0 || wanted.has('default');
  const isAll = wanted.has('all') || wanted.has('everything');
  if (wanted.has('module_list')) wanted.add('modules');
  const stats = context.keyspace.stats();
  const parts: string[] = [];
  for (const [name, section] of Object.entries(SECTIONS)) {
    const key = name.toLowerCase();
    const isShown = wanted.has(key) || (isAll && key !== 'modules') || (isDefault && !NOT_DEFAULT.has(key));
    if (!isShown && !(key === 'modules' && wanted.has('everything'))) continue;
    const lines = section(context, stats).map(([field, value]) => `${field}:${value}\r\n`);
    parts.push(`# ${name}\r\n${lines.join('')}`);
  }
  return parts.join('\r\n');
}

// ---- sections

function serverSection(context: Context): readonly Field[] {
  const { settings, control } = context.environment;
  const startedAtMs = control?.startedAtMs ?? context.nowMs;
  const uptime = Math.max(0, Math.floor((context.nowMs - startedAtMs) / 1000));
  return [
    ['redis_version', REDIS_VERSION],
    ['redis_mode', 'standalone'],
    ['server_name', 'entresol'],
    ['os', `${type()} ${release()} ${process.arch}`],
    ['arch_bits', 64],
    ['node_version', process.versions.node],
    ['multiplexing_api', 'epoll'],
    ['process_id', process.pid],
    ['run_id', runId(startedAtMs)],
    ['tcp_port', settings.port],
    ['server_time_usec', Math.floor((performance.timeOrigin + performance.now()) * 1000)],
    ['uptime_in_seconds', uptime],
    ['uptime_in_days', Math.floor(uptime / 86_400)],
    ['hz', settings.hz],
    ['configured_hz', settings.hz],
    ['executable', process.execPath],
    ['worker_threads', control?.workerCount ?? 1],
    ['io_threads_active', (control?.workerCount ?? 1) > 1 ? 1 : 0],
  ];
}

/** 40 hexadecimal digits that differ from run to run, the same in all workers. */
function runId(startedAtMs: number): string {
  const seed = `${hostname()}:${process.pid}:${startedAtMs}`;
  let digits = '';
  for (let round = 0; digits.length < 40; round++) {
    let h = 0x811c9dc5 ^ round;
    for (let i = 0; i < seed.length; i++) h = Math.imul(h ^ seed.charCodeAt(i), 0x01000193);
    digits += (h >>> 0).toString(16).padStart(8, '0');
  }
  return digits;
}

function clientsSection(context: Context): readonly Field[] {
  const { totals, settings } = context.environment;
  const waitedFor = context.executor.hub.blocked.keysWaitedFor();
  return [
    ['connected_clients', totals.total(Counter.connections)],
    ['cluster_connections', 0],
    ['maxclients', settings.maxclients],
    ['client_recent_max_input_buffer', 0],
    ['client_recent_max_output_buffer', 0],
    ['blocked_clients', totals.total(Counter.blockedClients) + totals.total(Counter.pausedClients)],
    ['suspended_clients', totals.total(Counter.suspendedClients)],
    ['tracking_clients', totals.total(Counter.trackingClients)],
    ['pubsub_clients', totals.total(Counter.pubsubClients)],
    ['clients_in_timeout_table', 0],
    ['total_blocking_keys', waitedFor.all],
    ['total_blocking_keys_on_nokey', waitedFor.untilGone],
  ];
}

function memorySection(context: Context, stats: StoreStats): readonly Field[] {
  const { settings } = context.environment;
  const { used, peak, overhead, live, paged, clients } = memoryFigures(context, stats);
  const limit = settings.maxmemory === 0 ? stats.dramBytes + stats.capacityBytes : settings.maxmemory;
  const rss = process.memoryUsage.rss();
  return [
    ['used_memory', used],
    ['used_memory_human', human(used)],
    ['used_memory_rss', rss],
    ['used_memory_rss_human', human(rss)],
    ['used_memory_peak', peak],
    ['used_memory_peak_human', human(peak)],
    ['used_memory_peak_perc', percent(used, peak)],
    ['used_memory_overhead', overhead],
    ['used_memory_startup', 0],
    ['used_memory_dataset', live],
    ['used_memory_dataset_perc', percent(live, used)],
    ['allocator_allocated', live],
    ['allocator_active', paged],
    ['allocator_resident', paged],
    ['total_system_memory', totalmem()],
    ['total_system_memory_human', human(totalmem())],
    ...scriptFields(context),
    ['maxmemory', limit],
    ['maxmemory_human', human(limit)],
    ['maxmemory_policy', settings.maxmemoryPolicy],
    ['allocator_frag_ratio', ratio(paged, live)],
    ['allocator_frag_bytes', paged - live],
    ['mem_fragmentation_ratio', ratio(paged, live)],
    ['mem_fragmentation_bytes', paged - live],
    ['mem_not_counted_for_evict', 0],
    ['mem_replication_backlog', 0],
    ['mem_clients_slaves', 0],
    ['mem_clients_normal', clients],
    ['mem_aof_buffer', 0],
    ['mem_allocator', 'entresol-slab'],
    ['active_defrag_running', 0],
    ['lazyfree_pending_objects', 0],
  ];
}

function scriptFields({ environment: { scripting, totals } }: Context): readonly Field[] {
  const scripts = scripting?.();
  const [evalBytes, functionBytes] = [totals.total(Counter.luaScriptBytes), totals.total(Counter.luaFunctionBytes)];
  const cacheBytes = scripts?.cache.cacheBytes ?? 0;
  return [
    ['used_memory_lua', evalBytes],
    ['used_memory_vm_eval', evalBytes],
    ['used_memory_lua_human', human(evalBytes)],
    ['used_memory_scripts_eval', cacheBytes],
    ['number_of_cached_scripts', scripts?.cache.count ?? 0],
    ['number_of_functions', scripts?.libraries.functionCount ?? 0],
    ['number_of_libraries', scripts?.libraries.list().length ?? 0],
    ['used_memory_vm_functions', functionBytes],
    ['used_memory_vm_total', evalBytes + functionBytes],
    ['used_memory_vm_total_human', human(evalBytes + functionBytes)],
    ['used_memory_functions', scripts?.libraries.codeBytes ?? 0],
    ['used_memory_scripts', cacheBytes + (scripts?.libraries.codeBytes ?? 0)],
    ['used_memory_scripts_human', human(cacheBytes + (scripts?.libraries.codeBytes ?? 0))],
  ];
}

/** Of a warm pool: what came back after the last reboot, and how the capacity tier's flushes go. */
function warmFields(context: Context): readonly Field[] {
  const { ctl, isWarm } = context.environment.keyspace.memory;
  if (!isWarm) return [];
  return [
    ['rebuild_in_progress', ctl[Super.REBUILD_STATE_WORD]],
    ['rebuild_pages', ctl[Super.REBUILD_PAGES_WORD]],
    ['rebuild_pages_left', ctl[Super.REBUILD_LEFT_WORD]],
    ['rebuild_items', ctl[Super.REBUILD_ITEMS_WORD]],
    ['rebuild_dead_items', ctl[Super.REBUILD_DEAD_WORD]],
    ['rebuild_corrupt', ctl[Super.REBUILD_CORRUPT_WORD]],
    ['rebuild_lost_items', ctl[Super.REBUILD_LOST_WORD]],
    ['rebuild_time_ms', ctl[Super.REBUILD_MS_WORD]],
    ['warm_last_flush_time', ctl[Super.PERSIST_AT_WORD]],
    ['warm_last_flush_ms', ctl[Super.PERSIST_MS_WORD]],
    ['warm_flush_failures', ctl[Super.PERSIST_FAILURES_WORD]],
  ];
}

function persistenceSection(context: Context): readonly Field[] {
  const state = saveState(context);
  const { saving, savedAtS, hasFailed, seconds, saves } = state;
  const isRewriting = saving === Saving.REWRITE;
  const sinceS = Math.floor(context.nowMs / 1000) - state.sinceS;
  const { effects } = context.keyspace.feed;
  return [
    ['loading', 0],
    ['async_loading', 0],
    ['durability', context.environment.settings.durability],
    ['rdb_changes_since_last_save', changesSinceSave(context)],
    ['rdb_bgsave_in_progress', saving === Saving.BACKGROUND ? 1 : 0],
    ['rdb_last_save_time', savedAtS],
    ['rdb_last_bgsave_status', hasFailed ? 'err' : 'ok'],
    ['rdb_last_bgsave_time_sec', seconds],
    ['rdb_current_bgsave_time_sec', saving === Saving.BACKGROUND ? sinceS : -1],
    ['rdb_saves', saves],
    ...warmFields(context),
    ...durableFields(context),
    ['aof_enabled', context.environment.settings.durability === 'durable' ? 1 : 0],
    ['aof_rewrite_in_progress', isRewriting ? 1 : 0],
    ['aof_rewrite_scheduled', state.rewriteIsScheduled ? 1 : 0],
    ['aof_last_rewrite_time_sec', state.rewriteSeconds],
    ['aof_current_rewrite_time_sec', isRewriting ? sinceS : -1],
    ['aof_last_bgrewrite_status', state.rewriteHasFailed ? 'err' : 'ok'],
    ['aof_last_write_status', effects === null || effects.refusal === 0 ? 'ok' : 'err'],
  ];
}

/** What the last INFO of this worker saw, for rates. */
const last = { atMs: 0, commands: 0, bytesIn: 0, bytesOut: 0 };

function statsSection(context: Context, stats: StoreStats): readonly Field[] {
  const { totals } = context.environment;
  const commands = totals.total(Counter.commands);
  const bytesIn = totals.total(Counter.bytesIn);
  const bytesOut = totals.total(Counter.bytesOut);
  const seconds = last.atMs === 0 ? 0 : (context.nowMs - last.atMs) / 1000;
  const rate = (now: number, before: number): number => (seconds > 0 ? Math.max(0, (now - before) / seconds) : 0);
  const fields: Field[] = [
    ['total_connections_received', totals.total(Counter.connectionsAccepted)],
    ['total_commands_processed', commands],
    ['instantaneous_ops_per_sec', Math.round(rate(commands, last.commands))],
    ['total_net_input_bytes', bytesIn],
    ['total_net_output_bytes', bytesOut],
    ['total_net_repl_input_bytes', 0],
    ['total_net_repl_output_bytes', 0],
    ['instantaneous_input_kbps', (rate(bytesIn, last.bytesIn) / 1024).toFixed(2)],
    ['instantaneous_output_kbps', (rate(bytesOut, last.bytesOut) / 1024).toFixed(2)],
    ['rejected_connections', totals.total(Counter.connectionsRejected)],
    ['sync_full', 0],
    ['sync_partial_ok', 0],
    ['sync_partial_err', 0],
    ['expired_keys', stats.expired],
    ['expired_subkeys', stats.expiredFields],
    ['evicted_keys', stats.evicted],
    ['evicted_clients', totals.total(Counter.evictedClients)],
    ['keyspace_hits', totals.total(Counter.hits)],
    ['keyspace_misses', totals.total(Counter.misses)],
    ['pubsub_channels', totals.total(Counter.pubsubChannels)],
    ['pubsub_patterns', context.executor.hub.subscriptions.patternCount],
    ['pubsubshard_channels', totals.total(Counter.pubsubShardChannels)],
    ['latest_fork_usec', 0],
    ['total_forks', 0],
    ['migrate_cached_sockets', totals.sharedWord(SharedWord.migrationSockets)],
    ['slave_expires_tracked_keys', 0],
    ['active_defrag_hits', 0],
    ['active_defrag_misses', 0],
    ['active_defrag_key_hits', 0],
    ['active_defrag_key_misses', 0],
    ['tracking_total_keys', totals.total(Counter.trackedKeys)],
    ['tracking_total_items', totals.total(Counter.trackedItems)],
    ['tracking_total_prefixes', totals.total(Counter.trackedPrefixes)],
    ['unexpected_error_replies', 0],
    ['total_error_replies', totals.total(Counter.errorReplies)],
    ['protocol_errors', totals.total(Counter.protocolErrors)],
    ['client_query_buffer_limit_disconnections', totals.total(Counter.connectionsInputLimitClosed)],
    ['client_output_buffer_limit_disconnections', totals.total(Counter.connectionsOutputLimitClosed)],
    ['idle_disconnections', totals.total(Counter.connectionsIdleClosed)],
    ['slow_commands', totals.total(Counter.slowCommands)],
    ['eventloop_cycles', totals.total(Counter.turns)],
    ['acl_access_denied_auth', totals.total(Counter.authFailures)],
    ['acl_access_denied_cmd', totals.total(Counter.deniedCommands)],
    ['acl_access_denied_key', totals.total(Counter.deniedKeys)],
    ['acl_access_denied_channel', totals.total(Counter.deniedChannels)],
  ];
  Object.assign(last, { atMs: context.nowMs, commands, bytesIn, bytesOut });
  return fields;
}

function replicationSection(): readonly Field[] {
  return [
    ['role', 'master'],
    ['connected_slaves', 0],
    ['master_failover_state', 'no-failover'],
    ['master_repl_offset', 0],
    ['repl_backlog_active', 0],
    ['repl_backlog_size', 0],
    ['repl_backlog_first_byte_offset', 0],
    ['repl_backlog_histlen', 0],
  ];
}

function cpuSection(): readonly Field[] {
  const { user, system } = process.cpuUsage();
  return [
    ['used_cpu_sys', (system / 1e6).toFixed(6)],
    ['used_cpu_user', (user / 1e6).toFixed(6)],
    ['used_cpu_sys_children', '0.000000'],
    ['used_cpu_user_children', '0.000000'],
  ];
}

/** Times of O(1) commands are samples, scaled up (see executor.ts). */
function commandStatsSection(context: Context): readonly Field[] {
  const { totals } = context.environment;
  const fields: Field[] = [];
  for (const command of context.executor.table.all) {
    const [calls, usec, rejected, failed] = [
      CommandStat.calls,
      CommandStat.microseconds,
      CommandStat.rejected,
      CommandStat.failed,
    ].map((stat) => totals.commandTotal(command.index, stat));
    if (calls + rejected + failed === 0) continue;
    const perCall = calls === 0 ? 0 : usec / calls;
    fields.push([
      `cmdstat_${command.fullName}`,
      `calls=${calls},usec=${Math.round(usec)},usec_per_call=${perCall.toFixed(2)},rejected_calls=${rejected},failed_calls=${failed}`,
    ]);
  }
  return fields;
}

function latencyStatsSection(context: Context): readonly Field[] {
  return latencyPercentiles(context).map(([name, text]): Field => [`latency_percentiles_usec_${name}`, text]);
}

function errorStatsSection(context: Context): readonly Field[] {
  const { totals } = context.environment;
  const counts = ERROR_CODES.map((code, i): Field => [code, totals.total((Counter.errorsByCode + i) as Counter)]);
  for (let i = 0; i < ERROR_NAMES_MAX; i++) {
    const code = totals.errorNames.nameOf(i);
    if (code !== null) counts.push([printable(code), totals.total((Counter.otherErrors + i) as Counter)]);
  }
  return counts
    .filter(([, count]) => count !== 0)
    .map(([code, count]): Field => [`errorstat_${code}`, `count=${count}`]);
}

/** Without what would break the line that it stands in. */
function printable(code: string): string {
  return code.replace(/[#:\r\n]/g, '_');
}

function keyspaceSection(context: Context): readonly Field[] {
  const fields: Field[] = [];
  for (let db = 0; db < context.environment.settings.databases; db++) {
    const keys = context.keyspace.size(db);
    if (keys > 0) fields.push([`db${db}`, `keys=${keys},expires=${context.keyspace.expiring(db)},avg_ttl=0`]);
  }
  return fields;
}

/** Ours: what lies where. */
function tiersSection(_context: Context, stats: StoreStats): readonly Field[] {
  return [
    ['dram_bytes', stats.dramBytes],
    ['dram_free_bytes', stats.dramFreeBytes],
    ['dram_lent_bytes', stats.lentBytes],
    ['capacity_bytes', stats.capacityBytes],
    ['capacity_free_bytes', stats.capacityFreeBytes],
    ['metadata_bytes', stats.metadataBytes],
    ['slab_bytes', stats.slabBytes],
    ['slab_used_bytes', stats.slabUsedBytes],
    ['large_bytes', stats.largeBytes],
    ['log_bytes', stats.logBytes],
    ['log_live_bytes', stats.logLiveBytes],
    ['client_bytes', stats.clientBytes],
    ['items', stats.items],
    ['items_expiring', stats.expiring],
    ['items_stored', stats.stored],
    ['reclaim_kept', stats.reclaimKept],
    ['reclaim_dropped', stats.reclaimDropped],
    ...tierFields(stats),
    ['pages_moved', stats.pagesMoved],
    ['out_of_memory', stats.outOfMemory],
    ['repairs', stats.repairs],
  ];
}

// ---- formats

/** Bytes as Redis prints them: 1.50M. */
export function human(bytes: number): string {
  const units = ['B', 'K', 'M', 'G', 'T', 'P'];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return unit === 0 ? `${bytes}B` : `${value.toFixed(2)}${units[unit]}`;
}

function percent(part: number, whole: number): string {
  return `${(whole === 0 ? 0 : (part / whole) * 100).toFixed(2)}%`;
}

function ratio(a: number, b: number): string {
  return (b === 0 ? 1 : a / b).toFixed(2);
}
