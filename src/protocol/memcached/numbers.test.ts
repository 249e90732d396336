import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ABOVE_SAFE,
  decimalDigits,
  INVALID_INT32,
  INVALID_UNSIGNED,
  parseInt32,
  parseUint32,
  parseUnsigned,
  Uint64,
  writeDecimal,
} from './numbers.js';

const MODULUS = 2n ** 64n;
const encode = (text: string) => Uint8Array.from(Buffer.from(`<${text}>`, 'latin1'));
const unsigned = (text: string) => parseUnsigned(encode(text), 1, text.length);
const signed = (text: string) => parseInt32(encode(text), 1, text.length);
const u64 = fc.oneof(fc.bigInt(0n, MODULUS - 1n), fc.bigInt(0n, 1000n), fc.bigInt(MODULUS - 1000n, MODULUS - 1n));

function uint64(value: bigint): Uint64 {
  const made = new Uint64();
  const text = value.toString();
  expect(made.parse(encode(text), 1, text.length)).toBe(true);
  return made;
}

function print(value: Uint64): string {
  const u8 = new Uint8Array(40);
  const end = value.write(u8, 3);
  expect(end - 3).toBe(value.digits);
  return Buffer.from(u8.subarray(3, end)).toString();
}

describe('decimal numbers', () => {
  it('parses unsigned numbers and folds what is above 2^53', () => {
    expect(unsigned('0')).toBe(0);
    expect(unsigned('007')).toBe(7);
    expect(unsigned('999999999999999')).toBe(999999999999999);
    expect(unsigned('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER);
    expect(unsigned('9007199254740992')).toBe(ABOVE_SAFE);
    expect(unsigned('18446744073709551615')).toBe(ABOVE_SAFE);
    expect(unsigned('18446744073709551616')).toBe(INVALID_UNSIGNED);
    expect(unsigned('000000000000000000000000012')).toBe(12);
    for (const bad of ['', '-1', '1x', ' 1', '99999999999999999999', '1234567890123456x']) {
      expect(unsigned(bad), bad).toBe(INVALID_UNSIGNED);
    }
  });

  it('parses signed 32-bit numbers', () => {
    expect(signed('-1')).toBe(-1);
    expect(signed('2147483647')).toBe(2147483647);
    expect(signed('-2147483648')).toBe(-2147483648);
    for (const bad of ['', '-', '2147483648', '-2147483649', '1.5', '--1', '12345678901']) {
      expect(signed(bad), bad).toBe(INVALID_INT32);
    }
    expect(parseUint32(encode('4294967295'), 1, 10)).toBe(4294967295);
    expect(parseUint32(encode('4294967296'), 1, 10)).toBe(INVALID_UNSIGNED);
  });

  it('writes what it parses', () => {
    fc.assert(
      fc.property(fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }), (value) => {
        const u8 = new Uint8Array(32);
        const end = writeDecimal(u8, 2, value);
        expect(Buffer.from(u8.subarray(2, end)).toString()).toBe(String(value));
        if (value >= 0) expect(decimalDigits(value)).toBe(String(value).length);
      }),
    );
  });
});

describe('Uint64', () => {
  it('adds and subtracts as unsigned 64-bit integers', () => {
    fc.assert(
      fc.property(u64, u64, (a, b) => {
        const sum = uint64(a);
        sum.add(uint64(b));
        expect(print(sum)).toBe(String((a + b) % MODULUS));
        const difference = uint64(a);
        difference.subtract(uint64(b));
        expect(print(difference)).toBe(String(a > b ? a - b : 0n));
      }),
    );
  });

  it('reads stored values as memcached does', () => {
    const stored = (text: string) => {
      const value = new Uint64();
      return value.parseStored(encode(text), 1, text.length) ? print(value) : null;
    };
    expect(stored('12')).toBe('12');
    expect(stored('12  ')).toBe('12');
    expect(stored(' +12 junk')).toBe('12');
    expect(stored('0012')).toBe('12');
    for (const bad of ['', ' ', 'a', '12a', '-1', '18446744073709551616']) expect(stored(bad), bad).toBe(null);
  });
});
