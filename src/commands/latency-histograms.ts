/**
 * How long commands take, as distributions: LATENCY HISTOGRAM and the section `latencystats` of INFO.
 *
 * Each timed call falls into a bucket that ends at a power of two of microseconds. Calls of O(1) commands are timed now and then, each
 * standing for those between (see Executor.time), so their buckets are estimates; `calls` is exact.
 */
import { CommandStat, type CounterTotals, HISTOGRAM_BUCKETS } from '../layout/counters.js';
import type { Command } from './command.js';
import type { Context } from './context.js';

/** Upper bound of a bucket in microseconds. */
function boundOf(bucket: number): number {
  return 2 ** bucket;
}

/** Of the commands named in the arguments (a container means its subcommands), or of all, those that were called. */
export function latencyHistogram(context: Context): void {
  const { reply } = context;
  const { table } = context.executor;
  const { totals } = context.environment;
  const wanted = new Set<Command>();
  for (let i = 2; i < context.argc; i++) {
    const command = table.findByName(context.argString(i));
    if (command === null) continue;
    wanted.add(command);
    for (const sub of command.subcommands) wanted.add(sub);
  }
  const shown = (context.argc > 2 ? [...wanted] : table.all).filter((command) => callsOf(totals, command) > 0);
  reply.map(shown.length);
  for (const command of shown) {
    reply.bulkString(command.fullName);
    reply.map(2);
    reply.bulkString('calls');
    reply.integer(callsOf(totals, command));
    reply.bulkString('histogram_usec');
    const buckets = cumulative(totals, command);
    reply.map(buckets.length);
    for (const { bound, count } of buckets) {
      reply.integer(bound);
      reply.integer(count);
    }
  }
}

function callsOf(totals: CounterTotals, command: Command): number {
  return totals.commandTotal(command.index, CommandStat.calls);
}

/** Calls that took no longer than each bound; bounds at which nothing is added are left out. */
function cumulative(totals: CounterTotals, command: Command): { bound: number; count: number }[] {
  const calls = callsOf(totals, command);
  const buckets: { bound: number; count: number }[] = [];
  let sum = 0;
  for (let bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
    const count = totals.histogramTotal(command.index, bucket);
    if (count <= 0) continue;
    sum = Math.min(calls, sum + count);
    buckets.push({ bound: boundOf(bucket), count: sum });
  }
  return buckets;
}

/** `p50=1.000,p99=8.000` of one command; null when none of its calls was timed. */
export function percentilesText(
  totals: CounterTotals,
  command: Command,
  percentiles: readonly number[],
): string | null {
  const buckets = cumulative(totals, command);
  if (buckets.length === 0) return null;
  const total = buckets[buckets.length - 1].count;
  return percentiles
    .map((percentile) => {
      const { bound } = buckets.find(({ count }) => count >= (total * percentile) / 100) ?? buckets[buckets.length - 1];
      return `p${percentile}=${bound.toFixed(3)}`;
    })
    .join(',');
}
