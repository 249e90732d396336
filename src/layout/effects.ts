/**
 * The effect log: what a pool of durability `durable` writes down of each change, in memory and in files.
 *
 * A participant appends *pieces* to the ring of its seat (one DRAM page, kept for the seat's next owner). A record is one piece, or several
 * when it is longer than the ring has room for; its position among all records is the number of its last piece.
 *
 *     ring page   head | tail | pending | waits | page of 4 KiB to here | data, a ring of DATA_BYTES
 *     piece       payload bytes | number | time low | time high (16 bits), flags << 16 | payload, padded to 16
 *     payload     effects, one behind the other
 *
 *     key        kind, db, a, b, 1 each | version, 8 | key length, 2 | key      begins the first three
 *     STATE      key (a = encoding, b = type) | flags, 4 | expiry, 8 | value length, 4 | value
 *     DELETION   key
 *     EXPIRY     key | expiry, 8
 *     COMMAND    kind, db | words, 2 | version, 8 | (length, 4 | bytes) for each word; word 1 is the key
 *     FLUSH      kind, db (255 = all), 0, 0
 *     SWAP       kind, db, other db, 0
 *
 * The log's files are *segments*, numbered without a gap, each of a fixed size that is reserved before it is used:
 *
 *     segment      magic, 8 | version, 4 | number, 4 | check, 4 | 0, 12
 *     group        magic, 4 | bytes behind the header, 4 | cut, 4 | safe, 4 | check, 4 | 0, 12 | parts
 *     part         seat, 4 | bytes of pieces, 4 | 0, 8 | pieces
 *
 * A group holds all pieces below a number (the cut) that no earlier group holds: so a file that ends after any group is the log up to a moment.
 * A checkpoint has the same form: states of keys instead of changes, then one group whose cut is the last number given by the end.
 * `safe` is how far the file was persistent when the group was written: what is damaged before that was not merely cut short. All numbers
 * little-endian. Check words are CRC-32C, seeded with the number of the file.
 */
export const enum Ring {
  /** Bytes ever appended, bytes ever taken away (both modulo 2^32). */
  HEAD_WORD = 0,
  TAIL_WORD = 1,
  /** 1 = its owner is taking a number and will have appended the piece that belongs to it when this is 0 again. */
  PENDING_WORD = 2,
  /** 1 = its owner wants to be woken when the log has become persistent. */
  WAITS_WORD = 3,
  DATA_BYTE = 4096,
  /** A power of two, so that positions wrap with their counters. */
  DATA_BYTES = 524_288,
}

export const enum Piece {
  PAYLOAD_WORD = 0,
  NUMBER_WORD = 1,
  TIME_LOW_WORD = 2,
  TIME_HIGH_FLAGS_WORD = 3,
  HEADER_BYTES = 16,
  /** The first piece of a record, the last one. */
  FIRST = 0x1_0000,
  LAST = 0x2_0000,
  TIME_HIGH_MASK = 0xffff,
}

export const enum EffectKind {
  STATE = 1,
  DELETION = 2,
  EXPIRY = 3,
  COMMAND = 4,
  FLUSH = 5,
  SWAP = 6,
}

/** Database of FLUSH that means all of them. */
export const ALL_DATABASES = 255;
/** Type of a STATE whose value is a string's bytes as they are; others are those of RDB. */
export const PLAIN_STRING = 255;

export const enum Segment {
  /** 'ENTRLOG1' */
  MAGIC_LOW = 0x5254_4e45,
  MAGIC_HIGH = 0x3147_4f4c,
  VERSION = 1,
  MAGIC_LOW_WORD = 0,
  MAGIC_HIGH_WORD = 1,
  VERSION_WORD = 2,
  NUMBER_WORD = 3,
  CHECK_WORD = 4,
  HEADER_BYTES = 32,
}

export const enum Group {
  /** 'GRUP', and of the last group of a checkpoint 'CEND' */
  MAGIC = 0x5055_5247,
  END_MAGIC = 0x444e_4543,
  MAGIC_WORD = 0,
  BYTES_WORD = 1,
  CUT_WORD = 2,
  SAFE_WORD = 3,
  CHECK_WORD = 4,
  HEADER_BYTES = 32,
  PART_BYTES = 16,
  /** Positions in a file. */
  ALIGN = 16,
}

/** What Super.EFFECTS_STATE_WORD says of a pool. */
export const enum EffectsState {
  /** Fresh: what the log's files hold is not in it yet, or not all. */
  EMPTY = 0,
  /** The pool is what counts. */
  LIVE = 1,
}

/** What Super.EFFECTS_DOUBT_WORD says. */
export const enum Doubt {
  NO = 0,
  /** Something that has been done is not in the log: the next checkpoint holds it. */
  YES = 1,
  /** The same, and that checkpoint is under way. */
  BEING_SETTLED = 2,
}
