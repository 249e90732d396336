import { expect, it } from 'vitest';
import { LatencyBucket, latencyBucket, latencyBucketEnd } from './latency-buckets.js';

it('each value lies in a bucket that ends above it, less than 1/16 away; buckets rise', () => {
  for (let ns = 0; ns < 200_000; ns += 7) {
    const bucket = latencyBucket(ns);
    expect(latencyBucketEnd(bucket)).toBeGreaterThan(ns);
    if (bucket > 0) expect(latencyBucketEnd(bucket - 1)).toBeLessThanOrEqual(ns);
  }
  for (let bucket = 17; bucket < LatencyBucket.COUNT; bucket++) {
    const width = latencyBucketEnd(bucket) - latencyBucketEnd(bucket - 1);
    expect(width / latencyBucketEnd(bucket - 1)).toBeLessThanOrEqual(1 / 16);
  }
});

it('powers of two times 1,024 ns are borders, and the last bucket takes the rest', () => {
  for (let octave = 0; octave <= LatencyBucket.OCTAVES; octave++) {
    expect(latencyBucketEnd(16 + octave * 16 - 1)).toBe(1024 * 2 ** octave);
  }
  expect(latencyBucket(5e9)).toBe(LatencyBucket.COUNT - 1);
  expect(latencyBucket(-1)).toBe(0);
});
