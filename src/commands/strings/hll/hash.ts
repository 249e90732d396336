/**
 * Where an element falls in a HyperLogLog: MurmurHash64A (seed 0xadc83b19) of its bytes, as Redis hashes them.
 *
 * The low 14 bits choose the register; one more than the number of zeros from bit 14 on is the value it offers. 64-bit words are
 * pairs of 32-bit ones: BigInt would cost a hundred times as much. Invariant: nothing is allocated.
 */
import type { Bytes } from '../../../layout/bytes.js';

const SEED = 0xadc83b19 | 0;
/** The multiplier 0xc6a4a7935bd1e995. */
const M_HIGH = 0xc6a4a793 | 0;
const M_LOW = 0x5bd1e995;
const M_LOW_LOW = M_LOW & 0xffff;
const M_LOW_HIGH = M_LOW >>> 16;

const REGISTER_MASK = 0x3fff;
/** Beyond the 50 bits that are left there is a one, so that the run of zeros ends. */
const SENTINEL = 1 << 18;

/** Of the element hashed last. */
export const placed = { register: 0, value: 0 };

let high = 0;
let low = 0;

/** Sets `placed` for the bytes of one element. */
export function place(bytes: Bytes, offset: number, length: number): void {
  murmur(bytes.u8, offset, length);
  placed.register = low & REGISTER_MASK;
  const restLow = (low >>> 14) | (high << 18);
  placed.value = 1 + (restLow !== 0 ? trailingZeros(restLow) : 32 + trailingZeros((high >>> 14) | SENTINEL));
}

/** The hash itself, for tests. */
export function hash64(bytes: Bytes, offset: number, length: number): bigint {
  murmur(bytes.u8, offset, length);
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

function murmur(u8: Uint8Array, offset: number, length: number): void {
  high = 0;
  low = length;
  multiply();
  let hashHigh = high;
  let hashLow = low ^ SEED;
  const tail = length & 7;
  const end = offset + length - tail;
  for (let p = offset; p < end; p += 8) {
    low = u8[p] | (u8[p + 1] << 8) | (u8[p + 2] << 16) | (u8[p + 3] << 24);
    high = u8[p + 4] | (u8[p + 5] << 8) | (u8[p + 6] << 16) | (u8[p + 7] << 24);
    multiply();
    low ^= high >>> 15;
    multiply();
    high ^= hashHigh;
    low ^= hashLow;
    multiply();
    hashHigh = high;
    hashLow = low;
  }
  high = hashHigh;
  low = hashLow;
  if (tail > 0) {
    for (let i = 0; i < tail; i++) {
      if (i < 4) low ^= u8[end + i] << (i * 8);
      else high ^= u8[end + i] << ((i - 4) * 8);
    }
    multiply();
  }
  low ^= high >>> 15;
  multiply();
  low ^= high >>> 15;
}

/** high:low times the multiplier, modulo 2^64. */
function multiply(): void {
  const a0 = low & 0xffff;
  const a1 = low >>> 16;
  const middle = a1 * M_LOW_LOW + ((a0 * M_LOW_LOW) >>> 16);
  const carried = a0 * M_LOW_HIGH + (middle & 0xffff);
  const upper = (a1 * M_LOW_HIGH + (middle >>> 16) + (carried >>> 16)) | 0;
  high = (upper + Math.imul(low, M_HIGH) + Math.imul(high, M_LOW)) | 0;
  low = Math.imul(low, M_LOW);
}

function trailingZeros(word: number): number {
  return 31 - Math.clz32(word & -word);
}
