/** The machine's memory nodes, and which CPUs this process may run on. Nodes without CPUs are CXL memory or persistent memory. */
import { join } from 'node:path';
import { listIfThere, parseNumberList, readIfThere } from './system-files.js';

export interface NumaNode {
  readonly node: number;
  readonly cpus: readonly number[];
  readonly bytes: number;
  readonly freeBytes: number;
  /** To each node, 10 = itself; empty where the kernel does not say. */
  readonly distances: readonly number[];
}

const NODES = 'sys/devices/system/node';

function kilobytes(text: string, name: string): number {
  const [, count] = new RegExp(`${name}:\\s*(\\d+) kB`).exec(text) ?? [];
  return count === undefined ? 0 : Number(count) * 1024;
}

export function readNodes(root: string): NumaNode[] {
  const folder = join(root, NODES);
  return listIfThere(folder)
    .map((name) => /^node(\d+)$/.exec(name)?.[1])
    .filter((number) => number !== undefined)
    .map((number) => {
      const memory = readIfThere(join(folder, `node${number}`, 'meminfo')) ?? '';
      return {
        node: Number(number),
        cpus: parseNumberList(readIfThere(join(folder, `node${number}`, 'cpulist')) ?? ''),
        bytes: kilobytes(memory, 'MemTotal'),
        freeBytes: kilobytes(memory, 'MemFree'),
        distances: (readIfThere(join(folder, `node${number}`, 'distance')) ?? '')
          .split(/\s+/)
          .filter(Boolean)
          .map(Number),
      };
    })
    .sort((a, b) => a.node - b.node);
}

/** CPUs that this process may run on; empty where the kernel does not say. */
export function readAllowedCpus(root: string): number[] {
  const status = readIfThere(join(root, 'proc/self/status')) ?? '';
  return parseNumberList(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '');
}

/** Nodes of the CPUs that this process may run on. */
export function nodesInUse(nodes: readonly NumaNode[], allowedCpus: readonly number[]): number[] {
  const allowed = new Set(allowedCpus);
  return nodes.filter(({ cpus }) => cpus.some((cpu) => allowed.has(cpu))).map(({ node }) => node);
}
