/**
 * BGSAVE and BGREWRITEAOF from the main thread's side: starts the thread, notes how it went.
 *
 * Invariant: SharedWord.saving is set back when the thread has ended, however it ended.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../config/index.js';
import { Saving, SharedWord } from '../layout/counters.js';
import { beginSaving, endSaving } from '../layout/saving.js';
import type { StoreHandle } from '../store/open.js';
import type { Log } from './log.js';
import type { SaveOutcome, SaveStart } from './save-thread.js';

/** Between two looks whether a worker's SAVE is over. */
const SAVE_POLL_MS = 20;

export class Saver {
  readonly #settings: Readonly<Settings>;
  readonly #store: StoreHandle;
  readonly #shared: Int32Array;
  readonly #log: Log;
  readonly #stop = new SharedArrayBuffer(4);
  #running: Promise<boolean> | null = null;

  constructor(settings: Readonly<Settings>, store: StoreHandle, shared: Int32Array, log: Log) {
    this.#settings = settings;
    this.#store = store;
    this.#shared = shared;
    this.#log = log;
  }

  /** For whoever has begun to save: SharedWord.saving says what. Resolves to whether there is a new file. */
  start(): Promise<boolean> {
    this.#running = this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Saves, unless somebody does already: then waits for that and saves again. */
  async saveNow(): Promise<boolean> {
    while (!beginSaving(this.#shared, Saving.BACKGROUND)) await (this.#running ?? sleep(SAVE_POLL_MS));
    return this.start();
  }

  /** Ends a save that is under way: its file is given up. */
  async stop(): Promise<void> {
    Atomics.store(new Int32Array(this.#stop), 0, 1);
    await this.#running;
  }

  async #run(): Promise<boolean> {
    const startedMs = performance.now();
    const isRewrite = Atomics.load(this.#shared, SharedWord.saving) === Saving.REWRITE;
    const name = isRewrite ? 'BGREWRITEAOF' : 'BGSAVE';
    const outcome = await this.#inThread(isRewrite);
    if ('error' in outcome) {
      this.#log('warning', `${name} failed: ${outcome.error}`);
      endSaving(this.#shared, null);
      return false;
    }
    const { path, keys, bytes, changes } = outcome.saved;
    if (outcome.warning !== '') this.#log('warning', outcome.warning);
    const seconds = (performance.now() - startedMs) / 1000;
    this.#log('notice', `${name}: ${keys} keys in ${path}, ${bytes} bytes, in ${seconds.toFixed(1)} s`);
    endSaving(this.#shared, changes);
    return true;
  }

  #inThread(isRewrite: boolean): Promise<SaveOutcome> {
    const start: SaveStart = { store: this.#store, settings: this.#settings, isRewrite, stop: this.#stop };
    return new Promise((resolve) => {
      const thread = new Worker(new URL('./save-thread.js', import.meta.url), {
        name: 'entresol-save',
        workerData: start,
      });
      let outcome: SaveOutcome = { error: 'the thread ended without a word' };
      thread.on('message', (message: SaveOutcome) => {
        outcome = message;
      });
      thread.on('error', (error) => {
        outcome = { error: error.message };
      });
      thread.on('exit', () => resolve(outcome));
    });
  }
}
