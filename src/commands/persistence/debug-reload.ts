/**
 * DEBUG RELOAD and LOADAOF: the whole store into the RDB file and back, as a restart of Redis would do it; back from what BGREWRITEAOF has written.
 *
 * The gate is closed throughout, so nobody sees the store empty. Invariant: without NOFLUSH, what is there afterwards is what the file
 * holds; a file that cannot be read leaves what was read of it.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Saving } from '../../layout/counters.js';
import { beginSaving, endSaving } from '../../layout/saving.js';
import { RdbFileReader } from '../../rdb/file-reader.js';
import type { Context } from '../context.js';
import type { RestorePolicy } from '../scripting/function-libraries.js';
import { encodeLibraries } from '../scripting/library-codec.js';
import { aofFolder, readManifest } from './aof-rewrite.js';
import { LoadSink } from './load-sink.js';
import { saveFile } from './save-file.js';

const OPTIONS = 'ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.';
const LOAD_FAILED = 'ERR Error trying to load the RDB dump, check server logs.';
const AOF_FAILED = 'ERR Error trying to load the AOF files, check server logs.';
const NOT_HERE = 'needs a server, and is not possible in a transaction or script';
const KEYS_A_STEP = 512;

export function debugReload(context: Context): void {
  const { reply, keyspace } = context;
  let [merges, flushes, saves] = [false, true, true];
  for (let i = 2; i < context.argc; i++) {
    if (context.argIs(i, 'MERGE')) merges = true;
    else if (context.argIs(i, 'NOFLUSH')) flushes = false;
    else if (context.argIs(i, 'NOSAVE')) saves = false;
    else return reply.error(OPTIONS);
  }
  if (context.environment.control === null || context.inTransaction) {
    return reply.error(`ERR DEBUG RELOAD ${NOT_HERE}`);
  }
  const { settings } = context.environment;
  const path = join(resolve(settings.pool), settings.dbfilename);
  keyspace.closeGate();
  const error = (saves ? save(context) : null) ?? (load(context, path, merges, flushes) ? null : LOAD_FAILED);
  keyspace.openGate();
  if (error === null) reply.ok();
  else reply.error(error);
}

export function debugLoadAof(context: Context): void {
  const { reply, keyspace, environment } = context;
  const { control, settings } = environment;
  if (control === null || context.inTransaction) return reply.error(`ERR DEBUG LOADAOF ${NOT_HERE}`);
  const base = ownBase(context);
  if (base === null) return reply.error(AOF_FAILED);
  keyspace.closeGate();
  const isLoaded = load(context, join(aofFolder(settings), base), false, true);
  keyspace.openGate();
  if (isLoaded) reply.ok();
  else reply.error(AOF_FAILED);
}

/** Name of the file that BGREWRITEAOF has written; null = there is none, or others have appended to it, which only a start reads. */
function ownBase({ environment: { settings, control } }: Context): string | null {
  try {
    const manifest = readManifest(settings);
    if (manifest?.base != null && manifest.increments.length === 0) return manifest.base.name;
    control?.log('warning', 'DEBUG LOADAOF: there is nothing that BGREWRITEAOF has written');
  } catch (error) {
    control?.log('warning', `DEBUG LOADAOF: ${error instanceof Error ? error.message : String(error)}`);
  }
  return null;
}

/** The error, or null. */
function save({ environment, keyspace }: Context): string | null {
  const { counters, settings } = environment;
  if (!beginSaving(counters.shared, Saving.FOREGROUND)) return 'ERR Background save already in progress';
  let changes: number | null = null;
  try {
    changes = saveFile(keyspace, settings, () => false).changes;
    return null;
  } catch (error) {
    return `ERR ${error instanceof Error ? error.message.replace(/[\r\n]/g, ' ') : 'the file cannot be written'}`;
  } finally {
    endSaving(counters.shared, changes);
  }
}

/** False when the log says what is wrong. */
function load({ environment, keyspace }: Context, path: string, merges: boolean, flushes: boolean): boolean {
  const { settings, control } = environment;
  const sink = new LoadSink(keyspace, settings, merges);
  if (flushes) keyspace.flushAll();
  try {
    readFile(path, sink, settings.rdbchecksum);
    const policy: RestorePolicy = flushes ? 'flush' : merges ? 'replace' : 'append';
    const problem = environment.scripting?.().libraries.restore(encodeLibraries(sink.libraries), policy) ?? null;
    if (problem === null) return true;
    control?.log('warning', `${path}: ${problem}`);
  } catch (error) {
    sink.abandon();
    control?.log('warning', `${path}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    keyspace.holdExpiry(false);
  }
  return false;
}

function readFile(path: string, sink: LoadSink, checksums: boolean): void {
  const file = openSync(path, 'r');
  try {
    const reader = new RdbFileReader(sink);
    const fill = (u8: Uint8Array, at: number, length: number): number => readSync(file, u8, at, length, null);
    reader.open(fill, fstatSync(file).size, checksums);
    while (!reader.isDone) reader.read(KEYS_A_STEP);
  } finally {
    closeSync(file);
  }
}
