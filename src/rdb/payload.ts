/**
 * The frame of a DUMP payload: | type and value, or what else it is | version, 2 bytes | CRC-64 of all before, 8 bytes |
 */
import type { Bytes } from '../layout/bytes.js';
import { Crc64 } from './crc64.js';
import { TRAILER_BYTES, Version } from './format.js';

const crc = new Crc64();

/** Bytes in front of the frame's end; -1 = its version is not ours to read, or it has been changed on its way. */
export function payloadBytes(bytes: Bytes, offset: number, length: number): number {
  const end = length - TRAILER_BYTES;
  if (end < 0) return -1;
  const { u8, view } = bytes;
  const at = offset + end;
  if (view.getUint16(at, true) > Version.MAX) return -1;
  crc.reset();
  crc.update(u8, offset, at + 2);
  return crc.equals(view, at + 2) ? end : -1;
}

/** Writes version and CRC behind the `length` bytes at `offset`. */
export function sealPayload(bytes: Bytes, offset: number, length: number, version: number): void {
  const end = offset + length;
  bytes.view.setUint16(end, version, true);
  crc.reset();
  crc.update(bytes.u8, offset, end + 2);
  crc.writeTo(bytes.view, end + 2);
}
