import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { distance } from './geo-area.js';
import { decode, geohashString, LATITUDE_MAX, LONGITUDE_MAX, place, SCORE_STEPS, scoreOf, toFixed } from './geohash.js';

/** Degrees: doubles near 180 are 3e-14 apart. */
const ROUNDING = 1e-12;
/** A double within rounding of the end of its range gets the end's step, whose score has a bit more than a double holds (head comment). */
const atEnd = (coordinate: number, max: number): boolean => toFixed(coordinate, max, SCORE_STEPS) === 2 ** SCORE_STEPS;

describe('geohash', () => {
  it('is what the head comment shows', () => {
    expect(toFixed(13.361389, LONGITUDE_MAX, SCORE_STEPS)).toBe(0x2260177);
    expect(toFixed(38.115556, LATITUDE_MAX, SCORE_STEPS)).toBe(0x2e573c0);
    expect(scoreOf(13.361389, 38.115556)).toBe(3479099956230698);
  });

  it('decodes to the middle of the cell', () => {
    const longitude = fc.double({ min: -LONGITUDE_MAX, max: LONGITUDE_MAX, noNaN: true });
    const latitude = fc.double({ min: -LATITUDE_MAX, max: LATITUDE_MAX, noNaN: true });
    fc.assert(
      fc.property(longitude, latitude, (x, y) => {
        fc.pre(!atEnd(x, LONGITUDE_MAX) && !atEnd(y, LATITUDE_MAX));
        const score = scoreOf(x, y);
        decode(score);
        expect(Math.abs(place.longitude - x)).toBeLessThanOrEqual(360 / 2 ** SCORE_STEPS + ROUNDING);
        expect(Math.abs(place.latitude - y)).toBeLessThanOrEqual((2 * LATITUDE_MAX) / 2 ** SCORE_STEPS + ROUNDING);
        expect(scoreOf(place.longitude, place.latitude)).toBe(score);
      }),
    );
  });

  it('a place within rounding of the end has the score of the end, one bit of latitude coarser', () => {
    const almost = 179.99999999999997;
    expect(scoreOf(almost, 0.0000038)).toBe(scoreOf(LONGITUDE_MAX, 0.0000038));
    decode(scoreOf(almost, 0.0000038));
    expect(place.longitude).toBe(LONGITUDE_MAX);
    expect(Math.abs(place.latitude - 0.0000038)).toBeLessThanOrEqual((4 * LATITUDE_MAX) / 2 ** SCORE_STEPS);
  });

  it('as a string', () => {
    decode(3479099956230698);
    expect(geohashString(place.longitude, place.latitude)).toBe('sqc8b49rny0');
  });

  it('distances are symmetric, and zero only at one place', () => {
    expect(distance(13.361389, 38.115556, 13.361389, 38.115556)).toBe(0);
    expect(distance(1, 2, 3, 4)).toBe(distance(3, 4, 1, 2));
    expect(distance(0, 0, 180, 0)).toBeCloseTo(Math.PI * 6372797.560856, 3);
  });
});
