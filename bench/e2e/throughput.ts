/**
 * Requests per second through a pipeline, one worker, 100-byte values, against Redis. Measured with redis-benchmark (the
 * bars) and with entload, which costs less per request and so shows where redis-benchmark was the limit: `busy` in the note
 * is the share of the run in which the server's core worked.
 */
import { fleetOf, VALUE_BYTES } from '../harness/fleet.js';
import { type LoadResult, type RedisBenchmarkResult, runLoad, runRedisBenchmark } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { alternate, pick } from '../harness/pairs.js';
import { countLabel } from '../harness/profile.js';
import type { Server } from '../harness/servers.js';
import { median } from '../harness/statistics.js';

const PIPELINES = [16, 64];

interface Rate {
  readonly perSecond: number;
  readonly busy: number;
}

function rateOf(result: LoadResult | RedisBenchmarkResult): Rate {
  return { perSecond: result.perSecond, busy: result.serverCpuNs / 1e9 / result.seconds };
}

async function compare(
  context: BenchContext,
  metric: string,
  servers: readonly Server[],
  run: (server: Server) => Promise<LoadResult | RedisBenchmarkResult>,
): Promise<void> {
  const results = await alternate(
    context.profile.throughputPairs,
    servers.map((server) => ({ name: server.name, server, run: async () => rateOf(await run(server)) })),
  );
  const busy = Object.entries(results).map(
    ([name, list]) => `${name} ${Math.round(100 * median(list.map((r) => r.busy)))} %`,
  );
  const samples = pick(results, (rate) => rate.perSecond);
  context.report(measured(metric, 'requests/s', 'more', samples, `busy: ${busy.join(', ')}`));
}

async function run(context: BenchContext): Promise<void> {
  const { profile, cores } = context;
  for (const keyCount of profile.keyCounts) {
    const label = countLabel(keyCount);
    const fleet = await fleetOf(context, keyCount);
    const fills = { entresol: [fleet.fills.entresol.perSecond], redis: [fleet.fills.redis.perSecond] };
    context.report(
      measured(`throughput.fill.p16.${label}`, 'requests/s', 'more', fills, 'loading an empty store, one run'),
    );
    const servers = [fleet.entresol, fleet.redis];
    for (const pipeline of PIPELINES) {
      for (const test of ['set', 'get'] as const) {
        context.say(`throughput: ${test}, pipeline ${pipeline}, ${label} keys`);
        const requests = profile.redisBenchmarkRequests * (pipeline > 16 ? 2 : 1);
        await compare(context, `throughput.${test}.p${pipeline}.${label}`, servers, (server) =>
          runRedisBenchmark(cores.load, server, test, { keys: keyCount, pipeline, requests, valueBytes: VALUE_BYTES }),
        );
        await compare(context, `throughput.${test}.p${pipeline}.${label}.entload`, servers, (server) =>
          runLoad(cores.load, server, {
            mode: 'closed',
            protocol: 'resp',
            keys: keyCount,
            pipeline,
            setFraction: test === 'set' ? 1 : 0,
            seconds: profile.runSeconds,
          }),
        );
      }
    }
    for (const server of servers) server.park();
  }
}

export const throughput: Bench = {
  name: 'throughput',
  about: 'requests/s at pipeline 16 and 64 against Redis',
  usesFleet: true,
  run,
};
