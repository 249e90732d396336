/**
 * Writing the RDB file of a store: into a temporary file beside it, which takes its place when it is whole and on the medium.
 *
 * Invariant: the file of that name is the old one or the new one, whatever happens meanwhile.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { threadId } from 'node:worker_threads';
import type { Settings } from '../../config/index.js';
import { type Drain, RdbFileWriter } from '../../rdb/file-writer.js';
import { DatabasesChanged, Snapshot } from '../../rdb/snapshot.js';
import type { Keyspace } from '../../store/keyspace.js';
import { REDIS_VERSION } from '../clients/connection.js';
import { LIBRARIES_FILE } from '../scripting/function-libraries.js';
import { decodeLibraries } from '../scripting/library-codec.js';
import { changesOf } from './save-state.js';

/** Times that everything is begun anew since databases were emptied or exchanged. */
const TRIES = 5;

type About = readonly (readonly [name: string, value: string])[];

export interface Saved {
  readonly path: string;
  readonly keys: number;
  readonly bytes: number;
  /** Of the store when it was begun. */
  readonly changes: number;
  /** Hashes whose fields' expiries the version has no place for. */
  readonly expiriesLost: number;
}

/** For the log. */
export function lostExpiries(hashes: number, version: number): string {
  return `${hashes} hashes have fields that expire: RDB version ${version} has no place for that, so the file holds them without (rdb-version 12 has)`;
}

/** SAVE and BGSAVE. `isStopped` is asked now and then; true ends it with an error. */
export function saveFile(keyspace: Keyspace, settings: Readonly<Settings>, isStopped: () => boolean): Saved {
  return writeRdb(keyspace, settings, join(resolve(settings.pool), settings.dbfilename), [], isStopped);
}

/** Alone if the gate is closed, else beside others. `about`: what the file says of itself beside what all of them say. */
export function writeRdb(
  keyspace: Keyspace,
  settings: Readonly<Settings>,
  path: string,
  about: About,
  isStopped: () => boolean,
): Saved {
  const libraries = readLibraries(settings);
  return replaceFile(path, `temp-${process.pid}-${threadId}.rdb`, (fd) => ({
    ...writeAll(keyspace, settings, libraries, about, fd, isStopped),
    path,
  }));
}

/** Lets `write` fill a file beside that of this path, which then takes its place. */
export function replaceFile<T>(path: string, draftName: string, write: (fd: number) => T): T {
  const folder = dirname(path);
  const draft = join(folder, draftName);
  const fd = openSync(draft, 'w', 0o600);
  try {
    const written = write(fd);
    fsyncSync(fd);
    renameSync(draft, path);
    syncFolder(folder);
    return written;
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

/**
 * Writes all keys to where nothing can be written over: `drain` gets them one after the other. For whoever is alone. Returns the hashes whose
 * fields' expiries the version has no place for.
 */
export function streamRdb(keyspace: Keyspace, settings: Readonly<Settings>, drain: Drain): number {
  const file = newFile(settings, [], drain);
  file.begin(readLibraries(settings));
  new Snapshot(keyspace, file, () => false).write(settings.databases);
  file.end();
  return file.values.expiriesLost;
}

function newFile(settings: Readonly<Settings>, about: About, drain: Drain): RdbFileWriter {
  return new RdbFileWriter(
    {
      version: settings.rdbVersion,
      compresses: settings.rdbcompression,
      checksums: settings.rdbchecksum,
      listSize: settings.listMaxListpackSize,
      streamNodeBytes: settings.streamNodeMaxBytes,
      streamNodeEntries: settings.streamNodeMaxEntries,
      about: [
        ['redis-ver', REDIS_VERSION],
        ['redis-bits', '64'],
        ['ctime', String(Math.floor(Date.now() / 1000))],
        ...about,
      ],
      use: useOf(settings.maxmemoryPolicy),
    },
    drain,
  );
}

function writeAll(
  keyspace: Keyspace,
  settings: Readonly<Settings>,
  libraries: readonly Uint8Array[],
  about: About,
  fd: number,
  isStopped: () => boolean,
): Omit<Saved, 'path'> {
  for (let tries = 1; ; tries++) {
    const file = newFile(settings, about, (u8, from, end, position) => writeAt(fd, u8, from, end, position));
    const changes = changesOf(keyspace);
    try {
      file.begin(libraries);
      new Snapshot(keyspace, file, isStopped).write(settings.databases);
    } catch (error) {
      if (error instanceof DatabasesChanged && tries < TRIES) continue;
      throw error;
    }
    const bytes = file.end();
    // A longer attempt may have been written over.
    ftruncateSync(fd, bytes);
    return { keys: file.keys, bytes, changes, expiriesLost: file.values.expiriesLost };
  }
}

function useOf(policy: Settings['maxmemoryPolicy']): 'idle' | 'frequency' | 'none' {
  if (policy.endsWith('-lru')) return 'idle';
  return policy.endsWith('-lfu') ? 'frequency' : 'none';
}

function writeAt(fd: number, u8: Uint8Array, from: number, end: number, position: number): void {
  for (let at = from; at < end; ) at += writeSync(fd, u8, at, end - at, position + at - from);
}

/** So that the new name is there after a power failure, too. */
function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function readLibraries(settings: Readonly<Settings>): readonly Uint8Array[] {
  const path = join(settings.pool, LIBRARIES_FILE);
  if (!existsSync(path)) return [];
  const codes = decodeLibraries(readFileSync(path));
  if (typeof codes === 'string') throw new Error(`${path}: ${codes}`);
  return codes;
}
