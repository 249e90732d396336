import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bytes } from '../../layout/bytes.js';
import { countBits, findBit } from './bit-search.js';

/** Bytes that are mostly all zeros or all ones, so that the word loops have something to skip. */
const content = fc
  .array(fc.tuple(fc.constantFrom(0, 0xff, 0x01, 0x80, 0x5a), fc.integer({ min: 1, max: 20 })), {
    maxLength: 6,
    minLength: 1,
  })
  .map((runs) => Uint8Array.from(runs.flatMap(([byte, length]) => new Array<number>(length).fill(byte))));

/** A range at an odd place, with other bytes around it. */
const placed = fc.tuple(content, fc.integer({ min: 0, max: 7 }), fc.nat(), fc.nat()).map(([value, offset, a, b]) => {
  const bytes = Bytes.allocate(offset + value.length + 9);
  bytes.u8.fill(0xa5);
  bytes.u8.set(value, offset);
  const bits = value.length * 8;
  return { value, bytes, offset, first: Math.min(a % bits, b % bits), last: Math.max(a % bits, b % bits) };
});

function bitOf(value: Uint8Array, bit: number): number {
  return (value[bit >>> 3] >>> (7 - (bit & 7))) & 1;
}

describe('bit search', () => {
  it('counts as a loop over the bits does', () => {
    fc.assert(
      fc.property(placed, ({ value, bytes, offset, first, last }) => {
        let expected = 0;
        for (let bit = first; bit <= last; bit++) expected += bitOf(value, bit);
        expect(countBits(bytes, offset, first, last)).toBe(expected);
      }),
      { numRuns: 1000 },
    );
  });

  it('finds what a loop over the bits finds', () => {
    fc.assert(
      fc.property(placed, fc.constantFrom(0, 1), ({ value, bytes, offset, first, last }, wanted) => {
        let expected = -1;
        for (let bit = last; bit >= first; bit--) if (bitOf(value, bit) === wanted) expected = bit;
        expect(findBit(bytes, offset, first, last, wanted)).toBe(expected);
      }),
      { numRuns: 1000 },
    );
  });
});
