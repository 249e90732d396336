/**
 * BGREWRITEAOF: the whole store as the base of an append-only file, with the manifest that Redis 7 reads.
 *
 * It is an RDB file, written as BGSAVE does; nothing is appended to it here. Invariant: the manifest names a base that is whole, the old one or
 * the new one; what somebody else has appended to the old one is never thrown away.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { threadId } from 'node:worker_threads';
import type { Settings } from '../../config/index.js';
import { RdbError } from '../../rdb/format.js';
import type { Keyspace } from '../../store/keyspace.js';
import { MANIFEST_SUFFIX, type Manifest, manifestOf, parseManifest } from './aof-manifest.js';
import { replaceFile, type Saved, writeRdb } from './save-file.js';

/** Where the append-only file's parts lie. */
export function aofFolder({ pool, appenddirname }: Readonly<Settings>): string {
  return join(resolve(pool), appenddirname);
}

/** What the manifest there says; null = there is none. Throws an RdbError. */
export function readManifest(settings: Readonly<Settings>): Manifest | null {
  const path = manifestPath(settings);
  if (!existsSync(path)) return null;
  try {
    return parseManifest(readFileSync(path, 'utf8'));
  } catch (error) {
    throw error instanceof RdbError ? new RdbError(`${path}: ${error.message}`) : error;
  }
}

function manifestPath(settings: Readonly<Settings>): string {
  return join(aofFolder(settings), settings.appendfilename + MANIFEST_SUFFIX);
}

export function rewriteAof(keyspace: Keyspace, settings: Readonly<Settings>, isStopped: () => boolean): Saved {
  const folder = aofFolder(settings);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const old = readManifest(settings);
  if (old !== null && old.increments.length > 0) {
    throw new Error(`${folder} holds an append-only file that another server has appended to: put it elsewhere`);
  }
  const sequence = (old?.base?.sequence ?? 0) + 1;
  const name = `${settings.appendfilename}.${sequence}.base.rdb`;
  const saved = writeRdb(keyspace, settings, join(folder, name), [['aof-base', '1']], isStopped);
  const text = Buffer.from(manifestOf({ name, sequence }));
  replaceFile(manifestPath(settings), `temp-${process.pid}-${threadId}.manifest`, (fd) => writeSync(fd, text));
  for (const file of [old?.base, ...(old?.history ?? [])]) {
    if (file != null && file.name !== name) rmSync(join(folder, file.name), { force: true });
  }
  return saved;
}
