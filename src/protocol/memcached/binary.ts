/**
 * The parser of the binary protocol: bytes in place -> request records, as tokenizer.ts does for text.
 *
 *   record
 *   +--------+-------+-----------+-----------+-------------+-------------+------+
 *   | opcode | start | keyOffset | keyLength | valueOffset | valueLength | next |
 *   +--------+-------+-----------+-----------+-------------+-------------+------+
 *
 * It owns the batch and keeps no state between calls: an incomplete request is not consumed and comes again with more
 * bytes. It allocates nothing and never throws; whether extras and body make sense for an opcode is the command's affair.
 * Invariant: of a request in the batch, header, extras and key lie in [start, valueOffset).
 */
import { BinaryHeader, Magic } from './binary-codes.js';
import { ABOVE_SAFE } from './numbers.js';
import { BATCH_REQUESTS } from './request.js';

export const enum BinaryRecord {
  opcode = 0,
  /** Offset of the header. */
  start = 1,
  keyOffset = 2,
  keyLength = 3,
  valueOffset = 4,
  /** At most MAX_BODY_BYTES: bodyBytes() tells the announced length of larger ones. */
  valueLength = 5,
  /** Offset after the request. Above the input's end when its value is still on its way. */
  next = 6,
  WORDS = 8,
}

/** What stopped the last parse before the end of its input. */
export const enum BinaryPending {
  NONE = 0,
  /** Header, extras or key of the request at `consumed` are not there yet. */
  HEAD = 1,
  /** The head stands in the record after the last; its value is not complete. */
  VALUE = 2,
  /** The byte at `consumed` begins no request. */
  BAD_MAGIC = 3,
}

/** Longer bodies are no request that anything here could serve. */
const MAX_BODY_BYTES = 0x7fffffff - 0x10000000;

export class BinaryParser {
  /** BATCH_REQUESTS records, and one for a request whose value is pending. */
  readonly records = new Int32Array((BATCH_REQUESTS + 1) * BinaryRecord.WORDS);
  /** Offset of the first byte that belongs to no complete request. */
  consumed = 0;
  pending: number = BinaryPending.NONE;

  /** Parses up to `limit` (<= BATCH_REQUESTS) requests of [offset, end); returns how many are complete. */
  parse(u8: Uint8Array, offset: number, end: number, limit: number): number {
    let at = offset;
    let count = 0;
    this.pending = BinaryPending.NONE;
    while (at < end && count < limit) {
      if (u8[at] !== Magic.REQUEST) {
        this.pending = BinaryPending.BAD_MAGIC;
        break;
      }
      if (!this.head(u8, at, end, count * BinaryRecord.WORDS)) {
        this.pending = BinaryPending.HEAD;
        break;
      }
      const next = this.records[count * BinaryRecord.WORDS + BinaryRecord.next];
      if (next > end) {
        this.pending = BinaryPending.VALUE;
        break;
      }
      at = next;
      count++;
    }
    this.consumed = at;
    return count;
  }

  /** Fills a record from header, extras and key; false when they are not there whole. */
  head(u8: Uint8Array, at: number, end: number, record: number): boolean {
    if (end - at < BinaryHeader.BYTES) return false;
    const keyLength = (u8[at + BinaryHeader.KEY_LENGTH] << 8) | u8[at + BinaryHeader.KEY_LENGTH + 1];
    const extrasLength = u8[at + BinaryHeader.EXTRAS_LENGTH];
    const keyOffset = at + BinaryHeader.BYTES + extrasLength;
    if (end - keyOffset < keyLength) return false;
    const { records } = this;
    const bodyLength = Math.min(bodyBytes(u8, at), MAX_BODY_BYTES);
    records[record + BinaryRecord.opcode] = u8[at + BinaryHeader.OPCODE];
    records[record + BinaryRecord.start] = at;
    records[record + BinaryRecord.keyOffset] = keyOffset;
    records[record + BinaryRecord.keyLength] = keyLength;
    records[record + BinaryRecord.valueOffset] = keyOffset + keyLength;
    // Negative when the lengths contradict each other.
    records[record + BinaryRecord.valueLength] = bodyLength - extrasLength - keyLength;
    records[record + BinaryRecord.next] = at + BinaryHeader.BYTES + Math.max(bodyLength, extrasLength + keyLength);
    return true;
  }
}

/** Body length of the header at `at`. */
export function bodyBytes(u8: Uint8Array, at: number): number {
  return readUint32(u8, at + BinaryHeader.BODY_LENGTH);
}

export function readUint32(u8: Uint8Array, at: number): number {
  return ((u8[at] << 24) | (u8[at + 1] << 16) | (u8[at + 2] << 8) | u8[at + 3]) >>> 0;
}

/** The cas of the header at `at`; ABOVE_SAFE, which no item has, for any from 2^53 on. */
export function readCas(u8: Uint8Array, at: number): number {
  const high = readUint32(u8, at + BinaryHeader.CAS);
  return Math.min(high * 0x1_0000_0000 + readUint32(u8, at + BinaryHeader.CAS + 4), ABOVE_SAFE);
}
