/**
 * The benchmarks run small here, so that they do not rot: the same command, a few thousand requests, no bars. A
 * second redis-server stands in our place, which proves the harness alone.
 */
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { rootFolder } from '../../bench/harness/paths.js';

const run = promisify(execFile);
const needed = ['redis-server', 'redis-benchmark', 'memcached', 'taskset', 'gcc'];
const missing = needed.filter((program) => spawnSync(program, ['--version']).error !== undefined);
const STAND_IN = 'redis-server --port {port} --bind 127.0.0.1 --save --appendonly no';
const TIMEOUT_MS = 180_000;

async function bench(names: readonly string[], environment: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await run('npm', ['run', 'bench', '--', '--tiny', ...names], {
    cwd: rootFolder,
    env: { ...process.env, ...environment },
    maxBuffer: 64 << 20,
  });
  return stdout;
}

describe.skipIf(missing.length > 0)(
  `npm run bench${missing.length > 0 ? ` (missing: ${missing.join(', ')})` : ''}`,
  () => {
    it(
      'compares one Redis with another',
      async () => {
        const output = await bench(['throughput', 'latency'], { ENTRESOL_BENCH_SERVER: STAND_IN });
        expect(output).toMatch(
          /throughput\.get\.p64\.1k \[requests\/s.*entresol [\d,]+ .*redis [\d,]+ .*x[\d.]+ of redis/,
        );
        expect(output).toMatch(/latency\.p999\.1k \[us.*entresol [\d.,]+ .*redis [\d.,]+ /);
      },
      TIMEOUT_MS,
    );
  },
);
