/**
 * The files of the effect log: their names, what is there, where recovery begins.
 *
 * They lie in a folder of the pool. Checkpoint n holds all that segments before n tell; so a recovery reads the last checkpoint that is
 * whole, then the segments from its number on. Invariant: a checkpoint gets its name when it is on the medium, and the log up to its end is,
 * and only then what it replaces is removed.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const FOLDER = 'effects';
const CHECKPOINT = 'checkpoint-';
const SEGMENT = 'log-';
const DRAFT = '.part';
const DIGITS = 10;

export interface LogFiles {
  /** Number of the last checkpoint; 0 = none. */
  readonly checkpoint: number;
  /** Numbers of the segments that it does not hold, ascending. */
  readonly segments: readonly number[];
  /** The highest number that any file has. */
  readonly last: number;
}

export function logFolder(pool: string): string {
  return join(resolve(pool), FOLDER);
}

export function checkpointPath(folder: string, number: number): string {
  return join(folder, CHECKPOINT + String(number).padStart(DIGITS, '0'));
}

export function draftPath(folder: string, number: number): string {
  return checkpointPath(folder, number) + DRAFT;
}

export function segmentPath(folder: string, number: number): string {
  return join(folder, SEGMENT + String(number).padStart(DIGITS, '0'));
}

/** Makes the folder, if need be. */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  mkdirSync(folder, { mode: 0o700 });
  syncFolder(resolve(folder, '..'));
}

export function listFiles(folder: string): LogFiles {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const checkpoints = numbersOf(names, CHECKPOINT);
  const checkpoint = checkpoints.at(-1) ?? 0;
  const all = numbersOf(names, SEGMENT);
  const segments = all.filter((number) => number >= checkpoint);
  return { checkpoint, segments, last: Math.max(checkpoint, all.at(-1) ?? 0) };
}

function numbersOf(names: readonly string[], prefix: string): number[] {
  return names
    .filter((name) => name.length === prefix.length + DIGITS && name.startsWith(prefix))
    .map((name) => Number(name.slice(prefix.length)))
    .filter((number) => number > 0)
    .sort((a, b) => a - b);
}

/** Gives the draft of checkpoint `number` its name. */
export function nameCheckpoint(folder: string, number: number): void {
  renameSync(draftPath(folder, number), checkpointPath(folder, number));
  syncFolder(folder);
}

/** Removes what checkpoint `number` replaces, and drafts of others. */
export function removeBefore(folder: string, number: number): void {
  for (const name of readdirSync(folder)) {
    const isDraft = name.endsWith(DRAFT) && name.startsWith(CHECKPOINT);
    const [own] = [CHECKPOINT, SEGMENT].flatMap((prefix) => numbersOf([name], prefix));
    if (isDraft || (own !== undefined && own < number)) rmSync(join(folder, name), { force: true });
  }
}

/** So that names are there after a power failure, too. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
