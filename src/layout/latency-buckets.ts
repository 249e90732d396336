/**
 * Buckets of a latency histogram: log-linear over nanoseconds, as HdrHistogram's, so that adding a value is a few integer steps.
 *
 *     0 .. 15      below 1,024 ns, 64 ns each
 *     16 + 16 k +  from 1,024 * 2^k ns, sixteen equal parts of that octave each: 6 % wide at most
 *
 * Powers of two times 1,024 ns are bucket borders: LATENCY HISTOGRAM tells its numbers there. Longer than a second counts as a second.
 */
export const enum LatencyBucket {
  SUB_SHIFT = 4,
  SUB_COUNT = 16,
  FIRST_OCTAVE_SHIFT = 10,
  OCTAVES = 20,
  COUNT = 336,
  MAX_NS = 0x3fffffff,
}

/** Bucket of a duration in whole nanoseconds. */
export function latencyBucket(ns: number): number {
  if (ns < 1 << LatencyBucket.FIRST_OCTAVE_SHIFT) {
    return ns < 0 ? 0 : ns >>> (LatencyBucket.FIRST_OCTAVE_SHIFT - LatencyBucket.SUB_SHIFT);
  }
  const value = Math.min(ns, LatencyBucket.MAX_NS);
  const octave = 31 - Math.clz32(value);
  const part = (value >>> (octave - LatencyBucket.SUB_SHIFT)) & (LatencyBucket.SUB_COUNT - 1);
  return ((octave - LatencyBucket.FIRST_OCTAVE_SHIFT + 1) << LatencyBucket.SUB_SHIFT) + part;
}

/** First nanosecond above a bucket. */
export function latencyBucketEnd(bucket: number): number {
  if (bucket < LatencyBucket.SUB_COUNT) return (bucket + 1) * 64;
  const octave = (bucket >>> LatencyBucket.SUB_SHIFT) - 1;
  const part = bucket & (LatencyBucket.SUB_COUNT - 1);
  return (
    (LatencyBucket.SUB_COUNT + part + 1) * 2 ** (octave + LatencyBucket.FIRST_OCTAVE_SHIFT - LatencyBucket.SUB_SHIFT)
  );
}
