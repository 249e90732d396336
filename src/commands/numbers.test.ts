import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bytes } from '../layout/bytes.js';
import { byteString, parseDouble, parseInteger, parseInteger64 } from './numbers.js';

const integer = (text: string): number => parseInteger(Bytes.from(`x${text}x`), 1, text.length);
const integer64 = (text: string): bigint | null => parseInteger64(Bytes.from(`x${text}x`), 1, text.length);
const double = (text: string): number => parseDouble(Bytes.from(`x${text}x`), 1, text.length);

describe('numbers', () => {
  it.each([
    ['0', 0],
    ['7', 7],
    ['-7', -7],
    ['123456789012345', 123456789012345],
    ['-9007199254740991', -9007199254740991],
    ['9223372036854775807', 2 ** 63],
  ])('integer %s', (text, value) => {
    expect(integer(text)).toBe(value);
    expect(integer64(text)).toBe(BigInt(text));
  });

  it.each([
    '',
    '-',
    '+1',
    '01',
    '-0',
    ' 1',
    '1 ',
    '1.0',
    '1e3',
    'abc',
    '9223372036854775808',
    '-9223372036854775809',
    '1'.repeat(30),
  ])('no integer: %j', (text) => {
    expect(integer(text)).toBeNaN();
    expect(integer64(text)).toBeNull();
  });

  it.each([
    ['1', 1],
    ['-1.5', -1.5],
    ['+2', 2],
    ['.5', 0.5],
    ['5.', 5],
    ['1e3', 1000],
    ['1E-2', 0.01],
    ['0x10', 16],
    ['-0x1.8p1', -3],
    ['inf', Number.POSITIVE_INFINITY],
    ['-Infinity', Number.NEGATIVE_INFINITY],
  ])('double %s', (text, value) => {
    expect(double(text)).toBe(value);
  });

  it('doubles of up to 17 digits are those that JavaScript reads', () => {
    const digits = fc.stringMatching(/^[+-]?(\d{1,9}\.?\d{0,8}|\.\d{1,16})$/);
    fc.assert(fc.property(digits, (text) => Object.is(double(text), Number(text))));
  });

  it.each(['', 'nan', ' 1', '1 ', '1e', 'abc', '0x', '0x1p5000', '1e400', '1e-400', '1,5', '--1', '1'.repeat(400)])(
    'no double: %j',
    (text) => {
      expect(double(text)).toBeNaN();
    },
  );

  it('byte strings keep every byte', () => {
    const bytes = Bytes.from(Uint8Array.from({ length: 256 }, (_, i) => i));
    const text = byteString(bytes, 0, 256);
    expect([...text].map((c) => c.charCodeAt(0))).toEqual([...bytes.u8]);
    expect(byteString(bytes, 200, 20)).toBe(text.slice(200, 220));
  });
});
