/**
 * Ids of stream entries: two unsigned 64-bit numbers, milliseconds and sequence, as four words.
 *
 * Invariant: each word is an unsigned 32-bit integer; nothing here allocates, except the text of numbers beyond 2^53.
 */
import type { Bytes } from '../../layout/bytes.js';
import { IdKey, OrderedNumber } from '../../layout/stream.js';

const WORD = 0x1_0000_0000;
const WORD_MAX = 0xffff_ffff;
/** High words of numbers that are exact doubles. */
const EXACT_HIGH = 0x20_0000;
/** High words of milliseconds that six bytes do not hold, or whose first byte would be LONG_TIME. */
const LONG_TIME_HIGH = IdKey.LONG_TIME << 8;

/** Characters of the longest id. */
export const ID_TEXT_MAX = 41;

export class StreamId {
  msHigh = 0;
  msLow = 0;
  seqHigh = 0;
  seqLow = 0;

  set(other: StreamId): void {
    this.msHigh = other.msHigh;
    this.msLow = other.msLow;
    this.seqHigh = other.seqHigh;
    this.seqLow = other.seqLow;
  }

  setZero(): void {
    this.msHigh = 0;
    this.msLow = 0;
    this.seqHigh = 0;
    this.seqLow = 0;
  }

  setMax(): void {
    this.msHigh = WORD_MAX;
    this.msLow = WORD_MAX;
    this.seqHigh = WORD_MAX;
    this.seqLow = WORD_MAX;
  }

  /** Milliseconds of the clock, sequence 0. */
  setTime(ms: number): void {
    this.msHigh = Math.floor(ms / WORD);
    this.msLow = ms - this.msHigh * WORD;
    this.seqHigh = 0;
    this.seqLow = 0;
  }

  setSequenceMax(): void {
    this.seqHigh = WORD_MAX;
    this.seqLow = WORD_MAX;
  }

  get isZero(): boolean {
    return this.msLow === 0 && this.seqLow === 0 && this.msHigh === 0 && this.seqHigh === 0;
  }

  get isMax(): boolean {
    return this.msHigh === WORD_MAX && this.msLow === WORD_MAX && this.isSequenceMax;
  }

  get isSequenceMax(): boolean {
    return this.seqHigh === WORD_MAX && this.seqLow === WORD_MAX;
  }

  hasTimeOf(other: StreamId): boolean {
    return this.msHigh === other.msHigh && this.msLow === other.msLow;
  }

  /** Negative, 0 or positive. */
  compare(other: StreamId): number {
    return (
      this.msHigh - other.msHigh ||
      this.msLow - other.msLow ||
      this.seqHigh - other.seqHigh ||
      this.seqLow - other.seqLow
    );
  }

  /** To the next id; false and unchanged = there is none. */
  increment(): boolean {
    if (this.isMax) return false;
    if (this.seqLow !== WORD_MAX) {
      this.seqLow++;
      return true;
    }
    this.seqLow = 0;
    if (this.seqHigh !== WORD_MAX) {
      this.seqHigh++;
      return true;
    }
    this.seqHigh = 0;
    if (this.msLow !== WORD_MAX) {
      this.msLow++;
    } else {
      this.msLow = 0;
      this.msHigh++;
    }
    return true;
  }

  /** To the id before; false and unchanged = there is none. */
  decrement(): boolean {
    if (this.isZero) return false;
    if (this.seqLow !== 0) {
      this.seqLow--;
      return true;
    }
    this.seqLow = WORD_MAX;
    if (this.seqHigh !== 0) {
      this.seqHigh--;
      return true;
    }
    this.seqHigh = WORD_MAX;
    if (this.msLow !== 0) {
      this.msLow--;
    } else {
      this.msLow = WORD_MAX;
      this.msHigh--;
    }
    return true;
  }

  // ---- as bytes

  /** Writes the id as keys have it; returns the offset behind it. */
  writeKey(to: Bytes, offset: number): number {
    const { u8 } = to;
    const { msHigh, msLow } = this;
    let at = offset;
    if (msHigh >= LONG_TIME_HIGH) {
      u8[at++] = IdKey.LONG_TIME;
      u8[at++] = msHigh >>> 24;
      u8[at++] = msHigh >>> 16;
    }
    u8[at++] = msHigh >>> 8;
    u8[at++] = msHigh;
    u8[at++] = msLow >>> 24;
    u8[at++] = msLow >>> 16;
    u8[at++] = msLow >>> 8;
    u8[at++] = msLow;
    return writeOrdered(u8, at, this.seqHigh, this.seqLow);
  }

  /** Reads an id of a key; returns the offset behind it. */
  readKey(from: Bytes, offset: number): number {
    const { u8 } = from;
    let at = offset;
    let high = 0;
    if (u8[at] === IdKey.LONG_TIME) {
      high = (u8[at + 1] << 8) | u8[at + 2];
      at += 3;
    }
    this.msHigh = ((high << 16) | (u8[at] << 8) | u8[at + 1]) >>> 0;
    this.msLow = ((u8[at + 2] << 24) | (u8[at + 3] << 16) | (u8[at + 4] << 8) | u8[at + 5]) >>> 0;
    at = readOrdered(u8, at + 6);
    this.seqHigh = orderedHigh;
    this.seqLow = orderedLow;
    return at;
  }

  /** Writes the id as values have it. */
  writeWords(view: DataView, offset: number): void {
    view.setUint32(offset, this.msHigh, true);
    view.setUint32(offset + 4, this.msLow, true);
    view.setUint32(offset + 8, this.seqHigh, true);
    view.setUint32(offset + 12, this.seqLow, true);
  }

  readWords(view: DataView, offset: number): void {
    this.msHigh = view.getUint32(offset, true);
    this.msLow = view.getUint32(offset + 4, true);
    this.seqHigh = view.getUint32(offset + 8, true);
    this.seqLow = view.getUint32(offset + 12, true);
  }

  // ---- as text

  /** Reads `ms-seq`, or `ms` alone: then `hasSequence` is false and the sequence 0. False = neither. */
  parse(from: Bytes, offset: number, length: number): boolean {
    if (length > TEXT_MAX) return false;
    const { u8 } = from;
    const end = offset + length;
    let dash = offset;
    while (dash < end && u8[dash] !== DASH) dash++;
    if (!parseUnsigned(u8, offset, dash)) return false;
    this.msHigh = orderedHigh;
    this.msLow = orderedLow;
    hasSequence = dash < end;
    if (!hasSequence) {
      this.seqHigh = 0;
      this.seqLow = 0;
      return true;
    }
    if (!parseUnsigned(u8, dash + 1, end)) return false;
    this.seqHigh = orderedHigh;
    this.seqLow = orderedLow;
    return true;
  }

  /** Writes `ms-seq`; returns the offset behind it. */
  writeText(u8: Uint8Array, offset: number): number {
    const at = writeUnsigned(u8, offset, this.msHigh, this.msLow);
    u8[at] = DASH;
    return writeUnsigned(u8, at + 1, this.seqHigh, this.seqLow);
  }

  toString(): string {
    return `${unsigned(this.msHigh, this.msLow)}-${unsigned(this.seqHigh, this.seqLow)}`;
  }
}

const BILLION = 1_000_000_000;
const BILLION_DIGITS = 9;
const DASH = 0x2d;
const PLUS = 0x2b;
const SPACE = 0x20;
const DIGIT_0 = 0x30;
/** Redis reads no more of an id. */
const TEXT_MAX = 127;

/** The last parsed id had a sequence. */
export let hasSequence = false;

/** What readOrdered and parseUnsigned have found. */
export let orderedHigh = 0;
export let orderedLow = 0;

/** Writes an unsigned 64-bit number so that its bytes sort as it does; returns the offset behind it. */
export function writeOrdered(u8: Uint8Array, offset: number, high: number, low: number): number {
  if (high === 0 && low <= OrderedNumber.SHORT_MAX) {
    u8[offset] = low;
    return offset + 1;
  }
  const bytes = high === 0 ? bytesOf(low) : 4 + bytesOf(high);
  u8[offset] = OrderedNumber.SHORT_MAX + bytes;
  let at = offset + 1;
  for (let i = bytes - 1; i >= 4; i--) u8[at++] = high >>> ((i - 4) * 8);
  for (let i = Math.min(bytes, 4) - 1; i >= 0; i--) u8[at++] = low >>> (i * 8);
  return at;
}

function bytesOf(word: number): number {
  return (39 - Math.clz32(word)) >>> 3;
}

/** Reads one into orderedHigh and orderedLow; returns the offset behind it. */
export function readOrdered(u8: Uint8Array, offset: number): number {
  const first = u8[offset];
  orderedHigh = 0;
  if (first <= OrderedNumber.SHORT_MAX) {
    orderedLow = first;
    return offset + 1;
  }
  const bytes = first - OrderedNumber.SHORT_MAX;
  const end = offset + 1 + bytes;
  let at = offset + 1;
  let high = 0;
  for (; at < end - 4; at++) high = (high << 8) | u8[at];
  let low = 0;
  for (; at < end; at++) low = (low << 8) | u8[at];
  orderedHigh = high >>> 0;
  orderedLow = low >>> 0;
  return end;
}

/** Decimal digits; as strtoull does, with leading spaces, plus and zeros. */
function parseUnsigned(u8: Uint8Array, offset: number, end: number): boolean {
  let at = offset;
  while (at < end && (u8[at] === SPACE || (u8[at] >= 9 && u8[at] <= 13))) at++;
  if (at < end && u8[at] === PLUS) at++;
  if (at === end) return false;
  let high = 0;
  let low = 0;
  for (let i = at; i < end; i++) {
    const digit = u8[i] - DIGIT_0;
    if (!(digit >= 0 && digit <= 9)) return false;
    low = low * 10 + digit;
    const carry = low >= WORD ? Math.floor(low / WORD) : 0;
    low -= carry * WORD;
    high = high * 10 + carry;
    if (high > WORD_MAX) return false;
  }
  orderedHigh = high;
  orderedLow = low;
  return true;
}

function writeUnsigned(u8: Uint8Array, offset: number, high: number, low: number): number {
  if (high >= EXACT_HIGH) {
    const text = unsigned(high, low);
    for (let i = 0; i < text.length; i++) u8[offset + i] = text.charCodeAt(i);
    return offset + text.length;
  }
  const value = high * WORD + low;
  if (value < BILLION) return writeSmall(u8, offset, value);
  // Small integers divide faster.
  const billions = Math.floor(value / BILLION);
  let rest = value - billions * BILLION;
  const start = writeSmall(u8, offset, billions);
  const end = start + BILLION_DIGITS;
  for (let i = end - 1; i >= start; i--) {
    const tenth = (rest / 10) | 0;
    u8[i] = DIGIT_0 + (rest - tenth * 10);
    rest = tenth;
  }
  return end;
}

/** Of a number below BILLION. */
function writeSmall(u8: Uint8Array, offset: number, value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  let rest = value;
  for (let i = offset + digits - 1; i >= offset; i--) {
    const tenth = (rest / 10) | 0;
    u8[i] = DIGIT_0 + (rest - tenth * 10);
    rest = tenth;
  }
  return offset + digits;
}

function unsigned(high: number, low: number): string {
  if (high < EXACT_HIGH) return String(high * WORD + low);
  return String(BigInt(high) * BigInt(WORD) + BigInt(low));
}
