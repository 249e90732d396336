/**
 * Strings to bytes, without allocating.
 *
 * Keys and string values are UTF-8. ASCII, the usual case, is written by words; anything else takes TextEncoder.
 */
import { Bytes } from '../layout/bytes.js';

const encoder = new TextEncoder();
/** UTF-8 takes at most three bytes for a UTF-16 unit. */
const BYTES_PER_UNIT = 3;

/** A growing buffer that one string at a time is encoded into. */
export class Scratch {
  bytes = Bytes.allocate(1024);
  length = 0;

  /** Encodes `text`; the result is in bytes.u8[0..length). */
  write(text: string): void {
    const units = text.length;
    if (this.bytes.u8.length < units * BYTES_PER_UNIT) this.bytes = Bytes.allocate(units * BYTES_PER_UNIT);
    // Four at a time: what reads the bytes next reads words, which the CPU forwards only from stores of words.
    const { i32 } = this.bytes;
    let i = 0;
    let seen = 0;
    for (const words = units - 3; i < words; i += 4) {
      const a = text.charCodeAt(i);
      const b = text.charCodeAt(i + 1);
      const c = text.charCodeAt(i + 2);
      const d = text.charCodeAt(i + 3);
      seen |= a | b | c | d;
      i32[i >>> 2] = a | (b << 8) | (c << 16) | (d << 24);
    }
    const { u8 } = this.bytes;
    for (; i < units; i++) {
      const code = text.charCodeAt(i);
      seen |= code;
      u8[i] = code;
    }
    this.length = seen <= 0x7f ? units : encoder.encodeInto(text, u8).written;
  }

  writeBytes(source: Uint8Array): void {
    if (this.bytes.u8.length < source.length) this.bytes = Bytes.allocate(source.length);
    this.bytes.u8.set(source);
    this.length = source.length;
  }
}
