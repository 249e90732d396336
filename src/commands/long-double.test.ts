import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addLongDoubles, formatLongDouble, type LongDouble, parseLongDouble } from './long-double.js';

function finite(text: string): LongDouble {
  const value = parseLongDouble(text);
  if (value === null || value === 'infinite') throw new Error(`${text} is not finite`);
  return value;
}

function sum(a: string, b: string): string | null {
  const value = addLongDoubles(finite(a), finite(b));
  return value === null ? null : formatLongDouble(value);
}

describe('long doubles', () => {
  it('are exact where doubles are not', () => {
    expect(sum('10.50', '0.1')).toBe('10.6');
    expect(sum('0.1', '0.2')).toBe('0.3');
    expect(sum('3.0e3', '200')).toBe('3200');
    expect(sum('5', '-5')).toBe('0');
    expect(sum('-0.3', '0.3')).toBe('0');
  });

  it('round to 64 bits of mantissa', () => {
    // 2^64 + 1 has 65 bits: half way, to even.
    expect(sum('18446744073709551616', '1')).toBe('18446744073709551616');
    expect(sum('18446744073709551616', '3')).toBe('18446744073709551620');
    expect(sum('18446744073709551615', '0')).toBe('18446744073709551615');
    expect(sum('9223372036854775807', '0.5')).toBe('9223372036854775807.5');
  });

  it('show 17 decimals, rounded half to even', () => {
    expect(sum('1e-17', '0')).toBe('0.00000000000000001');
    expect(sum('4e-18', '0')).toBe('0');
    expect(sum('-4e-18', '0')).toBe('0');
    expect(sum('1.5', '0')).toBe('1.5');
  });

  it('accept what strtold accepts, and no more', () => {
    for (const text of ['1', '+1', '-1', '1.', '.5', '1e5', '1E+5', '0x10', '0x1.8p1', '0X.8P-2', '1e4932', '00012']) {
      expect(parseLongDouble(text), text).not.toBeNull();
    }
    for (const text of [
      '',
      '.',
      ' 1',
      '1 ',
      '1e',
      'e5',
      '0x',
      '0x.',
      '--1',
      'nan',
      '1e4933',
      '1e-4960',
      '1_000',
      'infx',
    ]) {
      expect(parseLongDouble(text), text).toBeNull();
    }
    for (const text of ['inf', '-inf', 'INFINITY', '+Inf']) expect(parseLongDouble(text)).toBe('infinite');
    expect(formatLongDouble(finite('0x1.8p1'))).toBe('3');
    expect(formatLongDouble(finite('0e99999999'))).toBe('0');
  });

  it('overflow to no value', () => {
    expect(sum('1.18e4932', '1.18e4932')).toBeNull();
  });

  it('add integers below 2^63 exactly', () => {
    const integer = fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n });
    fc.assert(
      fc.property(integer, integer, (a, b) => {
        expect(sum(String(a), String(b))).toBe(String(a + b));
      }),
    );
  });

  it('read back what they show of decimals below ten', () => {
    // From there on Redis itself shows the error of the 64-bit mantissa: 255.4 comes back as below.
    fc.assert(
      fc.property(fc.integer({ min: -99_999, max: 99_999 }), fc.integer({ min: 4, max: 6 }), (n, shift) => {
        const digits = Math.abs(n)
          .toString()
          .padStart(shift + 1, '0');
        const fraction = digits.slice(-shift).replace(/0+$/, '');
        const text = (n < 0 ? '-' : '') + digits.slice(0, -shift) + (fraction === '' ? '' : `.${fraction}`);
        expect(formatLongDouble(finite(text))).toBe(text);
      }),
    );
    expect(formatLongDouble(finite('255.4'))).toBe('255.39999999999999999');
  });
});
