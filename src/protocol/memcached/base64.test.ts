import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeBase64, encodeBase64 } from './base64.js';

describe('base64', () => {
  it('encodes as everybody does and decodes in place', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 60 }), (bytes) => {
        const u8 = new Uint8Array(100);
        const end = encodeBase64(u8, 5, bytes, 0, bytes.length);
        expect(Buffer.from(u8.subarray(5, end)).toString()).toBe(Buffer.from(bytes).toString('base64'));
        expect(decodeBase64(u8, 5, u8, 5, end - 5)).toBe(bytes.length);
        expect(u8.subarray(5, 5 + bytes.length)).toEqual(bytes);
      }),
    );
  });

  it('refuses what is not base64', () => {
    for (const bad of ['', 'a', 'abc', 'ab=c', '====', 'a===', 'YW Jj', 'YWJj=', 'YW-j', '=WJj']) {
      const u8 = Uint8Array.from(Buffer.from(bad));
      expect(decodeBase64(new Uint8Array(16), 0, u8, 0, u8.length), bad).toBe(0);
    }
  });
});
