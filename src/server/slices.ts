/**
 * The loop's slices of background work: when the next one is due, how long it may take, what it took.
 *
 * Owns `nextAtMs` and `hasMore`, from which the loop takes how long it may sleep. Invariant: while there is more to do, a turn with requests
 * gives the background a quarter of its time at most.
 */
import { Counter } from '../layout/counters.js';
import { addon } from '../native/addon.js';
import type { Clock } from './clock.js';
import type { WorkerControl } from './worker-control.js';

/** While clients wait, and when nobody does. A slice per turn leaves requests three quarters of the time. */
const BUSY_SLICE_MICROSECONDS = 250;
const IDLE_SLICE_MICROSECONDS = 1000;
/** How often the wall clock's steps are looked for. */
const CLOCK_PERIOD_MS = 100;

export class Slices {
  hasMore = false;
  nextAtMs = 0;

  readonly #background: (budgetMicroseconds: number) => boolean;
  readonly #clock: Clock;
  readonly #control: WorkerControl;
  readonly #values: Float64Array;
  #nextClockAtMs = 0;
  #clockSteps = 0;

  /** `background`: LoopStore.background. */
  constructor(
    background: (budgetMicroseconds: number) => boolean,
    clock: Clock,
    control: WorkerControl,
    values: Float64Array,
  ) {
    this.#background = background;
    this.#clock = clock;
    this.#control = control;
    this.#values = values;
  }

  isDue(monotonicMs: number): boolean {
    return this.hasMore || monotonicMs >= this.nextAtMs;
  }

  /** There is no store to work on now: not before that moment. */
  postpone(untilMs: number): void {
    this.hasMore = false;
    this.nextAtMs = untilMs;
  }

  run(isBusy: boolean): void {
    const startedMs = addon.monotonicMs();
    this.hasMore = this.#background(isBusy ? BUSY_SLICE_MICROSECONDS : IDLE_SLICE_MICROSECONDS);
    const tookMs = addon.monotonicMs() - startedMs;
    this.#values[Counter.backgroundMicroseconds] += tookMs * 1000;
    this.#control.recordLatency('expire-cycle', tookMs);
    this.nextAtMs = this.#clock.monotonicMs + 1000 / this.#control.settings.hz;
  }

  /** In each turn: tells of steps of the wall clock, by which keys expire. */
  watchClock(monotonicMs: number): void {
    if (monotonicMs < this.#nextClockAtMs) return;
    this.#nextClockAtMs = monotonicMs + CLOCK_PERIOD_MS;
    if (this.#clock.bigSteps === this.#clockSteps) return;
    this.#clockSteps = this.#clock.bigSteps;
    const seconds = (this.#clock.lastBigStepMs / 1000).toFixed(3);
    this.#control.log('warning', `the wall clock was set by ${seconds} s: keys expire by the new time`);
  }
}
