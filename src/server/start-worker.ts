/** Entry of a worker thread: loads the worker, with what earlier starts have compiled of it, and waits for its plan. */
import { parentPort } from 'node:worker_threads';
import { keepCompiled } from './compile-cache.js';

keepCompiled();
void import('./worker.js').then(({ runWorker }) => parentPort!.once('message', runWorker));
