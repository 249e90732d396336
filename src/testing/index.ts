/**
 * A real server for tests: `import { startServer } from 'entresol/testing'`.
 *
 *     const server = await startServer();
 *     const client = createClient({ url: server.url });        // any Redis client
 *     await server.stop();
 *
 * Each server is a process of its own with an empty store and free ports on 127.0.0.1. It ends with the process that
 * started it, however that ends, and leaves nothing behind. Invariant: this module loads nothing of the server into the tests.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { ENGINE_FLAGS } from '../server/engine-flags.js';
import type { Place, Report } from './report.js';

export interface TestServerOptions {
  /**
   * Options of `entresol serve`, as on its command line: ['--requirepass=secret', '--dram=256mb']. The default is 32 MiB of DRAM,
   * no capacity tier and no eviction. Where to listen and where the data lies is not for choice.
   */
  readonly args?: readonly string[];
}

export interface TestServer {
  readonly host: string;
  /** Port of the Redis protocol. */
  readonly port: number;
  /** Port of the memcached protocol. Both see the same data. */
  readonly memcachedPort: number;
  /** redis://127.0.0.1:PORT */
  readonly url: string;
  /** Process id of the server. */
  readonly pid: number;
  /** Ends the server and removes its data. Idempotent. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const HOST = '127.0.0.1';
const START_MAX_MS = 30_000;
const STOP_MAX_MS = 5_000;

/** As far from dist/bundle as from dist/cjs. */
const CHILD = new URL('../cjs/start-child.js', import.meta.url);

function spawnChild(args: readonly string[]): ChildProcess {
  // What a test runner has set for its own processes must not reach this one.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const words = [...ENGINE_FLAGS, fileURLToPath(CHILD), ...args];
  const child = spawn(process.execPath, words, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  // Neither the process nor its pipes keep the tests' process from ending.
  child.unref();
  for (const pipe of [child.stdin, child.stdout]) (pipe as unknown as { unref(): void }).unref();
  return child;
}

/** The child's first line. Rejects when it ends or stays silent. */
function firstReport(child: ChildProcess): Promise<Report> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`entresol/testing: the server was not ready within ${START_MAX_MS / 1000} s`));
    }, START_MAX_MS);
    const end = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    child.once('error', end);
    child.once('exit', (code, signal) =>
      end(new Error(`entresol/testing: the server ended at once (${signal ?? code})`)),
    );
    let said = '';
    (child.stdout as Readable).setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (!said.includes('\n')) return;
      clearTimeout(timer);
      resolve(JSON.parse(said) as Report);
    });
  });
}

/** Starts a server. Rejects with the reason when it cannot start (an option that does not exist, no memory). */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const child = spawnChild(options.args ?? []);
  const hasEnded = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const report = await firstReport(child);
  if ('failed' in report) throw new Error(`entresol/testing: ${report.failed}`);
  const place = report.ready;
  // When it was killed, nobody else cleans up.
  child.once('exit', () => removeData(place));

  const stop = async (): Promise<void> => {
    child.ref();
    child.stdin?.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
    await hasEnded;
    clearTimeout(timer);
  };
  return {
    host: HOST,
    port: place.port,
    memcachedPort: place.memcachedPort,
    url: `redis://${HOST}:${place.port}`,
    pid: child.pid as number,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function removeData({ pool, dramPath }: Place): void {
  rmSync(dramPath, { force: true });
  rmSync(pool, { recursive: true, force: true });
}
