/**
 * What the tokenizer tells the driver: one fixed-size record for each request, in an Int32Array.
 *
 *   record                                             tokens (pairs)
 *   +---------+-------+------------+------------+      +--------+--------+
 *   | command | flags | tokenFirst | tokenCount | ---> | offset | length |  token 0 is the command's name
 *   +---------+-------+------------+------------+      +--------+--------+
 *   | lineEnd | valueOffset | valueLength | next  |    | offset | length |  token 1 ...
 *   +---------+-------------+-------------+-------+    +--------+--------+
 *
 * All offsets point into the input they were parsed from; nothing is copied. A record is valid only as long as that
 * input stays where it is (one loop turn).
 */

/** Words of a request record. */
export const enum Request {
  /** CommandCode */
  command = 0,
  /** RequestFlag bits */
  flags = 1,
  /** Index into the tokens array (in pairs) of this request's token 0. */
  tokenFirst = 2,
  /** Recorded tokens, at most MAX_TOKENS. */
  tokenCount = 3,
  /** Offset after the last byte of the command line, its CR LF excluded. */
  lineEnd = 4,
  /** The data block of a storage command; -1 = the command has none. */
  valueOffset = 5,
  valueLength = 6,
  /** Offset after the whole request. Above the input's end when a data block is still on its way. */
  next = 7,
  WORDS = 8,
}

export const enum RequestFlag {
  NONE = 0,
  /** The last token is `noreply`. */
  NOREPLY = 1,
  /** The data block is not followed by CR LF. */
  BAD_CHUNK = 2,
  /** The line holds more tokens than were recorded; the rest begins after the last recorded one. */
  MORE_TOKENS = 4,
}

/** As in memcached: 24 tokens a line; only retrieval commands may have more. */
export const MAX_TOKENS = 24;

/** Requests parsed ahead before they are executed. */
export const BATCH_REQUESTS = 64;

/** Longest key. */
export const MAX_KEY_BYTES = 250;

export const enum CommandCode {
  UNKNOWN = 0,
  // Retrieval: any number of keys.
  GET = 1,
  GETS = 2,
  GAT = 3,
  GATS = 4,
  // Storage: a data block follows.
  SET = 5,
  ADD = 6,
  REPLACE = 7,
  APPEND = 8,
  PREPEND = 9,
  CAS = 10,
  META_SET = 11,
  // Meta without a data block.
  META_GET = 12,
  META_DELETE = 13,
  META_ARITHMETIC = 14,
  META_NOOP = 15,
  META_DEBUG = 16,
  // One key.
  DELETE = 17,
  INCR = 18,
  DECR = 19,
  TOUCH = 20,
  // Administration.
  STATS = 21,
  FLUSH_ALL = 22,
  VERSION = 23,
  VERBOSITY = 24,
  QUIT = 25,
  SHUTDOWN = 26,
  LRU = 27,
  LRU_CRAWLER = 28,
  SLABS = 29,
  CACHE_MEMLIMIT = 30,
  WATCH = 31,
}
