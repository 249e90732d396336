/** Random histories against redis-server: every reply is compared. RANDOM_RUNS sets how many. */
import fc from 'fast-check';
import { it } from 'vitest';
import { blurTimes, histories } from '../helpers/random-commands.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';

const RUNS = Number(process.env.RANDOM_RUNS ?? 60);
const HISTORY = 60;
const PATIENCE_MS = 30_000 + RUNS * 100;

describeWithRedis('random histories', (peers) => {
  it(
    'get the same replies',
    () =>
      fc.assert(
        fc.asyncProperty(histories(HISTORY), (history) => peers.compare(history, { normalize: blurTimes })),
        { numRuns: RUNS },
      ),
    PATIENCE_MS,
  );
});
