/**
 * Writes responses of the binary protocol into an Output. Knows their shape and nothing of what they mean; no strings on the paths that
 * requests take often.
 */
import type { Bytes } from '../../layout/bytes.js';
import type { Output } from '../output.js';
import { BinaryHeader, Magic, STATUS_TEXTS, Status } from './binary-codes.js';
import type { Uint64 } from './numbers.js';
import { MAX_KEY_BYTES } from './request.js';

const FLAGS_BYTES = 4;
const NUMBER_BYTES = 8;
/** A response without its value. */
const MAX_HEAD_BYTES = BinaryHeader.BYTES + FLAGS_BYTES + MAX_KEY_BYTES;

export class BinaryWriter {
  readonly output: Output;
  /** What the next response repeats of its request. */
  private opcode = 0;
  private opaque = 0;

  constructor(output: Output) {
    this.output = output;
  }

  /** Following responses answer the request whose header is at `start`. */
  answerTo(u8: Uint8Array, start: number): void {
    this.opcode = u8[start + BinaryHeader.OPCODE];
    const at = start + BinaryHeader.OPAQUE;
    this.opaque = (u8[at] << 24) | (u8[at + 1] << 16) | (u8[at + 2] << 8) | u8[at + 3];
  }

  /** Following responses answer a request that is gone from the input: what `request` gave then. */
  answerAgain(request: BinaryRequestId): void {
    this.opcode = request.opcode;
    this.opaque = request.opaque;
  }

  /** Slow path: for answers that come in a later turn. */
  get request(): BinaryRequestId {
    return { opcode: this.opcode, opaque: this.opaque };
  }

  /** Makes room for the longest head, so that writing it does not flush. */
  reserveHead(): void {
    this.output.reserve(MAX_HEAD_BYTES);
  }

  /** Done, nothing to tell but the version (0 = none). */
  done(cas: number): void {
    this.output.position = this.header(Status.OK, 0, 0, 0, cas);
  }

  error(status: Status): void {
    this.failure(status, STATUS_TEXTS[status]);
  }

  failure(status: Status, text: Uint8Array): void {
    let at = this.header(status, 0, 0, text.length, 0);
    const { u8 } = this.output;
    for (let i = 0; i < text.length; i++) u8[at++] = text[i];
    this.output.position = at;
  }

  /** Head of a hit: flags, the key when `keyLength` > 0; `valueBytes` bytes must follow. */
  hit(flags: number, key: Bytes, keyOffset: number, keyLength: number, valueBytes: number, cas: number): void {
    let at = this.header(Status.OK, FLAGS_BYTES, keyLength, valueBytes, cas);
    const { u8 } = this.output;
    at = writeUint32(u8, at, flags);
    for (let i = 0; i < keyLength; i++) u8[at++] = key.u8[keyOffset + i];
    this.output.position = at;
  }

  /** A miss that names its key. */
  missOf(key: Bytes, keyOffset: number, keyLength: number): void {
    let at = this.header(Status.NOT_FOUND, 0, keyLength, 0, 0);
    const { u8 } = this.output;
    for (let i = 0; i < keyLength; i++) u8[at++] = key.u8[keyOffset + i];
    this.output.position = at;
  }

  number(value: Uint64, cas: number): void {
    const at = this.header(Status.OK, 0, 0, NUMBER_BYTES, cas);
    value.writeBinary(this.output.u8, at);
    this.output.position = at + NUMBER_BYTES;
  }

  // ---- Statistics and other slow paths.

  text(text: string): void {
    this.output.position = this.header(Status.OK, 0, 0, text.length, 0);
    this.output.ascii(text);
  }

  /** One of many statistics; the last has neither name nor value. */
  stat(name: string, value: string): void {
    this.output.position = this.header(Status.OK, 0, name.length, value.length, 0);
    this.output.ascii(name);
    this.output.ascii(value);
  }

  /** Writes a header whose extras, key and value follow; returns the offset behind it. Room for the longest head is made. */
  private header(status: Status, extras: number, keyLength: number, valueBytes: number, cas: number): number {
    const at = this.output.reserve(MAX_HEAD_BYTES);
    const { u8 } = this.output;
    u8[at] = Magic.RESPONSE;
    u8[at + BinaryHeader.OPCODE] = this.opcode;
    u8[at + BinaryHeader.KEY_LENGTH] = keyLength >> 8;
    u8[at + BinaryHeader.KEY_LENGTH + 1] = keyLength;
    u8[at + BinaryHeader.EXTRAS_LENGTH] = extras;
    u8[at + BinaryHeader.EXTRAS_LENGTH + 1] = 0;
    u8[at + BinaryHeader.STATUS] = 0;
    u8[at + BinaryHeader.STATUS + 1] = status;
    writeUint32(u8, at + BinaryHeader.BODY_LENGTH, extras + keyLength + valueBytes);
    writeUint32(u8, at + BinaryHeader.OPAQUE, this.opaque);
    if (cas === 0) {
      writeUint32(u8, at + BinaryHeader.CAS, 0);
      writeUint32(u8, at + BinaryHeader.CAS + 4, 0);
    } else {
      writeUint32(u8, at + BinaryHeader.CAS, Math.floor(cas / 0x1_0000_0000));
      writeUint32(u8, at + BinaryHeader.CAS + 4, cas % 0x1_0000_0000);
    }
    return at + BinaryHeader.BYTES;
  }
}

/** What ties a response to its request. */
export interface BinaryRequestId {
  readonly opcode: number;
  readonly opaque: number;
}

function writeUint32(u8: Uint8Array, at: number, value: number): number {
  u8[at] = value >>> 24;
  u8[at + 1] = value >>> 16;
  u8[at + 2] = value >>> 8;
  u8[at + 3] = value;
  return at + 4;
}
