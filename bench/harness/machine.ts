/**
 * Facts about the machine that belong beside any figure, and the cores that server and load are pinned to.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';

/** Server and load never share a core. ENTRESOL_BENCH_CORES="0,1" chooses others (server, load). */
export interface Cores {
  readonly server: number;
  readonly load: number;
}

export function chooseCores(): Cores {
  const asked = process.env.ENTRESOL_BENCH_CORES;
  if (asked !== undefined) {
    const match = /^(\d+),(\d+)$/.exec(asked);
    if (match === null) throw new Error(`ENTRESOL_BENCH_CORES=${asked}: expected two core numbers, as in 0,1`);
    return { server: Number(match[1]), load: Number(match[2]) };
  }
  if (availableParallelism() < 2)
    throw new Error('the benchmarks need two cores: one for the server, one for the load');
  return { server: 0, load: 1 };
}

function versionOf(command: string): string {
  try {
    return execFileSync(command, ['--version'], { encoding: 'utf8' }).trim().split('\n')[0];
  } catch (error) {
    return `not available (${(error as NodeJS.ErrnoException).code ?? 'failed'})`;
  }
}

export function machineFacts(): Readonly<Record<string, string | number>> {
  const processor = /^model name\s*:\s*(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'));
  return {
    kernel: release(),
    processor: processor === null ? 'unknown' : processor[1],
    coreCount: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    redis: versionOf('redis-server'),
    memcached: versionOf('memcached'),
  };
}
