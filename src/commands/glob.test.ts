import { describe, expect, it } from 'vitest';
import { Bytes } from '../layout/bytes.js';
import { globMatchesText, isLiteral } from './glob.js';

describe('glob', () => {
  it.each([
    ['*', '', true],
    ['*', 'anything', true],
    ['', '', true],
    ['', 'a', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['a*c', 'ac', true],
    ['a*c', 'abbbc', true],
    ['a*b*c', 'axxbyyc', true],
    ['a*b*c', 'axxcyyb', false],
    ['[abc]x', 'bx', true],
    ['[^abc]x', 'bx', false],
    ['[^abc]x', 'dx', true],
    ['[a-c]x', 'bx', true],
    ['[c-a]x', 'bx', true],
    ['[a-c]x', 'dx', false],
    ['\\*', '*', true],
    ['\\*', 'a', false],
    ['[\\]]', ']', true],
    ['[a-', '-', true],
    ['h[', 'h[', false],
    ['\\', '\\', true],
    ['**a**', 'bab', true],
    ['*?', '', false],
    ['user:*:name', 'user:12:name', true],
  ])('%j on %j: %s', (pattern, text, expected) => {
    expect(globMatchesText(pattern, text, false)).toBe(expected);
  });

  it('ignores case when asked', () => {
    expect(globMatchesText('A[B-D]*', 'acX', true)).toBe(true);
    expect(globMatchesText('A[B-D]*', 'acX', false)).toBe(false);
  });

  it('is not exponential', () => {
    const start = performance.now();
    expect(globMatchesText(`${'a*'.repeat(30)}b`, 'a'.repeat(10_000), false)).toBe(false);
    expect(performance.now() - start).toBeLessThan(1000);
  });

  it('knows literals', () => {
    const literal = (pattern: string): boolean => isLiteral(Bytes.from(pattern), 0, pattern.length);
    expect(['abc', 'a*', 'a?', '[a]', 'a\\b'].map(literal)).toEqual([true, false, false, false, false]);
  });
});
