/** Requests and responses of memcached's binary protocol for tests: built and taken apart without the code under test. */

export interface BinaryRequest {
  readonly opcode: number;
  readonly key?: string;
  readonly value?: string | Uint8Array;
  readonly extras?: Uint8Array;
  readonly cas?: bigint;
  readonly opaque?: number;
}

export interface BinaryResponse {
  readonly opcode: number;
  readonly status: number;
  readonly opaque: number;
  readonly cas: bigint;
  readonly extras: Buffer;
  readonly key: string;
  readonly value: string;
}

const HEADER_BYTES = 24;

export function binaryRequest(request: BinaryRequest): Buffer {
  const { opcode, extras = new Uint8Array(0), cas = 0n, opaque = 0 } = request;
  const key = Buffer.from(request.key ?? '', 'latin1');
  const value = typeof request.value === 'string' ? Buffer.from(request.value, 'latin1') : (request.value ?? '');
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(0x80, 0);
  header.writeUInt8(opcode, 1);
  header.writeUInt16BE(key.length, 2);
  header.writeUInt8(extras.length, 4);
  header.writeUInt32BE(extras.length + key.length + value.length, 8);
  header.writeUInt32BE(opaque, 12);
  header.writeBigUInt64BE(cas, 16);
  return Buffer.concat([header, extras, key, Buffer.from(value)]);
}

/** Extras of numbers, 4 bytes each; a bigint takes 8. */
export function extras(...numbers: readonly (number | bigint)[]): Buffer {
  return Buffer.concat(
    numbers.map((number) => {
      const bytes = Buffer.alloc(typeof number === 'bigint' ? 8 : 4);
      if (typeof number === 'bigint') bytes.writeBigUInt64BE(number);
      else bytes.writeUInt32BE(number >>> 0);
      return bytes;
    }),
  );
}

/** All complete responses; throws when bytes are left over or begin no response. */
export function binaryResponses(bytes: Buffer): BinaryResponse[] {
  const responses: BinaryResponse[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < HEADER_BYTES || bytes[at] !== 0x81) {
      throw new Error(`no response at ${at} of ${bytes.toString('hex')}`);
    }
    const keyLength = bytes.readUInt16BE(at + 2);
    const extrasLength = bytes.readUInt8(at + 4);
    const next = at + HEADER_BYTES + bytes.readUInt32BE(at + 8);
    if (next > bytes.length) throw new Error(`a response of ${next - at} bytes is cut off`);
    const body = at + HEADER_BYTES;
    responses.push({
      opcode: bytes[at + 1],
      status: bytes.readUInt16BE(at + 6),
      opaque: bytes.readUInt32BE(at + 12),
      cas: bytes.readBigUInt64BE(at + 16),
      extras: bytes.subarray(body, body + extrasLength),
      key: bytes.toString('latin1', body + extrasLength, body + extrasLength + keyLength),
      value: bytes.toString('latin1', body + extrasLength + keyLength, next),
    });
    at = next;
  }
  return responses;
}
