/**
 * Libraries of functions as bytes: the payload of FUNCTION DUMP and RESTORE, which is also the file beside the pool.
 *
 *   for each library | 0xf5 | length | code |      then | RDB version, 2 bytes | CRC-64 of all before, 8 bytes |
 *
 * Lengths are those of RDB files: 6, 14, 32 or 64 bits; code may be LZF-compressed in what comes from elsewhere. Invariant: decode
 * reads nothing beyond the payload, whatever it says.
 */
import { crc64 } from '../crc64.js';

const OPCODE_FUNCTION = 0xf5;
const OPCODE_FUNCTION_PRE_GA = 0xf6;
const RDB_VERSION = 10;
/** What Redis 7.2 and Valkey 8 write. */
const RDB_VERSION_MAX = 12;
const TRAILER_BYTES = 10;
const ENCODED_LZF = 0xc3;

export function encodeLibraries(codes: readonly Uint8Array[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const code of codes) parts.push(Buffer.from([OPCODE_FUNCTION]), encodeLength(code.length), code);
  parts.push(Buffer.from([RDB_VERSION & 0xff, RDB_VERSION >> 8]));
  const payload = Buffer.concat(parts);
  const check = Buffer.alloc(8);
  check.writeBigUInt64LE(crc64(payload));
  return Buffer.concat([payload, check]);
}

/** The codes, or the error's text. */
export function decodeLibraries(payload: Buffer): Buffer[] | string {
  const end = payload.length - TRAILER_BYTES;
  if (end < 0 || payload.readUInt16LE(end) > RDB_VERSION_MAX) return 'ERR DUMP payload version or checksum are wrong';
  const check = payload.readBigUInt64LE(end + 2);
  if (check !== 0n && check !== crc64(payload.subarray(0, end + 2)))
    return 'ERR DUMP payload version or checksum are wrong';
  const codes: Buffer[] = [];
  const reader = new Reader(payload.subarray(0, end));
  while (reader.left > 0) {
    const type = reader.byte();
    if (type === OPCODE_FUNCTION_PRE_GA) return 'ERR Pre-GA function format not supported';
    if (type !== OPCODE_FUNCTION) return 'ERR given type is not a function';
    const code = reader.text();
    if (code === null) return 'ERR Failed loading library info';
    codes.push(code);
  }
  return codes;
}

function encodeLength(length: number): Uint8Array {
  if (length < 0x40) return Buffer.from([length]);
  if (length < 0x4000) return Buffer.from([0x40 | (length >> 8), length & 0xff]);
  const bytes = Buffer.alloc(5, 0x80);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

class Reader {
  private at = 0;
  private readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  byte(): number {
    return this.bytes[this.at++];
  }

  /** A string, plain or compressed; null when it is malformed. */
  text(): Buffer | null {
    if (this.left < 1) return null;
    if (this.bytes[this.at] === ENCODED_LZF) {
      this.at++;
      const packedLength = this.length();
      const length = this.length();
      if (packedLength < 0 || length < 0 || packedLength > this.left) return null;
      return unpackLzf(this.take(packedLength), length);
    }
    const length = this.length();
    return length < 0 || length > this.left ? null : Buffer.from(this.take(length));
  }

  private take(length: number): Buffer {
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  /** -1 when it is malformed or not a length. */
  private length(): number {
    if (this.left < 1) return -1;
    const first = this.byte();
    if (first < 0x40) return first;
    if (first < 0x80) return this.left < 1 ? -1 : ((first & 0x3f) << 8) | this.byte();
    if (first === 0x80) return this.left < 4 ? -1 : this.take(4).readUInt32BE();
    if (first !== 0x81 || this.left < 8) return -1;
    const wide = this.take(8).readBigUInt64BE();
    return wide > BigInt(Number.MAX_SAFE_INTEGER) ? -1 : Number(wide);
  }
}

/** LZF can make at most 88 bytes of one, so a length beyond that is a lie. */
const LZF_RATIO_MAX = 88;

/** Literal runs (control byte below 32: so many + 1 bytes follow) and references back (length, distance); null = malformed. */
function unpackLzf(packed: Buffer, length: number): Buffer | null {
  if (length > packed.length * LZF_RATIO_MAX) return null;
  const out = Buffer.alloc(length);
  let to = 0;
  for (let from = 0; from < packed.length; ) {
    const control = packed[from++];
    if (control < 32) {
      const run = control + 1;
      if (from + run > packed.length || to + run > length) return null;
      packed.copy(out, to, from, from + run);
      from += run;
      to += run;
      continue;
    }
    let count = control >> 5;
    if (count === 7) count += from < packed.length ? packed[from++] : 0;
    if (from >= packed.length) return null;
    const start = to - (((control & 0x1f) << 8) | packed[from++]) - 1;
    if (start < 0 || to + count + 2 > length) return null;
    for (let i = 0; i < count + 2; i++) out[to + i] = out[start + i];
    to += count + 2;
  }
  return to === length ? out : null;
}
