/**
 * A mailbox: the ring of messages that one participant receives from all others, one DRAM page.
 *
 *     0        64       128                4096                                       1 MiB
 *     +--------+--------+------------------+------------------------------------------+
 *     | HEAD   | TAIL   | SLEEPING | LOST  | records, each whole and 8-byte aligned    |
 *     +--------+--------+------------------+------------------------------------------+
 *
 * HEAD and TAIL are byte positions in the ring, equal when it is empty; the receiver alone moves HEAD, whoever holds the
 * mailbox's lock (a word of the participant table) moves TAIL, last of all: a sender that dies before leaves nothing.
 *
 * A record, whose two byte strings follow its header without a gap:
 *
 *     | bytes | kind, sender, more | a | b | length of A | length of B | A ... | B ... | padding |
 *
 * `bytes` is the record's whole length. A message too long for one record comes in PARTs of it, all but the last with MORE.
 *
 * Example: MESSAGE from participant 2 with a = 5, A = "ch", B = "hello" (32 bytes):
 *     20 00 00 00  02 02 00 00  05 00 00 00  00 00 00 00  02 00 00 00  05 00 00 00  63 68 68 65 6c 6c 6f 00
 */
export const enum Mailbox {
  HEAD_WORD = 0,
  TAIL_WORD = 16,
  /** 1 = the receiver sleeps in its pump, or is about to: whoever appends wakes it. */
  SLEEPING_WORD = 32,
  /** 1 = messages were dropped because the receiver did not keep up. */
  LOST_WORD = 33,
  RING_OFFSET = 4096,
  RING_BYTES = 0x100000 - 4096,
}

/** Words of a record's header. */
export const enum Message {
  BYTES_WORD = 0,
  /** kind | sender << 8 | MORE */
  KIND_WORD = 1,
  MORE = 0x10000,
  A_WORD = 2,
  B_WORD = 3,
  LENGTH_A_WORD = 4,
  LENGTH_B_WORD = 5,
  HEADER_BYTES = 24,
}

export const enum MessageKind {
  /** The rest of the ring before its end is not used. */
  PADDING = 0,
  /** A piece of a long message: a = where in it the piece begins; A = the piece. */
  PART = 1,
  /** A published message: A = channel, B = payload; a = Channel kind. */
  MESSAGE = 2,
  /** A blocked client was served: a = its ticket; A = the reply. */
  SERVED = 3,
  /** Something changed at a key that clients of the receiver wait for: a = hash, b = check. It looks for itself. */
  CHANGED = 4,
  /** A tracked key changed: a = low word of the id of the client that did it; A = the key. */
  INVALIDATE = 5,
  /** Databases were emptied (b = 0: nothing that clients have cached holds) or exchanged (b = 1); who waits for a key looks for itself. */
  INVALIDATE_ALL = 6,
  /**
   * An invalidation for a client whose id is a. b = 2 or 3: of a client that redirects to it (A = that one's id in decimals, b its protocol
   * version, B = the keys, each behind its length); b = 1: of its own (A = the key).
   */
  REDIRECTED = 8,
  /** The client to which a's invalidations are redirected is gone. */
  REDIRECT_BROKEN = 9,
  /** A line for MONITOR clients: A = the line without its end. */
  MONITOR = 7,
}

/** Bytes that a record with strings of these lengths takes. */
export function recordBytes(lengthA: number, lengthB: number): number {
  return (Message.HEADER_BYTES + lengthA + lengthB + 7) & ~7;
}
