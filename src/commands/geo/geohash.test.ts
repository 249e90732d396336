import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { distance } from './geo-area.js';
import { decode, geohashString, LATITUDE_MAX, LONGITUDE_MAX, place, SCORE_STEPS, scoreOf, toFixed } from './geohash.js';

/** Degrees: doubles near 180 are 3e-14 apart. */
const ROUNDING = 1e-12;

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
        const score = scoreOf(x, y);
        decode(score);
        expect(Math.abs(place.longitude - x)).toBeLessThanOrEqual(360 / 2 ** SCORE_STEPS + ROUNDING);
        expect(Math.abs(place.latitude - y)).toBeLessThanOrEqual((2 * LATITUDE_MAX) / 2 ** SCORE_STEPS + ROUNDING);
        if (x < LONGITUDE_MAX && y < LATITUDE_MAX) expect(scoreOf(place.longitude, place.latitude)).toBe(score);
      }),
    );
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
