/**
 * What is known of RDB files that are, or were, written: shared words, since any worker may be asked.
 *
 * Invariant: who sets SharedWord.saving from NO to something else, with one atomic step, is the one that saves.
 */
import { Saving, SharedWord } from '../../layout/counters.js';
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

/** Becomes the one that saves; false = somebody else does. */
export function beginSaving(shared: Int32Array, how: Saving): boolean {
  if (Atomics.compareExchange(shared, SharedWord.saving, Saving.NO, how) !== Saving.NO) return false;
  Atomics.store(shared, SharedWord.savingSinceS, nowS());
  return true;
}

/** `changes`: those of the store when the file was begun; null = there is no file, it has failed. */
export function endSaving(shared: Int32Array, changes: number | null): void {
  if (Atomics.load(shared, SharedWord.saving) === Saving.BACKGROUND) {
    Atomics.store(shared, SharedWord.saveFailed, changes === null ? 1 : 0);
    Atomics.store(shared, SharedWord.saveSeconds, nowS() - Atomics.load(shared, SharedWord.savingSinceS) + 1);
  }
  if (changes !== null) {
    Atomics.store(shared, SharedWord.savedAtS, nowS());
    Atomics.store(shared, SharedWord.savedChanges, changes);
    Atomics.add(shared, SharedWord.saves, 1);
  }
  Atomics.store(shared, SharedWord.saving, Saving.NO);
}

function nowS(): number {
  return Math.floor(Date.now() / 1000);
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
