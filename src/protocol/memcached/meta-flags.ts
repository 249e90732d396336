/**
 * The flags of a meta command: tokens -> one reused MetaFlags object. Knows every flag of the protocol and what its
 * argument must look like; which of them a command heeds is the command's affair (the rest are accepted and ignored, as
 * memcached does).
 *
 * Invariant: after a successful `parse` every field is valid; flags that were not given have the field's default.
 */
import {
  ABOVE_SAFE,
  INVALID_INT32,
  INVALID_UNSIGNED,
  parseInt32,
  parseUint32,
  parseUnsigned,
  Uint64,
} from './numbers.js';
import { Replies } from './replies.js';
import { MAX_KEY_BYTES } from './request.js';

/** Most tokens of a meta command, its name included. */
const MAX_META_TOKENS = 20;
/** Longest opaque token, its letter included. */
const MAX_OPAQUE_BYTES = 32;

/** A flag as a bit: lower-case letters from bit 0 of `lower`, capitals from bit 0 of `upper`. */
export const enum Lower {
  b = 1 << 1,
  c = 1 << 2,
  f = 1 << 5,
  h = 1 << 7,
  k = 1 << 10,
  l = 1 << 11,
  q = 1 << 16,
  s = 1 << 18,
  t = 1 << 19,
  u = 1 << 20,
  v = 1 << 21,
  x = 1 << 23,
}
export const enum Upper {
  C = 1 << 2,
  D = 1 << 3,
  E = 1 << 4,
  F = 1 << 5,
  I = 1 << 8,
  J = 1 << 9,
  L = 1 << 11,
  M = 1 << 12,
  N = 1 << 13,
  O = 1 << 14,
  P = 1 << 15,
  R = 1 << 17,
  T = 1 << 19,
}

const KNOWN_LOWER =
  Lower.b | Lower.c | Lower.f | Lower.h | Lower.k | Lower.l | Lower.q | Lower.s | Lower.t | Lower.u | Lower.v | Lower.x;
const KNOWN_UPPER =
  Upper.C |
  Upper.D |
  Upper.E |
  Upper.F |
  Upper.I |
  Upper.J |
  Upper.L |
  Upper.M |
  Upper.N |
  Upper.O |
  Upper.P |
  Upper.R |
  Upper.T;

export class MetaFlags {
  /** Given flags, as bits (Lower, Upper). */
  lower = 0;
  upper = 0;
  /** T, N, R: seconds as the client gave them. */
  ttl = 0;
  vivifyTtl = 0;
  recacheTtl = 0;
  /** F */
  clientFlags = 0;
  /** C; ABOVE_SAFE when no item can have it. */
  compareCas = 0;
  /** E; below 2^53. */
  newCas = 0;
  /** M: the mode's character; 0 = not given. */
  mode = 0;
  /** D and J. */
  readonly delta = new Uint64();
  readonly initial = new Uint64();

  get isBinaryKey(): boolean {
    return (this.lower & Lower.b) !== 0;
  }

  get isQuiet(): boolean {
    return (this.lower & Lower.q) !== 0;
  }

  get wantsCas(): boolean {
    return (this.lower & Lower.c) !== 0;
  }

  /** Reads the flags in tokens [start, count) of a command (pairs from `first` on). Null, or the error reply. */
  parse(u8: Uint8Array, tokens: Int32Array, first: number, start: number, count: number): Uint8Array | null {
    this.lower = 0;
    this.upper = 0;
    this.clientFlags = 0;
    this.mode = 0;
    this.delta.set(1);
    this.initial.set(0);
    if (count < start || tokens[(first + 1) * 2 + 1] > MAX_KEY_BYTES) return Replies.BAD_FORMAT;
    if (count > MAX_META_TOKENS) return Replies.TOO_MANY_FLAGS;
    let error: Uint8Array | null = null;
    for (let i = first + start; i < first + count; i++) {
      const offset = tokens[i * 2];
      const letter = u8[offset];
      let known = false;
      if (letter >= 97 && letter <= 122) {
        const bit = 1 << (letter - 97);
        if ((this.lower & bit) !== 0) return Replies.DUPLICATE_FLAG;
        this.lower |= bit;
        known = (KNOWN_LOWER & bit) !== 0;
      } else if (letter >= 65 && letter <= 90) {
        const bit = 1 << (letter - 65);
        if ((this.upper & bit) !== 0) return Replies.DUPLICATE_FLAG;
        this.upper |= bit;
        known = (KNOWN_UPPER & bit) !== 0;
        if (known) error = this.argument(bit, u8, offset + 1, tokens[i * 2 + 1] - 1) ?? error;
      }
      if (!known) return Replies.INVALID_FLAG;
    }
    return error;
  }

  private argument(bit: number, u8: Uint8Array, offset: number, length: number): Uint8Array | null {
    switch (bit) {
      case Upper.T:
        this.ttl = parseInt32(u8, offset, length);
        return this.ttl === INVALID_INT32 ? Replies.BAD_TOKEN : null;
      case Upper.N:
        this.vivifyTtl = parseInt32(u8, offset, length);
        return this.vivifyTtl === INVALID_INT32 ? Replies.BAD_TOKEN : null;
      case Upper.R:
        this.recacheTtl = parseInt32(u8, offset, length);
        return this.recacheTtl === INVALID_INT32 ? Replies.BAD_TOKEN : null;
      case Upper.F:
        this.clientFlags = parseUint32(u8, offset, length);
        return this.clientFlags === INVALID_UNSIGNED ? Replies.BAD_FORMAT : null;
      case Upper.C:
        this.compareCas = parseUnsigned(u8, offset, length);
        return this.compareCas === INVALID_UNSIGNED ? Replies.BAD_TOKEN : null;
      case Upper.E:
        // CAS numbers of this store are below 2^53: refusing a larger one is better than storing another.
        this.newCas = parseUnsigned(u8, offset, length);
        return this.newCas === INVALID_UNSIGNED || this.newCas === ABOVE_SAFE ? Replies.BAD_TOKEN : null;
      case Upper.M:
        this.mode = u8[offset];
        return length === 1 ? null : Replies.BAD_MODE_LENGTH;
      case Upper.D:
        return this.delta.parse(u8, offset, length) ? null : Replies.BAD_FLAG_DELTA;
      case Upper.J:
        return this.initial.parse(u8, offset, length) ? null : Replies.BAD_INITIAL;
      case Upper.O:
        return length < MAX_OPAQUE_BYTES ? null : Replies.OPAQUE_TOO_LONG;
      default:
        return null;
    }
  }
}
