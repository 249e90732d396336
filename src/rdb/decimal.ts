/**
 * Integers as decimal text and back, for elements that RDB keeps as numbers. 64-bit ones are pairs of 32-bit halves; those beyond 2^53
 * are rare, and go through BigInt.
 */
import type { Bytes } from '../layout/bytes.js';

const TWO_32 = 0x1_0000_0000;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
/** '-9223372036854775808' */
export const DECIMAL_MAX_BYTES = 20;

/** Writes the number whose halves these are; returns its length. */
export function writeDecimal64(bytes: Bytes, offset: number, high: number, low: number): number {
  const value = (high | 0) * TWO_32 + (low >>> 0);
  if (Number.isSafeInteger(value)) return writeDecimal(bytes, offset, value);
  const text = ((BigInt(high | 0) << 32n) | BigInt(low >>> 0)).toString();
  for (let i = 0; i < text.length; i++) bytes.u8[offset + i] = text.charCodeAt(i);
  return text.length;
}

/** Writes a safe integer; returns its length. */
export function writeDecimal(bytes: Bytes, offset: number, value: number): number {
  const { u8 } = bytes;
  let rest = Math.abs(value);
  let length = value < 0 ? 2 : 1;
  for (let bound = 10; rest >= bound; bound *= 10) length++;
  for (let at = offset + length - 1; ; at--) {
    const tenth = Math.floor(rest / 10);
    u8[at] = DIGIT_0 + (rest - tenth * 10);
    rest = tenth;
    if (rest === 0) break;
  }
  if (value < 0) u8[offset] = MINUS;
  return length;
}

/** The halves of the last readDecimal. */
export const decimal = { high: 0, low: 0 };

/** True when the bytes are a 64-bit integer as it is written (no '+', no leading zeros); `decimal` is then its value. */
export function readDecimal(bytes: Bytes, offset: number, length: number): boolean {
  if (length < 1 || length > DECIMAL_MAX_BYTES) return false;
  const { u8 } = bytes;
  const isNegative = u8[offset] === MINUS && length > 1;
  const first = u8[offset + (isNegative ? 1 : 0)] - DIGIT_0;
  if (!(first >= 0 && first <= 9)) return false;
  if (first === 0) {
    decimal.high = 0;
    decimal.low = 0;
    return length === 1;
  }
  let value = 0;
  for (let i = offset + (isNegative ? 1 : 0); i < offset + length; i++) {
    const digit = u8[i] - DIGIT_0;
    if (!(digit >= 0 && digit <= 9)) return false;
    value = value * 10 + digit;
  }
  if (isNegative) value = -value;
  if (Number.isSafeInteger(value)) {
    decimal.high = Math.floor(value / TWO_32) | 0;
    decimal.low = value | 0;
    return true;
  }
  return readWide(bytes, offset, length);
}

function readWide(bytes: Bytes, offset: number, length: number): boolean {
  let text = '';
  for (let i = 0; i < length; i++) text += String.fromCharCode(bytes.u8[offset + i]);
  const wide = BigInt(text);
  if (BigInt.asIntN(64, wide) !== wide) return false;
  decimal.high = Number(wide >> 32n) | 0;
  decimal.low = Number(wide & 0xffff_ffffn) | 0;
  return true;
}
