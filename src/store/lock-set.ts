/**
 * The shards of a multi-key command, locked in ascending order whatever the order of the keys.
 *
 * Invariant: locks are taken in rising shard number, so two commands never wait for each other.
 */
import { Shard } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import type { Keyspace } from './keyspace.js';

export class LockSet {
  readonly #keyspace: Keyspace;
  readonly #memory: Memory;
  readonly #bits: Int32Array;
  readonly #isLocked = (shard: number): boolean => ((this.#bits[shard >>> 5] >>> (shard & 31)) & 1) === 1;

  constructor(keyspace: Keyspace, memory: Memory) {
    this.#keyspace = keyspace;
    this.#memory = memory;
    this.#bits = new Int32Array(Math.max(1, memory.shardCount >>> 5));
  }

  clear(): void {
    for (let i = 0; i < this.#bits.length; i++) this.#bits[i] = 0;
  }

  add(hash: number): void {
    const shard = hash & (this.#memory.shardCount - 1);
    this.#bits[shard >>> 5] |= 1 << (shard & 31);
  }

  acquire(): void {
    for (let i = 0; i < this.#bits.length; i++) {
      for (let bits = this.#bits[i]; bits !== 0; bits &= bits - 1) this.#memory.lock(this.#word(i, bits));
    }
  }

  release(): void {
    this.#keyspace.settleShards(this.#isLocked);
    for (let i = 0; i < this.#bits.length; i++) {
      for (let bits = this.#bits[i]; bits !== 0; bits &= bits - 1) this.#memory.unlock(this.#word(i, bits));
    }
    this.#keyspace.freeUnlinked();
  }

  /** Lock word of the lowest shard in `bits`. */
  #word(i: number, bits: number): number {
    const shard = (i << 5) + 31 - Math.clz32(bits & -bits);
    return this.#memory.shardTable + shard * Shard.WORDS + Shard.LOCK_WORD;
  }
}
