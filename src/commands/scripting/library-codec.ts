/**
 * Libraries of functions as bytes: the payload of FUNCTION DUMP and RESTORE, which is also the file beside the pool.
 *
 *   for each library | 0xf5 | code, a string |      then the end of every DUMP payload (rdb/payload)
 *
 * Invariant: decode reads nothing beyond the payload, whatever it says.
 */
import { Bytes } from '../../layout/bytes.js';
import { Opcode, RdbError, TRAILER_BYTES, Version } from '../../rdb/format.js';
import { payloadBytes, sealPayload } from '../../rdb/payload.js';
import { RdbReader, StringSlot } from '../../rdb/reader.js';
import { RdbWriter } from '../../rdb/writer.js';

export function encodeLibraries(codes: readonly Uint8Array[]): Buffer {
  const writer = new RdbWriter();
  // What lies beside the pool stays readable.
  writer.compresses = false;
  for (const code of codes) {
    writer.byte(Opcode.FUNCTION2);
    writer.string(Bytes.from(code), 0, code.length);
  }
  writer.reserve(TRAILER_BYTES);
  sealPayload(writer.bytes, 0, writer.length, Version.REDIS_7_0);
  return Buffer.from(writer.bytes.u8.buffer, 0, writer.length + TRAILER_BYTES);
}

/** The codes, or the error's text. */
export function decodeLibraries(payload: Buffer): Buffer[] | string {
  const bytes = Bytes.from(payload);
  const length = payloadBytes(bytes, 0, bytes.length);
  if (length < 0) return 'ERR DUMP payload version or checksum are wrong';
  const reader = new RdbReader();
  reader.openMemory(bytes, 0, length);
  const codes: Buffer[] = [];
  const slot = new StringSlot();
  try {
    while (reader.left > 0) {
      const opcode = reader.byte();
      if (opcode === Opcode.FUNCTION_PRE_GA) return 'ERR Pre-GA function format not supported';
      if (opcode !== Opcode.FUNCTION2) return 'ERR given type is not a function';
      reader.string(slot);
      codes.push(Buffer.from(slot.bytes.u8.slice(slot.offset, slot.offset + slot.length)));
    }
  } catch (error) {
    if (!(error instanceof RdbError)) throw error;
    return 'ERR Failed loading library info';
  }
  return codes;
}
