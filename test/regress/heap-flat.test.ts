/** The request path allocates nothing: the JavaScript heap stays flat over a million requests. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

interface Cost {
  readonly requests: number;
  /** Garbage collections meanwhile, of any kind. */
  readonly collections: number;
  readonly grownBytes: number;
}

it('the heap stays flat over a million requests', { timeout: 120_000 }, () => {
  const child = join(import.meta.dirname, 'heap-flat.mjs');
  const cost = JSON.parse(execFileSync(process.execPath, [child], { encoding: 'utf8' })) as Cost;
  expect(cost.requests).toBe(1_000_000);
  // A collection of the young generation comes every few megabytes: one of them, and growth below 4 MB, is some bytes a request at most.
  expect(cost.collections).toBeLessThanOrEqual(1);
  expect(cost.grownBytes).toBeLessThan(4 * 1024 * 1024);
});
