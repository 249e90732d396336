/**
 * Reading a file of RDB, key by key, into a sink.
 *
 * Owns: what stands between the keys. Invariant: a key is given out only when all that stands in front of it is known; at the end the
 * checksum has been compared. What is wrong is thrown as an RdbError that says at which byte.
 */
import { CHECKSUM_BYTES, Opcode, RdbError, RdbType, Version } from './format.js';
import { skipModuleValue } from './module-value.js';
import { type Fill, RdbReader, StringSlot } from './reader.js';
import type { ValueSink } from './sink.js';
import { ValueReader } from './value-reader.js';

const MAGIC = 'REDIS';
const MAGIC_BYTES = 9;
/** By these names a file says that it is such a beginning: since Redis 7, before it. */
const BASE_NAMES: ReadonlySet<string> = new Set(['aof-base', 'aof-preamble']);

/** What takes the keys of a file. */
export interface FileSink {
  /** The keys that follow belong to this database. */
  select(db: number): void;
  /** A key with the use that is known of it (-1 = nothing is); the value goes into the sink that this returns. `expiryMs` 0 = none. */
  key(key: StringSlot, expiryMs: number, idleS: number, frequency: number): ValueSink;
  /** Its value is complete. */
  loaded(): void;
  /** A library of functions. */
  library(code: Uint8Array): void;
  /** The file says that it is the beginning of an append-only file: commands follow, and keys that have expired are among its keys. */
  base(): void;
  /** A key has been passed over, whose value belongs to a module. */
  module(key: StringSlot, name: string): void;
}

export class RdbFileReader {
  readonly reader = new RdbReader();
  version = 0;
  /** The end has been reached. */
  isDone = false;

  readonly #values = new ValueReader(this.reader);
  readonly #key = new StringSlot();
  readonly #text = new StringSlot();
  readonly #sink: FileSink;

  constructor(sink: FileSink) {
    this.#sink = sink;
  }

  /** Opens a file of `size` bytes and reads its head. */
  open(fill: Fill, size: number, checksums: boolean): void {
    const { reader } = this;
    reader.openFile(fill, size);
    reader.checksums = checksums;
    this.isDone = false;
    this.#located(() => {
      if (size < MAGIC_BYTES) reader.fail('it is no RDB file: too short');
      reader.need(MAGIC_BYTES);
      const head = Buffer.from(reader.bytes.u8.subarray(reader.at, reader.at + MAGIC_BYTES)).toString('latin1');
      if (!head.startsWith(MAGIC) || !/^\d{4}$/.test(head.slice(MAGIC.length))) reader.fail('it is no RDB file');
      this.version = Number(head.slice(MAGIC.length));
      if (this.version < Version.MIN || this.version > Version.MAX) {
        reader.fail(`RDB version ${this.version} is not known; versions 1 to ${Version.MAX} are`);
      }
      reader.at += MAGIC_BYTES;
    });
  }

  /** Reads up to `count` keys. */
  read(count: number): void {
    this.#located(() => {
      for (let i = 0; i < count && !this.isDone; i++) this.#readKey();
    });
  }

  #located(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof RdbError)) throw error;
      throw new RdbError(`${error.message}, at byte ${this.reader.offset}`);
    }
  }

  /** One key, with all that stands in front of it; or the end. */
  #readKey(): void {
    const { reader } = this;
    let expiryMs = 0;
    let idleS = -1;
    let frequency = -1;
    for (;;) {
      const opcode = reader.byte();
      switch (opcode) {
        case Opcode.EXPIRETIME:
          expiryMs = Math.max(1, reader.int32() * 1000);
          break;
        case Opcode.EXPIRETIME_MS:
          expiryMs = Math.max(1, reader.int64());
          break;
        case Opcode.IDLE:
          idleS = reader.length();
          break;
        case Opcode.FREQ:
          frequency = reader.byte();
          break;
        case Opcode.SELECTDB:
          this.#sink.select(reader.length());
          break;
        case Opcode.EOF:
          return this.#end();
        default:
          if (opcode >= Opcode.SLOT_INFO) {
            this.#readOther(opcode);
            break;
          }
          return this.#readValue(opcode, expiryMs, idleS, frequency);
      }
    }
  }

  #readValue(type: number, expiryMs: number, idleS: number, frequency: number): void {
    const { reader } = this;
    reader.string(this.#key);
    if (type === RdbType.MODULE_2) return this.#sink.module(this.#key, skipModuleValue(reader));
    this.#values.read(type, this.#sink.key(this.#key, expiryMs, idleS, frequency));
    this.#sink.loaded();
  }

  /** What says something about the file or the server that wrote it. */
  #readOther(opcode: number): void {
    const { reader } = this;
    switch (opcode) {
      case Opcode.AUX: {
        const isBase = BASE_NAMES.has(this.#asText());
        if (this.#asText() === '1' && isBase) this.#sink.base();
        return;
      }
      case Opcode.RESIZEDB:
        reader.length();
        reader.length();
        return;
      case Opcode.SLOT_INFO:
        for (let i = 0; i < 3; i++) reader.length();
        return;
      case Opcode.FUNCTION2: {
        const { bytes, offset, length } = this.#library();
        return this.#sink.library(bytes.u8.slice(offset, offset + length));
      }
      case Opcode.MODULE_AUX:
        skipModuleValue(reader);
        return;
      default:
        reader.fail(`what begins with ${opcode} is not known`);
    }
  }

  #asText(): string {
    this.reader.passing(this.#text);
    const { bytes, offset, length } = this.#text;
    return Buffer.from(bytes.u8.subarray(offset, offset + length)).toString('latin1');
  }

  #library(): StringSlot {
    this.reader.passing(this.#text);
    return this.#text;
  }

  #end(): void {
    const { reader } = this;
    this.isDone = true;
    if (this.version < Version.CHECKSUM) return;
    reader.sum();
    const { crc, checksums } = reader;
    reader.need(CHECKSUM_BYTES);
    const { view } = reader.bytes;
    // Zero: whoever wrote it had checksums switched off.
    const isAbsent = view.getInt32(reader.at, true) === 0 && view.getInt32(reader.at + 4, true) === 0;
    if (checksums && !isAbsent && !crc.equals(view, reader.at)) reader.fail('its checksum is wrong: it is damaged');
    reader.at += CHECKSUM_BYTES;
  }
}
