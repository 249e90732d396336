/**
 * An index bucket: 128 bytes, two adjacent cache lines, seven entries. A lookup reads the first line; the second holds what
 * changes when an item is touched or expires.
 *
 *     line 1  word 0      overflow bucket: page << 13 | index, 0 = none
 *             word 1      bits 0-6 entry has an expiry; 7-13 entry was fetched; 14-27 two frequency bits an entry
 *             word 2+2i   tag << 16 | unit           (tag = high 16 bits of the key's hash)
 *             word 3+2i   page; 0 = the slot is empty
 *     line 2  word 16+2i  expiry, low 32 bits        (milliseconds since 1970; 0 = none)
 *             word 17+2i  expiry, high 16 bits << 16 | access, low 16 bits
 *             byte 120+i  access, high 8 bits        (last access in seconds, or LFU minutes and counter)
 *             byte 127    one bit an entry: the hand has seen that it was used, so it is worth a write to the capacity tier
 *
 * At the mean fill of 4.4 entries an item costs 29 bytes plus overflow buckets.
 * Example, slot 0 of an otherwise empty bucket, tag 0xabcd, page 3, unit 2, no expiry:
 *     words 0..3 = 0, 0, 0xabcd0002, 3
 */
export const enum Bucket {
  BYTES = 128,
  SHIFT = 7,
  WORDS = 32,
  SLOTS = 7,
  /** Buckets in an index page, as a shift and a mask. */
  PAGE_SHIFT = 13,
  PAGE_MASK = 8191,
  PER_PAGE = 8192,

  OVERFLOW_WORD = 0,
  BITS_WORD = 1,
  SLOT_WORD = 2,
  META_WORD = 16,
  ACCESS_HIGH_BYTE = 120,
  PROVEN_BYTE = 127,

  FETCHED_SHIFT = 7,
  FREQUENCY_SHIFT = 14,
  FREQUENCY_MAX = 3,
  /** Access words count modulo 2^24, as Redis's LRU clock does. */
  ACCESS_MASK = 0xffffff,
}
