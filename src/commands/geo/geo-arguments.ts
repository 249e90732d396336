/**
 * What geo commands read and write: coordinates, units, distances, positions. Invariant: error texts and decimals are Redis's.
 */
import { stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_FLOAT } from '../errors.js';
import { formatLongDouble, longDoubleOf } from '../long-double.js';
import { area } from './geo-area.js';
import { LATITUDE_MAX, LONGITUDE_MAX } from './geohash.js';

const UNSUPPORTED_UNIT = 'ERR unsupported unit provided. please use M, KM, FT, MI';
const METRES_PER_FOOT = 0.3048;
const METRES_PER_MILE = 1609.34;
/** Decimals of a distance. */
const SCALE = 10_000;

/** The coordinates that `readPlace` has read. */
export const given = { longitude: 0, latitude: 0 };

/** Reads a longitude and a latitude from argument `i` on to `given`; false after an error reply. */
export function readPlace(context: Context, i: number): boolean {
  const longitude = context.argDouble(i);
  const latitude = context.argDouble(i + 1);
  if (Number.isNaN(longitude) || Number.isNaN(latitude)) return fail(context, NOT_FLOAT);
  if (!(Math.abs(longitude) <= LONGITUDE_MAX && Math.abs(latitude) <= LATITUDE_MAX)) {
    return fail(context, `ERR invalid longitude,latitude pair ${sixDecimals(longitude)},${sixDecimals(latitude)}`);
  }
  given.longitude = longitude;
  given.latitude = latitude;
  return true;
}

/** Metres of the unit in argument `i`; -1 after an error reply. */
export function readUnit(context: Context, i: number): number {
  if (context.argIs(i, 'M')) return 1;
  if (context.argIs(i, 'KM')) return 1000;
  if (context.argIs(i, 'FT')) return METRES_PER_FOOT;
  if (context.argIs(i, 'MI')) return METRES_PER_MILE;
  context.reply.error(UNSUPPORTED_UNIT);
  return -1;
}

/** Makes `area` a circle of the radius and the unit in arguments `i` and `i + 1`; false after an error reply. */
export function readCircle(context: Context, i: number): boolean {
  const radius = context.argDouble(i);
  if (Number.isNaN(radius)) return fail(context, 'ERR need numeric radius');
  if (radius < 0) return fail(context, 'ERR radius cannot be negative');
  area.isCircle = true;
  area.radius = radius;
  return readAreaUnit(context, i + 1);
}

/** Makes `area` a box of the width, the height and the unit in three arguments; false after an error reply. */
export function readBox(context: Context, i: number): boolean {
  const width = context.argDouble(i);
  if (Number.isNaN(width)) return fail(context, 'ERR need numeric width');
  const height = context.argDouble(i + 1);
  if (Number.isNaN(height)) return fail(context, 'ERR need numeric height');
  if (width < 0 || height < 0) return fail(context, 'ERR height or width cannot be negative');
  area.isCircle = false;
  area.width = width;
  area.height = height;
  return readAreaUnit(context, i + 2);
}

function readAreaUnit(context: Context, i: number): boolean {
  area.metresPerUnit = readUnit(context, i);
  return area.metresPerUnit > 0;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

function sixDecimals(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}.000000`;
  return Object.is(value, -0) ? '-0.000000' : value.toFixed(6);
}

/** Replies a distance with four decimals, a half rounded to the even digit; a bulk string in either version of the protocol. */
export function replyDistance(context: Context, value: number): void {
  const scaled = value * SCALE;
  let rounded = Math.round(scaled);
  if (rounded - scaled === 0.5 && rounded % 2 === 1) rounded--;
  const digits = rounded.toString().padStart(5, '0');
  context.reply.bulkString(`${digits.slice(0, -4)}.${digits.slice(-4)}`);
}

/** Replies longitude and latitude as a pair. */
export function replyPlace(context: Context, longitude: number, latitude: number): void {
  const { reply } = context;
  reply.array(2);
  reply.doubleText(formatLongDouble(longDoubleOf(longitude)));
  reply.doubleText(formatLongDouble(longDoubleOf(latitude)));
}

export const UNITS = [tokenArg('m'), tokenArg('km'), tokenArg('ft'), tokenArg('mi')];
export const MEMBERS = stringArg('member', { multiple: true });
