/**
 * Filling a pool from an RDB file: the part of a start that needs the store and the commands (see load-at-start).
 *
 * Invariant: while the file of this name lies in the pool's folder, what the pool holds is not all of what it should hold.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LoadSink } from '../commands/persistence/load-sink.js';
import { LIBRARIES_FILE } from '../commands/scripting/function-libraries.js';
import { encodeLibraries } from '../commands/scripting/library-codec.js';
import type { Settings } from '../config/index.js';
import { RdbFileReader } from '../rdb/file-reader.js';
import { RdbError } from '../rdb/format.js';
import { attach, detach } from '../store/attach.js';
import type { Keyspace } from '../store/keyspace.js';
import type { StoreHandle } from '../store/open.js';
import type { Log } from './log.js';

/** Between two looks at signals and clock. */
const KEYS_A_STEP = 512;
const STEP_MS = 50;
const BACKGROUND_US = 200;

/** A file that cannot be loaded. The pool is empty; the next start tries again. */
export class LoadError extends Error {
  override readonly name = 'LoadError';
  readonly code = 'ERR_LOAD';

  constructor(
    readonly path: string,
    reason: string,
  ) {
    super(`${path}: ${reason}`);
  }
}

export interface LoadPlan {
  /** The file; null = there is none, and the pool is emptied of what an unfinished load has left. */
  readonly path: string | null;
  /** A load has begun and not ended. */
  readonly isUnfinished: boolean;
  /** The file that says so. */
  readonly marker: string;
}

export async function fillPool(plan: LoadPlan, settings: Settings, store: StoreHandle, log: Log): Promise<void> {
  const keyspace = attach(store);
  keyspace.setMaxMemory(settings.maxmemory);
  keyspace.setLfu(settings.lfuLogFactor, settings.lfuDecayTime);
  try {
    if (plan.isUnfinished) empty(keyspace);
    const keys = countKeys(keyspace, settings);
    if (plan.path === null) rmSync(plan.marker);
    else if (keys > 0) log('notice', `${plan.path} is not loaded: the pool holds ${keys} keys already`);
    else await loadMarked(plan.path, plan.marker, keyspace, settings, log);
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
  const fd = open(path);
  try {
    writeFileSync(marker, path, { mode: 0o600 });
    await load(path, fd, keyspace, settings, log);
    rmSync(marker);
  } finally {
    closeSync(fd);
  }
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

async function load(path: string, fd: number, keyspace: Keyspace, settings: Settings, log: Log): Promise<void> {
  const startedMs = performance.now();
  const sink = new LoadSink(keyspace, settings);
  try {
    const size = await readAll(sink, fd, keyspace, settings.rdbchecksum);
    keepLibraries(sink, settings);
    const seconds = (performance.now() - startedMs) / 1000;
    log('notice', `${path}: ${sink.loadedKeys} keys loaded in ${seconds.toFixed(1)} s, ${size} bytes`);
    if (sink.expiredKeys > 0) log('notice', `${path}: ${sink.expiredKeys} keys had expired`);
    if (sink.moduleKeyCount > 0) {
      log('warning', `${path}: ${sink.moduleKeyCount} keys of modules are left out: ${sink.moduleKeys.join(', ')}`);
    }
  } catch (error) {
    empty(keyspace);
    throw error instanceof RdbError ? new LoadError(path, `cannot be loaded: ${error.message}`) : error;
  }
}

/** Returns the file's length. */
async function readAll(sink: LoadSink, file: number, into: Keyspace, checksums: boolean): Promise<number> {
  const reader = new RdbFileReader(sink);
  const { size } = fstatSync(file);
  const fill = (u8: Uint8Array, at: number, length: number): number => readSync(file, u8, at, length, null);
  into.enterBatch();
  try {
    reader.open(fill, size, checksums);
    for (let untilMs = performance.now() + STEP_MS; !reader.isDone; ) {
      reader.read(KEYS_A_STEP);
      into.refreshClock();
      into.background(BACKGROUND_US);
      if (performance.now() < untilMs) continue;
      into.leaveBatch();
      await nextTurn();
      into.enterBatch();
      untilMs = performance.now() + STEP_MS;
    }
  } catch (error) {
    sink.abandon();
    throw error;
  } finally {
    into.leaveBatch();
  }
  return size;
}

function open(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    throw new LoadError(path, `cannot be opened: ${(error as Error).message}`);
  }
}

/** Libraries of functions, unless the pool's folder has its own. */
function keepLibraries({ libraries }: LoadSink, settings: Settings): void {
  const path = join(settings.pool, LIBRARIES_FILE);
  if (libraries.length > 0 && !existsSync(path)) writeFileSync(path, encodeLibraries(libraries), { mode: 0o600 });
}
