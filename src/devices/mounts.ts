/** Which mount a path lies on, from /proc/self/mountinfo. */
import { join } from 'node:path';
import { readIfThere } from './system-files.js';

export interface Mount {
  readonly point: string;
  readonly type: string;
  /** /dev/pmem0, or a word for file systems without a device. */
  readonly source: string;
  /** major:minor of its device. */
  readonly device: string;
  /** Those of the mount and those of the file system, each once. */
  readonly options: readonly string[];
}

/** Spaces and the like are written as \040. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

export function parseMounts(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split('\n')) {
    const [own, theirs] = line.split(' - ');
    if (theirs === undefined) continue;
    const [, , device, , point, options] = own.split(' ');
    const [type, source, superOptions = ''] = theirs.split(' ');
    const all = [...options.split(','), ...superOptions.split(',')].filter((option) => option !== '');
    // A mount may be read-only while its file system is not.
    const isReadOnly = all.includes('ro');
    const kept = all.filter((option) => !(isReadOnly && option === 'rw'));
    mounts.push({
      point: unescapeOctal(point),
      type,
      source: unescapeOctal(source),
      device,
      options: [...new Set(kept)],
    });
  }
  return mounts;
}

/** The mount of a real path: the longest mount point above it; of several at one point the last, which hides the others. */
export function findMount(mounts: readonly Mount[], path: string): Mount | undefined {
  let found: Mount | undefined;
  for (const mount of mounts) {
    const isAbove = mount.point === '/' || path === mount.point || path.startsWith(`${mount.point}/`);
    if (isAbove && (found === undefined || mount.point.length >= found.point.length)) found = mount;
  }
  return found;
}

export function readMounts(root: string): Mount[] {
  return parseMounts(readIfThere(join(root, 'proc/self/mountinfo')) ?? '');
}
