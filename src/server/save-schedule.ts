/**
 * Saves that begin by themselves: when the setting `save` says that one is due, or when one was asked for while another file was written.
 *
 * Every worker looks, a few times a second; the shared word lets one of them begin. Invariant: without a schedule, and with nothing asked for,
 * a look costs two tests.
 */
import { changesBetween, changesOf } from '../commands/persistence/save-state.js';
import { Saving, SharedWord } from '../layout/counters.js';
import { beginSaving } from '../layout/saving.js';
import type { Keyspace } from '../store/keyspace.js';
import type { WorkerControl } from './worker-control.js';

/** After a save that has failed. */
const RETRY_S = 5;

export class SaveSchedule {
  readonly #keyspace: Keyspace;
  readonly #shared: Int32Array;
  readonly #control: WorkerControl;

  constructor(keyspace: Keyspace, shared: Int32Array, control: WorkerControl) {
    this.#keyspace = keyspace;
    this.#shared = shared;
    this.#control = control;
  }

  look(): void {
    const shared = this.#shared;
    const { save } = this.#control.settings;
    const isAsked = shared[SharedWord.rewriteScheduled] !== 0 || shared[SharedWord.saveScheduled] !== 0;
    if ((save.length === 0 && !isAsked) || Atomics.load(shared, SharedWord.saving) !== Saving.NO) return;
    if (this.#takeAsked(SharedWord.saveScheduled, Saving.BACKGROUND)) return;
    if (this.#takeAsked(SharedWord.rewriteScheduled, Saving.REWRITE)) return;
    if (save.length > 0 && this.#isDue(save) && beginSaving(shared, Saving.BACKGROUND)) this.#control.startSave();
  }

  #takeAsked(word: SharedWord, how: Saving): boolean {
    if (this.#shared[word] === 0 || !beginSaving(this.#shared, how)) return false;
    Atomics.store(this.#shared, word, 0);
    this.#control.startSave();
    return true;
  }

  #isDue(save: readonly number[]): boolean {
    const shared = this.#shared;
    const nowS = Math.floor(Date.now() / 1000);
    if (shared[SharedWord.saveFailed] !== 0 && nowS - shared[SharedWord.savingSinceS] <= RETRY_S) return false;
    const changes = changesBetween(shared[SharedWord.savedChanges], changesOf(this.#keyspace));
    const savedAtS = shared[SharedWord.savedAtS] || Math.floor(this.#control.startedAtMs / 1000);
    for (let i = 0; i < save.length; i += 2) {
      if (changes < save[i + 1] || nowS - savedAtS <= save[i]) continue;
      this.#control.log('notice', `${save[i + 1]} changes in ${save[i]} seconds: saving`);
      return true;
    }
    return false;
  }
}
