/** Copies, comparison and check sums on arenas. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addon } from './addon.js';

let a: number;
let b: number;
let bytesA: Buffer;
let bytesB: Buffer;
let control: Int32Array;
beforeAll(() => {
  a = addon.allocateArena(65536, {});
  b = addon.allocateArena(65536, {});
  bytesA = Buffer.from(addon.wrapArena(a));
  bytesB = Buffer.from(addon.wrapArena(b));
  control = new Int32Array(addon.copyControl());
});
afterAll(() => {
  addon.releaseArena(a);
  addon.releaseArena(b);
});

test('copies all records, overlapping ones as memmove', () => {
  bytesA.write('0123456789');
  control.set([2, b, 100, a, 0, 10, a, 2, a, 0, 8]);
  addon.copy();
  expect(bytesB.toString('latin1', 100, 110)).toBe('0123456789');
  expect(bytesA.toString('latin1', 0, 10)).toBe('0101234567');
  expect(new Int32Array(addon.copyControl()).buffer).toBe(control.buffer);
});

test('one wrong record: RangeError, and nothing is copied', () => {
  bytesB.fill(0);
  for (const wrong of [
    [b, 65530, a, 0, 10],
    [b, 0, a, 65530, 10],
    [b, -1, a, 0, 1],
    [b, 0, a, 0, -1],
    [65_535, 0, a, 0, 1],
    [-1, 0, a, 0, 1],
    [b, 0, 70_000, 0, 1],
  ]) {
    control.set([2, b, 0, a, 0, 5, ...wrong]);
    expect(() => addon.copy()).toThrow(RangeError);
  }
  control[0] = 5000;
  expect(() => addon.copy()).toThrow(RangeError);
  control[0] = -1;
  expect(() => addon.copy()).toThrow(RangeError);
  expect(bytesB.subarray(0, 16).every((byte) => byte === 0)).toBe(true);
  control[0] = 0;
  addon.copy();
});

test('compares as memcmp, then by length', () => {
  bytesA.write('abcdef');
  bytesB.write('abcxef');
  expect(addon.compare(a, 0, 3, b, 0, 3)).toBe(0);
  expect(addon.compare(a, 0, 6, b, 0, 6)).toBe(-1);
  expect(addon.compare(b, 0, 6, a, 0, 6)).toBe(1);
  expect(addon.compare(a, 0, 3, b, 0, 2)).toBe(1);
  expect(addon.compare(a, 0, 0, b, 0, 2)).toBe(-1);
  expect(() => addon.compare(a, 65536, 1, b, 0, 1)).toThrow(RangeError);
});

/** Bit by bit, as the definition has it. */
function crcByDefinition(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

test('CRC-32C: the known check value, every length and alignment, continuing from a seed', () => {
  bytesA.write('123456789');
  expect(addon.crc32c(a, 0, 9, 0)).toBe(0xe3069283);
  for (let i = 0; i < 300; i++) bytesA[i] = (i * 37) ^ (i >> 3);
  for (let length = 0; length < 70; length++) {
    const offset = length % 9;
    expect(addon.crc32c(a, offset, length, 0)).toBe(crcByDefinition(bytesA.subarray(offset, offset + length)));
  }
  const whole = addon.crc32c(a, 0, 300, 0);
  expect(addon.crc32c(a, 123, 177, addon.crc32c(a, 0, 123, 0))).toBe(whole);
  expect(() => addon.crc32c(a, 65530, 10, 0)).toThrow(RangeError);
});

test('wrong arguments are TypeErrors', () => {
  const loose = addon as unknown as Record<string, (...args: unknown[]) => unknown>;
  expect(() => loose.crc32c(a, 0)).toThrow(TypeError);
  expect(() => loose.compare(a, 0, 'x', b, 0, 1)).toThrow(TypeError);
  expect(() => loose.mapArena(0, 0, 4096, 7)).toThrow(TypeError);
  expect(() => loose.mapArena(0, 0, 4096, { populate: 'yes' })).toThrow(TypeError);
  expect(() => loose.openFile(5, true, true)).toThrow(TypeError);
  expect(() => loose.createPump({})).toThrow(TypeError);
  expect(() => loose.createPump({ inputBytes: 1, outputBytes: 1, maxEvents: 8, receiveBytes: 4096 })).toThrow(
    RangeError,
  );
});
