/**
 * Ten million requests: does the JavaScript heap stay flat, and how long does the server ever stop?
 *
 * Heap: the server runs with --trace-gc; the heap size after each collection, first fifth of the run against last, by
 * isolate (no collections at all = flat), and private memory of the process, after warm-up against the end.
 * Stops: open loop at half capacity, bursts of 8 on 50 connections; the 99.99th percentile of latency against what a
 * spinner that serves nothing sees on the same core at the same rate. Redis runs the same load, for comparison.
 */
import { type LoadResult, runLoad, runSpinner } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { processMemory } from '../harness/proc.js';
import { type Server, startOurs, startRedis } from '../harness/servers.js';
import { median } from '../harness/statistics.js';

const BURST = 8;
const KEYS = 100_000;
const STORE_BYTES = 256 * 2 ** 20;

interface Collection {
  readonly isolate: string;
  readonly heapMiB: number;
}

/** `[pid:isolate]  12 ms: Scavenge 4.0 (5.8) -> 3.5 (6.8) MB, ...` */
export function parseCollections(output: string): Collection[] {
  const pattern = /^\[\d+:(0x[0-9a-f]+)\]\s+\d+ ms: .*? -> ([0-9.]+) \([0-9.]+\) MB/gm;
  return [...output.matchAll(pattern)].map((match) => ({ isolate: match[1], heapMiB: Number(match[2]) }));
}

/** Largest growth of any isolate's heap between the first and the last fifth of its collections. */
export function heapGrowthMiB(collections: readonly Collection[]): number {
  const byIsolate = new Map<string, number[]>();
  for (const { isolate, heapMiB } of collections) byIsolate.set(isolate, [...(byIsolate.get(isolate) ?? []), heapMiB]);
  let growth = 0;
  for (const heaps of byIsolate.values()) {
    const fifth = Math.max(1, Math.floor(heaps.length / 5));
    growth = Math.max(growth, median(heaps.slice(-fifth)) - median(heaps.slice(0, fifth)));
  }
  return growth;
}

interface Stops {
  readonly load: LoadResult;
  readonly spinner: LoadResult;
  readonly grownBytes: number;
  readonly output: string;
}

async function measure(context: BenchContext, server: Server): Promise<Stops> {
  const { profile, cores } = context;
  const base = { protocol: 'resp', keys: KEYS, setFraction: 0.1, pipeline: BURST } as const;
  await runLoad(cores.load, server, { ...base, mode: 'fill' });
  const capacity = await runLoad(cores.load, server, { ...base, mode: 'closed', seconds: profile.runSeconds });
  const rate = Math.round(capacity.perSecond / 2);
  const warmRequests = Math.round(profile.stallRequests / 10);
  await runLoad(cores.load, server, { ...base, mode: 'open', rate, requests: warmRequests });
  context.say(`stalls: ${profile.stallRequests} requests at ${rate}/s to ${server.name}`);
  const before = processMemory(server.pid).anonymousBytes;
  const outputBefore = server.process.output.length;
  const load = await runLoad(cores.load, server, { ...base, mode: 'open', rate, requests: profile.stallRequests });
  const grownBytes = processMemory(server.pid).anonymousBytes - before;
  const output = server.process.output.slice(outputBefore);
  server.park();
  const spinner = await runSpinner(cores.server, rate, BURST, Math.min(20, load.seconds));
  server.resume();
  return { load, spinner, grownBytes, output };
}

async function run(context: BenchContext): Promise<void> {
  const beyond: Record<string, number[]> = {};
  const longest: Record<string, number[]> = {};
  const grown: Record<string, number[]> = {};
  const notes: string[] = [];
  for (const start of [startOurs, startRedis]) {
    const server = await start(context.cores.server, { dramBytes: STORE_BYTES, nodeOptions: ['--trace-gc'] });
    const stops = await measure(context, server);
    beyond[server.name] = [(stops.load.latencyUs.p9999 - stops.spinner.latencyUs.p9999) / 1000];
    longest[server.name] = [stops.load.latencyUs.max / 1000];
    grown[server.name] = [stops.grownBytes / 2 ** 20];
    notes.push(`${server.name}: p99.99 ${stops.load.latencyUs.p9999} us, spinner ${stops.spinner.latencyUs.p9999} us`);
    if (server.name === 'entresol') {
      const collections = parseCollections(stops.output);
      const growth = { entresol: [heapGrowthMiB(collections)] };
      context.report(
        measured('stalls.heap', 'MiB grown', 'less', growth, `${collections.length} collections in the run`),
      );
    }
    await server.stop();
  }
  context.report(measured('stalls.beyondSpinner', 'ms at p99.99', 'less', beyond, notes.join('; ')));
  context.report(measured('stalls.longest', 'ms', 'less', longest));
  context.report(
    measured('stalls.privateMemory', 'MiB grown', 'less', grown, 'private memory over the run, after warm-up'),
  );
}

export const stalls: Bench = { name: 'stalls', about: 'flat JavaScript heap and longest stop over 10 M requests', run };
