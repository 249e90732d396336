/**
 * The main thread's handle on the durability thread of a warm pool.
 *
 * Invariant: while the server runs, a thread that ends is logged and started again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../config/index.js';
import type { StoreHandle } from '../store/open.js';
import type { Log } from './log.js';
import type { Level } from './messages.js';

export type FromDurability =
  | { readonly type: 'ready' }
  | { readonly type: 'log'; readonly level: Level; readonly message: string };

/** workerData of the thread. */
export interface DurabilityStart {
  readonly store: StoreHandle;
  /** Which forms collections get that come back. */
  readonly settings: Settings;
}

const RESTART_MS = 1000;

export class DurabilityThread {
  readonly #settings: Readonly<Settings>;
  readonly #store: StoreHandle;
  readonly #log: Log;
  #thread: Worker | null = null;
  #ended: Promise<Error | null> = Promise.resolve(null);
  #isStopping = false;

  constructor(settings: Readonly<Settings>, store: StoreHandle, log: Log) {
    this.#settings = settings;
    this.#store = store;
    this.#log = log;
  }

  /** Settles when the thread is at work; rejects with the reason when it cannot be. */
  async start(): Promise<void> {
    await this.#spawn();
    void this.#keepAlive();
  }

  /** When the workers have ended: makes all of it persistent. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#thread?.postMessage('stop');
    const error = await this.#ended;
    if (error !== null) this.#log('warning', `what was written last may not be persistent: ${error.message}`);
  }

  #spawn(): Promise<void> {
    const start: DurabilityStart = { store: this.#store, settings: this.#settings };
    const thread = new Worker(new URL('./durability-worker.js', import.meta.url), {
      name: 'entresol-durability',
      workerData: start,
    });
    this.#thread = thread;
    let failure: Error | null = null;
    thread.on('error', (error) => {
      failure = error;
    });
    this.#ended = new Promise((resolve) => {
      thread.on('exit', () => {
        this.#thread = null;
        resolve(failure);
      });
    });
    return new Promise((resolve, reject) => {
      thread.on('message', (message: FromDurability) => {
        if (message.type === 'ready') resolve();
        else this.#log(message.level, message.message);
      });
      void this.#ended.then((error) => reject(error ?? new Error('the durability thread ended')));
    });
  }

  async #keepAlive(): Promise<void> {
    for (;;) {
      const error = await this.#ended;
      if (this.#isStopping) return;
      this.#log('warning', `the durability thread ended: ${error?.stack ?? 'without an error'}`);
      await sleep(RESTART_MS);
      if (this.#isStopping) return;
      await this.#spawn().catch(() => undefined); // `ended` tells, above
    }
  }
}
