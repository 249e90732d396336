/**
 * What a second worker adds: requests per second that two workers' executors reach on one store, against one, fed from memory
 * (on two cores a load generator would need the second one). 64 requests a batch, 90 % GET, 1 M keys, uniform and Zipf 1.1.
 */
import { fileURLToPath } from 'node:url';
import { removeTemporaryFolder, runToEnd, temporaryFolder } from '../harness/child.js';
import { VALUE_BYTES } from '../harness/fleet.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import type { WorkersAnswer, WorkersOrder } from './workers-child.js';

const BYTES_PER_KEY = 320;
const MIN_DRAM_BYTES = 128 * 2 ** 20;

async function run(context: BenchContext): Promise<void> {
  const { profile, cores } = context;
  const order: WorkersOrder = {
    pool: temporaryFolder('workers'),
    dramBytes: Math.max(MIN_DRAM_BYTES, profile.workerKeys * BYTES_PER_KEY),
    keyCount: profile.workerKeys,
    valueBytes: VALUE_BYTES,
    batchCount: profile.workerBatches,
    rounds: profile.pairs,
    milliseconds: Math.round(profile.runSeconds * 1000),
    cores: [cores.server, cores.load],
  };
  context.say('workers: one against two, fed from memory');
  const program = fileURLToPath(new URL('./workers-child.js', import.meta.url));
  const output = await runToEnd('workers', [process.execPath, program, JSON.stringify(order)]);
  removeTemporaryFolder(order.pool);
  const line = output.trim().split('\n').pop() ?? '';
  if (!line.startsWith('{"uniform"')) throw new Error(`workers gave no figure:\n${output.slice(-2000)}`);
  const answer = JSON.parse(line) as WorkersAnswer;
  for (const keys of ['uniform', 'zipf'] as const) {
    const samples = { entresol: answer[keys].all, 'one-worker': answer[keys].one };
    context.report(measured(`workers.${keys}`, 'requests/s', 'more', samples, 'two workers; one-worker is ours too'));
  }
}

export const workers: Bench = { name: 'workers', about: 'capacity of two workers against one, without sockets', run };
