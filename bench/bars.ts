/**
 * The speed and memory bars that the project has set itself, as data. A bar names one metric of the benches; the report
 * says for each whether it holds, with the figures of both sides, where it falls short too.
 */

import { longCommands } from './e2e/long-commands.js';

export interface Bar {
  readonly metric: string;
  /** Judged is ours / peer (a contender's name), or our figure itself. */
  readonly against: string;
  readonly relation: 'atLeast' | 'atMost';
  readonly limit: number;
  readonly about: string;
}

export const OWN_FIGURE = 'itself';

function bar(metric: string, against: string, relation: Bar['relation'], limit: number, about: string): Bar {
  return { metric, against, relation, limit, about };
}

const perKeyCount = ['100k', '10M'].flatMap((keys) => [
  ...['set', 'get'].flatMap((test) => [
    bar(`throughput.${test}.p16.${keys}`, 'redis', 'atLeast', 1.5, `pipeline 16, ${test}, ${keys} keys`),
    bar(`throughput.${test}.p64.${keys}`, 'redis', 'atLeast', 2.2, `pipeline 64, ${test}, ${keys} keys`),
    bar(`cpu.${test}.p1.${keys}.resp`, 'redis', 'atMost', 0.95, `CPU per request, pipeline 1, ${test}, ${keys} keys`),
    bar(
      `cpu.${test}.p1.${keys}.memcached`,
      'memcached',
      'atMost',
      0.9,
      `CPU per request, pipeline 1, ${test}, ${keys} keys`,
    ),
  ]),
  bar(`latency.p999.${keys}`, 'redis', 'atMost', 1, `p99.9 at 50 % load, ${keys} keys`),
]);

const large = ['10KiB', '512KiB'].flatMap((size) =>
  ['set', 'get'].map((test) =>
    bar(`large.${test}.${size}`, 'redis', 'atMost', 0.8, `CPU per byte, ${test} of ${size} values`),
  ),
);

const workers = ['uniform', 'zipf'].map((keys) =>
  bar(`workers.${keys}`, 'one-worker', 'atLeast', 1.7, `capacity of two workers over one, ${keys} keys`),
);

const embedded = ['10k', '1M'].flatMap((keys) => [
  bar(`embedded.get.${keys}`, 'lru-cache', 'atMost', keys === '1M' ? 1 : 3, `embedded get, ${keys} keys, one process`),
  bar(`embedded.get.${keys}`, 'lmdb', 'atMost', 0.6, `embedded get, ${keys} keys, one process`),
  bar(`embedded.attached.${keys}`, 'one-process', 'atMost', 1.1, `embedded get from a second process, ${keys} keys`),
]);

/** Two tiers on an emulated device over the same server all in DRAM; what is charged is fixed by the preset. */
const emulated = ['100B', '512KiB'].flatMap((size) => [
  bar(`emulated.get.${size}`, 'all-dram', 'atLeast', 0.97, `reads of ${size}, emulated device over DRAM`),
  bar(`emulated.set.${size}`, 'all-dram', 'atLeast', 0.85, `writes of ${size}, emulated device over DRAM`),
]);

const typeMemory = ['list', 'set', 'hash', 'sorted', 'stream'].map((type) =>
  bar(`types.memory.${type}`, 'redis', 'atMost', 1, `bytes per element of a large ${type}`),
);

/** Nobody waits longer because of a command that takes steps. */
const long = longCommands
  .filter((command) => command.isJudged)
  .map(({ name }) =>
    bar(`long.${name}.max`, OWN_FIGURE, 'atMost', 5, `longest wait of others, ${name} of a large key, ms`),
  );

/** The same policy on both sides. */
const durable = ['everysec', 'always'].flatMap((policy) =>
  [1, 16].map((pipeline) =>
    bar(
      `durable.${policy}.p${pipeline}`,
      'redis',
      'atLeast',
      1.2,
      `SET that survives a reboot, ${policy}, pipeline ${pipeline}`,
    ),
  ),
);

export const bars: readonly Bar[] = [
  ...perKeyCount,
  ...large,
  ...workers,
  ...embedded,
  ...emulated,
  ...durable,
  ...long,
  bar('emulated.mix.512KiB.latency', 'all-dram', 'atMost', 1.05, 'mean latency, SET:GET 1:2 of 512 KiB, emulated'),
  bar('types.mean', OWN_FIGURE, 'atLeast', 1.25, 'requests of all kinds over Redis, geometric mean'),
  bar('types.worst', OWN_FIGURE, 'atLeast', 0.8, 'the slowest kind over Redis'),
  ...typeMemory,
  bar('memory.overhead', OWN_FIGURE, 'atMost', 72, 'bytes per item beyond key and value, full store'),
  bar('memory.overhead', 'redis', 'atMost', 1, 'bytes per item, below Redis'),
  bar('memory.overhead', 'memcached', 'atMost', 1, 'bytes per item, below memcached'),
  bar('memory.metadata', OWN_FIGURE, 'atMost', 40, 'bytes of DRAM metadata per item'),
  bar('stalls.heap', OWN_FIGURE, 'atMost', 0.5, 'JavaScript heap growth over 10 M requests, MiB'),
  bar('stalls.privateMemory', OWN_FIGURE, 'atMost', 4, 'private memory growth over 10 M requests, MiB'),
  bar('stalls.beyondSpinner', OWN_FIGURE, 'atMost', 5, 'stop at p99.99 beyond an idle spinner, ms'),
];

export interface Verdict {
  readonly bar: Bar;
  readonly judged: number | undefined;
  readonly ours: number | undefined;
  readonly peer: number | undefined;
  readonly outcome: 'holds' | 'falls short' | 'not measured';
}

interface Judgeable {
  readonly metric: string;
  readonly figures: Readonly<Record<string, number>>;
  readonly ratios: Readonly<Record<string, number>>;
}

export function judge(bar: Bar, measurements: readonly Judgeable[]): Verdict {
  const measurement = measurements.find((candidate) => candidate.metric === bar.metric);
  const ours = measurement?.figures.entresol;
  const judged = bar.against === OWN_FIGURE ? ours : measurement?.ratios[bar.against];
  const peer = bar.against === OWN_FIGURE ? undefined : measurement?.figures[bar.against];
  if (judged === undefined) return { bar, judged, ours, peer, outcome: 'not measured' };
  const holds = bar.relation === 'atLeast' ? judged >= bar.limit : judged <= bar.limit;
  return { bar, judged, ours, peer, outcome: holds ? 'holds' : 'falls short' };
}
