/**
 * The benchmarks run small here, so that they do not rot: the same command, a few thousand requests, no bars. Once
 * with a second redis-server in our place, which proves the harness alone, and once with our server and library as built.
 */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { rootFolder } from '../../bench/harness/paths.js';

const run = promisify(execFile);
const needed = ['redis-server', 'redis-benchmark', 'memcached', 'taskset', 'gcc'];
const missing = needed.filter((program) => spawnSync(program, ['--version']).error !== undefined);
const built = ['dist/server/main.js', 'dist/embed/index.js', 'native/addon/build/Release/entresol.node'];
const isBuilt = built.every((file) => existsSync(join(rootFolder, file)));
const STAND_IN = 'redis-server --port {port} --bind 127.0.0.1 --save --appendonly no';
const TIMEOUT_MS = 600_000;

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

    it.skipIf(!isBuilt)(
      'measures our server and library beside their peers',
      async () => {
        const output = await bench([], {});
        for (const metric of [
          'throughput.fill.p16.1k',
          'cpu.get.p1.1k.resp',
          'cpu.set.p1.1k.memcached',
          'latency.p999.1k',
          'large.mix.512KiB',
          'stalls.beyondSpinner',
          'memory.overhead',
          'embedded.attached.1k',
          'workers.zipf',
          'long.ltrim.max',
          'types.multi.10',
          'types.mean',
          'types.memory.stream',
          'hitRatio.zipf0.9.misses',
          'hitRatio.wonders60.writes',
          'emulated.mix.512KiB.latency',
        ]) {
          expect(output).toContain(`  ${metric} [`);
        }
      },
      TIMEOUT_MS,
    );
  },
);
