/**
 * Keys that a long request of some participant reads over several turns: whoever would change one of them waits, everybody else is served.
 *
 * Owns: the table of holds in the superblock: a bit, and the owner and the key's hash for each. A hold is taken with the key's shard locked. It
 * is advice: what cannot wait (expiry, scripts) changes the key all the same, and the reader, who compares versions, begins anew.
 * Invariant: a hold's bit is set only while its owner's word is; a dead owner's holds go with its repair.
 */
import { Hold, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';

export class Holds {
  readonly #ctl: Int32Array;
  readonly #mark: number;

  constructor(memory: Memory) {
    this.#ctl = memory.ctl;
    this.#mark = memory.self + 1;
  }

  /** True when any key is held: a word that is seldom written, so a look at it costs next to nothing. */
  get any(): boolean {
    return this.#ctl[Super.HOLDS_WORD] !== 0;
  }

  /** Holds the keys of a hash; returns what `release` takes, -1 = too many holds are in force. */
  take(hash: number): number {
    const ctl = this.#ctl;
    for (let slot = 0; slot < Hold.SLOTS; slot++) {
      const at = Super.HOLD_TABLE_WORD + slot * Hold.WORDS;
      if (Atomics.compareExchange(ctl, at + Hold.OWNER_WORD, 0, this.#mark) !== 0) continue;
      ctl[at + Hold.HASH_WORD] = hash;
      Atomics.or(ctl, Super.HOLDS_WORD, 1 << slot);
      return slot;
    }
    return -1;
  }

  release(slot: number): void {
    Atomics.and(this.#ctl, Super.HOLDS_WORD, ~(1 << slot));
    Atomics.store(this.#ctl, Super.HOLD_TABLE_WORD + slot * Hold.WORDS + Hold.OWNER_WORD, 0);
  }

  /** True when a key of this hash is held. Its shard is locked. */
  isHeld(hash: number): boolean {
    const ctl = this.#ctl;
    for (let bits = ctl[Super.HOLDS_WORD]; bits !== 0; bits &= bits - 1) {
      const slot = 31 - Math.clz32(bits & -bits);
      if (ctl[Super.HOLD_TABLE_WORD + slot * Hold.WORDS + Hold.HASH_WORD] === hash) return true;
    }
    return false;
  }
}

/** Ends the holds of a dead participant. The caller holds its byte lock. */
export function forgetHolds({ ctl }: Memory, dead: number): void {
  for (let slot = 0; slot < Hold.SLOTS; slot++) {
    const at = Super.HOLD_TABLE_WORD + slot * Hold.WORDS + Hold.OWNER_WORD;
    if (Atomics.load(ctl, at) !== dead + 1) continue;
    Atomics.and(ctl, Super.HOLDS_WORD, ~(1 << slot));
    Atomics.store(ctl, at, 0);
  }
}
