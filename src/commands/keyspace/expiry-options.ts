/**
 * Expiry times as arguments: seconds or milliseconds, from now or since 1970, with Redis's limits and words.
 *
 * Invariant: what `expiryArg` accepts is 1..EXPIRY_MAX_MS. Times beyond (the year 10889) are kept as that one: the index
 * has 48 bits for them.
 */
import type { Context } from '../context.js';
import { NOT_INTEGER } from '../errors.js';

/** The latest expiry that the store keeps. */
export const EXPIRY_MAX_MS = 2 ** 48 - 1;
const INT64_MAX = 0x7fffffffffffffffn;

/** An expiry of SET, GETEX, SETEX: argument `i` is positive. Returns the absolute time, or 0 after an error reply. */
export function expiryArg(context: Context, i: number, inSeconds: boolean, isRelative: boolean): number {
  const value = context.argInteger(i);
  if (Number.isNaN(value)) {
    context.reply.error(NOT_INTEGER);
    return 0;
  }
  const ms = value > 0 ? absoluteMs(context, i, value, inSeconds, isRelative) : Number.NaN;
  if (Number.isNaN(ms)) {
    context.reply.error(invalidExpiry(context));
    return 0;
  }
  return ms;
}

/**
 * An expiry of the EXPIRE family: any sign. Returns the absolute time, at most EXPIRY_MAX_MS, perhaps past or negative;
 * NaN after an error reply.
 */
export function anyExpiryArg(context: Context, i: number, inSeconds: boolean, isRelative: boolean): number {
  const value = context.argInteger(i);
  if (Number.isNaN(value)) {
    context.reply.error(NOT_INTEGER);
    return Number.NaN;
  }
  const ms = absoluteMs(context, i, value, inSeconds, isRelative);
  if (Number.isNaN(ms)) context.reply.error(invalidExpiry(context));
  return ms;
}

export function invalidExpiry(context: Context): string {
  return `ERR invalid expire time in '${context.command.fullName}' command`;
}

/** NaN when a 64-bit number of milliseconds does not hold it. */
function absoluteMs(context: Context, i: number, value: number, inSeconds: boolean, isRelative: boolean): number {
  const base = isRelative ? context.wallMs : 0;
  const ms = (inSeconds ? value * 1000 : value) + base;
  if (ms <= EXPIRY_MAX_MS && ms >= -EXPIRY_MAX_MS) return ms;
  const exact = (context.argInteger64(i) as bigint) * (inSeconds ? 1000n : 1n);
  if (exact > INT64_MAX - BigInt(base) || exact < -INT64_MAX - 1n) return Number.NaN;
  return ms > 0 ? EXPIRY_MAX_MS : -EXPIRY_MAX_MS;
}
