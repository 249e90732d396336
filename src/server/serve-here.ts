/**
 * A server whose only worker runs in this thread: it answers as soon as its code is there, without waiting for a thread to begin. The control plane
 * follows in a thread of its own, which the caller names.
 *
 * Invariant: nothing of this thread's event loop runs between `begin` and the end of `run`.
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Settings } from '../config/index.js';
import { claimPool } from '../store/claim.js';
import type { StoreHandle } from '../store/open.js';
import type { HostedWorker } from './host-worker.js';
import { openPool } from './open-pool.js';
import { createBlocks, type ServerBlocks } from './server-blocks.js';
import { startWorker } from './worker.js';

/** What the thread of the control plane is given, as its workerData. */
export interface ControlData {
  readonly settings: Settings;
  readonly store: StoreHandle;
  readonly blocks: ServerBlocks;
  readonly worker: HostedWorker;
}

export interface ServerHere {
  readonly dramPath: string;
  /** Begins the control plane, serves until it says stop, and closes the pool. */
  run(): void;
}

/** The control plane begins so long after the worker: its thread would take time from the first requests. */
const HEAD_START_MS = 100;

/** What these settings ask for is done without more threads, or files to load before the first client. */
export function canServeHere({ workers, durability, load, user, aclfile, requirepass }: Settings): boolean {
  return workers === 1 && durability === 'volatile' && load === '' && user.length === 0 && aclfile + requirepass === '';
}

/** Serves when it returns: the first turn has been. `control`: entry of the control plane's thread. Throws as startServer rejects. */
export function begin(settings: Settings, control: URL): ServerHere {
  const claim = claimPool(settings.pool, 'server');
  const store = openPool(settings);
  settings.tier = store.tier;
  const blocks = createBlocks(settings);
  const { port1, port2 } = new MessageChannel();
  const users = { removed: [], set: [] };
  const worker = startWorker({ ...blocks, workerIndex: 0, workerCount: 1, settings, store, users, port: port2 });
  return {
    dramPath: store.dramPath,
    run: () => {
      worker.serveFor(HEAD_START_MS);
      const data: ControlData = { settings, store, blocks, worker: { port: port1, wakeFd: worker.wakeFd } };
      new Worker(control, { workerData: data, transferList: [port1] });
      worker.run();
      claim.release();
    },
  };
}
