/**
 * The interest table: who waits for, tracks or subscribes to what, over all participants.
 *
 * A page of bucket heads (262,144 words) and pages of 32-byte nodes, both taken at first use. A name (a key, a channel) is
 * known by two hashes, 64 bits together; node numbers are index + 1, counted over the node pages in the superblock's
 * directory, 0 = none.
 *
 *     | next | hash | check | kind, participant | value | sequence | - | - |
 *
 * Nodes of one bucket stand in the order in which they came: waiters are served first come, first served. All of it
 * changes under one lock (Super.INTEREST_LOCK_WORD), journaled like the allocator's words.
 */
export const enum Interest {
  HEADS = 262_144,
  HEADS_MASK = 262_143,

  NEXT_WORD = 0,
  HASH_WORD = 1,
  CHECK_WORD = 2,
  /** kind | participant << 8 */
  SHAPE_WORD = 3,
  /** CHANNEL, SHARD_CHANNEL: subscribers of that participant. WAITER: its wait record's page. */
  VALUE_WORD = 4,
  /** WAITER: the wait record's unit and the ticket, see below. */
  UNIT_WORD = 5,
  TICKET_WORD = 6,
  NODE_WORDS = 8,
  NODE_SHIFT = 3,
  NODES_PER_PAGE = 32_768,
  NODE_PAGE_SHIFT = 15,
  NODE_PAGES_MAX = 256,
}

export const enum InterestKind {
  FREE = 0,
  /** A blocked client's key. */
  WAITER = 1,
  /** A key that clients of the participant may have cached. */
  TRACKED = 2,
  CHANNEL = 3,
  SHARD_CHANNEL = 4,
}

/**
 * A wait record: the request of a blocked client, in a page of its worker, for whoever makes one of its keys ready.
 *
 *     | state | ticket | flags, db | argc | kind | - | - | - | (offset, length) x argc | argument bytes |
 *
 * Offsets count from the record's first byte. The owner alone allocates and frees; everyone else claims a record (WAITING ->
 * SERVING | own number) before touching it, and looks at its ticket then: records are reused, tickets are not.
 */
export const enum Wait {
  STATE_WORD = 0,
  TICKET_WORD = 1,
  /** database | protocol << 8 | ALONE | NO_TOUCH */
  FLAGS_WORD = 2,
  ARGC_WORD = 3,
  /** The kind of value it waits for: an ItemType. */
  TYPE_WORD = 4,
  HEADER_WORDS = 8,

  DB_MASK = 0xff,
  PROTOCOL_SHIFT = 8,
  PROTOCOL_MASK = 0xf,
  /** It changes further keys: only a participant that runs alone (gate closed) may serve it. */
  ALONE = 0x1000,
  NO_TOUCH = 0x2000,
  /** It is answered too, with the error, when its key is gone or of another type. */
  UNTIL_GONE = 0x4000,

  BYTES_MIN = 256,
  BYTES_MIN_SHIFT = 8,
  /** The largest request that can wait. */
  BYTES_MAX = 0x100000,
}

export const enum WaitState {
  FREE = 0,
  WAITING = 1,
  /** | participant << 8: that one is running the request. */
  SERVING = 2,
  /** The reply is on its way. */
  SERVED = 3,
  MASK = 0xff,
}

/**
 * The pattern page: pattern subscriptions of all participants, for publishers to match against. Changes under the interest table's lock.
 *
 *     | bytes used | - ... | records from byte 64: | bytes | participant | clients | length | pattern ... |
 *
 * A record whose count of clients is 0 is free for another pattern that fits; the count is written last.
 */
export const enum PatternPage {
  USED_WORD = 0,
  RECORDS_OFFSET = 64,
  BYTES_WORD = 0,
  SEAT_WORD = 1,
  COUNT_WORD = 2,
  LENGTH_WORD = 3,
  HEADER_BYTES = 16,
}
