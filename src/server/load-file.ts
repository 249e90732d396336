/**
 * Filling a pool from files of Redis: the part of a start that needs the store and the commands (see load-at-start).
 *
 * Invariant: while the file of this name lies in the pool's folder, what the pool holds is not all of what it should hold.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { changesOf } from '../commands/persistence/save-state.js';
import type { Settings } from '../config/index.js';
import { encodeEffects } from '../rdb/value-encoder.js';
import { attach, detach } from '../store/attach.js';
import type { Keyspace } from '../store/keyspace.js';
import type { StoreHandle } from '../store/open.js';
import { FileLoader } from './file-loader.js';
import type { Log } from './log.js';

export interface LoadPlan {
  /** The file, or the folder of several; null = there is none, and the pool is emptied of what an unfinished load has left. */
  readonly path: string | null;
  /** A load has begun and not ended. */
  readonly isUnfinished: boolean;
  /** The file that says so. */
  readonly marker: string;
}

/** Returns the store's changes so far (changesOf) if it holds what the files hold and nothing else, else 0. */
export async function fillPool(plan: LoadPlan, settings: Settings, store: StoreHandle, log: Log): Promise<number> {
  const keyspace = attach(store);
  encodeEffects(keyspace);
  keyspace.setMaxMemory(settings.maxmemory);
  keyspace.setLfu(settings.lfuLogFactor, settings.lfuDecayTime);
  try {
    if (plan.isUnfinished) empty(keyspace);
    const keys = countKeys(keyspace, settings);
    if (plan.path === null) rmSync(plan.marker);
    else if (keys > 0) log('notice', `${plan.path} is not loaded: the pool holds ${keys} keys already`);
    else await loadMarked(plan.path, plan.marker, keyspace, settings, log);
    return keys > 0 ? 0 : changesOf(keyspace);
  } finally {
    detach(keyspace);
  }
}

async function loadMarked(
  path: string,
  marker: string,
  keyspace: Keyspace,
  settings: Settings,
  log: Log,
): Promise<void> {
  writeFileSync(marker, path, { mode: 0o600 });
  try {
    await new FileLoader(keyspace, settings, log).load(path);
  } catch (error) {
    empty(keyspace);
    throw error;
  }
  rmSync(marker);
}

function countKeys(keyspace: Keyspace, settings: Settings): number {
  let keys = 0;
  for (let db = 0; db < settings.databases; db++) keys += keyspace.size(db);
  return keys;
}

function empty(keyspace: Keyspace): void {
  keyspace.enterBatch();
  keyspace.closeGate();
  keyspace.flushAll();
  keyspace.openGate();
  keyspace.leaveBatch();
}
