/**
 * Large values: server CPU per byte of value moved, at 10 KiB and 512 KiB, reads, writes, and SET:GET 1:2 (the mix of the
 * report on Redis over persistent memory that the design starts from).
 */
import { runLoad } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { alternate, pick } from '../harness/pairs.js';
import { startOurs, startRedis } from '../harness/servers.js';
import { median } from '../harness/statistics.js';

const SIZES = [
  { label: '10KiB', bytes: 10 * 1024, connections: 50 },
  { label: '512KiB', bytes: 512 * 1024, connections: 8 },
];
const TESTS = [
  { label: 'set', setFraction: 1 },
  { label: 'get', setFraction: 0 },
  { label: 'mix', setFraction: 1 / 3 },
];

async function run(context: BenchContext): Promise<void> {
  const { profile, cores } = context;
  for (const size of SIZES) {
    const keys = Math.max(size.connections, Math.floor(profile.largeDatasetBytes / size.bytes));
    const store = { dramBytes: 4 * profile.largeDatasetBytes + 256 * 2 ** 20 };
    const servers = [await startOurs(cores.server, store), await startRedis(cores.server, store)];
    const base = {
      protocol: 'resp',
      keys,
      valueMin: size.bytes,
      valueMax: size.bytes,
      connections: size.connections,
    } as const;
    for (const server of servers) await runLoad(cores.load, server, { ...base, mode: 'fill' });
    for (const test of TESTS) {
      context.say(`large: ${test.label} of ${size.label}`);
      const results = await alternate(
        profile.pairs,
        servers.map((server) => ({
          name: server.name,
          server,
          run: () =>
            runLoad(cores.load, server, {
              ...base,
              mode: 'closed',
              setFraction: test.setFraction,
              seconds: profile.runSeconds,
            }),
        })),
      );
      const samples = pick(results, (r) => r.serverCpuNs / (r.valueBytesRead + r.valueBytesWritten));
      const rates = Object.entries(results).map(
        ([name, list]) => `${name} ${Math.round(median(list.map((r) => r.perSecond))).toLocaleString('en')}/s`,
      );
      context.report(measured(`large.${test.label}.${size.label}`, 'ns/byte', 'less', samples, rates.join(', ')));
    }
    for (const server of servers) await server.stop();
  }
}

export const large: Bench = { name: 'large', about: 'server CPU per byte at 10 KiB and 512 KiB against Redis', run };
