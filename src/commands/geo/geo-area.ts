/**
 * The area of a geo search: which ranges of scores may hold members within it, and which members do.
 *
 * A circle or a box around a centre is covered by the cell of the centre and its eight neighbours, at the finest step at which these still
 * reach beyond it. Invariant: steps, cells and their order are those of Redis, because replies without ASC or DESC come in this order.
 */
import { addon } from '../../native/addon.js';
import {
  decode,
  interleave,
  LATITUDE_MAX,
  LONGITUDE_MAX,
  place,
  SCORE_STEPS,
  toCoordinate,
  toFixed,
} from './geohash.js';

const { centralAngle } = addon;
const RADIANS_PER_DEGREE = Math.PI / 180;
/** The quadratic mean radius, which Redis computes with. */
const EARTH_RADIUS_M = 6372797.560856;
/** Half the width of the Mercator map: a circle of this radius is covered at step 1. */
const MERCATOR_MAX_M = 20037726.37;
/** Beyond these latitudes cells are narrow, and one or two steps less are taken. */
const NARROW_LATITUDE = 66;
const NARROWEST_LATITUDE = 80;

/** What is searched; `radius` of a circle, else width and height of a box, all in units of `metresPerUnit`. */
export const area = {
  longitude: 0,
  latitude: 0,
  isCircle: true,
  radius: 0,
  width: 0,
  height: 0,
  metresPerUnit: 1,
};

/** The cell of the centre and its neighbours, in the order in which they are searched: (x, y) in columns and rows to the north-east. */
const NEIGHBOURS: readonly (readonly [x: number, y: number])[] = [
  [0, 0],
  [0, 1],
  [0, -1],
  [1, 0],
  [-1, 0],
  [1, 1],
  [-1, 1],
  [1, -1],
  [-1, -1],
];

/** A range of scores that is searched: from `min` up to, not including, `max`. */
export interface ScoreRange {
  readonly min: number;
  readonly max: number;
}

export function radians(degrees: number): number {
  return degrees * RADIANS_PER_DEGREE;
}

function degrees(angle: number): number {
  return angle / RADIANS_PER_DEGREE;
}

/** Metres between two places along the surface. */
export function distance(longitude1: number, latitude1: number, longitude2: number, latitude2: number): number {
  const lon1 = radians(longitude1);
  const lon2 = radians(longitude2);
  if (lon1 === lon2) return latitudeDistance(latitude1, latitude2);
  return EARTH_RADIUS_M * centralAngle(lon1, radians(latitude1), lon2, radians(latitude2));
}

function latitudeDistance(latitude1: number, latitude2: number): number {
  return EARTH_RADIUS_M * Math.abs(radians(latitude2) - radians(latitude1));
}

/** Metres from the centre to the place of a score, which `decode` leaves in `place`; -1 = it is outside the area. */
export function distanceWithin(score: number): number {
  decode(score);
  const { longitude, latitude, metresPerUnit } = area;
  if (!area.isCircle) {
    if (latitudeDistance(place.latitude, latitude) > (area.height * metresPerUnit) / 2) return -1;
    const across = distance(place.longitude, place.latitude, longitude, place.latitude);
    if (across > (area.width * metresPerUnit) / 2) return -1;
  }
  const metres = distance(longitude, latitude, place.longitude, place.latitude);
  return area.isCircle && metres > area.radius * metresPerUnit ? -1 : metres;
}

/** The finest step at which a cell and its neighbours cover so many metres around the centre, mostly. */
function estimateStep(metres: number, latitude: number): number {
  if (metres === 0) return SCORE_STEPS;
  let step = -1;
  for (; metres < MERCATOR_MAX_M; metres *= 2) step++;
  const absolute = Math.abs(latitude);
  if (absolute > NARROW_LATITUDE) step--;
  if (absolute > NARROWEST_LATITUDE) step--;
  return Math.max(1, Math.min(SCORE_STEPS, step));
}

/** The ranges of scores to search, in order. */
export function coveringRanges(): ScoreRange[] {
  const { longitude, latitude, metresPerUnit, isCircle } = area;
  const halfHeight = metresPerUnit * (isCircle ? area.radius : area.height / 2);
  const halfWidth = metresPerUnit * (isCircle ? area.radius : area.width / 2);
  const north = latitude + degrees(halfHeight / EARTH_RADIUS_M);
  const south = latitude - degrees(halfHeight / EARTH_RADIUS_M);
  // The side nearer to the equator is not the widest in degrees.
  const widest = latitude < 0 ? south : north;
  const lonDelta = degrees(halfWidth / EARTH_RADIUS_M / Math.cos(radians(widest)));
  const east = longitude + lonDelta;
  const west = longitude - lonDelta;
  const reach = isCircle
    ? area.radius
    : Math.sqrt((area.width / 2) * (area.width / 2) + (area.height / 2) * (area.height / 2));

  let step = estimateStep(reach * metresPerUnit, latitude);
  if (step > 1 && !reaches(step, north, south, east, west)) step--;
  const x = toFixed(longitude, LONGITUDE_MAX, step);
  const y = toFixed(latitude, LATITUDE_MAX, step);
  // Neighbours on a side where the centre's cell reaches beyond the area are not needed. With two columns all sides are one.
  const needsSouth = step < 2 || !(toCoordinate(y, LATITUDE_MAX, step) < south);
  const needsNorth = step < 2 || !(toCoordinate(y + 1, LATITUDE_MAX, step) > north);
  const needsWest = step < 2 || !(toCoordinate(x, LONGITUDE_MAX, step) < west);
  const needsEast = step < 2 || !(toCoordinate(x + 1, LONGITUDE_MAX, step) > east);

  const ranges: ScoreRange[] = [];
  let lastX = -1;
  let lastY = -1;
  for (const [dx, dy] of NEIGHBOURS) {
    if ((dy < 0 && !needsSouth) || (dy > 0 && !needsNorth) || (dx < 0 && !needsWest) || (dx > 0 && !needsEast))
      continue;
    const cellX = moved(x, dx, step);
    const cellY = moved(y, dy, step);
    // Of a huge area the neighbours on both sides are the same.
    if (cellX === lastX && cellY === lastY) continue;
    const scale = 2 ** (2 * (SCORE_STEPS - step));
    ranges.push({ min: interleave(cellX, cellY, 0) * scale, max: interleave(cellX, cellY, 1) * scale });
    if (dx !== 0 || dy !== 0) {
      lastX = cellX;
      lastY = cellY;
    }
  }
  return ranges;
}

/** The map has no edges: behind the last column comes the first. */
function moved(fixed: number, by: number, step: number): number {
  return by === 0 ? fixed : (fixed + by) & (2 ** step - 1);
}

/** True when the neighbours of the centre's cell reach as far as the area on each side. */
function reaches(step: number, north: number, south: number, east: number, west: number): boolean {
  const x = toFixed(area.longitude, LONGITUDE_MAX, step);
  const y = toFixed(area.latitude, LATITUDE_MAX, step);
  return !(
    toCoordinate(moved(y, 1, step) + 1, LATITUDE_MAX, step) < north ||
    toCoordinate(moved(y, -1, step), LATITUDE_MAX, step) > south ||
    toCoordinate(moved(x, 1, step) + 1, LONGITUDE_MAX, step) < east ||
    toCoordinate(moved(x, -1, step), LONGITUDE_MAX, step) > west
  );
}
