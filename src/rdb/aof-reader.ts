/**
 * Reading the commands of an append-only file, one after the other, through the window of an RdbReader.
 *
 *     *2 \r\n $6 \r\n SELECT \r\n $1 \r\n 0 \r\n        a command; a line that begins with # is an annotation (#TS:1700000000)
 *
 * Owns: where the command in hand lies. Invariant: a command is given out only when all of it is there. A file that ends in the middle of one
 * is cut; anything else that is no command is thrown as an RdbError. `begin` is where the command in hand begins in the file.
 */
import type { Bytes } from '../layout/bytes.js';
import type { RdbReader } from './reader.js';

export const enum AofItem {
  COMMAND = 0,
  END = 1,
  /** The file ends in the middle of a command. */
  CUT = 2,
}

const HASH = 0x23;
const DOLLAR = 0x24;
const STAR = 0x2a;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
/** Digits of a length. */
const DIGITS_MAX = 10;
const ANNOTATION_BYTES_MAX = 1024;
const ARGUMENT_BYTES_MAX = 0x4000_0000;
/** A longer command than the reader's window makes room for as much again at a time. */
const WINDOW_BYTES = 1 << 20;
const CUT = -1;

export class AofReader {
  /** The command in hand: (offset, length) pairs of its arguments in `bytes`, valid until the next one. */
  args = new Int32Array(64);
  argc = 0;
  begin = 0;

  readonly #reader: RdbReader;
  /** Where the look ahead stands, counted from the reader's position. */
  #at = 0;

  constructor(reader: RdbReader) {
    this.#reader = reader;
  }

  get bytes(): Bytes {
    return this.#reader.bytes;
  }

  next(): AofItem {
    const reader = this.#reader;
    for (;;) {
      this.begin = reader.offset;
      this.#at = 0;
      const first = this.#byte();
      if (first === CUT) return AofItem.END;
      if (first === STAR) return this.#command();
      if (first !== HASH) reader.fail(`a command begins with '*', not with ${shown(first)}`);
      for (let byte = this.#byte(); byte !== LINE_FEED; byte = this.#byte()) {
        if (byte === CUT) return AofItem.CUT;
        if (this.#at > ANNOTATION_BYTES_MAX) reader.fail('an annotation does not end');
      }
      reader.at += this.#at;
    }
  }

  #command(): AofItem {
    const reader = this.#reader;
    const count = this.#number();
    if (count === CUT) return AofItem.CUT;
    if (count === 0) reader.fail('a command has no words');
    for (let i = 0; i < count; i++) {
      const marker = this.#byte();
      if (marker === CUT) return AofItem.CUT;
      if (marker !== DOLLAR) reader.fail(`a word begins with '$', not with ${shown(marker)}`);
      const length = this.#number();
      if (length === CUT || !this.#has(length + 2)) return AofItem.CUT;
      if (length > ARGUMENT_BYTES_MAX) reader.fail('a word is too long');
      if ((i + 1) * 2 > this.args.length) this.#grow();
      this.args[i * 2] = this.#at;
      this.args[i * 2 + 1] = length;
      this.#at += length;
      if (this.#byte() !== CARRIAGE_RETURN || this.#byte() !== LINE_FEED) {
        reader.fail('a word does not end where its length says');
      }
    }
    // The window has moved meanwhile, perhaps; now it stays.
    for (let i = 0; i < count; i++) this.args[i * 2] += reader.at;
    this.argc = count;
    reader.at += this.#at;
    return AofItem.COMMAND;
  }

  /** A number that ends a line. */
  #number(): number {
    let value = 0;
    for (let digits = 0; ; digits++) {
      const byte = this.#byte();
      if (byte === CUT) return CUT;
      if (byte === CARRIAGE_RETURN && digits > 0) break;
      if (byte < 0x30 || byte > 0x39 || digits === DIGITS_MAX) this.#reader.fail('a length is none');
      value = value * 10 + byte - 0x30;
    }
    const end = this.#byte();
    if (end !== CUT && end !== LINE_FEED) this.#reader.fail('a length is none');
    return end === CUT ? CUT : value;
  }

  #byte(): number {
    const reader = this.#reader;
    if (reader.end - reader.at <= this.#at && !this.#has(1)) return CUT;
    return reader.bytes.u8[reader.at + this.#at++];
  }

  /** Brings so many bytes more into the window; false = the file has not so many. */
  #has(count: number): boolean {
    const reader = this.#reader;
    const wanted = this.#at + count;
    if (reader.end - reader.at >= wanted) return true;
    if (reader.left < wanted) return false;
    reader.need(wanted < WINDOW_BYTES ? wanted : Math.min(reader.left, wanted + this.#at));
    return true;
  }

  #grow(): void {
    const grown = new Int32Array(this.args.length * 2);
    grown.set(this.args);
    this.args = grown;
  }
}

function shown(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? `'${String.fromCharCode(byte)}'` : `byte ${byte}`;
}
