/**
 * Data types against Redis: what a core of each server carries in requests of each kind, in batches of 16 over 16 connections, and the bytes
 * that an element of a large key takes.
 *
 * Judged are requests per second of the server's CPU time: the load generator (replay.ts) is not fast enough to fill every server.
 */
import { fileURLToPath } from 'node:url';
import { redisCommand } from '../harness/ask.js';
import { Child, pinned, runToEnd } from '../harness/child.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { alternate } from '../harness/pairs.js';
import { cpuNanoseconds } from '../harness/proc.js';
import { type Server, startOurs, startRedis } from '../harness/servers.js';
import type { ReplayOrder } from './replay.js';
import { type Filling, largeKeys, type TypeTest, typeTests } from './tests.js';

const CONNECTIONS = 16;
const PIPELINE = 16;
const SUBSCRIBE_TIMEOUT_MS = 30_000;

type Load = Pick<ReplayOrder, 'unit' | 'range' | 'units'>;

async function replay(context: BenchContext, server: Server, load: Load): Promise<void> {
  const program = fileURLToPath(new URL('./replay.js', import.meta.url));
  const order: ReplayOrder = { ...load, port: server.respPort, connections: CONNECTIONS, pipeline: PIPELINE };
  await runToEnd('replay', pinned(context.cores.load, [process.execPath, program, JSON.stringify(order)]));
}

async function fill(context: BenchContext, server: Server, filling: Filling, units: number): Promise<void> {
  const { typeElements } = context.profile;
  const times = filling.times === 'elements' ? typeElements : filling.times === 'units' ? units : filling.times;
  await replay(context, server, { unit: [filling.request], range: typeElements, units: times });
}

async function subscribe(context: BenchContext, server: Server, count: number): Promise<Child> {
  const program = fileURLToPath(new URL('./subscribers.js', import.meta.url));
  const words = [process.execPath, program, String(server.respPort), 'channel', String(count)];
  const child = new Child('subscribers', pinned(context.cores.load, words));
  const deadline = Date.now() + SUBSCRIBE_TIMEOUT_MS;
  while (!child.output.includes('ready')) {
    if (child.exited || Date.now() > deadline) throw child.failure('did not subscribe');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return child;
}

/** Units per second of the server's CPU time. */
async function measure(context: BenchContext, server: Server, test: TypeTest): Promise<number> {
  const { typeUnits, typeElements } = context.profile;
  const units = Math.max(CONNECTIONS * PIPELINE, Math.floor(typeUnits / test.weight));
  if (test.refill !== undefined) await fill(context, server, test.refill, units);
  const listeners = test.subscribers === undefined ? null : await subscribe(context, server, test.subscribers);
  const before = cpuNanoseconds(server.pid);
  const range = test.range === 'elements' ? typeElements : test.range;
  await replay(context, server, { unit: test.unit, range, units });
  const cpuNs = cpuNanoseconds(server.pid) - before;
  await listeners?.stop();
  return units / (cpuNs / 1e9);
}

async function compareSpeed(context: BenchContext, servers: readonly Server[]): Promise<void> {
  const ratios: number[] = [];
  for (const test of typeTests) {
    context.say(`types: ${test.name}`);
    for (const server of servers) for (const filling of test.fill) await fill(context, server, filling, 0);
    const samples = await alternate(
      context.profile.pairs,
      servers.map((server) => ({ name: server.name, server, run: () => measure(context, server, test) })),
    );
    const measurement = measured(`types.${test.name}`, 'requests/CPU second', 'more', samples);
    context.report(measurement);
    ratios.push(measurement.ratios.redis);
  }
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const worst = Math.min(...ratios);
  context.report(
    measured('types.mean', 'of redis', 'more', { entresol: [mean] }, 'geometric mean of the ratios above'),
  );
  context.report(measured('types.worst', 'of redis', 'more', { entresol: [worst] }, 'lowest of them'));
}

async function compareMemory(context: BenchContext, servers: readonly Server[]): Promise<void> {
  const { typeElements } = context.profile;
  for (const { key, request } of largeKeys) {
    const samples: Record<string, number[]> = {};
    for (const server of servers) {
      await fill(context, server, { request, times: 'elements' }, 0);
      const bytes = Number(await redisCommand(server.respPort, 'MEMORY', 'USAGE', key, 'SAMPLES', '0'));
      samples[server.name] = [bytes / typeElements];
    }
    context.report(measured(`types.memory.${key.slice(2)}`, 'bytes/element', 'less', samples, 'MEMORY USAGE of each'));
  }
}

async function run(context: BenchContext): Promise<void> {
  const size = { dramBytes: 2 ** 28 + context.profile.typeElements * 1500 };
  const servers = [await startOurs(context.cores.server, size), await startRedis(context.cores.server, size)];
  await compareSpeed(context, servers);
  await compareMemory(context, servers);
  for (const server of servers) await server.stop();
}

export const types: Bench = {
  name: 'types',
  about: 'lists, sets, hashes, streams, scripts and the like against Redis',
  run,
};
