/**
 * Geohashes as Redis has them: a place on the map as one number whose neighbours are mostly near places.
 *
 * Longitude and latitude become fixed-point numbers of `step` bits in their ranges (WGS-84 longitudes, latitudes up to the edge of the web
 * Mercator map), whose bits are interleaved, longitude first:
 *
 *   13.361389, 38.115556, step 26    longitude 0x2260177 of 2^26, latitude 0x2e573c0    score 3479099956230698
 *
 * A score is a hash of 26 steps, 52 bits, which a double holds. Invariant: the arithmetic is Redis's, operation by operation, so that scores
 * and coordinates are the same to the last bit; the ends of the ranges (180, 85.05112878) get one step more than the bits can hold, as there.
 */

export const LONGITUDE_MAX = 180;
export const LATITUDE_MAX = 85.05112878;
/** Steps of a score. */
export const SCORE_STEPS = 26;

const HALF = 0x1_0000_0000;
const ALPHABET = '0123456789bcdefghjkmnpqrstuvwxyz';
/** Latitudes of geohash.org's strings reach to the poles. */
const STRING_LATITUDE_MAX = 90;
const STRING_LENGTH = 11;
const STRING_DIGIT_BITS = 5;
const SCORE_BITS = 2 * SCORE_STEPS;

/** The coordinate on a scale of 2^step. */
export function toFixed(coordinate: number, max: number, step: number): number {
  return Math.floor(((coordinate + max) / (max + max)) * 2 ** step);
}

/** Lower end of the cell `fixed` of 2^step; of `fixed + 1`, its upper end. */
export function toCoordinate(fixed: number, max: number, step: number): number {
  return -max + (fixed / 2 ** step) * (max + max);
}

/** Interleaves two numbers of up to 32 bits; `carry` is added to the result before it is rounded to a double. */
export function interleave(longitude: number, latitude: number, carry: number): number {
  return highBits(longitude, latitude) * HALF + (lowBits(longitude, latitude) + carry);
}

function highBits(longitude: number, latitude: number): number {
  return lowBits(longitude >>> 16, latitude >>> 16);
}

function lowBits(longitude: number, latitude: number): number {
  return (spread(latitude & 0xffff) | (spread(longitude & 0xffff) << 1)) >>> 0;
}

/** The score of a place. */
export function scoreOf(longitude: number, latitude: number): number {
  return interleave(toFixed(longitude, LONGITUDE_MAX, SCORE_STEPS), toFixed(latitude, LATITUDE_MAX, SCORE_STEPS), 0);
}

/** Where `decode` has found the score's place. */
export const place = { longitude: 0, latitude: 0 };

/** The middle of a score's cell, to `place`. Any double is one: scores need not come from GEOADD. */
export function decode(score: number): void {
  let high: number;
  let low: number;
  if (score >= 0 && score < Number.MAX_SAFE_INTEGER) {
    high = Math.floor(score / HALF);
    low = (score % HALF) >>> 0;
  } else {
    const bits = toUnsigned64(score);
    high = Number(bits >> 32n);
    low = Number(bits & 0xffff_ffffn);
  }
  place.longitude = middle(gather(low >>> 1) | (gather(high >>> 1) << 16), LONGITUDE_MAX);
  place.latitude = middle(gather(low) | (gather(high) << 16), LATITUDE_MAX);
}

function middle(word: number, max: number): number {
  const fixed = word >>> 0;
  const coordinate = (toCoordinate(fixed, max, SCORE_STEPS) + toCoordinate((fixed + 1) >>> 0, max, SCORE_STEPS)) / 2;
  return Math.max(-max, Math.min(max, coordinate));
}

/** A double as C on x86 makes an unsigned 64-bit integer of it, also where C does not say. */
function toUnsigned64(score: number): bigint {
  if (!(score < 2 ** 64)) return 0n;
  if (score < -(2 ** 63)) return 1n << 63n;
  return BigInt.asUintN(64, BigInt(Math.trunc(score)));
}

/** The place's geohash.org string of 11 characters, of which the last is always 0. */
export function geohashString(longitude: number, latitude: number): string {
  const x = toFixed(longitude, LONGITUDE_MAX, SCORE_STEPS);
  const y = toFixed(latitude, STRING_LATITUDE_MAX, SCORE_STEPS);
  const bits = (BigInt(highBits(x, y)) << 32n) | BigInt(lowBits(x, y));
  let text = '';
  for (let i = 1; i < STRING_LENGTH; i++) {
    text += ALPHABET[Number((bits >> BigInt(SCORE_BITS - i * STRING_DIGIT_BITS)) & 0x1fn)];
  }
  return `${text}0`;
}

/** The bits of a 16-bit number at the even positions of a 32-bit one. */
function spread(value: number): number {
  value = (value | (value << 8)) & 0x00ff00ff;
  value = (value | (value << 4)) & 0x0f0f0f0f;
  value = (value | (value << 2)) & 0x33333333;
  return (value | (value << 1)) & 0x55555555;
}

/** The even bits of a 32-bit number. */
function gather(value: number): number {
  value &= 0x55555555;
  value = (value | (value >>> 1)) & 0x33333333;
  value = (value | (value >>> 2)) & 0x0f0f0f0f;
  value = (value | (value >>> 4)) & 0x00ff00ff;
  return (value | (value >>> 8)) & 0x0000ffff;
}
