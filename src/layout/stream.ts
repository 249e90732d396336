/**
 * A stream in its collection: entries in the main tree, everything else in the meta words and the side tree.
 *
 * Numbers in keys are *ordered*: they sort as bytes as they do as numbers. Up to 247 it is the number itself in one byte; above, 247 + n
 * and its n significant bytes, the highest first. An id is its milliseconds in six bytes, the highest first (from 0xff << 40 on 0xff and eight
 * bytes), and its sequence as an ordered number: so that the eight bytes by which trees are searched tell most ids apart.
 *
 *     main tree    id                        -> 0 | pairs | (length name length value)*      names in the entry
 *                                            or schema | (length value)*                     those of a schema
 *     side tree    1 schema                  -> hash (4) | fields | (length name)*
 *                  2 name                    -> a group: number (4) | last delivered id (16) | entries read (8) | next consumer (4)
 *                  3 group name              -> a consumer: number (4) | seen (8) | active (8)
 *                  4 group id                -> pending: consumer (4) | delivered at (6) | deliveries (6)
 *                  5 group consumer id       -> nothing: what is pending, by consumer
 *                  6 group consumer          -> the consumer's name
 *
 * Groups and consumers have numbers so that what is pending need not repeat names; how much is pending is a difference of ranks, which
 * nobody has to count. Field names that come again are written once, as a schema; a packed stream has no side tree and so no schemas.
 * Lengths: one byte; 0xfe and two; 0xff and four. In values ids are four words, the highest first, times and read counters are doubles.
 *
 * Example, entry 1526919030474-0 with the one field f = v:
 *     01 63 83 77 66 ca 00 -> 00 01 01 66 01 76
 */

/** Meta words of the collection. */
export const enum StreamMeta {
  /** Four words, the highest first. */
  LAST_ID_WORD = 0,
  MAX_DELETED_ID_WORD = 4,
  /** A double. */
  ENTRIES_ADDED_WORD = 8,
  /** Number of the schema that the last entry has, 0 = none; how many there are. */
  SCHEMA_WORD = 10,
  SCHEMAS_WORD = 11,
  /** Hash of the last entry's field names. */
  NAMES_HASH_WORD = 12,
  NEXT_GROUP_WORD = 13,
  /** Entries of the first node that trims with ~ count by (store/streams/trim), 0 = it is whole. */
  FIRST_NODE_WORD = 14,
  WORDS = 15,
}

/** First byte of the side tree's keys. */
export const enum SideKey {
  SCHEMA = 1,
  GROUP = 2,
  CONSUMER = 3,
  PENDING = 4,
  OWNED = 5,
  CONSUMER_NAME = 6,
}

export const enum OrderedNumber {
  /** Largest number of one byte. */
  SHORT_MAX = 247,
  BYTES_MAX = 9,
  /** Of a group or consumer. */
  SMALL_BYTES_MAX = 5,
}

export const enum IdKey {
  /** First byte of ids whose milliseconds take eight bytes, which follow. */
  LONG_TIME = 0xff,
  LONG_TIME_BYTES = 9,
}

/** Bytes of an id in keys, at most. */
export const ID_KEY_BYTES_MAX = IdKey.LONG_TIME_BYTES + OrderedNumber.BYTES_MAX;
/** Bytes of an id in values. */
export const ID_BYTES = 16;

export const enum GroupRecord {
  NUMBER = 0,
  LAST_ID = 4,
  ENTRIES_READ = 20,
  NEXT_CONSUMER = 28,
  BYTES = 32,
}

export const enum ConsumerRecord {
  NUMBER = 0,
  SEEN = 4,
  ACTIVE = 12,
  BYTES = 20,
}

export const enum PendingRecord {
  CONSUMER = 0,
  DELIVERED_AT = 4,
  DELIVERIES = 10,
  BYTES = 16,
}

export const enum SchemaRecord {
  HASH = 0,
  FIELDS = 4,
}

export const enum EntryLength {
  TWO_BYTES = 0xfe,
  FOUR_BYTES = 0xff,
}

/** Groups whose read counter is unknown. */
export const NO_COUNTER = -1;
