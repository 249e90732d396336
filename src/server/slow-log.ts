/**
 * One worker's slow log: the newest entries in a ring of fixed length.
 *
 * Ids come from a word shared by all workers, so that entries of several workers merge in the order they happened. The
 * invariant: at most `capacity` entries are kept, and their arguments are copies (a request's bytes live one turn only).
 */
import type { SlowLogEntry } from '../commands/control.js';
import { SharedWord } from '../layout/counters.js';

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

  /** `argv` as commands/server/shown-arguments makes it. */
  add(unixMs: number, microseconds: number, argv: readonly Uint8Array[], address: string, clientName: string): void {
    if (this.#capacity === 0) return;
    this.#entries.push({
      id: Atomics.add(this.#shared, SharedWord.slowLogId, 1),
      unixSeconds: Math.floor(unixMs / 1000),
      microseconds: Math.round(microseconds),
      argv,
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
