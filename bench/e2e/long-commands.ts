/**
 * What the `long` bench runs: the large keys, and commands that read, sort, store or remove many of their elements.
 *
 * Each command works on `k`, a fresh copy of the key that it names, so that it finds the same in every run.
 */
export interface LargeKey {
  readonly key: string;
  /** Words of a request that adds one element, before its own. */
  readonly add: readonly string[];
  element(i: number): readonly string[];
}

export interface LongCommand {
  readonly name: string;
  /** `k` is made a copy of it; '' = the command needs none. */
  readonly from: string;
  words(elements: number): readonly string[];
  /** False: Redis's semantics, or we, do it in one go; no bar. */
  readonly isJudged: boolean;
}

/** As long as the elements of one key together, roughly. */
export const BITS_BYTES_PER_ELEMENT = 100;
/** Equal elements of the list come again after so many. */
const VALUES = 10;

export const largeKeys: readonly LargeKey[] = [
  { key: 'list', add: ['RPUSH', 'list'], element: (i) => [`element:${i % VALUES}:`] },
  { key: 'numbers', add: ['RPUSH', 'numbers'], element: (i) => [String((i * 7919) % 1_000_003)] },
  { key: 'set', add: ['SADD', 'set'], element: (i) => [`member:${i}`] },
  { key: 'hash', add: ['HSET', 'hash'], element: (i) => [`field:${i}`, `value:${i}`] },
  { key: 'zset', add: ['ZADD', 'zset'], element: (i) => [String(i), `member:${i}`] },
];

function command(
  name: string,
  from: string,
  text: string | ((elements: number) => string),
  isJudged = true,
): LongCommand {
  return {
    name,
    from,
    isJudged,
    words: (elements) => (typeof text === 'string' ? text : text(elements)).split(' '),
  };
}

export const longCommands: readonly LongCommand[] = [
  command('keys', '', 'KEYS nothing*'),
  command('del', 'hash', 'DEL k'),
  command('copy', '', 'COPY zset k REPLACE'),
  command('lrange', '', 'LRANGE list 0 -1'),
  command('hgetall', '', 'HGETALL hash'),
  command('ltrim', 'list', (n) => `LTRIM k ${n >> 2} -${n >> 2}`),
  command('lrem', 'list', 'LREM k 0 element:3:'),
  command('lpos', '', 'LPOS list nothing'),
  command('linsert', 'list', 'LINSERT k BEFORE nothing x'),
  command('lpop', 'list', (n) => `LPOP k ${n >> 1}`),
  command('sort', '', 'SORT numbers'),
  command('sortby', '', 'SORT numbers BY weight:* LIMIT 0 1', false),
  command('smembers', '', 'SMEMBERS set'),
  command('sunionstore', '', 'SUNIONSTORE k set other'),
  command('spop', 'set', (n) => `SPOP k ${n >> 1}`),
  command('srandmember', '', (n) => `SRANDMEMBER set ${n >> 1}`),
  command('zunionstore', '', 'ZUNIONSTORE k 1 zset'),
  command('zremrangebyscore', 'zset', (n) => `ZREMRANGEBYSCORE k ${n >> 2} ${n}`),
  command('zremrangebyrank', 'zset', (n) => `ZREMRANGEBYRANK k 0 ${n >> 2}`),
  command('zpopmin', 'zset', (n) => `ZPOPMIN k ${n >> 1}`),
  command('zscan', '', (n) => `ZSCAN zset 0 COUNT ${n}`),
  command('xtrim', 'stream', (n) => `XTRIM k MAXLEN ${n >> 1}`),
  command('xrange', '', 'XRANGE stream - +'),
  command('bitcount', '', 'BITCOUNT bits'),
  command('bitop', '', 'BITOP NOT k bits'),
  command('dump', '', 'DUMP set'),
];
