/** What a worker thread is started with, its first message: plain data and shared memory only. */
import type { StoreHandle } from '../store/open.js';
import type { ControlStart } from './messages.js';

export interface WorkerStart extends ControlStart {
  readonly store: StoreHandle;
  readonly counterBlock: SharedArrayBuffer;
  readonly counterBaseline: SharedArrayBuffer;
  /** layout/shared-scripts.ts */
  readonly sharedScripts: SharedArrayBuffer;
}
