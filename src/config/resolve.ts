/**
 * Settings that depend on each other or on the machine: automatic values filled in, combinations refused.
 *
 * Invariant: settings that pass are ones the server can start with, as far as can be known without touching the pool or a
 * port. An explicit value is never changed silently; it is accepted or refused with the numbers.
 */
import { isIPv4 } from './address.js';
import type { Machine } from './machine.js';
import { memcachedListeners } from './memcached-listeners.js';
import { DRAM_BYTES_MIN, type SettingKey, type Settings, settingName } from './schema.js';
import { approximateSize } from './size.js';
import type { Origin } from './sources.js';

const MIB = 1024 ** 2;
/** Node.js itself, and each worker's engine and socket buffers: measured resident sizes, rounded up. */
const PROCESS_BYTES = 64 * MIB;
const WORKER_BYTES = 48 * MIB;
/** Descriptors that are not client connections: listeners, epoll, pool files, standard streams. */
const RESERVED_FILES = 64;

export type Origins = Readonly<Record<SettingKey, Origin>>;

export interface Resolution {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Of a peer's address: 'ip:port', '[ip6]:port', or the path of a unix socket. */
export function isLocalPeer(address: string): boolean {
  const colon = address.lastIndexOf(':');
  return address === '' || address.startsWith('/') || isLoopback(address.slice(0, colon).replace(/^\[|\]$/g, ''));
}

function isLoopback(address: string): boolean {
  return isIPv4(address) ? address.startsWith('127.') : address === '::1' || address.startsWith('::ffff:127.');
}

/** Memory the process needs beside its tiers. */
export function processBytes(workerCount: number): number {
  return PROCESS_BYTES + WORKER_BYTES * workerCount;
}

/** Changes `settings` in place: workers, dram, maxclients where they were left to the program; capacity and tier agree. */
export function resolveSettings(
  settings: Settings,
  origins: Origins,
  machine: Machine,
  mayListenNowhere = false,
): Resolution {
  const problems: string[] = [];
  const warnings: string[] = [];
  const isGiven = (key: SettingKey): boolean => origins[key] !== 'default';

  if (settings.workers === 0) settings.workers = Math.max(1, machine.cpuCount - 1);

  resolveTier(settings, isGiven, problems);
  resolveMemory(settings, isGiven, machine, problems);
  checkListening(settings, problems, mayListenNowhere);

  if (
    settings.durability === 'warm' &&
    (settings.capacity === 0 || settings.tier === 'none' || settings.tier === 'numa')
  ) {
    problems.push(
      '--durability warm needs a capacity tier on a medium that survives a reboot: --capacity SIZE with --tier dax or file.',
    );
  }
  const clientsMax = machine.openFilesMax - RESERVED_FILES;
  if (settings.maxclients > clientsMax) {
    if (isGiven('maxclients') || clientsMax < 1) {
      problems.push(
        `--maxclients ${settings.maxclients}: this process may open ${machine.openFilesMax} files, which allows ${Math.max(0, clientsMax)} clients. Raise the limit (ulimit -n) or lower maxclients.`,
      );
    } else {
      warnings.push(`maxclients lowered to ${clientsMax}: this process may open ${machine.openFilesMax} files.`);
      settings.maxclients = clientsMax;
    }
  }
  return { problems, warnings };
}

function resolveTier(settings: Settings, isGiven: (key: SettingKey) => boolean, problems: string[]): void {
  if (settings.tier === 'none') {
    if (isGiven('capacity') && settings.capacity !== 0) {
      problems.push('--tier none: contradicts --capacity above 0. Leave one of them out.');
    }
    settings.capacity = 0;
  } else if (settings.capacity === 0) {
    settings.tier = 'none';
  }
  if (settings.emulate !== 'no' && settings.tier === 'none') {
    problems.push(`--emulate ${settings.emulate}: needs a capacity tier, whose accesses it slows down.`);
  }
  if (settings.tier === 'numa' && settings.numaNode < 0) {
    problems.push('--tier numa: needs the number of the memory node: --numa-node N (numactl --hardware lists them).');
  }
  if (settings.tier !== 'numa' && isGiven('numaNode') && settings.numaNode >= 0) {
    problems.push(`--numa-node ${settings.numaNode}: has a meaning with --tier numa only.`);
  }
}

function resolveMemory(
  settings: Settings,
  isGiven: (key: SettingKey) => boolean,
  machine: Machine,
  problems: string[],
): void {
  const limitBytes = machine.memoryLimitBytes ?? machine.memoryBytes;
  const limitName =
    machine.memoryLimitBytes === undefined ? 'memory of this machine' : 'memory limit of this container';
  const otherBytes = processBytes(settings.workers) + (settings.tier === 'numa' ? settings.capacity : 0);
  const freeBytes = Math.max(0, limitBytes - otherBytes);
  const otherWords = `${approximateSize(otherBytes)} for ${settings.workers} worker(s) and the process${settings.tier === 'numa' ? ' and the NUMA tier' : ''}`;

  if (!isGiven('dram')) {
    const fitting = Math.min(settings.dram, limitBytes / 2, freeBytes);
    settings.dram = Math.floor(fitting / MIB) * MIB;
    if (settings.dram < DRAM_BYTES_MIN) {
      problems.push(
        `the ${limitName} is ${approximateSize(limitBytes)}: too little for ${otherWords}, and the smallest DRAM tier of ${approximateSize(DRAM_BYTES_MIN)}. Raise the limit or use fewer workers.`,
      );
    }
  } else if (settings.dram > freeBytes) {
    problems.push(
      `--dram ${approximateSize(settings.dram)}: does not fit. The ${limitName} is ${approximateSize(limitBytes)}, less ${otherWords} leaves ${approximateSize(freeBytes)}.`,
    );
  }
  const tierBytes = settings.dram + settings.capacity;
  if (settings.maxmemory > tierBytes) {
    problems.push(
      `--maxmemory ${approximateSize(settings.maxmemory)}: above what the tiers hold (${approximateSize(settings.dram)} dram + ${approximateSize(settings.capacity)} capacity = ${approximateSize(tierBytes)}). Raise the tiers or leave maxmemory out.`,
    );
  }
}

function checkListening(settings: Settings, problems: string[], mayListenNowhere: boolean): void {
  const tcpPorts: SettingKey[] = ['port', 'memcachedPort'];
  const isTcpOff = tcpPorts.every((key) => settings[key] === 0);
  if (
    !mayListenNowhere &&
    isTcpOff &&
    settings.memcachedUdpPort === 0 &&
    settings.unix + settings.memcachedUnix === ''
  ) {
    problems.push(
      `nothing to listen on: set ${tcpPorts.map((key) => `--${settingName(key)}`).join(', ')} or --unix PATH.`,
    );
  }
  if (settings.port !== 0 && settings.port === settings.memcachedPort) {
    problems.push(`--memcached-port ${settings.memcachedPort}: the same as --port; each protocol needs its own.`);
  }
  for (const { host, port } of memcachedListeners(settings)) {
    // Both would listen, and the kernel would give connections to either.
    if (port !== 0 && port === settings.port && port !== settings.memcachedPort) {
      problems.push(`--memcached-bind ${host}:${port}: the same as --port; each protocol needs its own.`);
    }
  }
  if (settings.unix !== '' && settings.unix === settings.memcachedUnix) {
    problems.push(`--memcached-unix ${settings.memcachedUnix}: the same as --unix; each protocol needs its own.`);
  }
  if (settings.memcachedUdpPort !== 0 && (settings.requirepass !== '' || settings.memcachedAuthFile !== '')) {
    problems.push(
      `--memcached-udp-port ${settings.memcachedUdpPort}: a datagram cannot authenticate, so with a password nothing would be served. Leave out one of them.`,
    );
  }
  problems.push(...protectionProblems(settings));
}

/** What protected mode refuses in these settings; CONFIG SET asks too. */
export function protectionProblems(settings: Settings): string[] {
  const problems: string[] = [];
  if (!settings.protectedMode) return problems;
  const listening = settings.port === 0 ? [] : [...settings.bind];
  for (const { host, port, udpPort } of memcachedListeners(settings))
    if (port !== 0 || udpPort !== 0) listening.push(host);
  const open = [...new Set(listening)].filter((address) => !isLoopback(address));
  if (open.length > 0 && settings.requirepass === '') {
    problems.push(
      `--bind ${open.join(',')}: protected mode does not serve other machines without a password. Set a password (ENTRESOL_REQUIREPASS or requirepass in the file), or bind 127.0.0.1 only, or, on a network you trust, --protected-mode no.`,
    );
  }
  return problems;
}
