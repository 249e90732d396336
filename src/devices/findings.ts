/**
 * Everything that doctor may say, by its code. Codes are for programs and never change their meaning; the texts are for people
 * and may.
 */

/** error: the store cannot run so. warning: it runs, and something is worse than it could be. note: advice. */
export type Level = 'error' | 'warning' | 'note';

interface FindingKind {
  readonly level: Level;
  /** The path's, or the whole machine's: `serve` speaks at its start of what concerns the path only. */
  readonly about: 'path' | 'machine';
  readonly meaning: string;
}

const path = (level: Level, meaning: string): FindingKind => ({ level, about: 'path', meaning });
const machine = (level: Level, meaning: string): FindingKind => ({ level, about: 'machine', meaning });

export const FINDINGS = {
  NO_DIRECTORY: path('error', 'The path is a file or something else that cannot hold a pool.'),
  NO_PERMISSION: path('error', 'This user may not make files there.'),
  READ_ONLY: path('error', 'The file system is mounted read-only.'),
  NO_SPACE: path('error', 'The file system has less free space than the tiers need.'),
  DEVDAX: path('error', 'A devdax device has no files; it becomes usable as fsdax or as a NUMA node.'),
  BLOCK_DEVICE: path('error', 'A block device needs a file system first.'),
  HUGETLBFS: path('error', 'Files of hugetlbfs cannot be written to, so a pool cannot lie there.'),
  VIRTUAL_FILE_SYSTEM: path('error', 'A file system that stores nothing, or nothing new.'),
  TIER_REFUSED: path('error', 'The kind of tier that was asked for is not to be had there.'),
  POOL_REFUSED: path('error', 'A pool is there, and it cannot be used.'),
  NODE_MISSING: path('error', 'The NUMA node does not exist or has no memory.'),
  NODE_TOO_SMALL: path('error', 'The NUMA node has less memory than the capacity tier needs.'),
  SHM_TOO_SMALL: path('error', 'The numa tier is a file in /dev/shm, which is too small.'),
  ABOVE_70_PERCENT: path('warning', 'The capacity tier takes more than 70 % of the medium.'),
  NUMA_REMOTE: path('warning', 'The medium belongs to another NUMA node than the CPUs that this process uses.'),
  PMEM_NOT_DAX: path('warning', 'The file system lies on persistent memory and is not mounted for DAX.'),
  MAP_SYNC_REFUSED: path('warning', 'DAX, but the kernel refuses MAP_SYNC: durable writes cost a system call.'),
  DAX_NOT_TRIED: path('warning', 'Whether DAX works could not be tried.'),
  DAX_BY_INODE: path('note', 'The mount decides on DAX file by file.'),
  JOURNALED_DATA: path('warning', 'ext4 with data=journal has no DAX and writes everything twice.'),
  PERSISTENCE_EMULATED: path(
    'warning',
    'The range is persistent memory because the firmware or the command line says so.',
  ),
  PERSISTENCE_OF_HOST: path('warning', 'Virtual persistent memory: durable when the host has written its file.'),
  MODULE_ALARM: path('warning', "A module's firmware reports trouble: contents may not survive a power cut."),
  NOT_INTERLEAVED: path('warning', 'The region lies on a single module, with its bandwidth alone.'),
  POWER_PROTECTION: path('note', 'What durability rests on.'),
  TMPFS: path('warning', 'The file system is DRAM itself: a capacity tier there saves nothing.'),
  NETWORK_FILE_SYSTEM: path('warning', 'A network file system: slow mappings, and locks that may not hold.'),
  COPY_ON_WRITE: path('warning', 'The file system copies on write: reserved space is not kept.'),
  OVERLAY: path('warning', 'The writable layer of a container goes with the container.'),
  ROTATIONAL: path('warning', 'A disk that turns: a read of a cold item takes about 10 ms.'),
  NOT_DAX: path('note', 'An ordinary file: it works, and cold items come from a disk.'),
  NODE_IS_DRAM: path('warning', 'The node has CPUs: its memory is most likely ordinary DRAM.'),
  DRAM_IN_POOL: path('warning', '/dev/shm is too small for the DRAM tier, which becomes a file in the pool.'),
  HUGE_PAGES: machine('note', '/dev/shm gives no huge pages.'),
  HUGETLB_RESERVED: machine('note', 'Memory is set aside as huge pages that nobody here uses.'),
  STRICT_OVERCOMMIT: machine('warning', 'Strict overcommit leaves less than the DRAM tier needs.'),
  SWAP: machine('warning', 'The DRAM tier may be swapped out.'),
  OPEN_FILES: machine('warning', 'The limit of open files allows fewer clients than maxclients.'),
  ADDRESS_SPACE: machine('error', 'The limit of address space is below the sizes of the tiers.'),
  MEMORY_NODE: machine('note', 'The machine has memory without CPUs: CXL or persistent memory.'),
  PMEM_ELSEWHERE: machine('note', 'The machine has persistent memory, and the path does not lie on it.'),
} as const satisfies Readonly<Record<string, FindingKind>>;

export type FindingCode = keyof typeof FINDINGS;

export interface Finding {
  readonly code: FindingCode;
  /** What was found, with the numbers. */
  readonly message: string;
  /** What to do; '' where nothing can be done. */
  readonly advice: string;
}

export function levelOf({ code }: Finding): Level {
  return FINDINGS[code].level;
}
