/** What a worker thread is started with (its workerData): plain data and shared memory only. */
import type { StoreHandle } from '../store/open.js';
import type { ControlStart } from './messages.js';

/** workerData of a worker thread. */
export interface WorkerStart extends ControlStart {
  readonly store: StoreHandle;
  readonly counterBlock: SharedArrayBuffer;
  readonly counterBaseline: SharedArrayBuffer;
  /** layout/shared-scripts.ts */
  readonly sharedScripts: SharedArrayBuffer;
}
