/** All that is asked of the machine itself, whatever the path: nodes, memory, limits, /dev/shm. */
import { existsSync } from 'node:fs';
import { type Machine, readMachine } from '../config/machine.js';
import { addon } from '../native/addon.js';
import { listPmemDevices } from './block-device.js';
import { type MemorySettings, readMemorySettings } from './memory-settings.js';
import { findMount, readMounts } from './mounts.js';
import { type NumaNode, nodesInUse, readAllowedCpus, readNodes } from './numa.js';

export interface SharedMemory {
  readonly bytes: number;
  readonly freeBytes: number;
  /** Its mount option huge=, '' = never. */
  readonly hugePages: string;
}

export interface MachineFacts {
  readonly limits: Machine;
  readonly nodes: readonly NumaNode[];
  readonly allowedCpus: readonly number[];
  /** Nodes of these CPUs. */
  readonly usedNodes: readonly number[];
  readonly memory: MemorySettings;
  /** Undefined where there is no /dev/shm. */
  readonly shm: SharedMemory | undefined;
  /** pmem0 ... */
  readonly pmemDevices: readonly string[];
}

const SHM = '/dev/shm';

function readShm(root: string): SharedMemory | undefined {
  if (!existsSync(SHM)) return undefined;
  const { bytes, freeBytes } = addon.fileSystem(SHM);
  const options = findMount(readMounts(root), SHM)?.options ?? [];
  const huge = options.find((option) => option.startsWith('huge='));
  return { bytes, freeBytes, hugePages: huge?.slice('huge='.length) ?? '' };
}

export function readMachineFacts(root = '/'): MachineFacts {
  const nodes = readNodes(root);
  const allowedCpus = readAllowedCpus(root);
  return {
    limits: readMachine(root),
    nodes,
    allowedCpus,
    usedNodes: nodesInUse(nodes, allowedCpus),
    memory: readMemorySettings(root),
    shm: readShm(root),
    pmemDevices: listPmemDevices(root),
  };
}
