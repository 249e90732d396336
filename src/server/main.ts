/**
 * startServer: settings in, a running server out.
 *
 * The promise settles when every listener of every worker answers. A start that fails leaves nothing behind: no thread,
 * no port, no mapping; its error carries a code (ERR_... or an errno with address or path).
 */
import type { Worker } from 'node:worker_threads';
import { ConfigError, protectionProblems, type Settings } from '../config/index.js';
import { CounterTotals } from '../layout/counters.js';
import { claimPool } from '../store/claim.js';
import type { StoreHandle } from '../store/open.js';
import type { EffectLog } from './effects/effect-log.js';
import { loadAtStart } from './load-at-start.js';
import { type Log, logFor } from './log.js';
import { openPool } from './open-pool.js';
import { prepareThread } from './prepare-thread.js';
import { createBlocks } from './server-blocks.js';
import { type Addresses, Supervisor } from './supervisor.js';
import { UsersOnDemand } from './users-on-demand.js';

export interface RunningServer {
  readonly addresses: Addresses;
  /** The DRAM tier's file: in /dev/shm, or in the pool where that is too small. */
  readonly dramPath: string;
  /** Stops cleanly: replies under way are sent, ports are free and the store is closed when it settles. */
  close(): Promise<void>;
  /** As close(), after a save if there is a schedule of saves; false = SHUTDOWN ABORT has called it off meanwhile. */
  stop(): Promise<boolean>;
  /** Settles when the server has stopped, for whatever reason (close(), SHUTDOWN). */
  readonly done: Promise<void>;
  /** What the workers have counted, for metrics and tests. */
  readonly counters: CounterTotals;
  /** Ends one worker thread the hard way; it is started again. For tests of exactly that. */
  killWorker(index: number): Promise<void>;
}

export interface StartOptions {
  /** The file that CONFIG REWRITE writes to. */
  readonly configPath?: string | undefined;
  /** Threads that are loading already (prepareThread), for the first workers. They end with a start that fails. */
  readonly prepared?: readonly Worker[];
}

export async function startServer(settings: Settings, options: StartOptions = {}): Promise<RunningServer> {
  const threads = [...(options.prepared ?? [])];
  try {
    return await startWith(threads, settings, options.configPath);
  } catch (error) {
    await Promise.all(threads.map((thread) => thread.terminate()));
    throw error;
  }
}

/** `threads`: those there are; those that are made here are added. */
async function startWith(threads: Worker[], settings: Settings, configPath?: string): Promise<RunningServer> {
  const problems = protectionProblems(settings);
  if (problems.length > 0) throw new ConfigError(problems);
  const log = logFor(settings);
  const users = await UsersOnDemand.open(settings, log);
  while (threads.length < settings.workers) threads.push(prepareThread(threads.length));
  // Before the pool is looked at: a second server must not even change the first one's policy.
  const claim = claimPool(settings.pool, 'server');
  let store: StoreHandle;
  let supervisor: Supervisor;
  try {
    store = openPool(settings);
    // What `auto` has chosen, for CONFIG GET and the ready lines.
    settings.tier = store.tier;
    const effects = settings.durability === 'durable' ? await openEffects(settings, store, log) : null;
    if (effects?.hasRecovered === true) store = { ...store, isNew: false };
    const savedChanges = await loadAtStart(settings, store, log);
    const blocks = createBlocks(settings);
    const parts = { settings, store, users, log, blocks, prepared: threads, effects, configPath, savedChanges };
    supervisor = new Supervisor(parts);
    await supervisor.start();
  } catch (error) {
    claim.release();
    throw error;
  }
  const release = (): void => claim.release();
  const done = supervisor.done.finally(release);
  return {
    addresses: supervisor.addresses,
    dramPath: store.dramPath,
    close: () => supervisor.close().finally(release),
    stop: async () => {
      const hasStopped = await supervisor.stop();
      if (hasStopped) release();
      return hasStopped;
    },
    done,
    counters: new CounterTotals(supervisor.blocks.counterBlock, supervisor.blocks.counterBaseline),
    killWorker: (index) => supervisor.killWorker(index),
  };
}

/** Most servers do without it. */
async function openEffects(settings: Settings, store: StoreHandle, log: Log): Promise<EffectLog> {
  const { EffectLog } = await import('./effects/effect-log.js');
  return EffectLog.open(settings, store, log);
}
