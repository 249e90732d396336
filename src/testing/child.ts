/**
 * The process of one test server: an empty pool of its own, free ports, until its parent stops it or is gone.
 *
 * What the parent says comes through stdin, a pipe that the kernel closes however the parent ends. Invariant: the pool and
 * its memory are removed before this process ends, unless it is killed itself (then the parent does it).
 */
import { mkdtempSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadSettings, type Settings } from '../config/index.js';
import { saveCompiled } from '../server/compile-cache.js';
import { holdFreePorts } from '../server/free-ports.js';
import { begin, canServeHere } from '../server/serve-here.js';
import type { Report } from './report.js';

const HOST = '127.0.0.1';
const STDOUT = 1;
/** Small, because all of it is reserved at the start; no eviction, because a test would not expect it. */
const DEFAULTS = ['--dram=32mb', '--capacity=0', '--maxmemory-policy=noeviction', '--loglevel=warning'];

/** Not through process.stdout: streams and sockets are loaded when the server serves. */
function report(message: Report): void {
  writeSync(STDOUT, `${JSON.stringify(message)}\n`);
}

async function main(args: readonly string[]): Promise<void> {
  // A Ctrl-C goes to the whole group of processes; the parent decides.
  process.on('SIGINT', () => undefined);

  const pool = mkdtempSync(join(tmpdir(), 'entresol-testing-'));
  let isReady = false;
  try {
    const held = holdFreePorts(HOST, 2);
    const [port, memcachedPort] = held.ports;
    const own = [`--bind=${HOST}`, `--port=${port}`, `--memcached-port=${memcachedPort}`, `--pool=${pool}`];
    const { settings } = loadSettings({ args: [...DEFAULTS, ...args, ...own], env: {} });
    const ready = (dramPath: string): void => {
      held.release();
      isReady = true;
      report({ ready: { port, memcachedPort, pool, dramPath } });
      saveCompiled();
    };
    if (canServeHere(settings)) serveHere(settings, ready);
    else await serveInThreads(settings, ready);
  } catch (error) {
    if (isReady) throw error;
    report({ failed: error instanceof Error ? error.message : String(error) });
  } finally {
    rmSync(pool, { recursive: true, force: true });
  }
}

function serveHere(settings: Settings, ready: (dramPath: string) => void): void {
  const server = begin(settings, new URL('./start-control.js', import.meta.url));
  try {
    ready(server.dramPath);
    server.run();
  } finally {
    rmSync(server.dramPath, { force: true });
  }
}

async function serveInThreads(settings: Settings, ready: (dramPath: string) => void): Promise<void> {
  const { startServer } = await import('../server/main.js');
  const server = await startServer(settings);
  ready(server.dramPath);
  // One that has gone meanwhile is noticed here.
  const parentIsGone = new Promise<void>((resolve) => {
    process.stdin.on('end', resolve).on('error', resolve).resume();
  });
  await Promise.race([parentIsGone, server.done]);
  await server.close();
  rmSync(server.dramPath, { force: true });
}

export function runChild(): void {
  main(process.argv.slice(2)).then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}
