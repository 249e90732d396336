/**
 * What the kernel says of a block device or a devdax device, above all of persistent memory: its region, how many modules
 * that is interleaved over, whether caches must be flushed, and what the modules' firmware reports.
 */
import { basename, dirname, join } from 'node:path';
import { listIfThere, readIfThere, readNumber, resolveIfThere } from './system-files.js';

/** A range of persistent memory that the hardware shows as one. */
export interface PmemRegion {
  readonly name: string;
  /** cpu_cache: caches are flushed at power loss (eADR); memory_controller: stores must be flushed (ADR); '' = not said. */
  readonly persistenceDomain: string;
  /** Modules that it is interleaved over; 0 = not known. */
  readonly moduleCount: number;
  /** hardware: NFIT or CXL; e820: a range that the firmware or memmap= names, often DRAM; virtio: a file of the host. */
  readonly origin: 'hardware' | 'e820' | 'virtio';
  /** Flags of the modules' firmware that mean trouble: 'nmem0 not_armed'. */
  readonly moduleFlags: readonly string[];
}

export interface BlockDevice {
  /** pmem0, nvme0n1 ... */
  readonly name: string;
  readonly isRotational: boolean;
  /** The driver can map it directly. */
  readonly isDax: boolean;
  /** -1 = not known. */
  readonly numaNode: number;
  readonly region: PmemRegion | undefined;
}

const ALARMS = ['save_fail', 'restore_fail', 'flush_fail', 'not_armed', 'map_fail'];
const STACK_DEPTH_MAX = 8;

/** `device`: major:minor. Undefined where the file system has no block device. */
export function readBlockDevice(root: string, device: string): BlockDevice | undefined {
  let folder = resolveIfThere(join(root, 'sys/dev/block', device));
  if (folder === undefined) return undefined;
  // What lies on top of others (device mapper, RAID) is judged by its first part, as far as there is one.
  for (let depth = 0; depth < STACK_DEPTH_MAX; depth++) {
    if (readIfThere(join(folder, 'partition')) !== undefined) folder = dirname(folder);
    const [below] = listIfThere(join(folder, 'slaves'));
    const next: string | undefined = below === undefined ? undefined : resolveIfThere(join(folder, 'slaves', below));
    if (next === undefined) break;
    folder = next;
  }
  return {
    name: basename(folder),
    isRotational: readNumber(folder, 'queue/rotational') === 1,
    isDax: readNumber(folder, 'queue/dax') === 1,
    numaNode: numaNodeAbove(folder),
    region: regionAbove(root, folder),
  };
}

function* ancestors(folder: string): Generator<string> {
  for (let at = folder; at !== dirname(at) && basename(at) !== 'sys'; at = dirname(at)) yield at;
}

function numaNodeAbove(folder: string): number {
  for (const at of ancestors(folder)) {
    const node = readNumber(at, 'numa_node') ?? readNumber(at, 'device/numa_node');
    if (node !== undefined && node >= 0) return node;
  }
  return -1;
}

function regionAbove(root: string, folder: string): PmemRegion | undefined {
  const at = [...ancestors(folder)].find((path) => /^region\d+$/.test(basename(path)));
  if (at === undefined) return undefined;
  const modules = listIfThere(at)
    .filter((name) => /^mapping\d+$/.test(name))
    .map((name) => readIfThere(join(at, name))?.split(',')[0] ?? '');
  return {
    name: basename(at),
    persistenceDomain: readIfThere(join(at, 'persistence_domain')) ?? '',
    moduleCount: readNumber(at, 'mappings') ?? modules.length,
    origin: at.includes('e820_pmem') ? 'e820' : /\/virtio\d+\//.test(at) ? 'virtio' : 'hardware',
    moduleFlags: modules.flatMap((module) => alarms(root, module)),
  };
}

function alarms(root: string, module: string): string[] {
  const flags = readIfThere(join(root, 'sys/bus/nd/devices', module, 'nfit/flags')) ?? '';
  return flags
    .split(/\s+/)
    .filter((flag) => ALARMS.includes(flag))
    .map((flag) => `${module} ${flag}`);
}

export interface DaxDevice {
  /** dax0.0 */
  readonly name: string;
  readonly bytes: number;
  readonly numaNode: number;
  /** Node that its memory would become with daxctl reconfigure-device --mode=system-ram; -1 = not known. */
  readonly targetNode: number;
}

/** A character device of persistent memory or CXL (devdax); undefined for others. */
export function readDaxDevice(root: string, device: string): DaxDevice | undefined {
  const folder = resolveIfThere(join(root, 'sys/dev/char', device));
  if (folder === undefined || !/^dax\d+\.\d+$/.test(basename(folder))) return undefined;
  return {
    name: basename(folder),
    bytes: readNumber(folder, 'size') ?? 0,
    numaNode: readNumber(folder, 'numa_node') ?? -1,
    targetNode: readNumber(folder, 'target_node') ?? -1,
  };
}

/** Persistent memory of the machine that shows as block devices. */
export function listPmemDevices(root: string): string[] {
  return listIfThere(join(root, 'sys/block')).filter((name) => /^pmem\d/.test(name));
}
