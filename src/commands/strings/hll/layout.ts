/**
 * The byte layout of a HyperLogLog, Redis's: a string with a header and 16,384 registers of 6 bits.
 *
 *     0..3   "HYLL"
 *     4      encoding: 0 dense, 1 sparse
 *     5..7   zero
 *     8..15  cached cardinality, little endian; the top bit says that it is out of date
 *     16..   dense: registers from the lowest bit of each byte on, 12,288 bytes
 *            sparse: runs of registers
 *              00llllll            l + 1 registers are 0        (ZERO, up to 64)
 *              01llllll llllllll   l + 1 registers are 0        (XZERO, up to 16,384)
 *              1vvvvvll            l + 1 registers are v + 1    (VAL, up to 4 of up to 32)
 *
 * Example: `48 59 4c 4c 01 00 00 00 00 00 00 00 00 00 00 00 7f ff` is an empty one. Invariant: everything here reads and
 * writes plain bytes and knows no key.
 */

export const REGISTERS = 16_384;
export const REGISTER_BITS = 6;
export const REGISTER_MAX = 63;
export const HEADER_BYTES = 16;
export const DENSE_BYTES = HEADER_BYTES + (REGISTERS * REGISTER_BITS) / 8;
/** A sparse one of valid runs is never longer: each run has at most two bytes and at least one register. */
export const SPARSE_BYTES_MAX = HEADER_BYTES + 2 * REGISTERS;
export const ENCODING_BYTE = 4;
export const CARDINALITY_BYTE = 8;
/** Holds the bit that says the cardinality is out of date. */
export const STALE_BYTE = 15;
export const STALE_BIT = 0x80;

export const enum HllEncoding {
  DENSE = 0,
  SPARSE = 1,
}

const MAGIC = [0x48, 0x59, 0x4c, 0x4c];

export function writeHeader(u8: Uint8Array, at: number, encoding: HllEncoding): void {
  u8.fill(0, at, at + HEADER_BYTES);
  u8.set(MAGIC, at);
  u8[at + ENCODING_BYTE] = encoding;
}

/** True when the bytes begin like a HyperLogLog and have its length. */
export function isHyperLogLog(u8: Uint8Array, at: number, length: number): boolean {
  if (length < HEADER_BYTES) return false;
  for (let i = 0; i < MAGIC.length; i++) if (u8[at + i] !== MAGIC[i]) return false;
  const encoding = u8[at + ENCODING_BYTE];
  return encoding === HllEncoding.SPARSE || (encoding === HllEncoding.DENSE && length === DENSE_BYTES);
}

/** Offset of a register's first byte, from the start of the string. */
export function registerByte(register: number): number {
  return HEADER_BYTES + ((register * REGISTER_BITS) >>> 3);
}

/** Bytes that a register touches. */
export function registerBytes(register: number): number {
  return ((register * REGISTER_BITS) & 7) > 2 ? 2 : 1;
}

export function getRegister(u8: Uint8Array, at: number, register: number): number {
  const p = at + registerByte(register);
  const shift = (register * REGISTER_BITS) & 7;
  const word = shift > 2 ? u8[p] | (u8[p + 1] << 8) : u8[p];
  return (word >>> shift) & REGISTER_MAX;
}

export function setRegister(u8: Uint8Array, at: number, register: number, value: number): void {
  const p = at + registerByte(register);
  const shift = (register * REGISTER_BITS) & 7;
  u8[p] = (u8[p] & ~(REGISTER_MAX << shift)) | (value << shift);
  if (shift > 2) u8[p + 1] = (u8[p + 1] & ~(REGISTER_MAX >>> (8 - shift))) | (value >>> (8 - shift));
}
