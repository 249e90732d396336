/** The thread of a BGSAVE: a participant of the pool that writes the RDB file, says how it went, and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Saved, saveFile } from '../commands/persistence/save-file.js';
import type { Settings } from '../config/index.js';
import { attach, detach, type StoreHandle } from '../store/open.js';

/** workerData of the thread. */
export interface SaveStart {
  readonly store: StoreHandle;
  readonly settings: Settings;
  /** One word; not zero: the server stops. */
  readonly stop: SharedArrayBuffer;
}

export type SaveOutcome = { readonly saved: Saved } | { readonly error: string };

function main({ store, settings, stop }: SaveStart): SaveOutcome {
  const stopWord = new Int32Array(stop);
  const keyspace = attach(store);
  try {
    return { saved: saveFile(keyspace, settings, () => Atomics.load(stopWord, 0) !== 0) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  } finally {
    detach(keyspace);
  }
}

parentPort!.postMessage(main(workerData as SaveStart));
