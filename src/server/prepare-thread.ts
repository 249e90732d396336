/**
 * A worker thread that loads its code and waits for its plan: so the thread's start, some 40 ms, goes on beside that of the main thread.
 *
 * Whoever has prepared one hands it to startServer, or ends it. What it prints waits for `passOutput`: process.stdout and process.stderr, which
 * Node.js would make before it starts the thread, take 5 ms.
 */
import { Worker } from 'node:worker_threads';

export function prepareThread(workerIndex: number): Worker {
  return new Worker(new URL('./start-worker.js', import.meta.url), {
    name: `entresol-${workerIndex}`,
    stdout: true,
    stderr: true,
  });
}

/** From here on what the thread prints is printed; no listeners on the process's streams, however many threads there are. */
export function passOutput(thread: Worker): void {
  thread.stdout.on('data', (chunk: Uint8Array) => process.stdout.write(chunk));
  thread.stderr.on('data', (chunk: Uint8Array) => process.stderr.write(chunk));
}
