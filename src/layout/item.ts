/**
 * An item: header, key, value, contiguous, at a 16-byte unit of a slab, log or large page.
 *
 *      0        4        8    10 11 12       16       20       24              24+keyLength
 *     +--------+--------+-----+--+--+--------+--------+--------+----------------+-------------
 *     | hash   | value  | key |te|db| client | version| version| key            | value
 *     |        | length | len |  |  | flags  | low    | high   |                |
 *     +--------+--------+-----+--+--+--------+--------+--------+----------------+-------------
 *
 * All little-endian. `te` = type (low 4 bits) | encoding flags (high 4 bits). `db` = physical database (see
 * store/databases). In a free slab chunk valueLength is FREE_CHUNK and the first word the next free chunk of the page + 1.
 * Version is the memcached CAS number, below 2^53, unique for a key over all time.
 *
 * Example: key "k1", value "abc", database 0, string, version 7, hash 0x01020304, no client flags:
 *     04 03 02 01  03 00 00 00  02 00 01 00  00 00 00 00  07 00 00 00  00 00 00 00  6b 31 61 62 63
 */
export const enum Item {
  HASH_WORD = 0,
  VALUE_LENGTH_WORD = 1,
  /** keyLength | type << 16 | encoding << 20 | db << 24 */
  SHAPE_WORD = 2,
  CLIENT_FLAGS_WORD = 3,
  VERSION_LOW_WORD = 4,
  VERSION_HIGH_WORD = 5,
  HEADER_BYTES = 24,
  HEADER_WORDS = 6,

  KEY_LENGTH_MASK = 0xffff,
  TYPE_SHIFT = 16,
  TYPE_MASK = 0xf,
  ENCODING_SHIFT = 20,
  ENCODING_MASK = 0xf,
  DB_SHIFT = 24,

  MAX_KEY_BYTES = 65535,
  MAX_VALUE_BYTES = 0x20000000,
  /** valueLength of a free slab chunk. */
  FREE_CHUNK = -1,
}

export const enum ItemType {
  NONE = 0,
  STRING = 1,
  LIST = 2,
  SET = 3,
  ZSET = 4,
  HASH = 5,
  STREAM = 6,
  /** Not items: a node of a collection's tree, an element too large for its leaf (layout/node). */
  NODE = 7,
  BLOB = 8,
  /** Neither: a record of the capacity log with a part of a large collection's checkpoint (layout/checkpoint). */
  CHECKPOINT = 9,
}

/** Encoding bits of an item's shape word. */
export const enum Encoding {
  /** Changed in place by APPEND or SETRANGE: OBJECT ENCODING says raw. */
  RAW = 1,
  /** memcached meta: marked stale by an invalidating delete or set. */
  STALE = 2,
  /** memcached meta: some client holds the right to recache. */
  WIN_SENT = 4,
  /** A number that INCRBYFLOAT made: OBJECT ENCODING never says int. */
  TEXT = 8,
}

export function shapeWord(keyLength: number, type: number, encoding: number, db: number): number {
  return keyLength | (type << Item.TYPE_SHIFT) | (encoding << Item.ENCODING_SHIFT) | (db << Item.DB_SHIFT);
}

/** Bytes of a whole item. */
export function itemBytes(keyLength: number, valueLength: number): number {
  return Item.HEADER_BYTES + keyLength + valueLength;
}
