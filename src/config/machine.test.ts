import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readGroupLimits, readMachine } from './machine.js';

const MIB = 1024 ** 2;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'entresol-cgroup-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), `${content}\n`);
}

describe('control groups', () => {
  it('reads nothing where there is nothing', () => {
    expect(readGroupLimits(root)).toEqual({ memoryBytes: undefined, cores: undefined });
    expect(readMachine(root)).toMatchObject({ memoryLimitBytes: undefined, openFilesMax: Number.POSITIVE_INFINITY });
  });

  it('reads version 2', () => {
    write('proc/self/cgroup', '0::/system.slice/entresol.service');
    write('sys/fs/cgroup/system.slice/entresol.service/memory.max', String(512 * MIB));
    write('sys/fs/cgroup/system.slice/entresol.service/cpu.max', '150000 100000');
    expect(readGroupLimits(root)).toEqual({ memoryBytes: 512 * MIB, cores: 1.5 });
  });

  it('takes the tightest limit on the way to the root', () => {
    write('proc/self/cgroup', '0::/a/b');
    write('sys/fs/cgroup/a/b/memory.max', 'max');
    write('sys/fs/cgroup/a/memory.max', String(256 * MIB));
    write('sys/fs/cgroup/a/b/cpu.max', 'max 100000');
    write('sys/fs/cgroup/a/cpu.max', '50000 100000');
    expect(readGroupLimits(root)).toEqual({ memoryBytes: 256 * MIB, cores: 0.5 });
    expect(readMachine(root).cpuCount).toBe(1);
  });

  it('finds the limit of a container whose path is not mounted inside', () => {
    write('proc/self/cgroup', '0::/../../docker/abc');
    write('sys/fs/cgroup/memory.max', String(300 * MIB));
    expect(readGroupLimits(root).memoryBytes).toBe(300 * MIB);
  });

  it('reads version 1', () => {
    write('proc/self/cgroup', '4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc');
    write('sys/fs/cgroup/memory/memory.limit_in_bytes', '9223372036854771712');
    write('sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes', String(128 * MIB));
    write('sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us', '200000');
    write('sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us', '100000');
    expect(readGroupLimits(root)).toEqual({ memoryBytes: 128 * MIB, cores: 2 });
  });

  it('takes version 1 values that mean no limit as none', () => {
    write('proc/self/cgroup', '4:memory:/\n3:cpu:/');
    write('sys/fs/cgroup/memory/memory.limit_in_bytes', '9223372036854771712');
    write('sys/fs/cgroup/cpu/cpu.cfs_quota_us', '-1');
    write('sys/fs/cgroup/cpu/cpu.cfs_period_us', '100000');
    expect(readGroupLimits(root)).toEqual({ memoryBytes: undefined, cores: undefined });
  });

  it('ignores a limit above the physical memory', () => {
    write('proc/self/cgroup', '0::/');
    write('sys/fs/cgroup/memory.max', String(totalmem() * 2));
    expect(readMachine(root).memoryLimitBytes).toBeUndefined();
  });

  it('reads the limit of open files', () => {
    write(
      'proc/self/limits',
      'Limit Soft Hard Units\nMax open files            1024                 4096                 files',
    );
    expect(readMachine(root).openFilesMax).toBe(1024);
  });
});
