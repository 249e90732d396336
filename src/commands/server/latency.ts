/**
 * What LATENCY shows of the distributions and the history: HISTOGRAM, GRAPH, and INFO's percentiles.
 *
 * The histograms are in the workers' counter rows. Calls of cheap commands are sampled after the first ones, so counts are scaled to the
 * number of calls: invariant: the last cumulative count of a command is its calls.
 */
import { CommandStat } from '../../layout/counters.js';
import { LatencyBucket, latencyBucketEnd } from '../../layout/latency-buckets.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import type { LatencySample } from '../control.js';

/** HdrHistogram with two digits reports values of an octave's first bucket as up to 1,032 * 2^k ns, and Redis with it. */
const SHOWN_NS = 1032;

interface Distribution {
  readonly counts: Float64Array;
  /** Sum of the counts, and what it stands for. */
  readonly samples: number;
  readonly calls: number;
}

function distributionOf(context: Context, command: Command): Distribution | null {
  const { totals } = context.environment;
  const counts = totals.latencyTotals(command.index);
  const samples = counts.reduce((sum, count) => sum + count, 0);
  const calls = totals.commandTotal(command.index, CommandStat.calls);
  return samples === 0 ? null : { counts, samples, calls };
}

/** Pairs of (microseconds, calls that took no longer), for each octave that adds some. */
function cumulativeOctaves({ counts, samples, calls }: Distribution): [micros: number, calls: number][] {
  const steps: [number, number][] = [];
  let sum = 0;
  let before = 0;
  for (let octave = 0; octave <= LatencyBucket.OCTAVES; octave++) {
    const first = octave * LatencyBucket.SUB_COUNT;
    for (let i = 0; i < LatencyBucket.SUB_COUNT; i++) sum += counts[first + i];
    const cumulative = Math.round((sum * calls) / samples);
    if (cumulative > before) steps.push([Math.floor((SHOWN_NS * 2 ** octave - 1) / 1000), cumulative]);
    before = cumulative;
  }
  return steps;
}

/** The commands that the arguments name, with their subcommands; all without arguments. Unknown names are passed over, as in Redis. */
function namedCommands(context: Context): readonly Command[] {
  const { table } = context.executor;
  if (context.argc === 2) return table.all;
  const found: Command[] = [];
  for (let i = 2; i < context.argc; i++) {
    const command = table.findByName(context.argString(i));
    if (command === null) continue;
    const prefix = `${command.fullName}|`;
    for (const other of table.all) if (other === command || other.fullName.startsWith(prefix)) found.push(other);
  }
  return found;
}

export function latencyHistogram(context: Context): void {
  const { reply } = context;
  const shown: [Command, Distribution][] = [];
  for (const command of namedCommands(context)) {
    const distribution = distributionOf(context, command);
    if (distribution !== null) shown.push([command, distribution]);
  }
  reply.map(shown.length);
  for (const [command, distribution] of shown) {
    const steps = cumulativeOctaves(distribution);
    reply.bulkString(command.fullName);
    reply.map(2);
    reply.bulkString('calls');
    reply.integer(distribution.calls);
    reply.bulkString('histogram_usec');
    reply.map(steps.length);
    for (const [micros, calls] of steps) {
      reply.integer(micros);
      reply.integer(calls);
    }
  }
}

/** INFO latencystats: name and percentiles of each command that was called. */
export function latencyPercentiles(context: Context): [name: string, text: string][] {
  const percentiles = context.environment.settings.latencyTrackingInfoPercentiles;
  const fields: [string, string][] = [];
  for (const command of context.executor.table.all) {
    const distribution = distributionOf(context, command);
    if (distribution === null) continue;
    const shown = percentiles.map((p) => `p${p}=${percentile(distribution, p).toFixed(3)}`);
    fields.push([command.fullName, shown.join(',')]);
  }
  return fields;
}

/** Microseconds that `p` percent of the calls did not exceed. */
function percentile({ counts, samples }: Distribution, p: number): number {
  const wanted = Math.max(1, Math.ceil((samples * p) / 100));
  let sum = 0;
  for (let bucket = 0; bucket < LatencyBucket.COUNT; bucket++) {
    sum += counts[bucket];
    if (sum >= wanted) return (latencyBucketEnd(bucket) - 1) / 1000;
  }
  return latencyBucketEnd(LatencyBucket.COUNT - 1) / 1000;
}

// ---- LATENCY GRAPH

const GRAPH_COLUMNS = 80;
const GRAPH_ROWS = 4;
/** The three heights that one character can show, from the line's foot up; a full one below a higher one is a bar. */
const HEIGHTS = ['_', 'o', '#'];

/** The newest samples of an event as a small chart of bars, their ages written downwards below it. */
export function latencyGraph(
  event: string,
  samples: readonly LatencySample[],
  maxMilliseconds: number,
  nowSeconds: number,
): string {
  const shown = samples.slice(-GRAPH_COLUMNS);
  const values = shown.map((sample) => sample.milliseconds);
  const high = Math.max(...values);
  const low = Math.min(...values);
  const steps = GRAPH_ROWS * HEIGHTS.length;
  const heights = values.map((value) => Math.min(steps - 1, Math.floor(((value - low) * steps) / (high - low || 1))));
  const lines = [
    `${event} - high ${high} ms, low ${low} ms (all time high ${maxMilliseconds} ms)`,
    '-'.repeat(GRAPH_COLUMNS),
  ];
  for (let row = GRAPH_ROWS - 1; row >= 0; row--) lines.push(heights.map((height) => barAt(height, row)).join(''));
  const ages = shown.map((sample) => ageText(nowSeconds - sample.unixSeconds));
  lines.push('');
  const longest = Math.max(...ages.map((age) => age.length));
  for (let i = 0; i < longest; i++) lines.push(ages.map((age) => age[i] ?? ' ').join(''));
  return `${lines.join('\n')}\n`;
}

function barAt(height: number, row: number): string {
  const within = height - row * HEIGHTS.length;
  if (within < 0) return ' ';
  return within < HEIGHTS.length ? HEIGHTS[within] : '|';
}

function ageText(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
