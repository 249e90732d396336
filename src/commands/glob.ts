/**
 * Glob patterns over bytes, as in KEYS and SCAN: * ? [abc] [^a-z] and backslash escapes.
 *
 * Only the last star is ever tried again, so a match costs at most pattern length times text length, whatever the pattern.
 */
import { Bytes } from '../layout/bytes.js';

const STAR = 0x2a;
const QUESTION = 0x3f;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const CARET = 0x5e;
const BACKSLASH = 0x5c;
const DASH = 0x2d;
/** A pattern with more stars than these, one at its end not counted, matches nothing, as in Redis. */
const STARS_MAX = 1000;

export function globMatches(
  pattern: Bytes,
  patternOffset: number,
  patternLength: number,
  text: Bytes,
  textOffset: number,
  textLength: number,
  ignoreCase: boolean,
): boolean {
  const pattern8 = pattern.u8;
  const text8 = text.u8;
  const patternEnd = patternOffset + patternLength;
  const textEnd = textOffset + textLength;
  let p = patternOffset;
  let t = textOffset;
  let starPattern = -1;
  let starText = 0;
  let stars = 0;
  while (true) {
    if (p < patternEnd && pattern8[p] === STAR) {
      while (p < patternEnd && pattern8[p] === STAR) p++;
      if (p < patternEnd && ++stars > STARS_MAX) return false;
      starPattern = p;
      starText = t;
    }
    if (t === textEnd) {
      if (p === patternEnd) return true;
    } else if (p < patternEnd) {
      const next = elementEnd(pattern8, p, patternEnd);
      if (elementMatches(pattern8, p, next, text8[t], ignoreCase)) {
        p = next;
        t++;
        continue;
      }
    }
    // Mismatch: let the last star take one byte more.
    if (starPattern < 0 || starText === textEnd) return false;
    p = starPattern;
    t = ++starText;
  }
}

/** True when the pattern is a plain word: no element that could match more than itself. */
export function isLiteral(pattern: Bytes, offset: number, length: number): boolean {
  for (let i = 0; i < length; i++) {
    const byte = pattern.u8[offset + i];
    if (byte === STAR || byte === QUESTION || byte === OPEN || byte === BACKSLASH) return false;
  }
  return true;
}

/** The same over byte strings; for slow paths. */
export function globMatchesText(pattern: string, text: string, ignoreCase: boolean): boolean {
  const p = Bytes.from(Buffer.from(pattern, 'latin1'));
  const t = Bytes.from(Buffer.from(text, 'latin1'));
  return globMatches(p, 0, p.length, t, 0, t.length, ignoreCase);
}

/** Offset behind the element at `p`. A set without its closing bracket reaches to the end. */
function elementEnd(pattern: Uint8Array, p: number, end: number): number {
  const byte = pattern[p];
  if (byte === BACKSLASH && p + 1 < end) return p + 2;
  if (byte !== OPEN) return p + 1;
  let i = p + 1;
  if (i < end && pattern[i] === CARET) i++;
  while (i < end && pattern[i] !== CLOSE) i += pattern[i] === BACKSLASH && i + 1 < end ? 2 : 1;
  return Math.min(end, i + 1);
}

function elementMatches(pattern: Uint8Array, p: number, next: number, byte: number, ignoreCase: boolean): boolean {
  const first = pattern[p];
  if (first === QUESTION) return true;
  if (first === OPEN) return setMatches(pattern, p + 1, next, byte, ignoreCase);
  const wanted = first === BACKSLASH && next - p === 2 ? pattern[p + 1] : first;
  return wanted === byte || (ignoreCase && lower(wanted) === lower(byte));
}

function setMatches(pattern: Uint8Array, p: number, next: number, byte: number, ignoreCase: boolean): boolean {
  const negated = pattern[p] === CARET;
  if (negated) p++;
  const end = pattern[next - 1] === CLOSE ? next - 1 : next;
  const wanted = ignoreCase ? lower(byte) : byte;
  let found = false;
  while (p < end) {
    if (pattern[p] === BACKSLASH && p + 1 < end) p++;
    let low = ignoreCase ? lower(pattern[p]) : pattern[p];
    let high = low;
    if (p + 2 < end && pattern[p + 1] === DASH) {
      high = ignoreCase ? lower(pattern[p + 2]) : pattern[p + 2];
      p += 2;
    }
    if (low > high) [low, high] = [high, low];
    if (wanted >= low && wanted <= high) found = true;
    p++;
  }
  return found !== negated;
}

function lower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}
