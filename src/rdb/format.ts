/**
 * What RDB files and DUMP payloads are made of: the numbers of types and opcodes, and the forms of lengths and strings.
 *
 *     payload of DUMP   | type | value | version, 2 bytes | CRC-64 of all before, 8 bytes |
 *     file              | "REDIS" | version, 4 digits | (opcode ... | [expiry] [use] type, key, value)* | EOF | CRC-64 |
 *     length            00xxxxxx | 01xxxxxx x | 0x80 + 4 bytes, big-endian | 0x81 + 8 bytes, big-endian
 *     string            length, bytes | 0xc0 int8 | 0xc1 int16 | 0xc2 int32 | 0xc3 length when packed, length, LZF
 *
 * All other numbers are little-endian. The numbers here are Redis's and never change.
 *
 * Example, DUMP of the string "10" as version 10: 00 c0 0a | 0a 00 | 8 bytes of CRC.
 */

export const enum RdbType {
  STRING = 0,
  LIST = 1,
  SET = 2,
  /** Scores as text. */
  ZSET = 3,
  HASH = 4,
  /** Scores as doubles. */
  ZSET_2 = 5,
  MODULE_PRE_GA = 6,
  MODULE_2 = 7,
  HASH_ZIPMAP = 9,
  LIST_ZIPLIST = 10,
  SET_INTSET = 11,
  ZSET_ZIPLIST = 12,
  HASH_ZIPLIST = 13,
  LIST_QUICKLIST = 14,
  STREAM_LISTPACKS = 15,
  HASH_LISTPACK = 16,
  ZSET_LISTPACK = 17,
  LIST_QUICKLIST_2 = 18,
  STREAM_LISTPACKS_2 = 19,
  SET_LISTPACK = 20,
  STREAM_LISTPACKS_3 = 21,
  /** Release candidates of 7.4: expiries of fields are absolute, and no earliest one stands in front. */
  HASH_METADATA_PRE_GA = 22,
  HASH_LISTPACK_EX_PRE_GA = 23,
  HASH_METADATA = 24,
  HASH_LISTPACK_EX = 25,
}

export const enum Opcode {
  SLOT_INFO = 244,
  FUNCTION2 = 245,
  FUNCTION_PRE_GA = 246,
  MODULE_AUX = 247,
  IDLE = 248,
  FREQ = 249,
  AUX = 250,
  RESIZEDB = 251,
  EXPIRETIME_MS = 252,
  EXPIRETIME = 253,
  SELECTDB = 254,
  EOF = 255,
}

/** Parts of a module's value. */
export const enum ModuleOpcode {
  EOF = 0,
  SINT = 1,
  UINT = 2,
  FLOAT = 3,
  DOUBLE = 4,
  STRING = 5,
}

/** First bytes of lengths, and of strings that are kept in another way. */
export const enum Code {
  LENGTH_14_BITS = 0x40,
  LENGTH_32_BITS = 0x80,
  LENGTH_64_BITS = 0x81,
  INT8 = 0xc0,
  INT16 = 0xc1,
  INT32 = 0xc2,
  LZF = 0xc3,
}

/** Nodes of quicklists: one element as it is, or a listpack. */
export const enum QuicklistNode {
  PLAIN = 1,
  PACKED = 2,
}

/** Versions by what they brought. */
export const enum Version {
  MIN = 1,
  /** A CRC-64 at the end. */
  CHECKSUM = 5,
  /** What Redis 7.0 reads and writes: listpacks, functions. */
  REDIS_7_0 = 10,
  /** Redis 7.2: sets as listpacks, streams with times of use. */
  REDIS_7_2 = 11,
  /** Redis 7.4: fields with an expiry. */
  REDIS_7_4 = 12,
  MAX = 12,
}

/** Version and CRC behind a payload. */
export const TRAILER_BYTES = 10;
export const CHECKSUM_BYTES = 8;

/** What is wrong with bytes that came from elsewhere. */
export class RdbError extends Error {
  override readonly name = 'RdbError';
}
