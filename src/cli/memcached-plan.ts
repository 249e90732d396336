/**
 * A Plan -> arguments of our own: what memcached's defaults are, and how its options hang together.
 *
 * Invariant: whatever the plan, the result is a command line that `entresol serve` would take (or refuse with its reasons).
 */
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { formatEndpoint, memcachedMemory, parseEndpoint } from '../config/index.js';
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

  const { hosts, ownPort, endpoints } = listenAddresses(plan.addresses);
  flags.set('bind', hosts.join(','));
  if (endpoints !== '') flags.set('memcached-bind', endpoints);
  // As memcached: it serves whoever reaches it. What it listens on is the user's choice.
  flags.set('protected-mode', 'no');
  const isUnix = flags.has('memcached-unix');
  const [givenTcp, givenUdp] = isUnix ? [0, 0] : givenPorts(plan);
  const tcpPort = givenTcp === 0 ? 0 : (ownPort ?? givenTcp);
  const udpPort = givenUdp === 0 ? 0 : (ownPort ?? givenUdp);

  let temporaryPool: string | null = null;
  if (plan.memoryFile !== null) {
    flags.set('pool', `${plan.memoryFile}.entresol`);
  } else if (!flags.has('pool')) {
    temporaryPool = temporaryPoolPath(isUnix ? resolve(flags.get('memcached-unix')!) : endpoints, tcpPort, udpPort);
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

/** TCP and UDP; what an address of -l carries itself comes before them. */
function givenPorts(plan: Plan): [tcp: number, udp: number] {
  const udp = portNumber(plan.udpPort ?? '0');
  return [portNumber(plan.tcpPort ?? (udp !== 0 ? String(udp) : DEFAULT_PORT)), udp];
}

interface ListenAddresses {
  readonly hosts: readonly string[];
  /** The port that all of them carry. */
  readonly ownPort: number | undefined;
  /** Where they carry several, or some: memcached-bind. */
  readonly endpoints: string;
}

function listenAddresses(addresses: readonly string[]): ListenAddresses {
  if (addresses.length === 0) return { hosts: ['0.0.0.0'], ownPort: undefined, endpoints: '' };
  const list = addresses.map((address) => {
    if (/^(notls|proto\[|tag\[)/.test(address)) {
      throw new OptionError(`-l ${address}: notls, proto[] and tag[] are not supported; -B is for all addresses`);
    }
    const endpoint = parseEndpoint(address);
    if (endpoint === null) throw new OptionError(`-l ${address}: must be IP addresses, with :PORT or without`);
    return endpoint;
  });
  const hosts = list.map(({ host }) => host);
  const [port] = list.map((endpoint) => endpoint.port);
  if (list.some((endpoint) => endpoint.port !== port)) {
    return { hosts, ownPort: undefined, endpoints: list.map(formatEndpoint).join(',') };
  }
  return { hosts, ownPort: port ?? undefined, endpoints: '' };
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
function temporaryPoolPath(place: string, tcpPort: number, udpPort: number): string {
  let name = `${process.pid}`;
  if (place !== '') name = place.replace(/[^\w.-]/g, '_').slice(-100);
  else if (tcpPort > 0) name = `tcp-${tcpPort}`;
  else if (udpPort > 0) name = `udp-${udpPort}`;
  return join(tmpdir(), `entresol-memcached-${process.getuid?.() ?? 0}`, name);
}
