/**
 * entresol memcached: a server started with memcached's command line.
 *
 * Translates, then runs what `entresol serve` runs. Owns what only memcached's options ask for: the background process, the
 * pid file, the change of user, the pool that lasts as long as the process. Invariant: a temporary pool is emptied before
 * the start, whatever a killed predecessor has left, and removed after the stop.
 */
import { spawn } from 'node:child_process';
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  ConfigError,
  type Loaded,
  loadSettings,
  memcachedListeners,
  programVersion,
  readMachine,
} from '../config/index.js';
import { EXIT_FAILURE, EXIT_USAGE } from './exit.js';
import { freePort } from './free-port.js';
import { parseMemcachedArguments } from './memcached-arguments.js';
import { memcachedHelp } from './memcached-help.js';
import { OptionError, type Plan } from './memcached-option.js';
import { type ServerPlan, serverPlan } from './memcached-plan.js';
import { announce, runServer } from './serve.js';

/** The release whose options these are. */
const MEMCACHED_VERSION = '1.6.18';
/** Where a program that starts the server may ask for the ports to be written, as in memcached. */
const PORTS_FILE = process.env.MEMCACHED_PORT_FILENAME;

export async function memcached(args: readonly string[]): Promise<number> {
  if (args.includes('-h') || args.includes('--help')) {
    console.log(memcachedHelp());
    return 0;
  }
  if (args.includes('-V') || args.includes('--version')) {
    console.log(`memcached ${MEMCACHED_VERSION} (entresol ${programVersion()})`);
    return 0;
  }
  if (args.includes('-i') || args.includes('--license')) {
    console.log('Entresol: Apache License 2.0. It contains no code of memcached.');
    return 0;
  }
  try {
    const plan = parseMemcachedArguments(args);
    if (plan.isDaemon && process.env[IN_BACKGROUND] === undefined) return await startInBackground(args);
    if (plan.user !== null) becomeUser(plan.user);
    return await run(plan);
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [(error as Error).message];
    if (!(error instanceof ConfigError || error instanceof OptionError)) throw error;
    for (const problem of problems) console.error(`entresol memcached: ${problem}`);
    return EXIT_USAGE;
  }
}

async function run(plan: Plan): Promise<number> {
  const server = serverPlan(plan, process.env, readMachine().cpuCount);
  const loaded = await load(server);
  for (const warning of loaded.warnings) console.error(`entresol memcached: warning: ${warning}`);
  if (server.temporaryPool !== null) await emptyTemporaryPool(server.temporaryPool);
  try {
    return await runServer(loaded, (running, settings) => {
      if (plan.pidFile !== null) writeFileSync(plan.pidFile, `${process.pid}\n`);
      if (PORTS_FILE !== undefined) writePorts(PORTS_FILE, loaded);
      if (plan.verbosity > 0) announce(running, settings);
      // Whoever started this in the background waits for it.
      process.send?.('ready');
      process.disconnect?.();
    });
  } finally {
    if (plan.pidFile !== null) rmSync(plan.pidFile, { force: true });
    if (server.temporaryPool !== null) await emptyTemporaryPool(server.temporaryPool);
  }
}

async function load(server: ServerPlan): Promise<Loaded> {
  const tcpPort = server.tcpPort === -1 ? await freePort('tcp') : server.tcpPort;
  const udpPort = server.udpPort === -1 ? await freePort('udp') : server.udpPort;
  const args = [...server.args, `--memcached-port=${tcpPort}`, `--memcached-udp-port=${udpPort}`];
  // memcached runs with -p 0, too.
  return loadSettings({ args, env: process.env, mayListenNowhere: true });
}

/** The directory is ours alone: others must not be able to put something in its place. */
async function emptyTemporaryPool(pool: string): Promise<void> {
  const parent = dirname(pool);
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(parent);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0) {
    throw new OptionError(`${parent} must belong to this user alone: remove it, or set TMPDIR.`);
  }
  const { removeStore } = await import('../store/remove.js');
  removeStore(pool);
}

function writePorts(path: string, { settings }: Loaded): void {
  const lines: string[] = [];
  for (const { host, port, udpPort } of memcachedListeners(settings)) {
    const family = host.includes(':') ? 'INET6' : 'INET';
    if (port !== 0) lines.push(`TCP ${family}: ${port}\n`);
    if (udpPort !== 0) lines.push(`UDP ${family}: ${udpPort}\n`);
  }
  // Whole or not at all.
  writeFileSync(`${path}.lck`, lines.join(''));
  renameSync(`${path}.lck`, path);
}

/** Drops root's rights for good. */
function becomeUser(name: string): void {
  if (process.getuid?.() !== 0) return;
  const [, , uid, gid] = passwordEntry(name);
  if (uid === undefined) throw new OptionError(`can't find the user ${name} to switch to`);
  if (Number(uid) === 0) return;
  process.setgroups!([Number(gid)]);
  process.setgid!(Number(gid));
  process.setuid!(Number(uid));
}

/** Fields of /etc/passwd; none for an unknown user. */
function passwordEntry(name: string): string[] {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  return line?.split(':') ?? [];
}

// ---- in the background

const IN_BACKGROUND = 'ENTRESOL_MEMCACHED_BACKGROUND';

/** Starts the same command line in a process of its own, and waits until it serves. */
function startInBackground(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [process.argv[1], 'memcached', ...args], {
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, [IN_BACKGROUND]: '1' },
  });
  return new Promise((resolve) => {
    child.once('message', () => {
      child.unref();
      resolve(0);
    });
    child.once('exit', (exitCode) => resolve(exitCode ?? EXIT_FAILURE));
  });
}
