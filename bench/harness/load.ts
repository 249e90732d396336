/**
 * The load generators as functions: our entload (bench/load, built here with gcc) and redis-benchmark. Both run pinned to
 * the load core, one at a time.
 */
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pinned, runToEnd } from './child.js';
import { buildFolder, loadSourceFolder } from './paths.js';
import { cpuNanoseconds } from './proc.js';
import type { Server } from './servers.js';

export type Protocol = 'resp' | 'memcached';

export interface LoadOptions {
  readonly mode: 'closed' | 'open' | 'fill' | 'sweep';
  readonly protocol: Protocol;
  readonly keys: number;
  readonly connections?: number;
  readonly pipeline?: number;
  readonly valueMin?: number;
  readonly valueMax?: number;
  readonly setFraction?: number;
  readonly zipf?: number;
  readonly requests?: number;
  readonly seconds?: number;
  /** Requests per second (mode open). */
  readonly rate?: number;
  readonly seed?: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly unanswered: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly gets: number;
  readonly hits: number;
  readonly sets: number;
  readonly errors: number;
  readonly mismatches: number;
  readonly firstError: string;
  readonly keyBytes: number;
  readonly valueBytesRead: number;
  readonly valueBytesWritten: number;
  readonly latencyUs: {
    readonly mean: number;
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly p999: number;
    readonly p9999: number;
    readonly max: number;
  };
  readonly maxLoopGapUs: number;
  readonly serverCpuNs: number;
  readonly serverUserNs: number;
  readonly serverKernelNs: number;
  readonly loadCpuSeconds: number;
}

const program = join(buildFolder, 'entload');

/** Compiles entload unless it is newer than its sources. */
export async function buildLoad(): Promise<void> {
  mkdirSync(buildFolder, { recursive: true });
  const files = readdirSync(loadSourceFolder).map((name) => join(loadSourceFolder, name));
  const newest = Math.max(...files.map((file) => statSync(file).mtimeMs));
  if ((statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0) > newest) return;
  const sources = files.filter((file) => file.endsWith('.c'));
  await runToEnd('gcc', ['gcc', '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-o', program, ...sources, '-lm']);
}

function toArguments(options: Readonly<Record<string, string | number | undefined>>): string[] {
  const list: string[] = [];
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined)
      list.push(`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, String(value));
  }
  return list;
}

/**
 * Runs one load. Throws on any error reply, wrong-sized value, missing answer or, unless `mayMiss` (a full store), missing
 * key: a fast server that answers wrongly has no figure.
 */
export async function runLoad(
  core: number,
  server: Server,
  options: LoadOptions,
  mayMiss = false,
): Promise<LoadResult> {
  const port = options.protocol === 'resp' ? server.respPort : server.memcachedPort;
  if (port === 0) throw new Error(`${server.name} does not speak ${options.protocol} here`);
  const command = [program, ...toArguments({ ...options, port, cpuPid: server.pid })];
  let output: string;
  try {
    output = await runToEnd('entload', pinned(core, command));
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${server.name} said:\n${server.process.output.slice(-2000)}`);
  }
  const result = JSON.parse(output) as LoadResult;
  const misses = mayMiss ? 0 : result.gets - result.hits - result.errors;
  if (result.errors + result.mismatches + result.unanswered + misses > 0) {
    throw new Error(
      `${server.name} (${options.protocol} ${options.mode}): ${result.errors} errors (${result.firstError}), ` +
        `${result.mismatches} values of the wrong length, ${misses} keys missing, ` +
        `${result.unanswered} requests without an answer`,
    );
  }
  return result;
}

/** What an ideal server on `core` would show for open-loop load at this rate: the core's own stops. */
export async function runSpinner(core: number, rate: number, pipeline: number, seconds: number): Promise<LoadResult> {
  const command = [program, ...toArguments({ mode: 'spin', rate, pipeline, seconds })];
  return JSON.parse(await runToEnd('entload', pinned(core, command))) as LoadResult;
}

export interface RedisBenchmarkResult {
  readonly perSecond: number;
  readonly serverCpuNs: number;
  readonly seconds: number;
}

export async function runRedisBenchmark(
  core: number,
  server: Server,
  test: 'get' | 'set',
  options: { readonly keys: number; readonly pipeline: number; readonly requests: number; readonly valueBytes: number },
): Promise<RedisBenchmarkResult> {
  const cpuBefore = cpuNanoseconds(server.pid);
  const output = await runToEnd(
    'redis-benchmark',
    pinned(core, [
      ...['redis-benchmark', '-h', '127.0.0.1', '-p', String(server.respPort), '-t', test, '--csv', '-c', '50'],
      ...['-P', String(options.pipeline), '-n', String(options.requests), '-d', String(options.valueBytes)],
      ...['-r', String(options.keys)],
    ]),
  );
  const serverCpuNs = cpuNanoseconds(server.pid) - cpuBefore;
  const match = new RegExp(`^"${test.toUpperCase()}","([0-9.]+)"`, 'm').exec(output);
  if (match === null) throw new Error(`redis-benchmark printed no figure for ${test}:\n${output.slice(0, 2000)}`);
  const perSecond = Number(match[1]);
  return { perSecond, serverCpuNs, seconds: options.requests / perSecond };
}
