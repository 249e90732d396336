import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { approximateSize, formatSize, parseSize } from './size.js';

describe('sizes', () => {
  it.each([
    ['0', 0],
    ['1500', 1500],
    ['10b', 10],
    ['1k', 1000],
    ['1kb', 1024],
    ['1KiB', 1024],
    ['5m', 5_000_000],
    ['5MB', 5 * 1024 ** 2],
    ['1g', 1_000_000_000],
    ['1gb', 1024 ** 3],
    ['1 GiB', 1024 ** 3],
    ['2tb', 2 * 1024 ** 4],
  ])('reads %s as %d bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  it.each(['', 'gb', '-1', '1.5gb', '1e3', '0x10', '1 g b', '1pb', '99999999999999999999', 'NaN'])(
    'does not read %j',
    (text) => {
      expect(parseSize(text)).toBeUndefined();
    },
  );

  it('reads back what it writes', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        expect(parseSize(formatSize(bytes))).toBe(bytes);
      }),
    );
  });

  it('writes sizes that people can read', () => {
    expect(formatSize(128 * 1024 ** 2)).toBe('128MiB');
    expect(formatSize(1500)).toBe('1500');
    expect(approximateSize(1.5 * 1024 ** 3)).toBe('1.5 GiB');
    expect(approximateSize(100)).toBe('100 bytes');
  });
});
