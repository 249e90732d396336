/**
 * What is known of RDB files that are, or were, written: shared words (layout/saving), since any worker may be asked.
 */
import { type Saving, SharedWord } from '../../layout/counters.js';
import { Shard } from '../../layout/superblock.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { Context } from '../context.js';

export interface SaveState {
  readonly saving: Saving;
  readonly sinceS: number;
  /** Of the last file; without one, when the server started. */
  readonly savedAtS: number;
  readonly hasFailed: boolean;
  /** That the last BGSAVE took; -1 = there was none. */
  readonly seconds: number;
  readonly saves: number;
}

export function saveState({ environment, nowMs }: Context): SaveState {
  const { shared } = environment.counters;
  const word = (at: SharedWord): number => Atomics.load(shared, at);
  return {
    saving: word(SharedWord.saving),
    sinceS: word(SharedWord.savingSinceS),
    savedAtS: word(SharedWord.savedAtS) || Math.floor((environment.control?.startedAtMs ?? nowMs) / 1000),
    hasFailed: word(SharedWord.saveFailed) !== 0,
    seconds: word(SharedWord.saveSeconds) - 1,
    saves: word(SharedWord.saves),
  };
}

/** How often values have been changed since the pool was made, modulo 2^32: each change takes a version of its shard. */
export function changesOf({ memory }: Keyspace): number {
  const { ctl, shardCount, shardTable } = memory;
  const bits = 31 - Math.clz32(shardCount);
  let changes = 0;
  for (let shard = 0; shard < shardCount; shard++) {
    const at = shardTable + shard * Shard.WORDS;
    const high = ctl[at + Shard.VERSION_HIGH_WORD];
    changes = (changes + ((ctl[at + Shard.VERSION_LOW_WORD] >>> bits) | (high << (32 - bits)))) | 0;
  }
  return changes;
}

/** Deletions are not counted. */
export function changesSinceSave({ keyspace, environment }: Context): number {
  return (changesOf(keyspace) - Atomics.load(environment.counters.shared, SharedWord.savedChanges)) >>> 0;
}
