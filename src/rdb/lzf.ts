/**
 * LZF, the compression of strings in RDB: literal runs and references back.
 *
 *     000lllll  bytes ...             l + 1 bytes as they are
 *     lllddddd  [l - 7]  dddddddd     l + 2 bytes, copied from d + 1 bytes back; l = 7: one more byte adds to the length
 *
 * Invariant: unpacking reads and writes nothing beyond what it was given, whatever the bytes say.
 */

/** Of three bytes come at most 264. A length beyond that is a lie. */
export const LZF_RATIO_MAX = 88;

const LITERALS_MAX = 32;
const DISTANCE_MAX = 1 << 13;
const MATCH_MIN = 3;
const MATCH_MAX = 264;
const HASH_BITS = 14;
const HASH_MULTIPLIER = 0x9e3779b1;

/** Position + 1 where three bytes of this hash were last seen; entries of earlier calls are told by `floor`. */
const seen = new Float64Array(1 << HASH_BITS);
let floor = 0;

/**
 * Packs `length` bytes at `from` into `out` at `to`, at most `limit` bytes. Returns how many, 0 = they do not get shorter than that.
 */
export function packLzf(
  bytes: Uint8Array,
  from: number,
  length: number,
  out: Uint8Array,
  to: number,
  limit: number,
): number {
  const end = from + length;
  const outEnd = to + limit;
  // Positions count on from call to call, so that the table need not be cleared.
  const shift = floor - from + 1;
  floor += length + 1;
  let at = to + 1;
  let literals = 0;
  let i = from;
  while (i < end) {
    let matched = 0;
    let distance = 0;
    if (i + MATCH_MIN <= end) {
      const three = bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16);
      const slot = Math.imul(three, HASH_MULTIPLIER) >>> (32 - HASH_BITS);
      const back = seen[slot] - shift;
      seen[slot] = i + shift;
      distance = i - back;
      if (back >= from && distance <= DISTANCE_MAX && bytes[back] === bytes[i]) {
        matched = matchLength(bytes, back, i, Math.min(end - i, MATCH_MAX));
      }
    }
    if (matched < MATCH_MIN) {
      if (at >= outEnd) return 0;
      out[at++] = bytes[i++];
      if (++literals === LITERALS_MAX) {
        out[at - literals - 1] = literals - 1;
        literals = 0;
        at++;
      }
      continue;
    }
    if (at + 3 >= outEnd) return 0;
    // The run of literals before it ends; without one, its control byte is taken back.
    if (literals > 0) out[at - literals - 1] = literals - 1;
    else at--;
    literals = 0;
    const count = matched - 2;
    distance--;
    if (count < 7) {
      out[at++] = (count << 5) | (distance >> 8);
    } else {
      out[at++] = (7 << 5) | (distance >> 8);
      out[at++] = count - 7;
    }
    out[at++] = distance & 0xff;
    at++;
    i += matched;
  }
  if (literals > 0) out[at - literals - 1] = literals - 1;
  else at--;
  return at <= outEnd ? at - to : 0;
}

function matchLength(bytes: Uint8Array, back: number, at: number, limit: number): number {
  let length = 0;
  while (length < limit && bytes[back + length] === bytes[at + length]) length++;
  return length;
}

/** Unpacks into exactly `length` bytes of `out` at `to`; false = these bytes are not LZF of so many. */
export function unpackLzf(
  packed: Uint8Array,
  from: number,
  packedLength: number,
  out: Uint8Array,
  to: number,
  length: number,
): boolean {
  const end = from + packedLength;
  const outEnd = to + length;
  let i = from;
  let at = to;
  while (i < end) {
    const control = packed[i++];
    if (control < LITERALS_MAX) {
      const run = control + 1;
      if (i + run > end || at + run > outEnd) return false;
      for (let k = 0; k < run; k++) out[at + k] = packed[i + k];
      i += run;
      at += run;
      continue;
    }
    let count = control >> 5;
    if (count === 7) {
      if (i >= end) return false;
      count += packed[i++];
    }
    count += 2;
    if (i >= end) return false;
    let back = at - (((control & 0x1f) << 8) | packed[i++]) - 1;
    if (back < to || at + count > outEnd) return false;
    // They may overlap: what has just been written is read again.
    for (const stop = at + count; at < stop; ) out[at++] = out[back++];
  }
  return at === outEnd;
}
