/**
 * SLOWLOG and LATENCY: what took long. Each worker keeps its own; the answers of all are merged here.
 */
import { type ArgumentSpec, integerArg, optional, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import type { LatencyEvent, LatencySample, SlowLogEntry } from '../control.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { helpCommand } from './help.js';
import { latencyGraph, latencyHistogram } from './latency.js';

const SLOWLOG = Flag.ADMIN | Flag.LOADING | Flag.STALE | Flag.ASKS;
const LATENCY = SLOWLOG | Flag.NOSCRIPT;
const SLOWLOG_DEFAULT = 10;
/** Most samples that an event has. */
const SAMPLES_MAX = 160;

// ---- SLOWLOG

function slowLogGet(context: Context): void {
  const { reply } = context;
  let count = SLOWLOG_DEFAULT;
  if (context.argc > 3) return reply.error(`ERR wrong number of arguments for 'slowlog|get' command`);
  if (context.argc === 3) {
    count = context.argInteger(2);
    if (Number.isNaN(count) || count < -1) return reply.error('ERR count should be greater than or equal to -1');
  }
  // Each worker keeps as many as all of them together are to have.
  const { slowlogMaxLen } = context.environment.settings;
  count = count === -1 ? slowlogMaxLen : Math.min(count, slowlogMaxLen);
  context.askWorkers('slowLogGet', { count }, (answers) => {
    const newest = answers.flat().sort((a, b) => b.id - a.id);
    const entries = newest.slice(0, count);
    reply.array(entries.length);
    for (const entry of entries) replySlowEntry(context, entry);
  });
}

function replySlowEntry({ reply }: Context, entry: SlowLogEntry): void {
  reply.array(6);
  reply.integer(entry.id);
  reply.integer(entry.unixSeconds);
  reply.integer(Math.round(entry.microseconds));
  reply.array(entry.argv.length);
  for (const argument of entry.argv) reply.bulkArray(argument);
  reply.bulkString(entry.address);
  reply.bulkString(entry.clientName);
}

function slowLogLength(context: Context): void {
  const { reply } = context;
  const { slowlogMaxLen } = context.environment.settings;
  context.askWorkers('slowLogLength', null, (answers) => {
    const sum = answers.reduce((total, length) => total + length, 0);
    reply.integer(Math.min(sum, slowlogMaxLen));
  });
}

function slowLogReset(context: Context): void {
  const { reply } = context;
  context.askWorkers('slowLogReset', null, () => reply.ok());
}

// ---- LATENCY

/** The newest of both in order of time, at most one a second: the worse. */
function mergeSamples(a: readonly LatencySample[], b: readonly LatencySample[]): LatencySample[] {
  const worst = new Map<number, LatencySample>();
  for (const sample of [...a, ...b]) {
    const known = worst.get(sample.unixSeconds);
    if (known === undefined || known.milliseconds < sample.milliseconds) worst.set(sample.unixSeconds, sample);
  }
  const merged = [...worst.values()].sort((one, other) => one.unixSeconds - other.unixSeconds);
  return merged.slice(-SAMPLES_MAX);
}

/** The events of all workers, one element for each name, samples in order of time. */
function mergeEvents(answers: readonly (readonly LatencyEvent[])[]): LatencyEvent[] {
  const byName = new Map<string, LatencyEvent>();
  for (const event of answers.flat()) {
    const known = byName.get(event.event);
    byName.set(
      event.event,
      known === undefined
        ? event
        : {
            event: event.event,
            samples: mergeSamples(known.samples, event.samples),
            maxMilliseconds: Math.max(known.maxMilliseconds, event.maxMilliseconds),
          },
    );
  }
  return [...byName.values()].filter((event) => event.samples.length > 0);
}

function latencyLatest(context: Context): void {
  const { reply } = context;
  context.askWorkers('latencyGet', { event: '' }, (answers) => {
    const events = mergeEvents(answers);
    reply.array(events.length);
    for (const event of events) {
      const newest = event.samples[event.samples.length - 1];
      reply.array(4);
      reply.bulkString(event.event);
      reply.integer(newest.unixSeconds);
      reply.integer(newest.milliseconds);
      reply.integer(event.maxMilliseconds);
    }
  });
}

function latencyHistory(context: Context): void {
  const { reply } = context;
  context.askWorkers('latencyGet', { event: context.argString(2) }, (answers) => {
    const samples = mergeEvents(answers)[0]?.samples ?? [];
    reply.array(samples.length);
    for (const sample of samples) {
      reply.array(2);
      reply.integer(sample.unixSeconds);
      reply.integer(sample.milliseconds);
    }
  });
}

function latencyReset(context: Context): void {
  const { reply } = context;
  const events: string[] = [];
  for (let i = 2; i < context.argc; i++) events.push(context.argString(i));
  context.askWorkers('latencyReset', { events }, (answers) => reply.integer(new Set(answers.flat()).size));
}

function graph(context: Context): void {
  const { reply } = context;
  const name = context.argString(2);
  const nowSeconds = Math.floor(context.nowMs / 1000);
  context.askWorkers('latencyGet', { event: name }, (answers) => {
    const [event] = mergeEvents(answers);
    if (event === undefined) reply.error(`ERR No samples available for event '${name}'`);
    else reply.verbatim('txt', latencyGraph(event.event, event.samples, event.maxMilliseconds, nowSeconds));
  });
}

function latencyDoctor(context: Context): void {
  const { reply } = context;
  const threshold = context.environment.settings.latencyMonitorThreshold;
  context.askWorkers('latencyGet', { event: '' }, (answers) => reply.verbatim('txt', diagnosis(answers, threshold)));
}

function diagnosis(answers: readonly (readonly LatencyEvent[])[], threshold: number): string {
  if (threshold === 0) {
    return 'The latency monitor is off. Switch it on with CONFIG SET latency-monitor-threshold <milliseconds>.\n';
  }
  const events = mergeEvents(answers);
  if (events.length === 0) return `Nothing has taken ${threshold} ms or longer since the monitor was switched on.\n`;
  const lines = events.map(({ event, samples, maxMilliseconds }) => {
    const mean = samples.reduce((sum, sample) => sum + sample.milliseconds, 0) / samples.length;
    return `${event}: ${samples.length} times, ${mean.toFixed(1)} ms on average, ${maxMilliseconds} ms at worst.`;
  });
  return `${lines.join('\n')}\nSLOWLOG GET shows the commands that took longest.\n`;
}

// ---- declarations

function sub(
  name: string,
  arity: number,
  flags: number,
  since: string,
  summary: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
  tips: readonly string[],
): CommandSpec {
  const complexity = 'O(N), N being the number of entries';
  return {
    name,
    arity,
    flags,
    categories: Category.NONE,
    since,
    group: 'server',
    summary,
    complexity,
    args,
    tips,
    run,
  };
}

const EVERYWHERE = ['request_policy:all_nodes', 'nondeterministic_output'];
const SUM = ['request_policy:all_nodes', 'response_policy:agg_sum', 'nondeterministic_output'];
const DIFFERENT = ['nondeterministic_output', 'request_policy:all_nodes', 'response_policy:special'];
const ALL_SUCCEED = ['request_policy:all_nodes', 'response_policy:all_succeeded'];
const RESETS = ['request_policy:all_nodes', 'response_policy:agg_sum'];

export const observation: readonly CommandSpec[] = [
  {
    name: 'slowlog',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '2.2.12',
    group: 'server',
    summary: 'Commands about the log of slow commands.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      sub(
        'get',
        -2,
        SLOWLOG,
        '2.2.12',
        'Returns the newest entries.',
        [optional(integerArg('count'))],
        slowLogGet,
        EVERYWHERE,
      ),
      sub('len', 2, SLOWLOG, '2.2.12', 'Returns the number of entries.', [], slowLogLength, SUM),
      sub('reset', 2, SLOWLOG, '2.2.12', 'Empties the log.', [], slowLogReset, ALL_SUCCEED),
      helpCommand('slowlog', 'server', Category.NONE, '6.2.0'),
    ],
  },
  {
    name: 'latency',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '2.8.13',
    group: 'server',
    summary: 'Commands about events that took long.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      sub('latest', 2, LATENCY, '2.8.13', 'Returns the newest sample of each event.', [], latencyLatest, DIFFERENT),
      sub(
        'history',
        3,
        LATENCY,
        '2.8.13',
        'Returns the samples of an event.',
        [stringArg('event')],
        latencyHistory,
        DIFFERENT,
      ),
      sub(
        'reset',
        -2,
        LATENCY,
        '2.8.13',
        'Forgets the samples of some events, or of all.',
        [optional(stringArg('event', { multiple: true }))],
        latencyReset,
        RESETS,
      ),
      sub(
        'histogram',
        -2,
        LATENCY & ~Flag.ASKS,
        '7.0.0',
        'Returns the distribution of the latencies of commands.',
        [optional(stringArg('COMMAND', { multiple: true }))],
        latencyHistogram,
        DIFFERENT,
      ),
      sub('graph', 3, LATENCY, '2.8.13', 'Draws the samples of an event.', [stringArg('event')], graph, DIFFERENT),
      sub('doctor', 2, LATENCY, '2.8.13', 'Explains the samples in words.', [], latencyDoctor, DIFFERENT),
      helpCommand('latency', 'server', Category.NONE, '2.8.13'),
    ],
  },
];
