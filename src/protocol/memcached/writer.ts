/**
 * Reply writer of the memcached protocol: a thin layer over Output that knows the shape of reply lines and nothing of
 * what they mean. Stores bytes directly; no strings on the paths that requests take often.
 */
import type { Bytes } from '../../layout/bytes.js';
import type { Output } from '../output.js';
import { encodeBase64 } from './base64.js';
import { BinaryWriter } from './binary-writer.js';
import { UINT64_DIGITS, type Uint64, writeDecimal } from './numbers.js';
import { MAX_KEY_BYTES } from './request.js';

const SPACE = 32;
const CR = 13;
const LF = 10;
const VALUE = new TextEncoder().encode('VALUE ');
/** "VALUE " key " " flags " " bytes " " cas CR LF, each number at its longest. */
const MAX_HEADER_BYTES = VALUE.length + MAX_KEY_BYTES + 3 + 20 * 3 + 2;
/** One meta reply line, all flags at their longest. */
export const MAX_META_LINE_BYTES = 1024;

export class Writer {
  readonly output: Output;
  /** The same output in the other protocol. */
  readonly binary: BinaryWriter;

  constructor(output: Output) {
    this.output = output;
    this.binary = new BinaryWriter(output);
  }

  /** A fixed reply with its CR LF (see replies.ts). */
  line(reply: Uint8Array): void {
    const length = reply.length;
    const at = this.output.reserve(length);
    const u8 = this.output.u8;
    for (let i = 0; i < length; i++) u8[at + i] = reply[i];
    this.output.position = at + length;
  }

  /** Makes room for a header line, so that writing it does not flush. */
  reserveHeader(): void {
    this.output.reserve(MAX_META_LINE_BYTES);
  }

  /** VALUE key flags bytes [cas]; a negative cas = none. */
  valueHeader(key: Bytes, keyOffset: number, keyLength: number, flags: number, valueBytes: number, cas: number): void {
    let at = this.output.reserve(MAX_HEADER_BYTES);
    const u8 = this.output.u8;
    for (let i = 0; i < 6; i++) u8[at + i] = VALUE[i];
    at = copyShort(u8, at + 6, key.u8, keyOffset, keyLength);
    u8[at++] = SPACE;
    if (flags === 0) u8[at++] = 48;
    else at = writeDecimal(u8, at, flags);
    u8[at++] = SPACE;
    at = writeDecimal(u8, at, valueBytes);
    if (cas >= 0) {
      u8[at++] = SPACE;
      at = writeDecimal(u8, at, cas);
    }
    u8[at] = CR;
    u8[at + 1] = LF;
    this.output.position = at + 2;
  }

  /** A number and CR LF. */
  number(value: Uint64): void {
    const at = value.write(this.output.u8, this.output.reserve(UINT64_DIGITS + 2));
    this.output.u8[at] = CR;
    this.output.u8[at + 1] = LF;
    this.output.position = at + 2;
  }

  crlf(): void {
    const at = this.output.reserve(2);
    this.output.u8[at] = CR;
    this.output.u8[at + 1] = LF;
    this.output.position = at + 2;
  }

  // ---- Meta lines: `beginMeta`, any number of flags, `endMeta`. Room for the longest line is reserved at the start.

  /** Two letters, as (first << 8) | second. */
  beginMeta(code: number): void {
    const at = this.output.reserve(MAX_META_LINE_BYTES);
    this.output.u8[at] = code >> 8;
    this.output.u8[at + 1] = code & 255;
    this.output.position = at + 2;
  }

  /** VA bytes */
  beginMetaValue(valueBytes: number): void {
    this.beginMeta(0x5641);
    const at = this.output.position;
    this.output.u8[at] = SPACE;
    this.output.position = writeDecimal(this.output.u8, at + 1, valueBytes);
  }

  metaFlag(letter: number): void {
    const at = this.output.position;
    this.output.u8[at] = SPACE;
    this.output.u8[at + 1] = letter;
    this.output.position = at + 2;
  }

  metaNumber(letter: number, value: number): void {
    this.metaFlag(letter);
    this.output.position = writeDecimal(this.output.u8, this.output.position, value);
  }

  /** A token of the request, given back as it came (O). */
  metaToken(from: Bytes, offset: number, length: number): void {
    const at = this.output.position;
    this.output.u8[at] = SPACE;
    this.output.position = copyShort(this.output.u8, at + 1, from.u8, offset, length);
  }

  /** k: the key, in base64 and followed by b when it came so. */
  metaKey(key: Bytes, offset: number, length: number, encoded: boolean): void {
    this.metaFlag(0x6b);
    const at = this.output.position;
    const u8 = this.output.u8;
    if (!encoded) {
      this.output.position = copyShort(u8, at, key.u8, offset, length);
      return;
    }
    this.output.position = encodeBase64(u8, at, key.u8, offset, length);
    this.metaFlag(0x62);
  }

  /** ME key: of the debug line, which goes on with text. */
  debugKey(key: Bytes, offset: number, length: number, encoded: boolean): void {
    this.beginMeta(0x4d45);
    const at = this.output.position;
    const u8 = this.output.u8;
    u8[at] = SPACE;
    if (encoded) this.output.position = encodeBase64(u8, at + 1, key.u8, offset, length);
    else this.output.position = copyShort(u8, at + 1, key.u8, offset, length);
  }

  endMeta(): void {
    const at = this.output.position;
    this.output.u8[at] = CR;
    this.output.u8[at + 1] = LF;
    this.output.position = at + 2;
  }

  // ---- Statistics and other slow paths.

  text(text: string): void {
    this.output.ascii(text);
  }

  stat(name: string, value: string | number): void {
    this.output.ascii(`STAT ${name} ${value}\r\n`);
  }
}

function copyShort(to: Uint8Array, toOffset: number, from: Uint8Array, offset: number, length: number): number {
  for (let i = 0; i < length; i++) to[toOffset + i] = from[offset + i];
  return toOffset + length;
}
