/**
 * What is worth a write to the capacity tier: S3-FIFO's small queue is DRAM, its main queue the log, its ghost queue layout/ghost.
 *
 * An item that falls out of DRAM unused is dropped, where the policy evicts by use, and its hash remembered; if it comes back and falls
 * out again while it is remembered, it is written. As long as the tier has room, everything is: nothing is lost that would fit.
 * Owns no state of its own. Invariant: under `noeviction`, and for items that may not be evicted, the answer is yes.
 */
import { Ghost } from '../layout/ghost.js';
import { Super } from '../layout/superblock.js';
import type { Eviction } from './eviction.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';
import { Stat } from './statistics.js';

export class Admission {
  readonly #keyspace: Keyspace;
  readonly #eviction: Eviction;
  readonly #ctl: Int32Array;
  readonly #table: number;
  readonly #bucketCount: number;

  constructor(keyspace: Keyspace, eviction: Eviction) {
    this.#keyspace = keyspace;
    this.#eviction = eviction;
    this.#ctl = keyspace.memory.ctl;
    this.#table = this.#ctl[Super.GHOST_TABLE_WORD];
    this.#bucketCount = this.#ctl[Super.GHOST_BUCKETS_WORD];
  }

  /** True when the item of the entry that the index stands on, which must leave DRAM, is to be written; `bytes`: what that takes. */
  admits(hash: number, bytes: number): boolean {
    const { index, log, statistics } = this.#keyspace;
    if (!log.isFull || !this.#judgesByUse() || !this.#eviction.mayEvict()) return true;
    if (index.isProven || index.frequency > 0 || this.#recalls(hash)) return true;
    this.#remember(hash);
    statistics[Stat.WRITES_AVOIDED]++;
    statistics[Stat.WRITE_BYTES_AVOIDED] += bytes;
    return false;
  }

  #judgesByUse(): boolean {
    const { policy } = this.#eviction;
    return (
      policy === Policy.ALL_LRU ||
      policy === Policy.ALL_LFU ||
      policy === Policy.VOLATILE_LRU ||
      policy === Policy.VOLATILE_LFU
    );
  }

  /** True when the hash was dropped not long ago. Words are read and written without a lock: a lost one costs a second chance, no more. */
  #recalls(hash: number): boolean {
    if (this.#bucketCount === 0) return false;
    const base = this.#bucketOf(hash);
    const print = Ghost.print(hash);
    for (let i = 0; i < Ghost.BUCKET_WORDS; i++) {
      const word = this.#ctl[base + i];
      if ((word & 0xffff) === print || word >>> 16 === print) return true;
    }
    return false;
  }

  /** Puts the hash first in its bucket; the oldest one there is forgotten. */
  #remember(hash: number): void {
    if (this.#bucketCount === 0) return;
    const base = this.#bucketOf(hash);
    let carried = Ghost.print(hash);
    for (let i = 0; i < Ghost.BUCKET_WORDS; i++) {
      const word = this.#ctl[base + i];
      this.#ctl[base + i] = (word << 16) | carried;
      carried = word >>> 16;
    }
  }

  #bucketOf(hash: number): number {
    return this.#table + (hash & (this.#bucketCount - 1)) * Ghost.BUCKET_WORDS;
  }
}
