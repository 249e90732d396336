/**
 * memcached's command-line options and what they mean here: one table, from which parsing, --help and the table in
 * docs/memcached.md are made.
 *
 * Invariant: every option of memcached 1.6.18 that its help lists is here, if only to say that it has no effect.
 */
import { parseSize } from '../config/index.js';
import { EXTENDED_OPTIONS } from './memcached-extended.js';
import {
  count,
  fixed,
  flag,
  keep,
  type MemcachedOption,
  NOTHING,
  OptionError,
  type Plan,
  switchOn,
  without,
} from './memcached-option.js';

function itemSize(plan: Plan, value: string): void {
  const bytes = parseSize(/[kKmM]$/.test(value) ? `${value}b` : value);
  if (bytes === undefined) throw new OptionError('-I needs a size: bytes, or with k or m');
  if (bytes < 1024) throw new OptionError('Item max size cannot be less than 1024 bytes.');
  if (bytes > 1024 ** 3) throw new OptionError('Cannot set item size limit higher than a gigabyte.');
  plan.itemSizeMax = bytes;
}

export const OPTIONS: readonly MemcachedOption[] = [
  {
    name: '-p',
    long: 'port',
    value: 'PORT',
    doc: 'TCP port, 11211 by default; 0 = off, -1 = any free one',
    ours: '--memcached-port',
    apply: keep('tcpPort'),
  },
  {
    name: '-U',
    long: 'udp-port',
    value: 'PORT',
    doc: 'UDP port; 0 = off, -1 = any free one',
    ours: '--memcached-udp-port; without -p the TCP port too',
    apply: keep('udpPort'),
  },
  {
    name: '-s',
    long: 'unix-socket',
    value: 'PATH',
    doc: 'unix socket; switches the ports off',
    ours: '--memcached-unix',
    apply: flag('memcached-unix'),
  },
  {
    name: '-a',
    long: 'unix-mask',
    value: 'MODE',
    doc: 'permissions of the unix socket, octal, 700 by default',
    ours: '--unix-mode',
    apply: flag('unix-mode'),
  },
  {
    name: '-A',
    long: 'enable-shutdown',
    doc: 'allow the command shutdown',
    ours: '--enable-shutdown',
    apply: fixed('enable-shutdown', 'yes'),
  },
  {
    name: '-l',
    long: 'listen',
    value: 'ADDRESS',
    doc: 'addresses to listen on, all by default; HOST:PORT where a port is not that of -p',
    ours: '--bind, --memcached-bind where ports differ; IP addresses',
    apply: (plan, value) => void plan.addresses.push(...value.split(',').filter((part) => part !== '')),
  },
  { name: '-d', long: 'daemon', doc: 'run in the background', ours: 'the same', apply: switchOn('isDaemon') },
  without('-r', 'maximise core file limit', "the limit is the shell's (ulimit -c)", undefined, 'enable-coredumps'),
  {
    name: '-u',
    long: 'user',
    value: 'USER',
    doc: 'run as this user (when root)',
    ours: 'the same, from before the ports are opened',
    apply: keep('user'),
  },
  {
    name: '-m',
    long: 'memory-limit',
    value: 'MEGABYTES',
    doc: 'memory for items, 64 by default',
    ours: '--maxmemory, and --dram with room for metadata',
    apply: count('-m', 1, (plan, value) => {
      plan.memoryMib = value;
    }),
  },
  {
    name: '-M',
    long: 'disable-evictions',
    doc: 'an error when memory is full, instead of evicting',
    ours: '--maxmemory-policy noeviction',
    apply: fixed('maxmemory-policy', 'noeviction'),
  },
  {
    name: '-c',
    long: 'conn-limit',
    value: 'N',
    doc: 'most connections, 1024 by default',
    ours: '--maxclients',
    apply: count('Maximum connections', 1, (plan, value) => void plan.flags.set('maxclients', String(value))),
  },
  without('-k', 'lock all paged memory', 'memory is mapped from a file in /dev/shm', undefined, 'lock-memory'),
  {
    name: '-v',
    long: 'verbose',
    doc: 'print more; -vv and -vvv still more',
    ours: '--loglevel verbose, debug',
    apply: (plan) => void plan.verbosity++,
  },
  {
    name: '-P',
    long: 'pidfile',
    value: 'FILE',
    doc: 'write the process number there',
    ours: 'the same, with or without -d',
    apply: keep('pidFile'),
  },
  {
    name: '-f',
    long: 'slab-growth-factor',
    value: 'FACTOR',
    doc: 'growth of chunk sizes',
    ours: 'no effect: chunk sizes are fixed',
    apply: (_, value) => {
      if (!(Number(value) > 1)) throw new OptionError('Factor must be greater than 1');
    },
  },
  {
    name: '-n',
    long: 'slab-min-size',
    value: 'BYTES',
    doc: 'smallest chunk',
    ours: 'no effect: chunk sizes are fixed',
    apply: count('Chunk size', 1, NOTHING),
  },
  {
    name: '-L',
    long: 'enable-largepages',
    doc: 'try to use huge pages',
    ours: '--hugepages yes',
    apply: fixed('hugepages', 'yes'),
  },
  {
    name: '-D',
    value: 'CHARACTER',
    doc: 'what ends a key prefix in stats detail; switches it on',
    ours: '--memcached-prefix-delimiter, --memcached-detail',
    apply: (plan, value) => {
      plan.flags.set('memcached-prefix-delimiter', value);
      plan.flags.set('memcached-detail', 'yes');
    },
  },
  {
    name: '-t',
    long: 'threads',
    value: 'N',
    doc: 'threads; as many as cores less one by default, at most 4',
    ours: '--workers',
    apply: count('Number of threads', 1, (plan, value) => void plan.flags.set('workers', String(Math.min(value, 64)))),
  },
  {
    name: '-R',
    long: 'max-reqs-per-event',
    value: 'N',
    doc: 'requests of one connection before the others have their turn',
    ours: '--memcached-requests-per-turn',
    apply: count('Number of requests per event', 1, (plan, value) => {
      plan.flags.set('memcached-requests-per-turn', String(Math.min(value, 1024)));
    }),
  },
  {
    name: '-C',
    long: 'disable-cas',
    doc: 'no CAS numbers',
    ours: '--memcached-cas no',
    apply: fixed('memcached-cas', 'no'),
  },
  {
    name: '-b',
    long: 'listen-backlog',
    value: 'N',
    doc: 'length of the accept queue',
    ours: '--tcp-backlog',
    apply: flag('tcp-backlog'),
  },
  {
    name: '-B',
    long: 'protocol',
    value: 'NAME',
    doc: 'auto, ascii or binary',
    ours: '--memcached-protocol',
    apply: (plan, value) => {
      if (!['auto', 'ascii', 'binary'].includes(value)) {
        throw new OptionError(
          `Invalid value for binding protocol: ${value}\n -- should be one of auto, binary, or ascii`,
        );
      }
      plan.flags.set('memcached-protocol', value);
    },
  },
  {
    name: '-I',
    long: 'max-item-size',
    value: 'SIZE',
    doc: 'largest item: bytes, or with k or m; 1m by default, 1k to 512m',
    ours: '--item-size-max',
    apply: itemSize,
  },
  {
    name: '-S',
    long: 'enable-sasl',
    doc: 'SASL (mechanism PLAIN), with the users of the file that MEMCACHED_SASL_PWDB names',
    ours: '--memcached-auth-file, --memcached-protocol binary',
    apply: switchOn('hasSasl'),
  },
  {
    name: '-F',
    long: 'disable-flush-all',
    doc: 'no flush_all',
    ours: '--memcached-flush no',
    apply: fixed('memcached-flush', 'no'),
  },
  {
    name: '-X',
    long: 'disable-dumping',
    doc: 'no stats cachedump, no lru_crawler metadump',
    ours: '--memcached-dump no',
    apply: fixed('memcached-dump', 'no'),
  },
  {
    name: '-W',
    long: 'disable-watch',
    doc: 'no watch',
    ours: '--memcached-watch no',
    apply: fixed('memcached-watch', 'no'),
  },
  {
    name: '-Y',
    long: 'auth-file',
    value: 'FILE',
    doc: 'ask for a password in the text protocol; user:password lines',
    ours: '--memcached-auth-file, --memcached-protocol ascii',
    apply: flag('memcached-auth-file'),
  },
  {
    name: '-e',
    long: 'memory-file',
    value: 'FILE',
    doc: 'keep items over a restart of the process',
    ours: '--pool FILE.entresol; without -e a restart begins empty',
    apply: keep('memoryFile'),
  },
  ...EXTENDED_OPTIONS,
];
