/**
 * The time a worker tells its keyspace: wall-clock milliseconds that behave.
 *
 * Expiry times are wall-clock times (they must mean the same after a restart and on a replica), but the wall clock can be
 * set. So the clock runs on the monotonic one and is compared with the wall clock every COMPARE_EVERY_MS: it takes small
 * forward differences at once, works small backward ones off by running slower, and follows steps above BIG_STEP_MS
 * whichever way they go (an operator set the clock: keys expire by the new time). The invariant: apart from big steps,
 * time never goes backwards.
 */

export const COMPARE_EVERY_MS = 100;
export const BIG_STEP_MS = 1000;
/** Small backward differences: give back at most this part of the time that passed. */
const SLOW_DOWN = 0.1;

export interface TimeSource {
  monotonicMs(): number;
  realtimeMs(): number;
}

export class Clock {
  /** Wall-clock milliseconds, a whole number, as of the last tick. */
  nowMs: number;
  /** Monotonic milliseconds as of the last tick. */
  monotonicMs: number;
  /** Steps followed so far, and the last one's size: the loop logs them. */
  bigSteps = 0;
  lastBigStepMs = 0;

  readonly #source: TimeSource;
  /** wall = monotonic + offset. */
  #offsetMs: number;
  #comparedAtMs: number;

  constructor(source: TimeSource) {
    this.#source = source;
    this.monotonicMs = source.monotonicMs();
    this.#offsetMs = source.realtimeMs() - this.monotonicMs;
    this.#comparedAtMs = this.monotonicMs;
    this.nowMs = Math.floor(this.monotonicMs + this.#offsetMs);
  }

  /** Once a turn. One clock reading, a second one every COMPARE_EVERY_MS. */
  tick(): number {
    const monotonicMs = this.#source.monotonicMs();
    this.monotonicMs = monotonicMs;
    if (monotonicMs - this.#comparedAtMs >= COMPARE_EVERY_MS) this.#compare(monotonicMs);
    const nowMs = Math.floor(monotonicMs + this.#offsetMs);
    if (nowMs > this.nowMs) this.nowMs = nowMs;
    return this.nowMs;
  }

  #compare(monotonicMs: number): void {
    const passedMs = monotonicMs - this.#comparedAtMs;
    this.#comparedAtMs = monotonicMs;
    const wallMs = this.#source.realtimeMs();
    const aheadMs = monotonicMs + this.#offsetMs - wallMs;
    if (Math.abs(aheadMs) > BIG_STEP_MS) {
      this.#offsetMs = wallMs - monotonicMs;
      this.nowMs = Math.floor(wallMs);
      this.bigSteps++;
      this.lastBigStepMs = -aheadMs;
    } else if (aheadMs > 0) {
      this.#offsetMs -= Math.min(aheadMs, passedMs * SLOW_DOWN);
    } else {
      this.#offsetMs -= aheadMs;
    }
  }
}
