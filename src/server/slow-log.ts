/**
 * One worker's slow log: the newest entries in a ring of fixed length.
 *
 * Ids come from a word shared by all workers, so that entries of several workers merge in the order they happened. The
 * invariant: at most `capacity` entries are kept, and each is copied out of the request (its bytes live one turn only).
 */
import type { SlowLogEntry } from '../commands/control.js';
import { SharedWord } from '../layout/counters.js';

/** As in Redis: an entry keeps so many arguments, and so many bytes of each. */
const ARGUMENTS_MAX = 32;
const ARGUMENT_BYTES_MAX = 128;

export class SlowLog {
  readonly #shared: Int32Array;
  #capacity: number;
  /** Oldest first. */
  #entries: SlowLogEntry[] = [];

  constructor(shared: Int32Array, capacity: number) {
    this.#shared = shared;
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#entries.length;
  }

  setCapacity(capacity: number): void {
    this.#capacity = capacity;
    this.#trim();
  }

  add(unixMs: number, microseconds: number, argv: readonly Uint8Array[], address: string, clientName: string): void {
    if (this.#capacity === 0) return;
    this.#entries.push({
      id: Atomics.add(this.#shared, SharedWord.slowLogId, 1),
      unixSeconds: Math.floor(unixMs / 1000),
      microseconds: Math.round(microseconds),
      argv: shorten(argv),
      address,
      clientName,
    });
    this.#trim();
  }

  /** The newest `count` entries, newest first; -1 = all. */
  newest(count: number): SlowLogEntry[] {
    const entries = this.#entries.toReversed();
    return count < 0 ? entries : entries.slice(0, count);
  }

  reset(): void {
    this.#entries = [];
  }

  #trim(): void {
    const surplus = this.#entries.length - this.#capacity;
    if (surplus > 0) this.#entries.splice(0, surplus);
  }
}

function shorten(argv: readonly Uint8Array[]): Uint8Array[] {
  const kept = argv.length > ARGUMENTS_MAX ? ARGUMENTS_MAX - 1 : argv.length;
  const entry: Uint8Array[] = [];
  for (let i = 0; i < kept; i++) entry.push(shortenArgument(argv[i]));
  if (kept < argv.length) entry.push(ascii(`... (${argv.length - kept} more arguments)`));
  return entry;
}

function shortenArgument(argument: Uint8Array): Uint8Array {
  if (argument.length <= ARGUMENT_BYTES_MAX) return argument.slice();
  const note = ascii(`... (${argument.length - ARGUMENT_BYTES_MAX} more bytes)`);
  const shortened = new Uint8Array(ARGUMENT_BYTES_MAX + note.length);
  shortened.set(argument.subarray(0, ARGUMENT_BYTES_MAX));
  shortened.set(note, ARGUMENT_BYTES_MAX);
  return shortened;
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
