/**
 * The unit of every report: one metric, the figure of each contender in the same run, and the samples behind it.
 */
import type { Cores } from './machine.js';
import type { Profile } from './profile.js';
import { median, ratios, spread } from './statistics.js';

export interface Measurement {
  /** Dotted name, for example `cpu.get.p1.100k.resp`. Bars refer to it. */
  readonly metric: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
  /** Medians by contender; ours is `entresol`. */
  readonly figures: Readonly<Record<string, number>>;
  /** Median of the paired ratios ours / peer, by peer. */
  readonly ratios: Readonly<Record<string, number>>;
  /** Half the interquartile distance over the median, by contender. */
  readonly spreads: Readonly<Record<string, number>>;
  readonly samples: Readonly<Record<string, readonly number[]>>;
  readonly note?: string;
}

/** Builds a measurement from samples; samples of one index belong to one pair. */
export function measured(
  metric: string,
  unit: string,
  better: 'more' | 'less',
  samples: Readonly<Record<string, readonly number[]>>,
  note?: string,
): Measurement {
  const figures: Record<string, number> = {};
  const spreads: Record<string, number> = {};
  const paired: Record<string, number> = {};
  for (const [name, values] of Object.entries(samples)) {
    figures[name] = median(values);
    spreads[name] = spread(values);
    if (name !== 'entresol' && samples.entresol !== undefined) paired[name] = median(ratios(samples.entresol, values));
  }
  return { metric, unit, better, figures, ratios: paired, spreads, samples, note };
}

/** What a bench gets: how much to run, where, and where to put figures. */
export interface BenchContext {
  readonly profile: Profile;
  readonly cores: Cores;
  report(measurement: Measurement): void;
  /** Progress, for the one who waits. */
  say(text: string): void;
}

export interface Bench {
  readonly name: string;
  readonly about: string;
  /** Works on the loaded servers of harness/fleet.ts. */
  readonly usesFleet?: boolean;
  run(context: BenchContext): Promise<void>;
}
