/** How the kernel is set up for memory: huge pages, overcommit, swap, and the limits of this process. */
import { join } from 'node:path';
import { listIfThere, readIfThere, readNumber } from './system-files.js';

export interface MemorySettings {
  /** always, madvise or never; '' = this kernel has no transparent huge pages. */
  readonly hugePages: string;
  /** The same for shared memory mapped privately by the kernel; /dev/shm has a mount option of its own (huge=). */
  readonly shmemHugePages: string;
  /** Reserved huge pages: bytes in all, free. */
  readonly hugetlbBytes: number;
  readonly hugetlbFreeBytes: number;
  /** 0 heuristic, 1 always, 2 strict. */
  readonly overcommit: number;
  /** What may still be reserved under strict overcommit. */
  readonly commitFreeBytes: number;
  readonly swapBytes: number;
  readonly swappiness: number;
  /** Infinity = unlimited. */
  readonly lockedBytesMax: number;
  readonly addressSpaceMax: number;
}

/** '[always] madvise never' -> always */
function chosen(text: string | undefined): string {
  return /\[(\w+)\]/.exec(text ?? '')?.[1] ?? '';
}

function meminfoBytes(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024;
}

/** Soft limit from /proc/self/limits. */
function limit(text: string, name: string): number {
  const soft = new RegExp(`^${name}\\s+(\\d+|unlimited)`, 'm').exec(text)?.[1];
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

/** All sizes of reserved huge pages together: /proc/meminfo tells of the default size only. */
function hugetlb(root: string): { bytes: number; freeBytes: number } {
  const folder = join(root, 'sys/kernel/mm/hugepages');
  let bytes = 0;
  let freeBytes = 0;
  for (const name of listIfThere(folder)) {
    const pageBytes = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0) * 1024;
    bytes += pageBytes * (readNumber(folder, name, 'nr_hugepages') ?? 0);
    freeBytes += pageBytes * (readNumber(folder, name, 'free_hugepages') ?? 0);
  }
  return { bytes, freeBytes };
}

export function readMemorySettings(root: string): MemorySettings {
  const meminfo = readIfThere(join(root, 'proc/meminfo')) ?? '';
  const limits = readIfThere(join(root, 'proc/self/limits')) ?? '';
  const thp = join(root, 'sys/kernel/mm/transparent_hugepage');
  const reserved = hugetlb(root);
  return {
    hugePages: chosen(readIfThere(join(thp, 'enabled'))),
    shmemHugePages: chosen(readIfThere(join(thp, 'shmem_enabled'))),
    hugetlbBytes: reserved.bytes,
    hugetlbFreeBytes: reserved.freeBytes,
    overcommit: readNumber(root, 'proc/sys/vm/overcommit_memory') ?? 0,
    commitFreeBytes: Math.max(0, meminfoBytes(meminfo, 'CommitLimit') - meminfoBytes(meminfo, 'Committed_AS')),
    swapBytes: meminfoBytes(meminfo, 'SwapTotal'),
    swappiness: readNumber(root, 'proc/sys/vm/swappiness') ?? 0,
    lockedBytesMax: limit(limits, 'Max locked memory'),
    addressSpaceMax: limit(limits, 'Max address space'),
  };
}
