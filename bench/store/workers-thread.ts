/**
 * One worker of the workers comparison, in a thread of its own: the server's loop on a pump without sockets. Waits for an
 * order, runs batches for the time ordered, leaves its count, waits again.
 */
import { MessageChannel, workerData } from 'node:worker_threads';
import { type Batches, type KeyDistribution, keyDraws, makeBatches, makeFill, PIPELINE } from './batches.js';
import { MemoryPump } from './memory-pump.js';
import { loadServerModules, type ServerModules } from './server-modules.js';
import { Job, RESULT_DOUBLES, type ThreadStart, Word } from './workers-orders.js';

const OUTPUT_BYTES = 4 * 2 ** 20;

interface Rig {
  readonly pump: MemoryPump;
  turn(): void;
}

/** The loop of a worker over the given batches. */
function createRig(start: ThreadStart, modules: ServerModules, batches: Batches, shared: SharedParts): Rig {
  const { addon } = modules.native;
  const inputArena = addon.allocateArena(Math.ceil(batches.bytes.length / 4096) * 4096, { populate: true });
  const input = addon.wrapArena(inputArena);
  new Uint8Array(input).set(batches.bytes);
  const outputArena = addon.allocateArena(OUTPUT_BYTES, { populate: true });
  const outputBuffer = addon.wrapArena(outputArena);
  const pump = new MemoryPump(input, inputArena, outputBuffer, outputArena, batches.offsets, modules.native);
  const output = new modules.output.Output(
    new modules.bytes.Bytes(outputBuffer, outputArena),
    new Int32Array(pump.sends),
    (sendCount) => pump.flush(sendCount),
  );
  const { store, counters, totals } = shared;
  const control = new modules.control.WorkerControl(
    {
      workerIndex: start.index,
      workerCount: start.workerCount,
      settings: start.settings,
      startedAtMs: Date.now(),
      users: { removed: [], set: [] },
      port: new MessageChannel().port2,
    },
    counters,
  );
  const sharedScripts = new SharedArrayBuffer(64);
  const made = modules.drivers.createDrivers({ keyspace: store, output, control, counters, totals, sharedScripts });
  const clock = new modules.clock.Clock(addon);
  const loop = new modules.loop.Loop({ pump, output, store, clock, counters, totals, control, ...made });
  loop.turn(0);
  return { pump, turn: () => loop.turn(0) };
}

interface SharedParts {
  readonly store: unknown;
  readonly counters: { readonly values: Float64Array };
  readonly totals: unknown;
}

/** Turns until the time is over; the clock is read every 16 turns. Returns milliseconds. */
function runFor(rig: Rig, milliseconds: number): number {
  const begin = performance.now();
  let elapsed = 0;
  while (elapsed < milliseconds) {
    for (let i = 0; i < 16; i++) rig.turn();
    elapsed = performance.now() - begin;
  }
  return elapsed;
}

function fill(rig: Rig, batches: Batches): void {
  while (rig.pump.batchesServed < batches.offsets.length - 1) rig.turn();
  rig.turn();
}

async function main(start: ThreadStart): Promise<void> {
  const modules = await loadServerModules();
  modules.native.addon.pinThread([start.core]);
  const { Counter } = modules.counters;
  const counters = new modules.counters.CounterRow(start.counterBlock, start.index);
  const totals = new modules.counters.CounterTotals(start.counterBlock, start.counterBaseline);
  const shared: SharedParts = { store: modules.attach.attach(start.store), counters, totals };
  const words = new Int32Array(start.words);
  const result = new Float64Array(start.results, start.index * RESULT_DOUBLES * 8, RESULT_DOUBLES);

  const share = Math.ceil(start.keyCount / start.workerCount);
  const fillBatches = makeFill(
    start.index * share,
    Math.min(start.keyCount, (start.index + 1) * share),
    start.valueBytes,
  );
  const rigOf = (distribution: KeyDistribution): Rig => {
    const draw = keyDraws(distribution, start.keyCount, 0x1234567 + start.index * 7919);
    return createRig(start, modules, makeBatches(start.batchCount, draw, start.valueBytes), shared);
  };
  const fillRig = createRig(start, modules, fillBatches, shared);
  const rigs: Readonly<Record<number, Rig>> = { [Job.UNIFORM]: rigOf('uniform'), [Job.ZIPF]: rigOf('zipf') };

  let order = 0;
  Atomics.add(words, Word.DONE, 1);
  Atomics.notify(words, Word.DONE);
  for (;;) {
    Atomics.wait(words, Word.ORDER, order);
    order = Atomics.load(words, Word.ORDER);
    const job = Atomics.load(words, Word.JOB);
    if (job === Job.STOP) break;
    if ((Atomics.load(words, Word.PARTICIPANTS) & (1 << start.index)) === 0) continue;
    const rig = job === Job.FILL ? fillRig : rigs[job];
    const batchesBefore = rig.pump.batchesServed;
    const missesBefore = counters.values[Counter.misses];
    const errorsBefore = counters.values[Counter.errorReplies];
    let elapsed = 0;
    if (job === Job.FILL) fill(rig, fillBatches);
    else elapsed = runFor(rig, Atomics.load(words, Word.MILLISECONDS));
    result[0] = (rig.pump.batchesServed - batchesBefore) * PIPELINE;
    result[1] = elapsed;
    result[2] = counters.values[Counter.misses] - missesBefore;
    result[3] = rig.pump.failures + counters.values[Counter.errorReplies] - errorsBefore;
    Atomics.add(words, Word.DONE, 1);
    Atomics.notify(words, Word.DONE);
  }
  modules.attach.detach(shared.store);
}

await main(workerData as ThreadStart);
