/**
 * Numbers as clients write them: parsing of byte ranges with Redis's strictness. NaN stands for "not a number"; no exceptions.
 */
import type { Bytes } from '../layout/bytes.js';

const INT64_MAX = 0x7fffffffffffffffn;
const INT64_MIN = -0x8000000000000000n;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
/** Some clients write 1e300 with all its digits. */
const DOUBLE_MAX_BYTES = 5120;
const PLUS = 0x2b;
const POINT = 0x2e;
/** Numbers of up to 15 digits are exact doubles. */
const EXACT_DIGITS = 15;
/** Exact doubles, too: so a quotient of both is rounded once, as the number itself would be. */
const POWERS_OF_TEN = Float64Array.from({ length: EXACT_DIGITS + 1 }, (_, i) => 10 ** i);

/**
 * A 64-bit decimal integer: optional '-', no '+', no leading zeros, no spaces. NaN when it is none. Beyond 2^53 the result
 * is the nearest double: check Number.isSafeInteger, or use parseInteger64 where exactness matters.
 */
export function parseInteger(bytes: Bytes, offset: number, length: number): number {
  const u8 = bytes.u8;
  let i = offset;
  const end = offset + length;
  const negative = length > 1 && u8[i] === MINUS;
  if (negative) i++;
  const digits = end - i;
  if (digits === 1 && u8[i] === DIGIT_0) return negative ? Number.NaN : 0;
  if (digits < 1 || digits > 19 || u8[i] === DIGIT_0) return Number.NaN;
  if (digits > EXACT_DIGITS) {
    const wide = parseInteger64(bytes, offset, length);
    return wide === null ? Number.NaN : Number(wide);
  }
  let value = 0;
  for (; i < end; i++) {
    const digit = u8[i] - DIGIT_0;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return negative ? -value : value;
}

/** The same, exact. Slow path: allocates. */
export function parseInteger64(bytes: Bytes, offset: number, length: number): bigint | null {
  if (length < 1 || length > 20) return null;
  const text = byteString(bytes, offset, length);
  if (!/^(0|-?[1-9][0-9]{0,18})$/.test(text)) return null;
  const value = BigInt(text);
  return value > INT64_MAX || value < INT64_MIN ? null : value;
}

/** A double as C's strtod reads it: decimal or hexadecimal, optional exponent, or an infinity. NaN when it is none (Redis accepts no NaN either), or longer than anybody writes one. */
export function parseDouble(bytes: Bytes, offset: number, length: number): number {
  if (length < 1 || length > DOUBLE_MAX_BYTES) return Number.NaN;
  const plain = parsePlainDecimal(bytes.u8, offset, offset + length);
  return Number.isNaN(plain) ? parseAnyDouble(bytes, offset, length) : plain;
}

/** Digits with at most a sign and a point, as nearly all scores are written; NaN for everything else. A string and an expression take 300 ns. */
function parsePlainDecimal(u8: Uint8Array, offset: number, end: number): number {
  let at = offset;
  const first = u8[at];
  if (first === MINUS || first === PLUS) at++;
  if (end - at > EXACT_DIGITS) return Number.NaN;
  let value = 0;
  let digits = 0;
  let pointAt = end;
  for (; at < end; at++) {
    const digit = u8[at] - DIGIT_0;
    if (digit >= 0 && digit <= 9) {
      value = value * 10 + digit;
      digits++;
    } else if (u8[at] === POINT && pointAt === end) {
      pointAt = at;
    } else {
      return Number.NaN;
    }
  }
  if (digits === 0) return Number.NaN;
  if (pointAt < end - 1) value /= POWERS_OF_TEN[end - 1 - pointAt];
  return first === MINUS ? -value : value;
}

function parseAnyDouble(bytes: Bytes, offset: number, length: number): number {
  const text = byteString(bytes, offset, length);
  if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) return inRange(Number(text), text);
  const infinity = /^([+-]?)inf(inity)?$/i.exec(text);
  if (infinity !== null) return infinity[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const hexadecimal = /^([+-]?)0x([\da-f]*)(?:\.([\da-f]*))?(?:p([+-]?\d+))?$/i.exec(text);
  return hexadecimal === null ? Number.NaN : inRange(hexadecimalDouble(hexadecimal), text);
}

/** NaN when the number written is too large for a double, or too small to be anything but 0. */
function inRange(value: number, text: string): number {
  const isLost = value === 0 && /[1-9a-f]/i.test(text.replace(/^[+-]?0x|[ep][+-]?\d+$/gi, ''));
  return Number.isFinite(value) && !isLost ? value : Number.NaN;
}

function hexadecimalDouble([, sign, whole, fraction = '', exponent = '0']: readonly string[]): number {
  if (whole.length + fraction.length === 0) return Number.NaN;
  const magnitude = Number(BigInt(`0x${whole}${fraction}`)) * 2 ** (Number(exponent) - 4 * fraction.length);
  return sign === '-' ? -magnitude : magnitude;
}

/** The bytes as a string of one character each (latin1). */
export function byteString(bytes: Bytes, offset: number, length: number): string {
  const u8 = bytes.u8;
  if (length <= 32) {
    let text = '';
    for (let i = 0; i < length; i++) text += String.fromCharCode(u8[offset + i]);
    return text;
  }
  return Buffer.from(u8.buffer, u8.byteOffset + offset, length).toString('latin1');
}

/** Characters of a safe integer in decimal. */
export function integerLength(value: number): number {
  let length = 1;
  if (value < 0) {
    value = -value;
    length = 2;
  }
  for (let bound = 10; value >= bound; bound *= 10) length++;
  return length;
}

/** Writes a byte string. */
export function writeText(bytes: Bytes, offset: number, text: string): void {
  const u8 = bytes.u8;
  for (let i = 0; i < text.length; i++) u8[offset + i] = text.charCodeAt(i);
}
