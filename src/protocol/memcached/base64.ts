/**
 * Base64 of binary keys (the `b` flag of meta commands), byte to byte. Decoding may be done in place: the output is
 * always behind the input.
 */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const ENCODE = new Uint8Array(64);
const DECODE = new Int8Array(256).fill(-1);
for (let i = 0; i < 64; i++) {
  ENCODE[i] = ALPHABET.charCodeAt(i);
  DECODE[ENCODE[i]] = i;
}
const PAD = 61;

/** Returns the offset after the encoded text. */
export function encodeBase64(
  to: Uint8Array,
  toOffset: number,
  from: Uint8Array,
  offset: number,
  length: number,
): number {
  let at = toOffset;
  const end = offset + length;
  for (let i = offset; i < end; i += 3) {
    const a = from[i];
    const b = i + 1 < end ? from[i + 1] : 0;
    const c = i + 2 < end ? from[i + 2] : 0;
    to[at] = ENCODE[a >> 2];
    to[at + 1] = ENCODE[((a & 3) << 4) | (b >> 4)];
    to[at + 2] = i + 1 < end ? ENCODE[((b & 15) << 2) | (c >> 6)] : PAD;
    to[at + 3] = i + 2 < end ? ENCODE[c & 63] : PAD;
    at += 4;
  }
  return at;
}

/** Returns the number of bytes decoded, or 0 for text that is not base64 (padding is required). */
export function decodeBase64(
  to: Uint8Array,
  toOffset: number,
  from: Uint8Array,
  offset: number,
  length: number,
): number {
  if (length === 0 || length % 4 !== 0) return 0;
  const end = offset + length;
  const pads = from[end - 1] !== PAD ? 0 : from[end - 2] !== PAD ? 1 : 2;
  let at = toOffset;
  for (let i = offset; i < end; i += 4) {
    const last = i + 4 === end;
    const a = DECODE[from[i]];
    const b = DECODE[from[i + 1]];
    const c = last && pads > 1 ? 0 : DECODE[from[i + 2]];
    const d = last && pads > 0 ? 0 : DECODE[from[i + 3]];
    if ((a | b | c | d) < 0) return 0;
    const bits = (a << 18) | (b << 12) | (c << 6) | d;
    to[at++] = bits >> 16;
    if (!last || pads < 2) to[at++] = bits >> 8;
    if (!last || pads < 1) to[at++] = bits;
  }
  return at - toOffset;
}
