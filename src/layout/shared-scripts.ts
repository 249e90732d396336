/**
 * What all workers of a server know of scripts: one SharedArrayBuffer, made by the main thread.
 *
 *   word 0 .. HEADER_WORDS   state (index: ScriptWord), changed with Atomics
 *   RUNNING_BYTES            what the slow script is, as JSON: length word, text
 *   then                     records, appended: | total bytes | flags | digest, 40 characters | body ... | to the next multiple of 4
 *
 * The text of scripts only: each worker compiles for itself what it is asked for. Records are appended and cleared by whoever holds the
 * store gate; a record counts once `used` has moved past it, so one that was half written when its worker died does not exist.
 */

export const enum ScriptWord {
  /** Bytes of records. */
  used = 0,
  /** Goes up when records are thrown away: numbers and compiled scripts of before are void. */
  generation = 1,
  /** Goes up when the libraries of functions change. */
  libraries = 2,
  /** The worker (index + 1) whose script runs longer than the limit; 0 = none does. */
  slowWorker = 3,
  /** SlowScript bits of that script. */
  slowFlags = 4,
  /** Somebody wants that script to end. */
  kill = 5,
  /** Scripts may call DEBUG. */
  allowsDebug = 6,
  HEADER_WORDS = 16,
}

export const enum SlowScript {
  IS_FUNCTION = 1,
  HAS_WRITTEN = 2,
}

export const enum ScriptRecord {
  /** Survives when the cache runs full: SCRIPT LOAD. */
  LOADED = 1,
}

export interface RunningScript {
  readonly name: string;
  /** The words of FCALL, shortened; byte strings. */
  readonly command: readonly string[];
  /** Monotonic milliseconds, the same clock in all threads. */
  readonly startedAtMs: number;
}

/** All scripts of a server together. Untouched pages cost nothing. */
export const SHARED_SCRIPT_BYTES = 64 * 1024 * 1024;
const RUNNING_BYTES = 8192;
const RUNNING_AT = ScriptWord.HEADER_WORDS * 4;
const HEADER_BYTES = RUNNING_AT + RUNNING_BYTES;
const RECORD_HEAD_BYTES = 8;
export const DIGEST_BYTES = 40;

export function createSharedScripts(): SharedArrayBuffer {
  return new SharedArrayBuffer(SHARED_SCRIPT_BYTES);
}

export class SharedScripts {
  readonly words: Int32Array;
  private readonly bytes: Buffer;

  constructor(shared: SharedArrayBuffer) {
    this.words = new Int32Array(shared);
    this.bytes = Buffer.from(shared);
  }

  get(word: ScriptWord): number {
    return Atomics.load(this.words, word);
  }

  set(word: ScriptWord, value: number): void {
    Atomics.store(this.words, word, value);
  }

  /** What runs and is slow, for FUNCTION STATS: written by its worker, before it sets slowWorker. */
  get running(): RunningScript {
    const length = this.words[RUNNING_AT >>> 2];
    return JSON.parse(this.bytes.toString('utf8', RUNNING_AT + 4, RUNNING_AT + 4 + length)) as RunningScript;
  }

  set running(script: RunningScript) {
    const room = RUNNING_BYTES - 4;
    let text = JSON.stringify(script);
    if (Buffer.byteLength(text) > room) text = JSON.stringify({ ...script, command: [] });
    this.words[RUNNING_AT >>> 2] = this.bytes.write(text, RUNNING_AT + 4, room, 'utf8');
  }

  /** Adds a record; false = no room. The gate is held. */
  append(digest: string, body: Uint8Array, flags: number): boolean {
    const used = this.get(ScriptWord.used);
    const total = RECORD_HEAD_BYTES + DIGEST_BYTES + body.length;
    const at = HEADER_BYTES + used;
    if (at + aligned(total) > this.bytes.length) return false;
    this.words[at >>> 2] = total;
    this.words[(at >>> 2) + 1] = flags;
    this.bytes.write(digest, at + RECORD_HEAD_BYTES, 'latin1');
    this.bytes.set(body, at + RECORD_HEAD_BYTES + DIGEST_BYTES);
    this.set(ScriptWord.used, used + aligned(total));
    return true;
  }

  /** Visits the records from byte `from` on (0, or what the last call returned); returns where they end. */
  visit(from: number, see: (digest: string, offset: number) => void): number {
    const used = this.get(ScriptWord.used);
    for (let at = from; at < used; ) {
      const head = HEADER_BYTES + at;
      see(this.bytes.toString('latin1', head + RECORD_HEAD_BYTES, head + RECORD_HEAD_BYTES + DIGEST_BYTES), at);
      at += aligned(this.words[head >>> 2]);
    }
    return used;
  }

  /** A copy of the body of the record at `offset`. */
  body(offset: number): Buffer {
    const head = HEADER_BYTES + offset;
    return Buffer.from(this.bytes.subarray(head + RECORD_HEAD_BYTES + DIGEST_BYTES, head + this.words[head >>> 2]));
  }

  flags(offset: number): number {
    return this.words[((HEADER_BYTES + offset) >>> 2) + 1];
  }

  /** A script that EVAL brought is now wanted for good. The gate is held. */
  markLoaded(offset: number): void {
    this.words[((HEADER_BYTES + offset) >>> 2) + 1] |= ScriptRecord.LOADED;
  }

  /** Throws all records away. The gate is held. */
  clear(): void {
    this.set(ScriptWord.used, 0);
    Atomics.add(this.words, ScriptWord.generation, 1);
  }
}

function aligned(bytes: number): number {
  return (bytes + 3) & ~3;
}
