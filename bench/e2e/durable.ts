/**
 * Writes that survive a reboot: durability `durable` against Redis's append-only file of the same policy, in one run. SET of 100-byte
 * values by 50 connections (redis-benchmark), one worker, both on the same file system.
 */
import { VALUE_BYTES } from '../harness/fleet.js';
import { runRedisBenchmark } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { alternate, pick } from '../harness/pairs.js';
import { startOurs, startRedis } from '../harness/servers.js';

const KEYS = 100_000;
const DRAM_BYTES = 256 * 2 ** 20;
const PIPELINES = [1, 16];
/** An fdatasync for each group: fewer requests make a run of the same length. */
const ALWAYS_DIVISOR = 20;

async function run(context: BenchContext): Promise<void> {
  const { profile, cores, say, report } = context;
  for (const appendfsync of ['everysec', 'always'] as const) {
    const size = { dramBytes: DRAM_BYTES, appendfsync };
    const servers = [await startOurs(cores.server, size), await startRedis(cores.server, size)];
    for (const pipeline of PIPELINES) {
      say(`durable: ${appendfsync}, pipeline ${pipeline}`);
      const divisor = (appendfsync === 'always' ? ALWAYS_DIVISOR : 1) * (pipeline === 1 ? 4 : 1);
      const requests = Math.max(1000, Math.floor(profile.redisBenchmarkRequests / divisor));
      const options = { keys: KEYS, pipeline, requests, valueBytes: VALUE_BYTES };
      const results = await alternate(
        profile.throughputPairs,
        servers.map((server) => ({
          name: server.name,
          server,
          run: () => runRedisBenchmark(cores.load, server, 'set', options),
        })),
      );
      const rates = pick(results, (result) => result.perSecond);
      report(measured(`durable.${appendfsync}.p${pipeline}`, 'requests/s', 'more', rates));
    }
    for (const server of servers) await server.stop();
  }
}

export const durable: Bench = {
  name: 'durable',
  about: "SET with durability durable against Redis's appendonly, appendfsync everysec and always",
  run,
};
