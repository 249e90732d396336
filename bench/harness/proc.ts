/**
 * What /proc says about a running process: CPU time of all its threads and where its memory is.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** CPU time of all live threads, in ns (schedstat: exact, not in ticks). */
export function cpuNanoseconds(pid: number): number {
  let total = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    total += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  }
  return total;
}

export interface ProcessMemory {
  /** Private heap and stacks. */
  readonly anonymousBytes: number;
  /** Resident pages of mapped files (program text, pool files on a disk file system). */
  readonly fileBytes: number;
  /** Resident pages of shared memory (tmpfs, memfd). */
  readonly sharedBytes: number;
  readonly residentBytes: number;
}

export function processMemory(pid: number): ProcessMemory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string): number => {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status);
    if (match === null) throw new Error(`/proc/${pid}/status has no ${name}`);
    return Number(match[1]) * 1024;
  };
  return {
    anonymousBytes: field('RssAnon'),
    fileBytes: field('RssFile'),
    sharedBytes: field('RssShmem'),
    residentBytes: field('VmRSS'),
  };
}
