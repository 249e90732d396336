/** The lines of `stats settings`: memcached's names for the settings that have a counterpart here. */
import { Item } from '../../layout/item.js';
import { Page } from '../../layout/location.js';
import { CLASS_UNITS, MAX_CHUNK_UNITS } from '../../memory/slab-classes.js';
import type { MemcachedContext } from './context.js';
import { isCrawlerOn, itemLimit, verbosityOf } from './maintenance.js';
import type { Lines } from './stats.js';

/** From one chunk size to the next, in the mean of those that eight of make a doubling. */
const GROWTH_FACTOR = 2 ** (1 / 8);

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}

function yesNo(value: boolean): string {
  return value ? 'yes' : 'no';
}

export function settingsStats(context: MemcachedContext): Lines {
  const { settings } = context;
  const hasPasswords = context.credentials.areNeeded;
  return [
    ['maxbytes', itemLimit(context)],
    ['maxconns', settings.maxclients],
    ['tcpport', settings.memcachedPort],
    ['udpport', settings.memcachedUdpPort],
    ['inter', (settings.memcachedBind.length === 0 ? settings.bind : settings.memcachedBind).join(',')],
    ['verbosity', verbosityOf(context)],
    ['evictions', onOff(settings.maxmemoryPolicy !== 'noeviction')],
    ['domain_socket', settings.memcachedUnix === '' ? 'NULL' : settings.memcachedUnix],
    ['umask', settings.unixMode.toString(8)],
    ['growth_factor', GROWTH_FACTOR.toFixed(2)],
    ['chunk_size', CLASS_UNITS[0] * Page.UNIT_BYTES - Item.HEADER_BYTES],
    ['num_threads', settings.workers],
    ['num_threads_per_udp', settings.workers],
    ['stat_key_prefix', settings.memcachedPrefixDelimiter],
    ['detail_enabled', yesNo(context.prefixes.isOn)],
    ['reqs_per_event', settings.memcachedRequestsPerTurn],
    ['cas_enabled', yesNo(settings.memcachedCas)],
    ['auth_enabled_sasl', yesNo(hasPasswords && settings.memcachedProtocol !== 'ascii')],
    ['auth_enabled_ascii', yesNo(hasPasswords && settings.memcachedProtocol !== 'binary')],
    ['item_size_max', settings.itemSizeMax],
    ['maxconns_fast', 'yes'],
    ['slab_reassign', 'yes'],
    ['slab_automove', 1],
    ['slab_chunk_max', MAX_CHUNK_UNITS * Page.UNIT_BYTES],
    ['hashpower_init', Math.floor(Math.log2(context.keyspace.memory.shardCount))],
    ['tail_repair_time', 0],
    ['lru_crawler', yesNo(isCrawlerOn(context))],
    ['lru_maintainer_thread', 'no'],
    ['lru_segmented', 'no'],
    ['temp_lru', 'no'],
    ['flush_enabled', yesNo(settings.memcachedFlush)],
    ['dump_enabled', yesNo(settings.memcachedDump)],
    ['watch_enabled', yesNo(settings.memcachedWatch)],
    ['watcher_logbuf_size', settings.memcachedWatchBuffer],
    ['track_sizes', 'no'],
    ['inline_ascii_response', 'no'],
    ['ssl_enabled', 'no'],
    ['hash_algorithm', 'halfsiphash'],
    ['shutdown_command', yesNo(settings.enableShutdown)],
    ['idle_timeout', settings.timeout],
    ['tcp_backlog', settings.tcpBacklog],
    ['binding_protocol', settings.memcachedProtocol === 'auto' ? 'auto-negotiate' : settings.memcachedProtocol],
  ];
}
