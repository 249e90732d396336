/** The lines of `stats settings`: memcached's names for the settings that have a counterpart here. */
import type { MemcachedContext } from './context.js';
import type { Lines } from './stats.js';

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}

export function settingsStats(context: MemcachedContext): Lines {
  const { settings } = context;
  return [
    ['maxbytes', settings.maxmemory > 0 ? settings.maxmemory : settings.dram + settings.capacity],
    ['maxconns', settings.maxclients],
    ['tcpport', settings.memcachedPort],
    ['udpport', settings.memcachedUdpPort],
    ['inter', settings.bind.join(',')],
    ['verbosity', settings.loglevel],
    ['evictions', onOff(settings.maxmemoryPolicy !== 'noeviction')],
    ['domain_socket', 'NULL'],
    ['num_threads', settings.workers],
    ['cas_enabled', 'yes'],
    ['auth_enabled_sasl', 'no'],
    ['auth_enabled_ascii', settings.requirepass === '' ? 'no' : 'yes'],
    ['item_size_max', settings.itemSizeMax],
    ['flush_enabled', 'yes'],
    ['dump_enabled', 'no'],
    ['shutdown_command', settings.enableShutdown ? 'yes' : 'no'],
    ['idle_timeout', settings.timeout],
    ['tcp_backlog', settings.tcpBacklog],
    ['binding_protocol', 'ascii'],
  ];
}
