/**
 * A Plan -> arguments of our own: what memcached's defaults are, and how its options hang together.
 *
 * Invariant: whatever the plan, the result is a command line that `entresol serve` would take (or refuse with its reasons).
 */
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { memcachedMemory } from '../config/index.js';
import { OptionError, type Plan } from './memcached-option.js';

const MIB = 1024 ** 2;
const DEFAULT_PORT = '11211';
const DEFAULT_CONNECTIONS = '1024';
/** memcached starts four threads; more than the machine has cores would only take turns. */
const WORKERS_MAX = 4;
const LOG_LEVELS = ['warning', 'notice', 'verbose', 'debug'];

export interface ServerPlan {
  readonly args: readonly string[];
  /** A pool that is emptied before the start and removed after the stop; null = one that is kept. */
  readonly temporaryPool: string | null;
  /** -1 = any free port. */
  readonly tcpPort: number;
  readonly udpPort: number;
}

/** `environment`: MEMCACHED_SASL_PWDB. Throws OptionError. */
export function serverPlan(
  plan: Plan,
  environment: Readonly<Record<string, string | undefined>>,
  cpuCount: number,
): ServerPlan {
  const flags = new Map(plan.flags);
  checkAuthentication(plan, flags, environment);
  // memcached's own limit: a few items must fit.
  if (plan.itemSizeMax > (plan.memoryMib * MIB) / 2) {
    throw new OptionError('Cannot set item size limit higher than 1/2 of memory max.');
  }
  flags.set('item-size-max', String(plan.itemSizeMax));
  flags.set('loglevel', LOG_LEVELS[Math.min(plan.verbosity, LOG_LEVELS.length - 1)]);
  setDefault(flags, 'maxclients', DEFAULT_CONNECTIONS);
  setDefault(flags, 'workers', String(Math.max(1, Math.min(WORKERS_MAX, cpuCount - 1))));
  setDefault(flags, 'capacity', '0');
  const { usedMib, dramMib } = memcachedMemory(plan.memoryMib, Number(flags.get('workers')));
  // With a capacity tier -m is the size of the DRAM tier, and both are filled.
  if (flags.get('capacity') === '0') flags.set('maxmemory', `${usedMib}MiB`);
  flags.set('dram', `${dramMib}MiB`);
  flags.set('port', '0');

  const { host, port } = listenAddresses(plan.addresses);
  flags.set('bind', host);
  // As memcached: it serves whoever reaches it. What it listens on is the user's choice.
  flags.set('protected-mode', 'no');
  const isUnix = flags.has('memcached-unix');
  const udpPort = isUnix ? 0 : portNumber(plan.udpPort ?? '0');
  const tcpPort = isUnix ? 0 : portNumber(plan.tcpPort ?? port ?? (udpPort !== 0 ? String(udpPort) : DEFAULT_PORT));

  let temporaryPool: string | null = null;
  if (plan.memoryFile !== null) {
    flags.set('pool', `${plan.memoryFile}.entresol`);
  } else if (!flags.has('pool')) {
    temporaryPool = temporaryPoolPath(flags.get('memcached-unix'), tcpPort, udpPort);
    flags.set('pool', temporaryPool);
  }
  return {
    args: [...flags].map(([name, value]) => `--${name}=${value}`),
    temporaryPool,
    tcpPort,
    udpPort,
  };
}

function setDefault(flags: Map<string, string>, name: string, value: string): void {
  if (!flags.has(name)) flags.set(name, value);
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^-?\d+$/.test(text) || port < -1 || port > 65_535) throw new OptionError(`'${text}' is no port`);
  return port;
}

/** Addresses, and the port that some of them carry; several ports cannot be. */
function listenAddresses(addresses: readonly string[]): { host: string; port: string | undefined } {
  if (addresses.length === 0) return { host: '0.0.0.0', port: undefined };
  const hosts: string[] = [];
  const ports = new Set<string>();
  for (const address of addresses) {
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(address) ?? [];
    hosts.push(bracketed ?? plain ?? address);
    if (port !== undefined) ports.add(port);
  }
  if (ports.size > 1) throw new OptionError('-l with different ports is not supported: all addresses share one port');
  return { host: hosts.join(','), port: [...ports][0] };
}

function checkAuthentication(
  plan: Plan,
  flags: Map<string, string>,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  const protocol = flags.get('memcached-protocol');
  if (plan.hasSasl) {
    if (flags.has('memcached-auth-file')) throw new OptionError('ERROR: You cannot use both -S and -Y.');
    if (protocol !== undefined && protocol !== 'binary') {
      throw new OptionError('ERROR: You cannot allow the ASCII protocol while using SASL.');
    }
    const file = environment.MEMCACHED_SASL_PWDB;
    if (file === undefined || file === '') {
      throw new OptionError('-S needs users: MEMCACHED_SASL_PWDB=FILE, a file of user:password lines.');
    }
    flags.set('memcached-auth-file', file);
    flags.set('memcached-protocol', 'binary');
  } else if (flags.has('memcached-auth-file')) {
    if (protocol === 'binary') {
      throw new OptionError('ERROR: You cannot allow the BINARY protocol while using ascii authentication tokens.');
    }
    flags.set('memcached-protocol', 'ascii');
  }
}

/**
 * One place for each thing that can listen once only: what a killed server has left there, its successor takes over and
 * empties, so that nothing piles up.
 */
function temporaryPoolPath(unix: string | undefined, tcpPort: number, udpPort: number): string {
  let name = `${process.pid}`;
  if (unix !== undefined)
    name = resolve(unix)
      .replace(/[^\w.-]/g, '_')
      .slice(-100);
  else if (tcpPort > 0) name = `tcp-${tcpPort}`;
  else if (udpPort > 0) name = `udp-${udpPort}`;
  return join(tmpdir(), `entresol-memcached-${process.getuid?.() ?? 0}`, name);
}
