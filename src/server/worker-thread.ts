/**
 * The main thread's handle on one worker thread: start, messages with wake-up, end.
 *
 * The invariant: `ended` settles exactly once, when the thread is gone, whatever ended it.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import { addon } from '../native/addon.js';
import { errorOf, type ToMain, type ToWorker } from './messages.js';
import { passOutput, prepareThread } from './prepare-thread.js';
import type { WorkerStart } from './worker-start.js';

export type WorkerPlan = Omit<WorkerStart, 'port'>;

/** What the control plane knows of a worker, wherever that runs. */
export type WorkerHandle = Pick<WorkerThread, 'index' | 'ready' | 'ended' | 'isReady' | 'post' | 'stop' | 'kill'>;

export class WorkerThread {
  readonly index: number;
  /** Settles when the listeners answer; rejects with the reason when the worker ended before. */
  readonly ready: Promise<void>;
  /** Settles with the reason when the thread failed or was killed, with null after a stop. */
  readonly ended: Promise<string | null>;
  isReady = false;

  readonly #thread: Worker;
  readonly #port: MessagePort;
  #wakeFd = -1;
  #failure: Error | null = null;
  #hasStopped = false;

  constructor(plan: WorkerPlan, onMessage: (message: ToMain) => void, thread = prepareThread(plan.workerIndex)) {
    this.index = plan.workerIndex;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const start: WorkerStart = { ...plan, port: port2 };
    this.#thread = thread;
    thread.postMessage(start, [port2]);
    let onReady: () => void;
    let onFailed: (error: Error) => void;
    this.ready = new Promise((resolve, reject) => {
      onReady = resolve;
      onFailed = reject;
    });
    // Whoever does not await `ready` learns of the failure from `ended`.
    this.ready.catch(() => undefined);
    const receive = (message: ToMain): void => {
      if (message.type === 'ready') {
        this.#wakeFd = message.wakeFd;
        this.isReady = true;
        onReady();
        setImmediate(passOutput, thread);
      } else if (message.type === 'failed') {
        this.#failure = errorOf(message.error);
      }
      onMessage(message);
    };
    port1.on('message', receive);
    this.#thread.on('error', (error) => {
      this.#failure ??= error;
    });
    this.ended = new Promise((resolve) => {
      this.#thread.on('exit', (exitCode) => {
        // The thread's last words may still be on their way.
        for (;;) {
          const last = receiveMessageOnPort(port1) as { readonly message: ToMain } | undefined;
          if (last === undefined) break;
          receive(last.message);
        }
        if (!this.isReady) passOutput(thread);
        this.isReady = false;
        port1.close();
        onFailed(this.#failure ?? new Error(`the worker ended with code ${exitCode} before it was ready`));
        if (this.#failure !== null) resolve(this.#failure.stack ?? this.#failure.message);
        else resolve(this.#hasStopped ? null : `the thread ended with code ${exitCode}`);
      });
    });
  }

  post(message: ToWorker): void {
    this.#port.postMessage(message);
    this.#wake();
  }

  /** Asks the worker to send what it has and end; ends it by force when it does not. */
  async stop(graceMs: number): Promise<void> {
    this.#hasStopped = true;
    if (!this.isReady) {
      await this.#thread.terminate();
      return;
    }
    this.post({ type: 'stop', graceMs });
    const timer = setTimeout(() => void this.kill(), graceMs + FORCE_AFTER_MS);
    await this.ended;
    clearTimeout(timer);
  }

  /** Ends the thread at once: it answers no more. */
  async kill(): Promise<void> {
    const terminated = this.#thread.terminate();
    // A thread that sleeps in its pump notices when it wakes.
    this.#wake();
    await terminated;
  }

  #wake(): void {
    if (!this.isReady) return;
    try {
      addon.wake(this.#wakeFd);
    } catch (error) {
      // The thread has closed its end: it is ending, and `ended` will tell.
      if ((error as NodeJS.ErrnoException).code !== 'EBADF') throw error;
    }
  }
}

/** How long after its grace a stopping worker may take before it is ended by force. */
const FORCE_AFTER_MS = 2000;
