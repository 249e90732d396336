/** The thread of a checkpoint: a participant of the pool that writes the states of all keys, says how it went, and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { attach, detach } from '../../store/attach.js';
import type { StoreHandle } from '../../store/open.js';
import { writeCheckpoint } from './checkpoint.js';

export interface CheckpointStart {
  readonly store: StoreHandle;
  readonly databases: number;
  readonly folder: string;
  readonly number: number;
  /** One word; not zero: the server stops. */
  readonly stop: SharedArrayBuffer;
}

export type CheckpointOutcome = { readonly bytes: number } | { readonly error: string };

function main({ store, databases, folder, number, stop }: CheckpointStart): CheckpointOutcome {
  const stopWord = new Int32Array(stop);
  const keyspace = attach(store);
  try {
    return { bytes: writeCheckpoint(keyspace, databases, folder, number, () => Atomics.load(stopWord, 0) !== 0) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  } finally {
    detach(keyspace);
  }
}

parentPort!.postMessage(main(workerData as CheckpointStart));
