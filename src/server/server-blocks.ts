/** The memory that a server's threads share beside the store: counters, what a reset has left of them, scripts. Plain data, for any thread. */

import type { Settings } from '../config/index.js';
import { CounterRow, createCounterBaseline, createCounterBlock, SharedWord } from '../layout/counters.js';
import { createSharedScripts } from '../layout/shared-scripts.js';

export interface ServerBlocks {
  readonly counterBlock: SharedArrayBuffer;
  readonly counterBaseline: SharedArrayBuffer;
  /** layout/shared-scripts.ts */
  readonly sharedScripts: SharedArrayBuffer;
  readonly startedAtMs: number;
}

export function createBlocks(settings: Readonly<Settings>): ServerBlocks {
  const counterBlock = createCounterBlock(settings.workers);
  const { shared } = new CounterRow(counterBlock, 0);
  shared[SharedWord.prefixCounting] = settings.memcachedDetail ? 1 : 0;
  shared[SharedWord.lruCrawler] = settings.memcachedLruCrawler ? 1 : 0;
  return {
    counterBlock,
    counterBaseline: createCounterBaseline(),
    sharedScripts: createSharedScripts(),
    startedAtMs: Date.now(),
  };
}
