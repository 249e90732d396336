/**
 * Decimal numbers of the memcached protocol, parsed from and written to bytes without strings or objects.
 *
 * Unsigned 64-bit numbers come in two forms. CAS numbers of this store are below 2^53, so `parseUnsigned` answers a
 * double and folds everything above into one value that no item ever has. Arithmetic needs all 64 bits: `Uint64`.
 */

/** Answer of parseUnsigned for text that is no unsigned 64-bit number. */
export const INVALID_UNSIGNED = -1;
/** Answer of parseUnsigned for every valid number above 2^53 - 1. */
export const ABOVE_SAFE = 2 ** 53;
/** Answer of parseInt32 for text that is no signed 32-bit number. */
export const INVALID_INT32 = 2 ** 31;

/** Most digits of an unsigned 64-bit number. */
export const UINT64_DIGITS = 20;

/** An unsigned 64-bit number in the binary protocol. */
const BINARY_BYTES = 8;

const PLUS = 43;
const MINUS = 45;
const LIMB = 1_000_000_000;
/** 2^64 in limbs of nine decimal digits. */
const OVERFLOW_HIGH = 18_446_744_073;
const OVERFLOW_LOW = 709_551_616;

export function parseUnsigned(u8: Uint8Array, offset: number, length: number): number {
  if (length > 1 && u8[offset] === PLUS) return parseDigits(u8, offset + 1, length - 1);
  return parseDigits(u8, offset, length);
}

function parseDigits(u8: Uint8Array, offset: number, length: number): number {
  if (length > 15) return parseLong(u8, offset, length);
  if (length === 0) return INVALID_UNSIGNED;
  let value = 0;
  for (let i = offset; i < offset + length; i++) {
    const digit = u8[i] - 48;
    if (digit < 0 || digit > 9) return INVALID_UNSIGNED;
    value = value * 10 + digit;
  }
  return value;
}

const long = { high: 0, low: 0 };

function parseLong(u8: Uint8Array, offset: number, length: number): number {
  if (!parseLimbs(u8, offset, offset + length, long)) return INVALID_UNSIGNED;
  const value = long.high * LIMB + long.low;
  return Math.min(value, ABOVE_SAFE);
}

/** Digits only, all of [offset, end), at most 2^64 - 1. Leaves `into` undefined when false. */
function parseLimbs(u8: Uint8Array, offset: number, end: number, into: { high: number; low: number }): boolean {
  let start = offset;
  while (start < end - 1 && u8[start] === 48) start++;
  if (start >= end || end - start > UINT64_DIGITS) return false;
  let high = 0;
  let low = 0;
  const split = end - 9;
  for (let i = start; i < end; i++) {
    const digit = u8[i] - 48;
    if (digit < 0 || digit > 9) return false;
    if (i < split) high = high * 10 + digit;
    else low = low * 10 + digit;
  }
  into.high = high;
  into.low = low;
  return high < OVERFLOW_HIGH || (high === OVERFLOW_HIGH && low < OVERFLOW_LOW);
}

export function parseInt32(u8: Uint8Array, offset: number, length: number): number {
  const negative = length > 0 && u8[offset] === MINUS;
  const value = negative ? parseDigits(u8, offset + 1, length - 1) : parseUnsigned(u8, offset, length);
  if (value < 0) return INVALID_INT32;
  if (negative) return value > 2147483648 ? INVALID_INT32 : -value;
  return value > 2147483647 ? INVALID_INT32 : value;
}

/** Unsigned 32 bits; INVALID_UNSIGNED otherwise. */
export function parseUint32(u8: Uint8Array, offset: number, length: number): number {
  const value = parseUnsigned(u8, offset, length);
  return value > 4294967295 ? INVALID_UNSIGNED : value;
}

/** Digits that `value` (an integer, 0 <= value < 2^53) takes. */
export function decimalDigits(value: number): number {
  let digits = 1;
  let limit = 10;
  while (value >= limit) {
    limit *= 10;
    digits++;
  }
  return digits;
}

/** Writes `value` (an integer, |value| < 2^53); returns the offset after it. */
export function writeDecimal(u8: Uint8Array, offset: number, value: number): number {
  let at = offset;
  let rest = value;
  if (rest < 0) {
    u8[at++] = 45;
    rest = -rest;
  }
  const end = at + decimalDigits(rest);
  at = end;
  // Above 31 bits, doubles: peel digits until integers do.
  while (rest > 2147483647) {
    const tenth = Math.floor(rest / 10);
    u8[--at] = 48 + (rest - tenth * 10);
    rest = tenth;
  }
  let small = rest | 0;
  do {
    const tenth = (small / 10) | 0;
    u8[--at] = 48 + (small - tenth * 10);
    small = tenth;
  } while (small > 0);
  return end;
}

function isSpace(byte: number): boolean {
  return byte === 32 || (byte >= 9 && byte <= 13);
}

/**
 * An unsigned 64-bit integer as two decimal limbs, value = high * 10^9 + low: exact in doubles, quick to print, no
 * BigInt. One object is made at start and reused.
 */
export class Uint64 {
  high = 0;
  low = 0;

  set(value: number): void {
    this.high = Math.floor(value / LIMB);
    this.low = value - this.high * LIMB;
  }

  copy(from: Uint64): void {
    this.high = from.high;
    this.low = from.low;
  }

  /** Takes all of a token; false when it is no unsigned 64-bit number. */
  parse(u8: Uint8Array, offset: number, length: number): boolean {
    const start = length > 1 && u8[offset] === PLUS ? offset + 1 : offset;
    return parseLimbs(u8, start, offset + length, this);
  }

  /**
   * Takes a stored value as memcached reads one for incr and decr: leading white space and a plus sign are skipped,
   * the number ends at the end or at white space, whatever follows that is ignored.
   */
  parseStored(u8: Uint8Array, offset: number, length: number): boolean {
    const end = offset + length;
    let start = offset;
    while (start < end && isSpace(u8[start])) start++;
    if (start < end && u8[start] === PLUS) start++;
    let stop = start;
    while (stop < end && !isSpace(u8[stop])) stop++;
    return stop > start && parseLimbs(u8, start, stop, this);
  }

  /** Adds, wrapping at 2^64. */
  add(other: Uint64): void {
    let low = this.low + other.low;
    let high = this.high + other.high;
    if (low >= LIMB) {
      low -= LIMB;
      high += 1;
    }
    if (high > OVERFLOW_HIGH || (high === OVERFLOW_HIGH && low >= OVERFLOW_LOW)) {
      high -= OVERFLOW_HIGH;
      low -= OVERFLOW_LOW;
      if (low < 0) {
        low += LIMB;
        high -= 1;
      }
    }
    this.high = high;
    this.low = low;
  }

  /** Subtracts, stopping at 0. */
  subtract(other: Uint64): void {
    let low = this.low - other.low;
    let high = this.high - other.high;
    if (low < 0) {
      low += LIMB;
      high -= 1;
    }
    this.high = Math.max(high, 0);
    this.low = high < 0 ? 0 : low;
  }

  /** Takes eight bytes, most significant first. */
  readBinary(u8: Uint8Array, offset: number): void {
    this.high = 0;
    this.low = 0;
    for (let i = offset; i < offset + BINARY_BYTES; i += 2) {
      // Below 6.6e13: exact.
      const low = this.low * 65_536 + ((u8[i] << 8) | u8[i + 1]);
      const carry = Math.floor(low / LIMB);
      this.low = low - carry * LIMB;
      this.high = this.high * 65_536 + carry;
    }
  }

  /** Writes eight bytes, most significant first. */
  writeBinary(u8: Uint8Array, offset: number): void {
    let { high, low } = this;
    for (let i = offset + BINARY_BYTES - 2; i >= offset; i -= 2) {
      const highQuotient = Math.floor(high / 65_536);
      const rest = (high - highQuotient * 65_536) * LIMB + low;
      low = Math.floor(rest / 65_536);
      high = highQuotient;
      const digit = rest - low * 65_536;
      u8[i] = digit >> 8;
      u8[i + 1] = digit;
    }
  }

  get digits(): number {
    return this.high > 0 ? decimalDigits(this.high) + 9 : decimalDigits(this.low);
  }

  /** Writes the digits; returns the offset after them. */
  write(u8: Uint8Array, offset: number): number {
    if (this.high === 0) return writeDecimal(u8, offset, this.low);
    const at = writeDecimal(u8, offset, this.high);
    let rest = this.low;
    for (let i = at + 8; i >= at; i--) {
      const tenth = (rest / 10) | 0;
      u8[i] = 48 + (rest - tenth * 10);
      rest = tenth;
    }
    return at + 9;
  }
}
