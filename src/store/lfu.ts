/**
 * The LFU access word: what the 24 bits of an entry's access field mean under the *-lfu policies, as in Redis.
 *
 *     minutes of the last decrement, modulo 2^16 (16 bits) | logarithmic counter (8 bits)
 *
 * The counter grows with probability 1 / ((counter - INITIAL) * factor + 1) a use and falls by one for each `decayMinutes` that have
 * passed. Pure arithmetic, owns nothing; words of the LRU policies read as LFU words adjust themselves after a while.
 */
export const enum Lfu {
  /** A new item's counter: it must live long enough to be used. */
  INITIAL = 5,
  COUNTER_MASK = 0xff,
  COUNTER_MAX = 255,
  MINUTES_SHIFT = 8,
  MINUTES_MASK = 0xffff,
}

export function lfuMinutes(nowMs: number): number {
  return Math.floor(nowMs / 60_000) & Lfu.MINUTES_MASK;
}

export function lfuWord(minutes: number, counter: number): number {
  return (minutes << Lfu.MINUTES_SHIFT) | counter;
}

/** Minutes since the word was last written; less than 2^16. */
export function lfuIdleMinutes(word: number, minutesNow: number): number {
  return (minutesNow - (word >>> Lfu.MINUTES_SHIFT)) & Lfu.MINUTES_MASK;
}

/** The counter as of now; `decayMinutes` 0 = it never falls. */
export function lfuCounter(word: number, minutesNow: number, decayMinutes: number): number {
  const counter = word & Lfu.COUNTER_MASK;
  if (decayMinutes === 0) return counter;
  const periods = Math.floor(lfuIdleMinutes(word, minutesNow) / decayMinutes);
  return periods > counter ? 0 : counter - periods;
}

/** The word after one more use; `random` in [0, 1). */
export function lfuUsed(
  word: number,
  minutesNow: number,
  decayMinutes: number,
  factor: number,
  random: number,
): number {
  const counter = lfuCounter(word, minutesNow, decayMinutes);
  const above = counter > Lfu.INITIAL ? counter - Lfu.INITIAL : 0;
  const grows = counter < Lfu.COUNTER_MAX && random * (above * factor + 1) < 1;
  return lfuWord(minutesNow, grows ? counter + 1 : counter);
}
