/**
 * `npm run bench -- [names] [--quick | --tiny] [--strict] [--list]`: starts our server and its peers, measures, prints each
 * figure beside the peers' of the same run, judges the bars and writes JSON. Exit code 1 = a run failed; 3 = --strict and a
 * measured bar falls short.
 */
import { cpu } from './e2e/cpu.js';
import { durable } from './e2e/durable.js';
import { emulated } from './e2e/emulated.js';
import { large } from './e2e/large.js';
import { latency } from './e2e/latency.js';
import { long } from './e2e/long.js';
import { memory } from './e2e/memory.js';
import { stalls } from './e2e/stalls.js';
import { throughput } from './e2e/throughput.js';
import { embedded } from './embed/embedded.js';
import { removeTemporaryFolders, stopAll } from './harness/child.js';
import { stopFleets } from './harness/fleet.js';
import { buildLoad } from './harness/load.js';
import { chooseCores } from './harness/machine.js';
import type { Bench, Measurement } from './harness/measurement.js';
import { profiles } from './harness/profile.js';
import { figureLine, writeReport } from './harness/report.js';
import { hitRatio } from './hit-ratio/hit-ratio.js';
import { rebuild } from './store/rebuild.js';
import { workers } from './store/workers.js';
import { types } from './types/types.js';

/** In this order: the first three share their loaded servers. */
const benches: readonly Bench[] = [
  throughput,
  cpu,
  latency,
  large,
  stalls,
  memory,
  embedded,
  workers,
  rebuild,
  types,
  hitRatio,
  emulated,
  durable,
  long,
];

function usage(): string {
  const lines = benches.map((bench) => `  ${bench.name.padEnd(12)} ${bench.about}`);
  return `usage: npm run bench -- [names] [--quick | --tiny] [--strict] [--list]\n${lines.join('\n')}`;
}

function chooseBenches(names: readonly string[]): readonly Bench[] {
  if (names.length === 0) return benches;
  return names.map((name) => {
    const bench = benches.find((candidate) => candidate.name === name);
    if (bench === undefined) throw new Error(`no bench named ${name}\n${usage()}`);
    return bench;
  });
}

async function main(words: readonly string[]): Promise<number> {
  const flags = words.filter((word) => word.startsWith('--'));
  const unknown = flags.find((flag) => !['--quick', '--tiny', '--strict', '--list', '--help'].includes(flag));
  if (unknown !== undefined) throw new Error(`unknown option ${unknown}\n${usage()}`);
  if (flags.includes('--list') || flags.includes('--help')) {
    console.log(usage());
    return 0;
  }
  const chosen = chooseBenches(words.filter((word) => !word.startsWith('--')));
  const profile = profiles[flags.includes('--tiny') ? 'tiny' : flags.includes('--quick') ? 'quick' : 'full'];
  await buildLoad();
  const measurements: Measurement[] = [];
  const failures: string[] = [];
  const context = {
    profile,
    cores: chooseCores(),
    report(measurement: Measurement): void {
      measurements.push(measurement);
      console.log(`  ${figureLine(measurement)}`);
    },
    say: (text: string): void => console.log(`- ${text}`),
  };
  for (const bench of chosen) {
    try {
      if (bench.usesFleet !== true) await stopFleets();
      await bench.run(context);
    } catch (error) {
      failures.push(`${bench.name}: ${(error as Error).message}`);
      console.error(`! ${failures[failures.length - 1]}`);
    }
  }
  await stopAll();
  const allHold = writeReport(
    profile,
    chosen.map((bench) => bench.name),
    measurements,
  );
  for (const failure of failures) console.error(`failed: ${failure.split('\n')[0]}`);
  if (failures.length > 0) return 1;
  return flags.includes('--strict') && !allHold ? 3 : 0;
}

async function cleanUp(): Promise<void> {
  await stopAll();
  removeTemporaryFolders();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void cleanUp().then(() => process.exit(1));
  });
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await cleanUp();
}
