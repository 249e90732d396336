/**
 * One worker's latency monitor: named events whose duration passed the threshold, as LATENCY shows them.
 *
 * The invariant: an event keeps at most SAMPLES_MAX samples, at most one for each second (the worst of that second).
 */
import type { LatencyEvent, LatencySample } from '../commands/control.js';

const SAMPLES_MAX = 160;

interface History {
  samples: LatencySample[];
  maxMilliseconds: number;
}

export class LatencyMonitor {
  /** Milliseconds; 0 = off. */
  threshold: number;
  readonly #events = new Map<string, History>();

  constructor(threshold: number) {
    this.threshold = threshold;
  }

  record(event: string, unixMs: number, milliseconds: number): void {
    if (this.threshold === 0 || milliseconds < this.threshold) return;
    const history = this.#historyOf(event);
    const sample = { unixSeconds: Math.floor(unixMs / 1000), milliseconds: Math.floor(milliseconds) };
    if (sample.milliseconds > history.maxMilliseconds) history.maxMilliseconds = sample.milliseconds;
    const last = history.samples.at(-1);
    if (last !== undefined && last.unixSeconds === sample.unixSeconds) {
      if (sample.milliseconds > last.milliseconds) history.samples[history.samples.length - 1] = sample;
      return;
    }
    history.samples.push(sample);
    if (history.samples.length > SAMPLES_MAX) history.samples.shift();
  }

  /** One event, or all of them when `event` is empty. */
  get(event: string): LatencyEvent[] {
    const found: LatencyEvent[] = [];
    for (const [name, history] of this.#events) {
      if (event !== '' && name !== event) continue;
      found.push({ event: name, samples: history.samples, maxMilliseconds: history.maxMilliseconds });
    }
    return found;
  }

  /** Forgets the named events, or all; returns those that there were. */
  reset(events: readonly string[]): string[] {
    const names = events.length === 0 ? [...this.#events.keys()] : events;
    return names.filter((name) => this.#events.delete(name));
  }

  #historyOf(event: string): History {
    let history = this.#events.get(event);
    if (history === undefined) {
      history = { samples: [], maxMilliseconds: 0 };
      this.#events.set(event, history);
    }
    return history;
  }
}
