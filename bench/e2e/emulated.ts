/**
 * Two tiers on an emulated device against the same server all in DRAM, at pipeline 1: what is charged for accesses to the capacity tier is
 * fixed by the preset (src/devices/model/presets.ts), everything else is real.
 *
 * Beside them stands the same two-tier server without the device (`uncharged`): the difference to all in DRAM is what two tiers cost by
 * themselves. The capacity tier is a file in shared memory, since a disk's write-back is none of the device's.
 *
 * Keys are uniform over a data set of four times the DRAM tier, so about three reads of four go to the device. Sizes and mixes are those of
 * the reports that the design starts from: 100 bytes (Tair), 10,240 and 102,400 (ACK), 512 KiB and SET:GET 1:2 (Sina).
 */
import { type LoadResult, runLoad } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { alternate, pick } from '../harness/pairs.js';
import { type Server, startOurs } from '../harness/servers.js';

const MIB = 2 ** 20;
const DEVICE = 'optane';
/** Key and metadata of an item, about. */
const ITEM_EXTRA_BYTES = 90;
/** Metadata, participants and reserves of a small store. */
const DRAM_EXTRA_BYTES = 24 * MIB;
const DRAM_PART = 1 / 4;

interface Size {
  readonly label: string;
  readonly bytes: number;
  readonly connections: number;
  readonly tests: readonly Test[];
}

interface Test {
  readonly label: string;
  readonly setFraction: number;
}

const SET: Test = { label: 'set', setFraction: 1 };
const GET: Test = { label: 'get', setFraction: 0 };
const MIX: Test = { label: 'mix', setFraction: 1 / 3 };

const SIZES: readonly Size[] = [
  { label: '100B', bytes: 100, connections: 50, tests: [GET, SET, MIX] },
  { label: '10KB', bytes: 10_240, connections: 50, tests: [GET, SET] },
  { label: '100KB', bytes: 102_400, connections: 8, tests: [GET, SET] },
  { label: '512KiB', bytes: 512 * 1024, connections: 8, tests: [GET, SET, MIX] },
];

interface Side {
  readonly name: string;
  readonly server: Server;
}

async function startSides(core: number, datasetBytes: number): Promise<Side[]> {
  const tiers = {
    dramBytes: DRAM_EXTRA_BYTES + datasetBytes * DRAM_PART,
    capacityBytes: 2 * datasetBytes + 64 * MIB,
  };
  return [
    { name: 'entresol', server: await startOurs(core, { ...tiers, emulate: DEVICE }) },
    { name: 'uncharged', server: await startOurs(core, tiers) },
    { name: 'all-dram', server: await startOurs(core, { dramBytes: 2 * datasetBytes + 64 * MIB }) },
  ];
}

async function run(context: BenchContext): Promise<void> {
  const { profile, cores, report } = context;
  // Servers of their own for each size take the most of a tiny run.
  const sizes = profile.name === 'tiny' ? SIZES.filter(({ tests }) => tests.includes(MIX)) : SIZES;
  for (const size of sizes) {
    const keys = Math.max(size.connections, Math.floor(profile.largeDatasetBytes / (size.bytes + ITEM_EXTRA_BYTES)));
    const sides = await startSides(cores.server, profile.largeDatasetBytes);
    const base = {
      protocol: 'resp',
      keys,
      valueMin: size.bytes,
      valueMax: size.bytes,
      connections: size.connections,
    } as const;
    for (const { server } of sides) await runLoad(cores.load, server, { ...base, mode: 'fill' });
    for (const test of size.tests) {
      context.say(`emulated: ${test.label} of ${size.label}`);
      const seconds = profile.runSeconds;
      const results = await alternate<LoadResult>(
        profile.pairs,
        sides.map(({ name, server }) => ({
          name,
          server,
          run: () => runLoad(cores.load, server, { ...base, mode: 'closed', setFraction: test.setFraction, seconds }),
        })),
      );
      const metric = `emulated.${test.label}.${size.label}`;
      report(
        measured(
          metric,
          'requests/s',
          'more',
          pick(results, ({ perSecond }) => perSecond),
        ),
      );
      const cpu = pick(results, ({ serverCpuNs, requests }) => serverCpuNs / requests);
      report(measured(`${metric}.cpu`, 'ns/request', 'less', cpu));
      const latencies = pick(results, ({ latencyUs }) => latencyUs.mean);
      if (test === MIX) report(measured(`${metric}.latency`, 'us', 'less', latencies, 'mean, closed loop'));
    }
    for (const { server } of sides) await server.stop();
  }
}

export const emulated: Bench = {
  name: 'emulated',
  about: `two tiers on an emulated device (${DEVICE}) against all in DRAM, pipeline 1`,
  run,
};
