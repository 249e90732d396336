/**
 * The effect log of a durable pool from the main thread's side: recovery at the start, the writing thread, checkpoints, the end.
 *
 * A start always leaves a checkpoint of what the pool holds by then, unless the last end was clean: so the log goes on from nothing, whatever a crash
 * has left in rings and files. Invariant: nobody is served before the log holds all that the pool does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../../config/index.js';
import { Doubt, EffectsState } from '../../layout/effects.js';
import { Super } from '../../layout/superblock.js';
import { attach, detach } from '../../store/attach.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { StoreHandle } from '../../store/open.js';
import type { Log } from '../log.js';
import type { CheckpointOutcome, CheckpointStart } from './checkpoint-thread.js';
import { Collector } from './collector.js';
import { listFiles, logFolder, makeFolder, nameCheckpoint, removeBefore } from './log-files.js';
import { LogError } from './log-reader.js';
import type { FromLogThread, LogSettings, LogThreadStart, ToLogThread } from './log-thread.js';

export class EffectLog {
  readonly #settings: Readonly<Settings>;
  readonly #store: StoreHandle;
  readonly #log: Log;
  readonly #folder: string;
  readonly #stop = new SharedArrayBuffer(4);
  #thread: Worker | null = null;
  #checkpoint: Promise<void> = Promise.resolve();
  /** How the writing thread ended: the number of its last segment, 0 = it does not say. */
  #ended: Promise<number | Error> = Promise.resolve(0);
  #isStopping = false;
  /** The pool has been brought to what the log holds: it is none to fill from other files. */
  hasRecovered = false;

  /** Brings the pool to what the log holds, and begins to write it. */
  static async open(settings: Settings, store: StoreHandle, log: Log): Promise<EffectLog> {
    const effects = new EffectLog(settings, store, log);
    await effects.#start();
    return effects;
  }

  private constructor(settings: Settings, store: StoreHandle, log: Log) {
    this.#settings = settings;
    this.#store = store;
    this.#log = log;
    this.#folder = logFolder(settings.pool);
  }

  async #start(): Promise<void> {
    makeFolder(this.#folder);
    const files = listFiles(this.#folder);
    const { isLive, isClean } = this.#prepare(files.last);
    const number = files.last + 1;
    if (!isLive && files.last > 0) {
      const { recover } = await import('./recovery.js');
      this.hasRecovered = true;
      await recover(this.#settings, this.#store, this.#folder, files, this.#log);
    }
    let bytes = 0;
    if (!isLive || !isClean) {
      const outcome = await this.#inThread(number);
      if ('error' in outcome) throw new LogError(this.#folder, `the checkpoint cannot be written: ${outcome.error}`);
      bytes = outcome.bytes;
      // There is no log yet that it could be ahead of.
      nameCheckpoint(this.#folder, number);
      removeBefore(this.#folder, number);
    }
    this.#withWords((ctl) => {
      ctl[Super.EFFECTS_STATE_WORD] = EffectsState.LIVE;
      ctl[Super.EFFECTS_CLEAN_WORD] = 0;
      ctl[Super.EFFECTS_REFUSED_WORD] = 0;
      // Unless an embedding process has done something meanwhile.
      Atomics.compareExchange(ctl, Super.EFFECTS_DOUBT_WORD, Doubt.BEING_SETTLED, Doubt.NO);
    });
    await this.#spawn(number, bytes);
    void this.#keepAlive();
  }

  /**
   * What the pool is. Whatever rings still hold has been done, and will be in the checkpoint: it must not come behind that in the log. From here
   * to the start of the writing thread, whatever anybody does is in doubt.
   */
  #prepare(last: number): { isLive: boolean; isClean: boolean } {
    return this.#withWords((ctl, keyspace) => {
      keyspace.enterBatch();
      keyspace.closeGate();
      const isLive = ctl[Super.EFFECTS_STATE_WORD] === EffectsState.LIVE;
      const isClean = ctl[Super.EFFECTS_CLEAN_WORD] === last && ctl[Super.EFFECTS_DOUBT_WORD] === Doubt.NO;
      Atomics.store(ctl, Super.EFFECTS_WRITER_WORD, 0);
      new Collector(keyspace).discard();
      if (!isClean) Atomics.store(ctl, Super.EFFECTS_DOUBT_WORD, Doubt.BEING_SETTLED);
      keyspace.openGate();
      keyspace.leaveBatch();
      return { isLive, isClean };
    });
  }

  #withWords<T>(work: (ctl: Int32Array, keyspace: Keyspace) => T): T {
    const keyspace = attach(this.#store);
    try {
      return work(keyspace.memory.ctl, keyspace);
    } finally {
      detach(keyspace);
    }
  }

  // ---- the writing thread

  async #spawn(number: number, checkpointBytes: number): Promise<void> {
    const start: LogThreadStart = {
      store: this.#store,
      folder: this.#folder,
      number,
      checkpointBytes,
      settings: this.#logSettings(),
    };
    const thread = new Worker(new URL('./log-thread.js', import.meta.url), {
      name: 'entresol-effects',
      workerData: start,
    });
    this.#thread = thread;
    let failure: Error | null = null;
    let closedAt = 0;
    thread.on('error', (error) => {
      failure = error;
    });
    this.#ended = new Promise((resolve) => {
      thread.on('exit', () => {
        this.#thread = null;
        resolve(failure ?? closedAt);
      });
    });
    await new Promise<void>((resolve, reject) => {
      thread.on('message', (message: FromLogThread) => {
        if (message.type === 'ready') resolve();
        else if (message.type === 'log') this.#log(message.level, message.message);
        else if (message.type === 'checkpoint') this.#checkpoint = this.#write(message.number);
        else if (message.type === 'named') this.#removeBefore(message.number);
        else closedAt = message.number;
      });
      void this.#ended.then((end) => reject(end instanceof Error ? end : new Error('the thread of the log ended')));
    });
  }

  /** A thread that ends while the server runs is started again; what it had in hand is in doubt. */
  async #keepAlive(): Promise<void> {
    for (;;) {
      const end = await this.#ended;
      if (this.#isStopping) return;
      this.#log(
        'warning',
        `the thread of the effect log ended: ${end instanceof Error ? end.stack : 'without an error'}`,
      );
      this.#withWords((ctl) => Atomics.store(ctl, Super.EFFECTS_DOUBT_WORD, Doubt.YES));
      await sleep(RESTART_MS);
      await this.#checkpoint;
      if (this.#isStopping) return;
      // Why it cannot start, `#ended` says.
      await this.#spawn(listFiles(this.#folder).last + 1, 0).catch(() => undefined);
    }
  }

  #post(message: ToLogThread): void {
    this.#thread?.postMessage(message);
  }

  #logSettings(): LogSettings {
    const { appendfsync, autoAofRewriteMinSize, autoAofRewritePercentage } = this.#settings;
    return { policy: appendfsync, minBytes: autoAofRewriteMinSize, percentage: autoAofRewritePercentage };
  }

  settingsChanged(): void {
    this.#post({ type: 'settings', settings: this.#logSettings() });
  }

  // ---- checkpoints

  async #write(number: number): Promise<void> {
    const startedMs = performance.now();
    const outcome = await this.#inThread(number);
    if ('error' in outcome) {
      this.#log('warning', `a checkpoint failed: ${outcome.error}`);
      this.#post({ type: 'checkpointed', bytes: -1 });
      return;
    }
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    this.#log('notice', `checkpoint ${number}: ${outcome.bytes} bytes in ${seconds} s`);
    this.#post({ type: 'checkpointed', bytes: outcome.bytes });
  }

  #removeBefore(number: number): void {
    try {
      removeBefore(this.#folder, number);
    } catch (error) {
      // The next checkpoint replaces them as well.
      this.#log('warning', `old files of the effect log stay: ${(error as Error).message}`);
    }
  }

  #inThread(number: number): Promise<CheckpointOutcome> {
    const start: CheckpointStart = {
      store: this.#store,
      databases: this.#settings.databases,
      folder: this.#folder,
      number,
      stop: this.#stop,
    };
    return new Promise((resolve) => {
      const thread = new Worker(new URL('./checkpoint-thread.js', import.meta.url), {
        name: 'entresol-checkpoint',
        workerData: start,
      });
      let outcome: CheckpointOutcome = { error: 'the thread ended without a word' };
      thread.on('message', (message: CheckpointOutcome) => {
        outcome = message;
      });
      thread.on('error', (error) => {
        outcome = { error: error.message };
      });
      thread.on('exit', () => resolve(outcome));
    });
  }

  /** When nobody changes the pool any more: everything is on the medium afterwards. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    Atomics.store(new Int32Array(this.#stop), 0, 1);
    await this.#checkpoint;
    this.#post({ type: 'stop' });
    const end = await this.#ended;
    if (end instanceof Error || end === 0) {
      this.#log(
        'warning',
        `what was written last may not be persistent: ${end === 0 ? 'the thread of the log is gone' : end.message}`,
      );
      return;
    }
    this.#withWords((ctl) => {
      ctl[Super.EFFECTS_CLEAN_WORD] = end;
    });
  }
}

const RESTART_MS = 1000;
