/**
 * Parts of a checkpoint: a large collection of a warm pool as records of the capacity log, each with the key, version and expiry of the
 * collection's item, type CHECKPOINT, and a value of
 *
 *     | 0 page of the part before, in the tier, + 1; 0 = it is the first | 4 its unit | 6 number of the part, bit 15: the last | 8 bytes of the payload |
 *
 * The payload is that of DUMP without its frame. A checkpoint is worth what all of its parts together are: one that is dead, damaged or missing
 * voids it.
 */
export const enum Checkpoint {
  PAGE_BYTE = 0,
  UNIT_BYTE = 4,
  NUMBER_BYTE = 6,
  LAST_FLAG = 0x8000,
  NUMBER_MASK = 0x7fff,
  HEADER_BYTES = 8,
  /** Of the payload in one part: the end of a page that the next part does not fit is waste. */
  PART_BYTES = 65536,
  /** Larger collections have no checkpoint. */
  PAYLOAD_BYTES_MAX = 0x1000000,
}
