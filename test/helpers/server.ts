/**
 * A real server for tests: `bin/entresol.js serve` in a process of its own, on free ports, with a temporary pool.
 *
 * Needs the build (dist/ and the addon). The invariant: stop() leaves no process and no file behind, and says so when the
 * server did not end cleanly. Every server started here is stopped at the end of the test file, whatever happens.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { makePool, removePool } from './pool.js';
import { freePorts } from './ports.js';

const COMMAND = fileURLToPath(new URL('../../bin/entresol.js', import.meta.url));
const READY = /^entresol \S+ is ready/m;
const READY_WITHIN_MS = 20_000;
const STOP_WITHIN_MS = 10_000;

export interface ServerOptions {
  /** Further arguments of `serve`; later ones win. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly workers?: number;
  /** Memory sizes as on the command line. Default 64mb DRAM and no capacity tier. */
  readonly dram?: string;
  readonly capacity?: string;
  /** A pool that outlives the server; default: a temporary one, removed by stop(). */
  readonly pool?: string;
  /** Default: free ports. 0 = off. */
  readonly redisPort?: number;
  readonly memcachedPort?: number;
}

export interface TestServer {
  readonly redisPort: number;
  readonly memcachedPort: number;
  readonly pid: number;
  readonly pool: string;
  /** All that the server has printed so far, both streams. */
  output(): string;
  /** Settles with exit code or signal name when the process has ended. */
  readonly ended: Promise<number | string>;
  /** SIGTERM, waits; throws when it does not end with code 0 in time (it is killed then). Idempotent. */
  stop(): Promise<void>;
  /** SIGKILL, waits. */
  kill(): Promise<void>;
}

const running = new Set<TestServer>();

afterAll(async () => {
  await Promise.all([...running].map((server) => server.kill()));
});

/** Starts the command; settles when it has printed that it is ready. */
export async function startTestServer(options: ServerOptions = {}): Promise<TestServer> {
  const [freeRedis, freeMemcached] = await freePorts(2);
  const redisPort = options.redisPort ?? freeRedis;
  const memcachedPort = options.memcachedPort ?? freeMemcached;
  const pool = options.pool ?? (await makePool());
  const child = spawn(
    process.execPath,
    [
      COMMAND,
      'serve',
      `--port=${redisPort}`,
      `--memcached-port=${memcachedPort}`,
      `--pool=${pool}`,
      `--dram=${options.dram ?? '64mb'}`,
      `--capacity=${options.capacity ?? '0'}`,
      `--workers=${options.workers ?? 1}`,
      ...(options.args ?? []),
    ],
    { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );

  let printed = '';
  const ended = new Promise<number | string>((resolve) => {
    child.on('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  const isReady = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => fail(`was not ready within ${READY_WITHIN_MS} ms`), READY_WITHIN_MS);
    const fail = (reason: string): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new Error(`the server ${reason}; it printed:\n${printed}`));
    };
    const collect = (text: string): void => {
      printed += text;
      if (!READY.test(printed)) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout.setEncoding('utf8').on('data', collect);
    child.stderr.setEncoding('utf8').on('data', collect);
    child.on('error', (error) => fail(error.message));
    void ended.then((how) => fail(`ended with ${how}`));
  });
  try {
    await isReady;
  } catch (error) {
    await ended;
    if (options.pool === undefined) await removePool(pool);
    throw error;
  }

  const server: TestServer = {
    redisPort,
    memcachedPort,
    pid: child.pid!,
    pool,
    output: () => printed,
    ended,
    stop: async () => {
      const how = await end(child, ended, 'SIGTERM');
      await cleanUp();
      if (how !== 0) throw new Error(`the server ended with ${how}; it printed:\n${printed}`);
    },
    kill: async () => {
      await end(child, ended, 'SIGKILL');
      await cleanUp();
    },
  };
  const cleanUp = async (): Promise<void> => {
    if (running.delete(server) && options.pool === undefined) await removePool(pool);
  };
  running.add(server);
  return server;
}

async function end(
  child: ChildProcess,
  ended: Promise<number | string>,
  signal: NodeJS.Signals,
): Promise<number | string> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  const how = await ended;
  clearTimeout(timer);
  return how;
}
