/**
 * The RESP reply writer, for RESP2 and RESP3, on top of Output.
 *
 * Handlers say what they mean (a map, a double, a null); the writer renders it for the client's protocol version.
 * Invariant: a reply is exactly one RESP value; whoever writes a header writes that many elements after it. Text
 * arguments are byte strings (one byte per character: ASCII, or latin1-decoded client bytes) unless the name says UTF-8.
 */
import type { Bytes } from '../../layout/bytes.js';
import type { Output } from '../output.js';
import { ERROR_CODES, errorCode } from './error-codes.js';

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;
const DIGIT_0 = 48;
const MINUS = 45;
const QUEUED = Uint8Array.from(Buffer.from('+QUEUED\r\n'));

export const enum ReplyType {
  SIMPLE = 0x2b, // +
  ERROR = 0x2d, // -
  INTEGER = 0x3a, // :
  BULK = 0x24, // $
  ARRAY = 0x2a, // *
  MAP = 0x25, // %
  SET = 0x7e, // ~
  PUSH = 0x3e, // >
  ATTRIBUTE = 0x7c, // |
  DOUBLE = 0x2c, // ,
  BOOLEAN = 0x23, // #
  VERBATIM = 0x3d, // =
  BIG_NUMBER = 0x28, // (
}

/** What `deferred` collections turn out to be. */
export type CollectionType = ReplyType.ARRAY | ReplyType.MAP | ReplyType.SET | ReplyType.PUSH;

export class Reply {
  /** Another one while a reply is captured instead of sent (commands/messaging/capture). */
  output: Output;
  /** 2 or 3: set by the driver when it turns to a client. */
  protocol = 2;
  /** Error replies written (all clients); the executor compares it to see whether a command failed. */
  errorCount = 0;
  /** The same by code (see error-codes.ts), since the driver last took them. */
  readonly errorsByCode = new Float64Array(ERROR_CODES.length);
  readonly otherErrors = new Map<string, number>();

  constructor(output: Output) {
    this.output = output;
  }

  // ---- simple strings and errors

  ok(): void {
    const output = this.output;
    const p = output.reserve(5);
    const u8 = output.u8;
    u8[p] = 43;
    u8[p + 1] = 79;
    u8[p + 2] = 75;
    u8[p + 3] = CARRIAGE_RETURN;
    u8[p + 4] = LINE_FEED;
    output.position = p + 5;
  }

  /** +text. No CR or LF in it. */
  simple(text: string): void {
    this.line(ReplyType.SIMPLE, text);
  }

  queued(): void {
    const output = this.output;
    const p = output.reserve(QUEUED.length);
    for (let i = 0; i < QUEUED.length; i++) output.u8[p + i] = QUEUED[i];
    output.position = p + QUEUED.length;
  }

  /** -text: 'ERR ...', 'WRONGTYPE ...'. Line breaks, which a client may have put into its argument, become spaces. */
  error(text: string): void {
    this.errorCount++;
    this.#countCode(text, 1);
    this.line(ReplyType.ERROR, text.replace(/[\r\n]/g, ' '));
  }

  /** As `error`, for one whose code has been counted where it came up (a command's, which a script hands on). */
  errorCounted(text: string): void {
    this.errorCount++;
    this.line(ReplyType.ERROR, text.replace(/[\r\n]/g, ' '));
  }

  /** An error that was written is thrown away. */
  uncountError(text: string): void {
    this.errorCount--;
    this.#countCode(text, -1);
  }

  #countCode(text: string, delta: number): void {
    const code = errorCode(text);
    const index = ERROR_CODES.indexOf(code);
    if (index >= 0) this.errorsByCode[index] += delta;
    else this.otherErrors.set(code, (this.otherErrors.get(code) ?? 0) + delta);
  }

  // ---- numbers

  /** An integer of at most 53 bits. */
  integer(value: number): void {
    this.header(ReplyType.INTEGER, value);
  }

  /** A 64-bit integer. */
  integer64(value: bigint): void {
    this.line(ReplyType.INTEGER, value.toString());
  }

  /** RESP3 boolean, RESP2 :1 or :0. */
  boolean(value: boolean): void {
    if (this.protocol > 2) this.line(ReplyType.BOOLEAN, value ? 't' : 'f');
    else this.integer(value ? 1 : 0);
  }

  /** RESP3 double, RESP2 bulk string. */
  double(value: number): void {
    this.doubleText(formatDouble(value));
  }

  /** A double that is already formatted (INCRBYFLOAT's rules differ from those of scores). */
  doubleText(text: string): void {
    if (this.protocol > 2) this.line(ReplyType.DOUBLE, text);
    else this.bulkString(text);
  }

  /** RESP3 big number, RESP2 bulk string. */
  bigNumber(value: bigint): void {
    if (this.protocol > 2) this.line(ReplyType.BIG_NUMBER, value.toString());
    else this.bulkString(value.toString());
  }

  // ---- bulk strings

  /** Copies a byte range. */
  bulk(from: Bytes, offset: number, length: number): void {
    this.header(ReplyType.BULK, length);
    const output = this.output;
    output.range(from, offset, length);
    const p = output.reserve(2);
    output.u8[p] = CARRIAGE_RETURN;
    output.u8[p + 1] = LINE_FEED;
    output.position = p + 2;
  }

  /** Sends a pinned range without a copy; false = it was copied after all: unpin now (see Output.region). */
  bulkRegion(from: Bytes, offset: number, length: number, token: number): boolean {
    this.header(ReplyType.BULK, length);
    const sent = this.output.region(from, offset, length, token);
    this.crlf();
    return sent;
  }

  bulkArray(bytes: Uint8Array): void {
    this.header(ReplyType.BULK, bytes.length);
    this.output.array(bytes);
    this.crlf();
  }

  bulkString(text: string): void {
    this.header(ReplyType.BULK, text.length);
    this.output.ascii(text);
    this.crlf();
  }

  bulkUtf8(text: string): void {
    this.bulkArray(encoder.encode(text));
  }

  /** A number as a bulk string: `$2\r\n12`. */
  bulkInteger(value: number): void {
    this.bulkString(value.toString());
  }

  /** RESP3 verbatim string of a three-letter format ('txt', 'mkd'), RESP2 bulk string. UTF-8. */
  verbatim(format: string, text: string): void {
    const bytes = encoder.encode(text);
    if (this.protocol > 2) {
      this.header(ReplyType.VERBATIM, bytes.length + 4);
      this.output.ascii(format);
      this.output.ascii(':');
      this.output.array(bytes);
      this.crlf();
    } else {
      this.bulkArray(bytes);
    }
  }

  /** Nothing there: RESP2 `$-1`, RESP3 `_`. */
  nil(): void {
    const output = this.output;
    const p = output.reserve(5);
    const u8 = output.u8;
    if (this.protocol > 2) {
      u8[p] = 95;
      u8[p + 1] = CARRIAGE_RETURN;
      u8[p + 2] = LINE_FEED;
      output.position = p + 3;
    } else {
      u8[p] = 36;
      u8[p + 1] = MINUS;
      u8[p + 2] = 49;
      u8[p + 3] = CARRIAGE_RETURN;
      u8[p + 4] = LINE_FEED;
      output.position = p + 5;
    }
  }

  /** No array there: RESP2 `*-1`, RESP3 `_`. */
  nilArray(): void {
    if (this.protocol > 2) this.nil();
    else this.line(ReplyType.ARRAY, '-1');
  }

  // ---- collections: a header, then the elements

  array(count: number): void {
    this.header(ReplyType.ARRAY, count);
  }

  /** `pairs` times key, value: RESP3 map, RESP2 flat array. */
  map(pairs: number): void {
    if (this.protocol > 2) this.header(ReplyType.MAP, pairs);
    else this.header(ReplyType.ARRAY, pairs * 2);
  }

  set(count: number): void {
    this.header(this.protocol > 2 ? ReplyType.SET : ReplyType.ARRAY, count);
  }

  /** Out-of-band data: RESP3 push, RESP2 array. */
  push(count: number): void {
    this.header(this.protocol > 2 ? ReplyType.PUSH : ReplyType.ARRAY, count);
  }

  /** RESP3 only: `pairs` of auxiliary data before the reply itself. */
  attribute(pairs: number): void {
    this.header(ReplyType.ATTRIBUTE, pairs);
  }

  /** A collection whose length is known only after its elements are written: `deferred()`, elements, `endDeferred`. Not nested. */
  deferred(): void {
    this.output.hold();
  }

  /** `count` in elements, or in pairs for a map. */
  endDeferred(type: CollectionType, count: number): void {
    this.output.release(this.deferredHeader(type, count));
  }

  /** What comes before the elements, for whoever puts it there itself. */
  deferredHeader(type: CollectionType, count: number): string {
    let shown: number = type;
    if (this.protocol === 2 && type !== ReplyType.ARRAY) {
      shown = ReplyType.ARRAY;
      if (type === ReplyType.MAP) count *= 2;
    }
    return `${String.fromCharCode(shown)}${count}\r\n`;
  }

  /** Instead of endDeferred: throws the elements away (an error reply follows). */
  dropDeferred(): void {
    this.output.discardHeld();
  }

  // ---- parts

  /** A type byte, a decimal integer, CRLF. */
  header(type: ReplyType, value: number): void {
    const output = this.output;
    let p = output.reserve(24);
    const u8 = output.u8;
    u8[p++] = type;
    // Nine of ten headers are a count or a length below 1000.
    if (value >= 0 && value < 10) {
      u8[p++] = DIGIT_0 + value;
    } else if (value >= 10 && value < 1000) {
      if (value >= 100) {
        const hundreds = (value / 100) | 0;
        u8[p++] = DIGIT_0 + hundreds;
        value -= hundreds * 100;
      }
      const tens = (value / 10) | 0;
      u8[p++] = DIGIT_0 + tens;
      u8[p++] = DIGIT_0 + value - tens * 10;
    } else {
      p = writeInteger(u8, p, value);
    }
    u8[p++] = CARRIAGE_RETURN;
    u8[p++] = LINE_FEED;
    output.position = p;
  }

  private line(type: ReplyType, text: string): void {
    const output = this.output;
    const p = output.reserve(1);
    output.u8[p] = type;
    output.position = p + 1;
    output.ascii(text);
    this.crlf();
  }

  private crlf(): void {
    const output = this.output;
    const p = output.reserve(2);
    output.u8[p] = CARRIAGE_RETURN;
    output.u8[p + 1] = LINE_FEED;
    output.position = p + 2;
  }
}

const encoder = new TextEncoder();

/** Writes a decimal integer of at most 53 bits; returns the offset behind it. */
export function writeInteger(u8: Uint8Array, p: number, value: number): number {
  if (value < 0) {
    u8[p++] = MINUS;
    value = -value;
  }
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  let i = p + digits;
  // Integer division is fast on smis only.
  while (value > 0x3fffffff) {
    const rest = Math.floor(value / 10);
    u8[--i] = DIGIT_0 + (value - rest * 10);
    value = rest;
  }
  while (i > p) {
    const rest = (value / 10) | 0;
    u8[--i] = DIGIT_0 + (value - rest * 10);
    value = rest;
  }
  return p + digits;
}

/** Integers up to here are printed in full. */
const INTEGER_LIMIT = 2 ** 62;

/**
 * A double as Redis prints one: the fewest digits that read back the same; integers in full, small exponents spelled out,
 * and 'inf', '-inf', 'nan'.
 */
export function formatDouble(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return 'inf';
  if (value === Number.NEGATIVE_INFINITY) return '-inf';
  if (Number.isNaN(value)) return 'nan';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  if (Number.isInteger(value) && Math.abs(value) < INTEGER_LIMIT) return BigInt(value).toString();

  // '-1.25e-7' -> sign, digits '125', and the power of ten of the last digit.
  const [, sign, head, tail = '', exponentText] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential())!;
  const digits = head + tail;
  const exponent = Number(exponentText);
  const lastPower = exponent - digits.length + 1;
  const magnitude = Math.abs(exponent);
  if (lastPower >= 0 && magnitude < digits.length + 7) return sign + digits + '0'.repeat(lastPower);
  if (lastPower < 0 && (lastPower > -7 || magnitude < 4)) {
    const point = digits.length + lastPower;
    if (point > 0) return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
    return `${sign}0.${'0'.repeat(-point)}${digits}`;
  }
  return `${sign}${head}${tail === '' ? '' : `.${tail}`}e${exponent < 0 ? '-' : '+'}${magnitude}`;
}
