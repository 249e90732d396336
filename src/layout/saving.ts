/**
 * The shared words about files of Redis that are, or were, written: who saves, and how it went.
 *
 * Invariant: who sets SharedWord.saving from NO to something else, with one atomic step, is the one that saves; it alone sets it back.
 */
import { Saving, SharedWord } from './counters.js';

/** Becomes the one that saves; false = somebody else does. */
export function beginSaving(shared: Int32Array, how: Saving): boolean {
  if (Atomics.compareExchange(shared, SharedWord.saving, Saving.NO, how) !== Saving.NO) return false;
  Atomics.store(shared, SharedWord.savingSinceS, nowS());
  return true;
}

/** `changes`: those of the store when the file was begun; null = there is no file, it has failed. */
export function endSaving(shared: Int32Array, changes: number | null): void {
  const how = Atomics.load(shared, SharedWord.saving);
  const seconds = nowS() - Atomics.load(shared, SharedWord.savingSinceS);
  if (how === Saving.BACKGROUND) {
    Atomics.store(shared, SharedWord.saveFailed, changes === null ? 1 : 0);
    Atomics.store(shared, SharedWord.saveSeconds, seconds + 1);
  } else if (how === Saving.REWRITE) {
    Atomics.store(shared, SharedWord.rewriteFailed, changes === null ? 1 : 0);
    Atomics.store(shared, SharedWord.rewriteSeconds, seconds + 1);
  }
  if (changes !== null && how !== Saving.REWRITE) {
    Atomics.store(shared, SharedWord.savedAtS, nowS());
    Atomics.store(shared, SharedWord.savedChanges, changes);
    Atomics.add(shared, SharedWord.saves, 1);
  }
  Atomics.store(shared, SharedWord.saving, Saving.NO);
}

function nowS(): number {
  return Math.floor(Date.now() / 1000);
}
