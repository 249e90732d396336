/**
 * The process of the workers comparison: opens a store, starts one thread for each worker, and lets first one and then all of
 * them execute memory-fed batches, in alternating rounds. Prints one JSON line.
 */
import { Worker } from 'node:worker_threads';
import { loadServerModules } from './server-modules.js';
import { Job, RESULT_DOUBLES, type ThreadStart, Word } from './workers-orders.js';

export interface WorkersOrder {
  readonly pool: string;
  readonly dramBytes: number;
  readonly keyCount: number;
  readonly valueBytes: number;
  readonly batchCount: number;
  readonly rounds: number;
  readonly milliseconds: number;
  /** One worker on each. */
  readonly cores: readonly number[];
}

/** Requests per second, one element for each round. */
export interface WorkersAnswer {
  readonly uniform: { readonly one: number[]; readonly all: number[] };
  readonly zipf: { readonly one: number[]; readonly all: number[] };
}

const ORDER_TIMEOUT_MS = 120_000;

class Team {
  readonly #words: Int32Array;
  readonly #results: Float64Array;

  constructor(
    readonly size: number,
    words: SharedArrayBuffer,
    results: SharedArrayBuffer,
  ) {
    this.#words = new Int32Array(words);
    this.#results = new Float64Array(results);
  }

  async order(job: Job, participants: number, milliseconds: number): Promise<void> {
    const words = this.#words;
    Atomics.store(words, Word.DONE, 0);
    Atomics.store(words, Word.JOB, job);
    Atomics.store(words, Word.MILLISECONDS, milliseconds);
    Atomics.store(words, Word.PARTICIPANTS, (1 << participants) - 1);
    Atomics.add(words, Word.ORDER, 1);
    Atomics.notify(words, Word.ORDER);
    if (job !== Job.STOP) await this.done(participants);
  }

  async done(count: number): Promise<void> {
    const deadline = Date.now() + ORDER_TIMEOUT_MS;
    while (Atomics.load(this.#words, Word.DONE) < count) {
      if (Date.now() > deadline) throw new Error('a worker did not finish');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Requests per second of the participants together; throws when any request was not a clean hit or write. */
  rate(participants: number): number {
    let total = 0;
    for (let worker = 0; worker < participants; worker++) {
      const [requests, milliseconds, misses, failures] = this.#results.subarray(
        worker * RESULT_DOUBLES,
        (worker + 1) * RESULT_DOUBLES,
      );
      if (misses + failures > 0) throw new Error(`worker ${worker}: ${misses} misses, ${failures} failures`);
      total += (requests / milliseconds) * 1000;
    }
    return total;
  }
}

async function main(order: WorkersOrder): Promise<void> {
  const modules = await loadServerModules();
  const workerCount = order.cores.length;
  const settings = {
    ...modules.config.defaultSettings(),
    workers: workerCount,
  };
  const store = modules.open.openStore({ pool: order.pool, dramBytes: order.dramBytes, capacityBytes: 0 });
  const words = new SharedArrayBuffer(Word.COUNT * 4);
  const results = new SharedArrayBuffer(workerCount * RESULT_DOUBLES * 8);
  const counterBlock = modules.counters.createCounterBlock(workerCount);
  const counterBaseline = modules.counters.createCounterBaseline();
  const threads = order.cores.map((core, index) => {
    const start: ThreadStart = {
      ...{ index, workerCount, core, settings, store, counterBlock, counterBaseline, words, results },
      ...{ keyCount: order.keyCount, valueBytes: order.valueBytes, batchCount: order.batchCount },
    };
    const thread = new Worker(new URL('./workers-thread.js', import.meta.url), { workerData: start });
    thread.once('error', (error) => {
      console.error(error);
      process.exit(1);
    });
    return thread;
  });
  const ended = threads.map((thread) => new Promise<void>((resolve) => thread.once('exit', () => resolve())));

  const team = new Team(workerCount, words, results);
  await team.done(workerCount);
  await team.order(Job.FILL, workerCount, 0);
  const answer: WorkersAnswer = { uniform: { one: [], all: [] }, zipf: { one: [], all: [] } };
  for (const [job, figures] of [
    [Job.UNIFORM, answer.uniform],
    [Job.ZIPF, answer.zipf],
  ] as const) {
    await team.order(job, workerCount, order.milliseconds);
    for (let round = 0; round < order.rounds; round++) {
      await team.order(job, 1, order.milliseconds);
      figures.one.push(team.rate(1));
      await team.order(job, workerCount, order.milliseconds);
      figures.all.push(team.rate(workerCount));
    }
  }
  await team.order(Job.STOP, workerCount, 0);
  await Promise.all(ended);
  console.log(JSON.stringify(answer));
}

await main(JSON.parse(process.argv[2]) as WorkersOrder);
