/**
 * The control plane's handle on a worker that runs in the process's main thread, while the control plane has a thread of its own: for a server
 * that has to answer soon, since the worker then need not wait for a thread to begin.
 *
 * Invariant: the worker serves already; `ended` settles when it has been told to stop and has. A failure of it ends the process.
 */
import type { MessagePort } from 'node:worker_threads';
import { addon } from '../native/addon.js';
import type { ToMain, ToWorker } from './messages.js';
import type { WorkerHandle } from './worker-thread.js';

/** What a worker in the main thread leaves to the control plane: the other end of its port, and what wakes it. */
export interface HostedWorker {
  readonly port: MessagePort;
  readonly wakeFd: number;
}

export class HostWorker implements WorkerHandle {
  readonly index = 0;
  readonly ready = Promise.resolve();
  readonly ended: Promise<string | null>;
  isReady = true;

  readonly #port: MessagePort;
  readonly #wakeFd: number;

  constructor({ port, wakeFd }: HostedWorker, onMessage: (message: ToMain) => void) {
    this.#port = port;
    this.#wakeFd = wakeFd;
    port.on('message', onMessage);
    this.ended = new Promise((resolve) => {
      port.on('close', () => {
        this.isReady = false;
        resolve(null);
      });
    });
  }

  post(message: ToWorker): void {
    if (!this.isReady) return;
    this.#port.postMessage(message);
    addon.wake(this.#wakeFd);
  }

  /** One that does not stop ends with the process: see kill. */
  async stop(graceMs: number): Promise<void> {
    this.post({ type: 'stop', graceMs });
    const timer = setTimeout(() => void this.kill(), graceMs + FORCE_AFTER_MS);
    await this.ended;
    clearTimeout(timer);
  }

  /** A main thread cannot be ended alone. */
  async kill(): Promise<void> {
    process.kill(process.pid, 'SIGKILL');
  }
}

/** How long after its grace a stopping worker may take before it is ended by force. */
const FORCE_AFTER_MS = 2000;
