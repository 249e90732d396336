/**
 * What the process of the workers comparison and its threads share: words for orders, rows for results.
 *
 * An order is: write JOB, MILLISECONDS and PARTICIPANTS, DONE = 0, then count ORDER up and wake. Each participant adds one to
 * DONE when its row of the results is written.
 */
import type { Settings, StoreHandle } from './server-modules.js';

/** Int32 words shared with the process that gives the orders. */
export const enum Word {
  /** Counts orders; a thread wakes when it changes. */
  ORDER = 0,
  /** What to do: see Job. */
  JOB = 1,
  MILLISECONDS = 2,
  /** Bit i: worker i takes part. */
  PARTICIPANTS = 3,
  /** Participants that are done (or have failed) with the order. */
  DONE = 4,
  COUNT = 8,
}

export const enum Job {
  FILL = 0,
  UNIFORM = 1,
  ZIPF = 2,
  STOP = 3,
}

export interface ThreadStart {
  readonly index: number;
  readonly workerCount: number;
  readonly core: number;
  readonly settings: Settings;
  readonly store: StoreHandle;
  readonly counterBlock: SharedArrayBuffer;
  readonly counterBaseline: SharedArrayBuffer;
  readonly words: SharedArrayBuffer;
  /** One row for each worker: requests, milliseconds, misses, failures. */
  readonly results: SharedArrayBuffer;
  readonly keyCount: number;
  readonly valueBytes: number;
  readonly batchCount: number;
}

export const RESULT_DOUBLES = 4;
