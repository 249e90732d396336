/**
 * Writing a file of RDB, key by key.
 *
 * Owns: what has not been written out yet, the checksum, and where the key in hand begins. Invariant: after `rewind` the file is what it was before
 * the key was begun, whatever of it had been written out.
 */

import type { Keyspace } from '../store/keyspace.js';
import { Crc64 } from './crc64.js';
import { CHECKSUM_BYTES, Opcode, Version } from './format.js';
import { ValueWriter } from './value-writer.js';
import { RdbWriter } from './writer.js';

/** Writes u8[from, end) at a position of the file. */
export type Drain = (u8: Uint8Array, from: number, end: number, position: number) => void;

const DRAIN_BYTES = 1 << 20;

export interface FileOptions {
  readonly version: number;
  readonly compresses: boolean;
  readonly checksums: boolean;
  /** Redis's list-max-listpack-size, stream-node-max-bytes, stream-node-max-entries. */
  readonly listSize: number;
  readonly streamNodeBytes: number;
  readonly streamNodeEntries: number;
  /** What the file says of its maker, by Redis's names. */
  readonly about: readonly (readonly [name: string, value: string])[];
  /** Writes how long keys have been idle, or how often they are used. */
  readonly use: 'idle' | 'frequency' | 'none';
}

export class RdbFileWriter {
  readonly writer = new RdbWriter();
  readonly values = new ValueWriter(this.writer);
  keys = 0;

  readonly #options: FileOptions;
  readonly #drain: Drain;
  readonly #crc = new Crc64();
  /** Bytes written out. */
  #position = 0;
  /** Where the key in hand begins: in the buffer (-1 = in what has been written out), or there with this checksum. */
  #keyAt = 0;
  #keyPosition = 0;
  #keyHigh = 0;
  #keyLow = 0;

  constructor(options: FileOptions, drain: Drain) {
    this.#options = options;
    this.#drain = drain;
    this.writer.compresses = options.compresses;
    this.values.listSize = options.listSize;
    this.values.streams.nodeBytesMax = options.streamNodeBytes;
    this.values.streams.nodeEntriesMax = options.streamNodeEntries;
  }

  /** Bytes of the file so far. */
  get bytes(): number {
    return this.#position + this.writer.length;
  }

  begin(libraries: readonly Uint8Array[]): void {
    const { writer } = this;
    const head = `REDIS${String(this.#options.version).padStart(4, '0')}`;
    for (let i = 0; i < head.length; i++) writer.byte(head.charCodeAt(i));
    for (const [name, value] of this.#options.about) {
      writer.byte(Opcode.AUX);
      writer.text(name);
      writer.text(value);
    }
    for (const code of libraries) {
      writer.byte(Opcode.FUNCTION2);
      writer.blob(code);
    }
  }

  /** The keys that follow belong to this database, which has about so many. */
  database(db: number, keys: number, expiring: number): void {
    const { writer } = this;
    writer.byte(Opcode.SELECTDB);
    writer.lengthOf(db);
    writer.byte(Opcode.RESIZEDB);
    writer.lengthOf(keys);
    writer.lengthOf(expiring);
  }

  /** Writes the key that the keyspace's cursor stands on. */
  key(keyspace: Keyspace): void {
    const { writer } = this;
    this.#keyAt = writer.length;
    const { expiryMs } = keyspace;
    const type = this.values.plan(keyspace, this.#options.version);
    if (type < 0) return;
    if (expiryMs !== 0) {
      writer.byte(Opcode.EXPIRETIME_MS);
      writer.int64(expiryMs);
    }
    this.#writeUse(keyspace);
    writer.byte(type);
    writer.string(keyspace.keyBytes, keyspace.keyOffset, keyspace.keyLength);
    this.values.write();
    this.keys++;
    this.#keyAt = writer.length;
  }

  #writeUse(keyspace: Keyspace): void {
    const { use } = this.#options;
    if (use === 'idle') {
      this.writer.byte(Opcode.IDLE);
      this.writer.lengthOf(keyspace.accessAgeS);
    } else if (use === 'frequency') {
      this.writer.byte(Opcode.FREQ);
      this.writer.byte(keyspace.frequency);
    }
  }

  /** The key in hand has not been written. */
  rewind(): void {
    if (this.#keyAt >= 0) {
      this.writer.length = this.#keyAt;
      return;
    }
    this.writer.length = 0;
    this.#position = this.#keyPosition;
    this.#crc.high = this.#keyHigh;
    this.#crc.low = this.#keyLow;
  }

  /** Empties the buffer into the file if it is large; in the middle of a key, too. */
  drain(): void {
    if (this.writer.length >= DRAIN_BYTES) this.#writeOut();
  }

  #writeOut(): void {
    const { writer } = this;
    const { u8 } = writer.bytes;
    const crc = this.#crc;
    let from = 0;
    if (this.#keyAt >= 0) {
      from = this.#keyAt;
      if (this.#options.checksums) crc.update(u8, 0, from);
      this.#keyPosition = this.#position + from;
      this.#keyHigh = crc.high;
      this.#keyLow = crc.low;
      this.#keyAt = -1;
    }
    if (this.#options.checksums) crc.update(u8, from, writer.length);
    this.#drain(u8, 0, writer.length, this.#position);
    this.#position += writer.length;
    writer.clear();
  }

  /** Ends the file; returns its length. What it had grown to before a rewind is to be cut off. */
  end(): number {
    const { writer } = this;
    writer.byte(Opcode.EOF);
    this.#writeOut();
    if (this.#options.version < Version.CHECKSUM) return this.#position;
    writer.reserve(CHECKSUM_BYTES);
    this.#crc.writeTo(writer.bytes.view, 0);
    this.#drain(writer.bytes.u8, 0, CHECKSUM_BYTES, this.#position);
    return this.#position + CHECKSUM_BYTES;
  }
}
