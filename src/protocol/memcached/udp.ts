/**
 * The 8-byte frame header of memcached over UDP. All fields are 16 bits, high byte first.
 *
 *   0            2            4            6            8
 *   +------------+------------+------------+------------+----------------
 *   | request id | sequence   | datagrams  | reserved 0 | payload ...
 *   +------------+------------+------------+------------+----------------
 *
 * A request is one datagram. A reply may be several, each with the request's id, its place and the total.
 *
 * Amplification: a datagram's sender address proves nothing, so a small forged request can make a server send a large
 * reply to a victim. Therefore UDP is off unless asked for, and a reply above MAX_REPLY_DATAGRAMS is not sent but
 * replaced by an error line (the client's answer is to ask again over TCP).
 */

export const FRAME_BYTES = 8;
/** Largest datagram sent, header included: fits an Ethernet frame without fragments. */
export const DATAGRAM_BYTES = 1400;
export const PAYLOAD_BYTES = DATAGRAM_BYTES - FRAME_BYTES;
/** 44,544 bytes of payload at most for one request. */
export const MAX_REPLY_DATAGRAMS = 32;
export const MAX_REPLY_BYTES = MAX_REPLY_DATAGRAMS * PAYLOAD_BYTES;

/** True when [offset, offset+length) holds a whole frame header. */
export function hasFrame(length: number): boolean {
  return length >= FRAME_BYTES;
}

export function requestId(u8: Uint8Array, offset: number): number {
  return (u8[offset] << 8) | u8[offset + 1];
}

/** Requests must be one datagram: sequence 0 of 1. */
export function isSingleDatagram(u8: Uint8Array, offset: number): boolean {
  const sequence = (u8[offset + 2] << 8) | u8[offset + 3];
  const total = (u8[offset + 4] << 8) | u8[offset + 5];
  return sequence === 0 && total === 1;
}

export function datagramCount(payloadBytes: number): number {
  return Math.ceil(payloadBytes / PAYLOAD_BYTES);
}

function writeFrame(u8: Uint8Array, offset: number, id: number, sequence: number, total: number): void {
  u8[offset] = id >> 8;
  u8[offset + 1] = id;
  u8[offset + 2] = sequence >> 8;
  u8[offset + 3] = sequence;
  u8[offset + 4] = total >> 8;
  u8[offset + 5] = total;
  u8[offset + 6] = 0;
  u8[offset + 7] = 0;
}

/**
 * Spreads a reply's payload, written at [offset, offset+payloadBytes), into datagrams from `offset` on: datagram i is
 * at offset + i * DATAGRAM_BYTES. Room for datagramCount(payloadBytes) * FRAME_BYTES more bytes must follow. Returns
 * the bytes of all datagrams together.
 */
export function frameReply(u8: Uint8Array, offset: number, payloadBytes: number, id: number): number {
  const total = datagramCount(payloadBytes);
  for (let i = total - 1; i >= 0; i--) {
    const from = offset + i * PAYLOAD_BYTES;
    const to = offset + i * DATAGRAM_BYTES;
    const length = i === total - 1 ? payloadBytes - i * PAYLOAD_BYTES : PAYLOAD_BYTES;
    u8.copyWithin(to + FRAME_BYTES, from, from + length);
    writeFrame(u8, to, id, i, total);
  }
  return payloadBytes + total * FRAME_BYTES;
}
