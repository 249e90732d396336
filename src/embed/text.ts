/**
 * Strings to bytes, without allocating.
 *
 * Keys and string values are UTF-8. ASCII, the usual case, is written byte by byte; anything else takes TextEncoder.
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
    const { u8 } = this.bytes;
    for (let i = 0; i < units; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) {
        this.length = encoder.encodeInto(text, u8).written;
        return;
      }
      u8[i] = code;
    }
    this.length = units;
  }

  writeBytes(source: Uint8Array): void {
    if (this.bytes.u8.length < source.length) this.bytes = Bytes.allocate(source.length);
    this.bytes.u8.set(source);
    this.length = source.length;
  }
}
