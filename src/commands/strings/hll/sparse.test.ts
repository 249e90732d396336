import { describe, expect, it } from 'vitest';
import { Bytes } from '../../../layout/bytes.js';
import { countSketch } from './count.js';
import { hash64 } from './hash.js';
import { getRegister, HEADER_BYTES, isHyperLogLog, REGISTERS } from './layout.js';
import { selfTest } from './self-test.js';
import { areRunsValid, Sketch } from './sparse.js';

/** MurmurHash64A as its author describes it, in 64-bit arithmetic. */
function reference(data: Uint8Array): bigint {
  const m = 0xc6a4a7935bd1e995n;
  const mask = (1n << 64n) - 1n;
  let h = 0xadc83b19n ^ ((BigInt(data.length) * m) & mask);
  const words = data.length >>> 3;
  for (let i = 0; i < words; i++) {
    let k = Buffer.from(data).readBigUInt64LE(i * 8);
    k = (k * m) & mask;
    k ^= k >> 47n;
    k = (k * m) & mask;
    h = ((h ^ k) * m) & mask;
  }
  const tail = data.subarray(words * 8);
  if (tail.length > 0) {
    for (let i = 0; i < tail.length; i++) h ^= BigInt(tail[i]) << BigInt(i * 8);
    h = (h * m) & mask;
  }
  h ^= h >> 47n;
  h = (h * m) & mask;
  return h ^ (h >> 47n);
}

const registersOf = (sketch: Sketch): Uint8Array =>
  Uint8Array.from({ length: REGISTERS }, (_, register) => getRegister(sketch.u8, 0, register));

describe('HyperLogLog', () => {
  it('hashes as MurmurHash64A', () => {
    for (let length = 0; length < 70; length++) {
      const data = Uint8Array.from({ length }, (_, i) => (i * 73 + length * 31) & 0xff);
      expect(hash64(Bytes.from(data), 0, length)).toBe(reference(data));
    }
  });

  it('an empty one is what the layout shows', () => {
    const sketch = new Sketch();
    sketch.reset();
    expect(Buffer.from(sketch.u8.subarray(0, sketch.length)).toString('hex')).toBe(
      '48594c4c010000000000000000000000' + '7fff',
    );
    expect(countSketch(sketch.u8, 0, sketch.length)).toBe(0);
  });

  it('sparse and dense hold the same registers after random changes, and sparse runs stay valid', () => {
    for (let round = 0; round < 40; round++) {
      const sparse = new Sketch();
      const dense = new Sketch();
      for (const sketch of [sparse, dense]) sketch.reset();
      dense.makeDense();
      for (let step = 0; step < 300; step++) {
        // Near each other, so that runs split, join and meet the ends.
        const register = Math.floor(Math.random() ** 3 * 200) * (round % 3 === 0 ? 81 : 1);
        const value = 1 + Math.floor(Math.random() * 6);
        expect(sparse.raise(register, value, 16_000)).toBe(dense.raise(register, value, 16_000));
        expect(areRunsValid(sparse.u8, HEADER_BYTES, sparse.length)).toBe(true);
      }
      expect(sparse.isDense).toBe(false);
      expect(countSketch(sparse.u8, 0, sparse.length)).toBe(countSketch(dense.u8, 0, dense.length));
      sparse.makeDense();
      expect(registersOf(sparse)).toEqual(registersOf(dense));
      expect(isHyperLogLog(sparse.u8, 0, sparse.length)).toBe(true);
    }
  });

  it('passes its own test', () => {
    expect(selfTest(3000)).toBe(null);
  });
});
