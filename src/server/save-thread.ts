/** The thread of a BGSAVE or BGREWRITEAOF: a participant of the pool that writes the file, says how it went, and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { rewriteAof } from '../commands/persistence/aof-rewrite.js';
import { lostExpiries, type Saved, saveFile } from '../commands/persistence/save-file.js';
import type { Settings } from '../config/index.js';
import { attach, detach } from '../store/attach.js';
import type { StoreHandle } from '../store/open.js';

/** workerData of the thread. */
export interface SaveStart {
  readonly store: StoreHandle;
  readonly settings: Settings;
  /** BGREWRITEAOF; else BGSAVE. */
  readonly isRewrite: boolean;
  /** One word; not zero: the server stops. */
  readonly stop: SharedArrayBuffer;
}

/** `warning`: what the file does not hold; empty = nothing. */
export type SaveOutcome = { readonly saved: Saved; readonly warning: string } | { readonly error: string };

function main({ store, settings, isRewrite, stop }: SaveStart): SaveOutcome {
  const stopWord = new Int32Array(stop);
  const keyspace = attach(store);
  try {
    const write = isRewrite ? rewriteAof : saveFile;
    const saved = write(keyspace, settings, () => Atomics.load(stopWord, 0) !== 0);
    return { saved, warning: saved.expiriesLost > 0 ? lostExpiries(saved.expiriesLost, settings.rdbVersion) : '' };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  } finally {
    detach(keyspace);
  }
}

parentPort!.postMessage(main(workerData as SaveStart));
