/** memcached's extended options (-o name, -o name=value). */
import { count, fixed, flag, type MemcachedOption, OptionError, type Plan, without } from './memcached-option.js';

function externalPath(plan: Plan, value: string): void {
  const [, path, size] = /^(.+):(\d+[kKmMgGtT]?)$/.exec(value) ?? [];
  if (path === undefined) throw new OptionError('ext_path needs a path and a size: ext_path=/mnt/d1/extstore:1G');
  plan.flags.set('pool', `${path}.entresol`);
  plan.flags.set('capacity', /[a-zA-Z]$/.test(size) ? `${size}iB` : size);
  plan.flags.set('tier', 'auto');
}

export const EXTENDED_OPTIONS: readonly MemcachedOption[] = [
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
