/**
 * What the reference says beside names that the program declares without words: error codes and memcached commands.
 * generate.mjs fails when a declared name has no entry here.
 */

/** First words of Redis error replies -> meaning. */
export const REPLY_CODES = {
  ERR: 'The command is wrong or cannot be carried out; the rest of the line says why.',
  WRONGTYPE: 'The key holds a value of another type.',
  OOM: 'Memory is full and the policy lets nothing be evicted (`maxmemory-policy`).',
  NOAUTH: 'A password is needed: AUTH first.',
  WRONGPASS: 'User or password is wrong.',
  NOPERM: 'The user may not do that.',
  NOPROTO: 'HELLO asked for a protocol version other than 2 and 3.',
  EXECABORT: 'EXEC of a transaction in which a command was refused; nothing was done.',
  BUSY: 'A script or function runs for too long. SCRIPT KILL or FUNCTION KILL ends it.',
  BUSYKEY: 'The target key exists.',
  BUSYGROUP: 'The consumer group exists.',
  NOGROUP: 'There is no such consumer group.',
  NOSCRIPT: 'No script has this digest: EVAL it, or SCRIPT LOAD.',
  NOTBUSY: 'There is no script to kill.',
  UNKILLABLE: 'The script has written already; it cannot be ended halfway.',
  UNBLOCKED: 'The blocked command was ended by CLIENT UNBLOCK.',
  INVALIDOBJ: 'The object cannot be read.',
  OTHER: 'Counted so in INFO errorstats: any code that is not in this table.',
};

/** memcached command -> its request line. */
export const MEMCACHED_COMMANDS = {
  get: 'get KEY...',
  gets: 'gets KEY...',
  gat: 'gat EXPTIME KEY...',
  gats: 'gats EXPTIME KEY...',
  set: 'set KEY FLAGS EXPTIME BYTES [noreply]',
  add: 'add KEY FLAGS EXPTIME BYTES [noreply]',
  replace: 'replace KEY FLAGS EXPTIME BYTES [noreply]',
  append: 'append KEY FLAGS EXPTIME BYTES [noreply]',
  prepend: 'prepend KEY FLAGS EXPTIME BYTES [noreply]',
  cas: 'cas KEY FLAGS EXPTIME BYTES CAS [noreply]',
  ms: 'ms KEY BYTES FLAG...',
  mg: 'mg KEY FLAG...',
  md: 'md KEY FLAG...',
  ma: 'ma KEY FLAG...',
  mn: 'mn',
  me: 'me KEY',
  delete: 'delete KEY [noreply]',
  incr: 'incr KEY N [noreply]',
  decr: 'decr KEY N [noreply]',
  touch: 'touch KEY EXPTIME [noreply]',
  stats: 'stats [TOPIC]',
  flush_all: 'flush_all [DELAY] [noreply]',
  version: 'version',
  verbosity: 'verbosity LEVEL [noreply]',
  quit: 'quit',
  shutdown: 'shutdown [graceful]',
  lru: 'lru tune|mode|temp_ttl ...',
  lru_crawler: 'lru_crawler enable|disable|sleep|tocrawl|crawl|metadump|mgdump ...',
  slabs: 'slabs reassign|automove ...',
  cache_memlimit: 'cache_memlimit MEGABYTES [noreply]',
  watch: 'watch fetchers|mutations|evictions|connevents ...',
};
