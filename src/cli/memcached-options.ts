/**
 * memcached's command-line options and what they mean here: one table, from which parsing, --help and the table in
 * docs/memcached.md are made.
 *
 * Invariant: every option of memcached 1.6.18 that its help lists is here, if only to say that it has no effect.
 */
import { parseSize } from '../config/index.js';

/** What a command line of memcached asks for, in our terms. */
export interface Plan {
  /** Our flags, without the dashes: name -> value. */
  readonly flags: Map<string, string>;
  /** Arguments that need more than a flag. */
  memoryMib: number;
  addresses: string[];
  tcpPort: string | null;
  udpPort: string | null;
  verbosity: number;
  isDaemon: boolean;
  pidFile: string | null;
  user: string | null;
  memoryFile: string | null;
  hasSasl: boolean;
  itemSizeMax: number;
}

/** An option that cannot be: the message for the user. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
}

export interface MemcachedOption {
  /** As typed: `-p`, or `-o idle_timeout`. */
  readonly name: string;
  readonly long?: string;
  /** Placeholder of the value; absent for switches. */
  readonly value?: string;
  /** The value may be left out (some -o options). */
  readonly isValueOptional?: boolean;
  readonly doc: string;
  /** What it is here, for the documentation: our flag, or words. */
  readonly ours: string;
  readonly apply: (plan: Plan, value: string) => void;
}

function flag(name: string): (plan: Plan, value: string) => void {
  return (plan, value) => void plan.flags.set(name, value);
}

function fixed(name: string, text: string): (plan: Plan) => void {
  return (plan) => void plan.flags.set(name, text);
}

function count(what: string, least: number, set: (plan: Plan, value: number) => void) {
  return (plan: Plan, value: string): void => {
    const number = Number(value);
    if (!/^-?\d+$/.test(value) || number < least) throw new OptionError(`${what} must be at least ${least}`);
    set(plan, number);
  };
}

function keep(key: 'tcpPort' | 'udpPort' | 'pidFile' | 'user' | 'memoryFile') {
  return (plan: Plan, value: string): void => {
    plan[key] = value;
  };
}

function switchOn(key: 'isDaemon' | 'hasSasl') {
  return (plan: Plan): void => {
    plan[key] = true;
  };
}

const NOTHING = (): void => undefined;

function without(name: string, doc: string, why: string, value?: string, long?: string): MemcachedOption {
  return { name, long, value, isValueOptional: name.startsWith('-o'), doc, ours: `no effect: ${why}`, apply: NOTHING };
}

function itemSize(plan: Plan, value: string): void {
  const bytes = parseSize(/[kKmM]$/.test(value) ? `${value}b` : value);
  if (bytes === undefined) throw new OptionError('-I needs a size: bytes, or with k or m');
  if (bytes < 1024) throw new OptionError('Item max size cannot be less than 1024 bytes.');
  if (bytes > 1024 ** 3) throw new OptionError('Cannot set item size limit higher than a gigabyte.');
  plan.itemSizeMax = bytes;
}

function externalPath(plan: Plan, value: string): void {
  const [, path, size] = /^(.+):(\d+[kKmMgGtT]?)$/.exec(value) ?? [];
  if (path === undefined) throw new OptionError('ext_path needs a path and a size: ext_path=/mnt/d1/extstore:1G');
  plan.flags.set('pool', `${path}.entresol`);
  plan.flags.set('capacity', /[a-zA-Z]$/.test(size) ? `${size}iB` : size);
  plan.flags.set('tier', 'auto');
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
    doc: 'addresses to listen on, all by default',
    ours: '--bind; one port for all of them',
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
  {
    name: '-o idle_timeout',
    value: 'SECONDS',
    doc: 'close idle connections; 0 = never',
    ours: '--timeout',
    apply: flag('timeout'),
  },
  {
    name: '-o watcher_logbuf_size',
    value: 'KILOBYTES',
    doc: 'unread lines of a watching connection',
    ours: '--memcached-watch-buffer',
    apply: count('watcher_logbuf_size', 4, (plan, value) => {
      plan.flags.set('memcached-watch-buffer', String(value * 1024));
    }),
  },
  {
    name: '-o ext_path',
    value: 'PATH:SIZE',
    doc: 'store on disk what does not fit in memory',
    ours: '--pool PATH.entresol, --capacity SIZE',
    apply: externalPath,
  },
  {
    name: '-o lru_crawler',
    doc: 'answer lru_crawler crawl and metadump (on by default)',
    ours: '--memcached-lru-crawler yes',
    apply: fixed('memcached-lru-crawler', 'yes'),
  },
  {
    name: '-o no_lru_crawler',
    doc: 'answer them with an error',
    ours: '--memcached-lru-crawler no',
    apply: fixed('memcached-lru-crawler', 'no'),
  },
  {
    name: '-o no_modern',
    doc: 'defaults of the previous major version',
    ours: '--memcached-lru-crawler no',
    apply: fixed('memcached-lru-crawler', 'no'),
  },
  without('-o ext_page_size', 'size of a page on disk', 'pages are 1 MiB', 'MEGABYTES'),
  without('-o ext_wbuf_size', 'write buffer', 'pages are written in place', 'MEGABYTES'),
  without('-o ext_threads', 'threads that read and write', 'the file is mapped', 'N'),
  without('-o ext_io_depth', 'requests under way', 'the file is mapped', 'N'),
  without('-o ext_item_size', 'smallest item that may go to disk', 'what is not used goes, whatever its size', 'BYTES'),
  without('-o ext_item_age', 'idle time after which an item goes', 'items go when memory is needed', 'SECONDS'),
  without('-o ext_low_ttl', 'items with short lives apart', 'expired items are dropped with their page', 'SECONDS'),
  without('-o ext_drop_unread', 'drop unread items when compacting', 'so in any case'),
  without('-o ext_recache_rate', 'accesses after which an item comes back', 'reading leaves an item where it is', 'N'),
  without('-o ext_compact_under', 'free pages below which to compact', 'the oldest page is reclaimed first', 'N'),
  without('-o ext_drop_under', 'free pages below which to drop', 'the oldest page is reclaimed first', 'N'),
  without('-o ext_max_frag', 'fragmentation of a page', 'the oldest page is reclaimed first', 'RATIO'),
  without('-o ext_max_sleep', 'pause of background threads', 'there are none', 'MICROSECONDS'),
  without('-o modern', 'defaults of the next version', 'there are none to change'),
  without('-o maxconns_fast', 'close connections above the limit at once (default)', 'always so'),
  without('-o no_maxconns_fast', 'make them wait instead', 'they are always closed at once'),
  without('-o hashpower', 'size of the hash table', 'it grows by single buckets', 'N'),
  without('-o no_hashexpand', 'never grow the hash table', 'it grows by single buckets'),
  without('-o hash_algorithm', 'hash function', 'the hash is keyed HalfSipHash', 'NAME'),
  without('-o tail_repair_time', 'free items whose reader died', 'readers hold no items', 'SECONDS'),
  without(
    '-o lru_crawler_sleep',
    'pause of the crawler',
    'expired items are swept within a time budget',
    'MICROSECONDS',
  ),
  without('-o lru_crawler_tocrawl', 'items of a crawl', 'expired items are swept within a time budget', 'N'),
  without('-o lru_maintainer', 'segmented LRU', 'replacement is a clock hand with access bits'),
  without('-o no_lru_maintainer', 'flat LRU', 'replacement is a clock hand with access bits'),
  without('-o hot_lru_pct', 'size of a segment', 'there are no LRU segments', 'N'),
  without('-o warm_lru_pct', 'size of a segment', 'there are no LRU segments', 'N'),
  without('-o hot_max_factor', 'age of a segment', 'there are no LRU segments', 'FACTOR'),
  without('-o warm_max_factor', 'age of a segment', 'there are no LRU segments', 'FACTOR'),
  without('-o temporary_ttl', 'items with short lives apart', 'there are no LRU segments', 'SECONDS'),
  without('-o slab_reassign', 'allow slabs reassign (default)', 'always allowed'),
  without('-o no_slab_reassign', 'forbid it', 'always allowed'),
  without('-o slab_automove', 'move pages between slab classes (default)', 'pages always move', '0|1|2'),
  without('-o no_slab_automove', 'do not', 'pages always move'),
  without('-o slab_automove_ratio', 'when to move', 'pages move by the age of items', 'RATIO'),
  without('-o slab_automove_window', 'when to move', 'pages move by the age of items', 'N'),
  without('-o slab_automove_freeratio', 'when to move', 'pages move by the age of items', 'RATIO'),
  without('-o slab_chunk_max', 'largest chunk', 'items above 256 KiB own whole pages', 'KILOBYTES'),
  without('-o worker_logbuf_size', 'log lines of a worker', 'lines leave each turn', 'KILOBYTES'),
  without('-o read_buf_mem_limit', 'memory for reading', 'input buffers are shared and fixed', 'MEGABYTES'),
  without(
    '-o resp_obj_mem_limit',
    'memory for replies',
    '--client-output-buffer-hard limits a connection',
    'MEGABYTES',
  ),
  without('-o track_sizes', 'stats sizes', 'stats sizes is always off'),
  without('-o inline_ascii_resp', 'nothing (obsolete)', 'obsolete'),
  without('-o no_inline_ascii_resp', 'nothing (obsolete)', 'obsolete'),
  without('-o relaxed_privileges', 'fewer restrictions for tests', 'system calls are not restricted'),
  without('-o drop_privileges', 'restrict system calls', 'system calls are not restricted'),
  without('-o sock_cookie_id', 'mark sockets', 'not supported', 'ID'),
];
