/**
 * From registers to a cardinality: Ertl's estimator, as Redis computes it (arXiv:1702.01284).
 *
 * Invariant: the sums run in Redis's order, so that the doubles, and with them the estimates, are the same.
 */
import { ENCODING_BYTE, HEADER_BYTES, HllEncoding, REGISTER_MAX, REGISTERS } from './layout.js';
import { isLongZero, runLength, runValue } from './sparse.js';

/** Bits of the hash that are left for the run of zeros. */
const Q = 50;
/** 1 / (2 ln 2) */
const ALPHA = 0.7213475204444817;

const histogram = new Int32Array(REGISTER_MAX + 1);

/** The estimate for a valid HyperLogLog of `length` bytes. */
export function countSketch(u8: Uint8Array, at: number, length: number): number {
  histogram.fill(0);
  if (u8[at + ENCODING_BYTE] === HllEncoding.DENSE) addDense(u8, at + HEADER_BYTES, at + length);
  else addSparse(u8, at + HEADER_BYTES, at + length);
  return estimate();
}

/** The estimate for registers of one byte each. */
export function countRegisters(registers: Uint8Array): number {
  histogram.fill(0);
  for (let i = 0; i < REGISTERS; i++) histogram[registers[i]]++;
  return estimate();
}

/** Three bytes hold four registers. */
function addDense(u8: Uint8Array, p: number, end: number): void {
  for (; p < end; p += 3) {
    const word = u8[p] | (u8[p + 1] << 8) | (u8[p + 2] << 16);
    histogram[word & 63]++;
    histogram[(word >>> 6) & 63]++;
    histogram[(word >>> 12) & 63]++;
    histogram[word >>> 18]++;
  }
}

function addSparse(u8: Uint8Array, p: number, end: number): void {
  while (p < end) {
    histogram[runValue(u8[p])] += runLength(u8, p);
    p += isLongZero(u8[p]) ? 2 : 1;
  }
}

function estimate(): number {
  let z = REGISTERS * tau((REGISTERS - histogram[Q + 1]) / REGISTERS);
  for (let j = Q; j >= 1; j--) {
    z += histogram[j];
    z *= 0.5;
  }
  z += REGISTERS * sigma(histogram[0] / REGISTERS);
  return Math.round((ALPHA * REGISTERS * REGISTERS) / z);
}

function sigma(x: number): number {
  if (x === 1) return Number.POSITIVE_INFINITY;
  let y = 1;
  let z = x;
  let before: number;
  do {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  } while (before !== z);
  return z;
}

function tau(x: number): number {
  if (x === 0 || x === 1) return 0;
  let y = 1;
  let z = 1 - x;
  let before: number;
  do {
    x = Math.sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) ** 2 * y;
  } while (before !== z);
  return z / 3;
}
