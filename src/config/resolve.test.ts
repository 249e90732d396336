import { describe, expect, it } from 'vitest';
import { ConfigError } from './error.js';
import { loadSettings } from './load.js';
import type { Machine } from './machine.js';
import { memcachedListeners } from './memcached-listeners.js';
import { isLocalPeer } from './resolve.js';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const big: Machine = { memoryBytes: 64 * GIB, memoryLimitBytes: undefined, cpuCount: 8, openFilesMax: 100_000 };

function load(args: readonly string[], machine: Partial<Machine> = {}) {
  return loadSettings({ args, machine: { ...big, ...machine } });
}

function problem(args: readonly string[], machine: Partial<Machine> = {}): string {
  try {
    load(args, machine);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

describe('memory', () => {
  it('keeps the default DRAM tier within half of the container limit', () => {
    expect(load([], { memoryLimitBytes: GIB }).settings.dram).toBe(128 * MIB);
    expect(load([], { memoryLimitBytes: 240 * MIB }).settings.dram).toBe(120 * MIB);
    expect(load([], { memoryLimitBytes: 180 * MIB }).settings.dram).toBe(68 * MIB);
  });

  it('refuses a container that is too small, with the numbers', () => {
    expect(problem([], { memoryLimitBytes: 100 * MIB })).toBe(
      'the memory limit of this container is 100 MiB: too little for 112 MiB for 1 worker(s) and the process, and the smallest DRAM tier of 16 MiB. Raise the limit or use fewer workers.',
    );
  });

  it('refuses an explicit size that cannot fit, with the numbers', () => {
    expect(problem(['--dram', '1gb'], { memoryLimitBytes: GIB })).toBe(
      '--dram 1 GiB: does not fit. The memory limit of this container is 1 GiB, less 112 MiB for 1 worker(s) and the process leaves 912 MiB.',
    );
    expect(problem(['--dram', '100gb'])).toContain('The memory of this machine is 64 GiB');
    expect(load(['--dram', '800mb'], { memoryLimitBytes: GIB }).settings.dram).toBe(800 * MIB);
  });

  it('counts a NUMA capacity tier as memory', () => {
    const args = ['--tier', 'numa', '--numa-node', '1', '--capacity', '63gb', '--dram', '2gb'];
    expect(problem(args)).toContain('and the NUMA tier');
  });

  it('refuses maxmemory above the tiers', () => {
    expect(problem(['--maxmemory', '2gb'])).toContain('above what the tiers hold (128 MiB dram + 1 GiB capacity');
    expect(problem(['--maxmemory', '1gb'])).toBe('');
  });
});

describe('tiers', () => {
  it('treats no tier and no capacity as the same', () => {
    expect(load(['--tier', 'none']).settings).toMatchObject({ tier: 'none', capacity: 0 });
    expect(load(['--capacity', '0']).settings).toMatchObject({ tier: 'none', capacity: 0 });
    expect(problem(['--tier', 'none', '--capacity', '1gb'])).toContain('contradicts');
  });

  it('wants a node for numa, and only for numa', () => {
    expect(problem(['--tier', 'numa'])).toContain('--numa-node N');
    expect(problem(['--numa-node', '1'])).toContain('--tier numa only');
  });

  it('refuses durability warm without a medium for it', () => {
    expect(problem(['--durability', 'durable', '--capacity', '0'])).toBe('');
    expect(problem(['--durability', 'warm', '--capacity', '0'])).toContain('needs a capacity tier');
  });
});

describe('workers and clients', () => {
  it('leaves one core to the rest when workers are automatic', () => {
    expect(load(['--workers', 'auto']).settings.workers).toBe(7);
    expect(load(['--workers', 'auto'], { cpuCount: 1 }).settings.workers).toBe(1);
  });

  it('lowers default maxclients to the open files, refuses explicit ones', () => {
    const { settings, warnings } = load([], { openFilesMax: 1024 });
    expect(settings.maxclients).toBe(960);
    expect(warnings).toEqual(['maxclients lowered to 960: this process may open 1024 files.']);
    expect(problem(['--maxclients', '1000'], { openFilesMax: 1024 })).toContain('allows 960 clients');
  });
});

describe('protected mode', () => {
  it('refuses other machines without a password', () => {
    const words = '--bind 0.0.0.0: protected mode does not serve other machines without a password';
    expect(problem(['--bind', '0.0.0.0'])).toContain(words);
    expect(problem(['--bind', '0.0.0.0', '--port', '0'])).toContain(words);
    expect(problem(['--bind', '0.0.0.0', '--port', '0', '--memcached-port', '0', '--unix', '/tmp/x'])).toBe('');
  });

  it('accepts a password, loopback addresses, or being switched off', () => {
    expect(problem(['--bind', '0.0.0.0', '--requirepass', 'x'])).toBe('');
    expect(problem(['--bind', '127.0.0.2,::1'])).toBe('');
    expect(problem(['--bind', '*', '--no-protected-mode'])).toBe('');
  });

  it('refuses a password with UDP, which has no way to give it', () => {
    const args = ['--memcached-udp-port', '11211', '--requirepass', 'x'];
    expect(problem(args)).toContain('a datagram cannot authenticate');
  });

  it('knows loopback addresses', () => {
    const local = ['127.0.0.1:1', '127.9.9.9:65535', '[::1]:1', '[::ffff:127.0.0.1]:1', '/run/entresol.sock'];
    expect(local.every(isLocalPeer)).toBe(true);
    expect(['0.0.0.0:1', '10.0.0.1:127', '[::]:1', '[fe80::1]:1'].some(isLocalPeer)).toBe(false);
  });
});

describe('listening', () => {
  it('wants something to listen on, and different ports', () => {
    expect(problem(['--port', '0', '--memcached-port', '0'])).toContain('nothing to listen on');
    expect(problem(['--port', '0', '--memcached-port', '0', '--unix', '/tmp/x'])).toBe('');
    expect(problem(['--port', '7000', '--memcached-port', '7000'])).toContain('each protocol needs its own');
  });
});

describe('addresses of the memcached protocols', () => {
  it('may have ports of their own', () => {
    const { settings } = load(['--memcached-bind', '127.0.0.1, [::1]:7,localhost:8,::1']);
    expect(settings.memcachedBind).toEqual(['127.0.0.1', '[::1]:7', '127.0.0.1:8', '::1']);
    expect(memcachedListeners({ ...settings, memcachedUdpPort: 9 })).toEqual([
      { host: '127.0.0.1', port: 11_211, udpPort: 9 },
      { host: '::1', port: 7, udpPort: 7 },
      { host: '127.0.0.1', port: 8, udpPort: 8 },
      { host: '::1', port: 11_211, udpPort: 9 },
    ]);
    expect(memcachedListeners({ ...settings, memcachedPort: 0 })[1]).toEqual({ host: '::1', port: 0, udpPort: 0 });
  });

  it.each(['host:1', '127.0.0.1:0', '127.0.0.1:70000', '127.0.0.1:x'])('refuses %s', (text) => {
    expect(problem(['--memcached-bind', text])).toContain('must be IP addresses');
  });

  it('are protected as others are, and may not have the port of Redis', () => {
    expect(problem(['--memcached-bind', '10.0.0.1:7'])).toContain('--bind 10.0.0.1: protected mode');
    expect(problem(['--memcached-bind', '127.0.0.1:6379'])).toContain('the same as --port');
  });
});
