/**
 * What a path is: DAX file system, ordinary one, memory in disguise, a raw device, a NUMA node.
 *
 * `examine` asks the system; `kindOf` decides, from facts alone. A path that does not exist is judged by the folder it would be
 * made in. Invariant: nothing that is looked at is changed, and no name is made.
 */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { addon } from '../native/addon.js';
import { type BlockDevice, type DaxDevice, readBlockDevice, readDaxDevice } from './block-device.js';
import { type DaxProbe, probeDax } from './dax-probe.js';
import { findMount, type Mount, readMounts } from './mounts.js';
import { resolveIfThere } from './system-files.js';

export type Kind =
  | 'fsdax'
  | 'file-system'
  | 'tmpfs'
  | 'hugetlbfs'
  | 'network'
  | 'virtual'
  | 'devdax'
  | 'block-device'
  | 'numa-node'
  | 'no-directory';

export interface Subject {
  /** As asked for, made absolute. */
  readonly path: string;
  /** The real path that was looked at: the path itself, or the nearest folder above that exists. */
  readonly place: string;
  readonly exists: boolean;
  readonly kind: Kind;
  /** Type, size and free space of the file system. */
  readonly fileSystem: string;
  readonly bytes: number;
  readonly freeBytes: number;
  readonly isWritable: boolean;
  readonly mount: Mount | undefined;
  readonly block: BlockDevice | undefined;
  readonly daxDevice: DaxDevice | undefined;
  /** Of a path that names a NUMA node in /sys; -1 for others. */
  readonly node: number;
  readonly dax: DaxProbe;
}

const NETWORK = ['nfs', 'cifs', 'ceph', '9p', 'fuse'];
const VIRTUAL = ['proc', 'sysfs', 'debugfs', 'devpts', 'squashfs', 'erofs'];
const UNTRIED: DaxProbe = { isDax: false, isSync: false, obstacle: '' };

export function kindOf(form: Form, fileSystem: string, dax: DaxProbe, isDaxDevice: boolean, node: number): Kind {
  if (node >= 0) return 'numa-node';
  if (isDaxDevice) return 'devdax';
  if (form === 'block') return 'block-device';
  if (form !== 'directory') return 'no-directory';
  if (fileSystem === 'hugetlbfs') return 'hugetlbfs';
  if (fileSystem === 'tmpfs' || fileSystem === 'ramfs') return 'tmpfs';
  if (NETWORK.includes(fileSystem)) return 'network';
  if (VIRTUAL.includes(fileSystem)) return 'virtual';
  return dax.isDax ? 'fsdax' : 'file-system';
}

export type Form = 'directory' | 'file' | 'block' | 'character' | 'other';

function formOf(status: Stats): Form {
  if (status.isDirectory()) return 'directory';
  if (status.isFile()) return 'file';
  if (status.isBlockDevice()) return 'block';
  return status.isCharacterDevice() ? 'character' : 'other';
}

/** A dev_t, as the kernel packs it, as major:minor. */
export function deviceNumber(device: number): string {
  const high = Math.floor(device / 2 ** 32);
  const major = ((device >>> 8) & 0xfff) + (high >>> 8) * 0x100000;
  const minor = (device & 0xff) | ((device >>> 12) & 0xfff00);
  return `${major}:${minor}`;
}

function isWritable(place: string): boolean {
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function nearest(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    const real = resolveIfThere(at);
    if (real !== undefined || at === '/') return real ?? '/';
  }
}

/** Looks at a path. `root` is where /proc and /sys are read; throws what statfs throws for a place that cannot be looked at. */
export function examine(path: string, root = '/'): Subject {
  const asked = resolve(path);
  const place = nearest(asked);
  const status = statSync(place);
  const form = formOf(status);
  const isDevice = form === 'block' || form === 'character';
  const { type, bytes, freeBytes } = addon.fileSystem(place);
  const node = type === 'sysfs' ? Number(/\/node(\d+)$/.exec(place)?.[1] ?? -1) : -1;
  const mount = findMount(readMounts(root), place);
  const device = isDevice ? deviceNumber(status.rdev) : (mount?.device ?? deviceNumber(status.dev));
  const daxDevice = form === 'character' ? readDaxDevice(root, device) : undefined;
  const dax = form === 'directory' && node < 0 ? probeDax(place) : UNTRIED;
  return {
    path: asked,
    place,
    exists: resolveIfThere(asked) !== undefined,
    kind: kindOf(form, type, dax, daxDevice !== undefined, node),
    fileSystem: type,
    bytes,
    freeBytes,
    isWritable: form === 'directory' && isWritable(place),
    mount,
    block: form === 'character' ? undefined : readBlockDevice(root, device),
    daxDevice,
    node,
    dax,
  };
}
