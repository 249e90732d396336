/**
 * What is known of files of Redis that are, or were, written: shared words (layout/saving), since any worker may be asked.
 */
import { type Saving, SharedWord } from '../../layout/counters.js';
import { Shard } from '../../layout/superblock.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { Context } from '../context.js';

export interface SaveState {
  readonly saving: Saving;
  readonly saveIsScheduled: boolean;
  readonly rewriteIsScheduled: boolean;
  readonly rewriteHasFailed: boolean;
  /** That the last BGREWRITEAOF took; -1 = there was none. */
  readonly rewriteSeconds: number;
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
    saveIsScheduled: word(SharedWord.saveScheduled) !== 0,
    rewriteIsScheduled: word(SharedWord.rewriteScheduled) !== 0,
    rewriteHasFailed: word(SharedWord.rewriteFailed) !== 0,
    rewriteSeconds: word(SharedWord.rewriteSeconds) - 1,
    sinceS: word(SharedWord.savingSinceS),
    savedAtS: word(SharedWord.savedAtS) || Math.floor((environment.control?.startedAtMs ?? nowMs) / 1000),
    hasFailed: word(SharedWord.saveFailed) !== 0,
    seconds: word(SharedWord.saveSeconds) - 1,
    saves: word(SharedWord.saves),
  };
}

/** How often keys have been changed since the pool was made, modulo 2^32: a change takes a version of its shard, or is counted there. */
export function changesOf({ memory }: Keyspace): number {
  const { ctl, shardCount, shardTable } = memory;
  const bits = 31 - Math.clz32(shardCount);
  let changes = 0;
  for (let shard = 0; shard < shardCount; shard++) {
    const at = shardTable + shard * Shard.WORDS;
    const high = ctl[at + Shard.VERSION_HIGH_WORD];
    const versions = (ctl[at + Shard.VERSION_LOW_WORD] >>> bits) | (high << (32 - bits));
    changes = (changes + versions + ctl[at + Shard.OTHER_CHANGES_WORD]) | 0;
  }
  return changes;
}

/** Changes from one reading to the next. */
export function changesBetween(before: number, after: number): number {
  return (after - before) >>> 0;
}

export function changesSinceSave({ keyspace, environment }: Context): number {
  return changesBetween(Atomics.load(environment.counters.shared, SharedWord.savedChanges), changesOf(keyspace));
}
