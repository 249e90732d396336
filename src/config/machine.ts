/**
 * What this process may use: memory, cores, open files, as the machine and its control groups (v1 and v2) allow.
 *
 * A container sees the whole machine in os.totalmem(); its own limit stands in the control-group files. Limits of parent
 * groups bind too, so every level up to the root is read and the smallest counts. `root` lets tests bring their own tree.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';

export interface Machine {
  /** Physical memory. */
  readonly memoryBytes: number;
  /** The tightest control-group limit, or undefined. */
  readonly memoryLimitBytes: number | undefined;
  /** Cores this process may use: affinity, and the CPU quota rounded up. */
  readonly cpuCount: number;
  readonly openFilesMax: number;
}

/** cgroup v1 says "no limit" with a number near 2^63. */
const NO_LIMIT_BYTES = 2 ** 60;

/** A file's text; undefined where it does not exist or may not be read, which for these files means "no limit known". */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR' || code === 'EPERM') return undefined;
    throw error;
  }
}

/** '/a/b' -> ['/a/b', '/a', '/']. In a container the path may not exist below the mount; the root then still does. */
function levels(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..');
  return parts.map((_, i) => `/${parts.slice(0, parts.length - i).join('/')}`).concat('/');
}

function smallest(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

function limitBytes(text: string | undefined): number | undefined {
  if (text === undefined || text === 'max' || text === '-1') return undefined;
  const bytes = Number(text);
  return Number.isFinite(bytes) && bytes > 0 && bytes < NO_LIMIT_BYTES ? bytes : undefined;
}

function quotaCores(quota: string | undefined, period: string | undefined): number | undefined {
  const ratio = Number(quota) / Number(period);
  return Number.isFinite(ratio) && ratio > 0 ? ratio : undefined;
}

interface GroupLimits {
  readonly memoryBytes: number | undefined;
  readonly cores: number | undefined;
}

export function readGroupLimits(root: string): GroupLimits {
  const memory: (number | undefined)[] = [];
  const cores: (number | undefined)[] = [];
  for (const line of readIfThere(join(root, 'proc/self/cgroup'))?.split('\n') ?? []) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined) continue;
    for (const level of levels(path)) {
      if (controllers === '') {
        for (const mount of ['sys/fs/cgroup', 'sys/fs/cgroup/unified']) {
          memory.push(limitBytes(readIfThere(join(root, mount, level, 'memory.max'))));
          const [quota, period] = readIfThere(join(root, mount, level, 'cpu.max'))?.split(' ') ?? [];
          cores.push(quotaCores(quota, period));
        }
      }
      if (controllers.split(',').includes('memory')) {
        memory.push(limitBytes(readIfThere(join(root, 'sys/fs/cgroup/memory', level, 'memory.limit_in_bytes'))));
      }
      if (controllers.split(',').includes('cpu')) {
        for (const mount of ['sys/fs/cgroup/cpu', 'sys/fs/cgroup/cpu,cpuacct']) {
          const quota = readIfThere(join(root, mount, level, 'cpu.cfs_quota_us'));
          cores.push(quotaCores(quota, readIfThere(join(root, mount, level, 'cpu.cfs_period_us'))));
        }
      }
    }
  }
  return { memoryBytes: smallest(memory), cores: smallest(cores) };
}

function openFilesMax(root: string): number {
  const limits = readIfThere(join(root, 'proc/self/limits')) ?? '';
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

export function readMachine(root = '/'): Machine {
  const limits = readGroupLimits(root);
  const memoryBytes = totalmem();
  const limit = limits.memoryBytes;
  return {
    memoryBytes,
    memoryLimitBytes: limit !== undefined && limit < memoryBytes ? limit : undefined,
    cpuCount: Math.max(1, Math.min(availableParallelism(), Math.ceil(limits.cores ?? Number.POSITIVE_INFINITY))),
    openFilesMax: openFilesMax(root),
  };
}
