/**
 * A worker thread that loads its code and waits for its plan: so the thread's start, some 40 ms, goes on beside that of the main thread.
 *
 * Whoever has prepared one hands it to startServer, or ends it.
 */
import { Worker } from 'node:worker_threads';

export function prepareThread(workerIndex: number): Worker {
  return new Worker(new URL('./start-worker.js', import.meta.url), { name: `entresol-${workerIndex}` });
}
