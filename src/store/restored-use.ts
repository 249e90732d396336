/** How an item that comes from a dump has been used, in the terms of the policy that holds here. Owns nothing. */
import { Bucket } from '../layout/bucket.js';
import type { Keyspace } from './keyspace.js';
import { Lfu, lfuWord } from './lfu.js';

/** Of the found item: seconds since its last use, its logarithmic counter; -1 = not known. What the policy has no use for is dropped, as in Redis. */
export function restoreUse(keyspace: Keyspace, idleS: number, frequency: number): void {
  const { accessNow } = keyspace;
  if (keyspace.isLfu) {
    if (frequency >= 0) keyspace.accessWord = lfuWord(accessNow >>> Lfu.MINUTES_SHIFT, frequency);
  } else if (idleS >= 0) {
    // Older than that would look new: the clock has 24 bits.
    keyspace.accessWord = (accessNow - Math.min(idleS, Bucket.ACCESS_MASK >>> 1)) & Bucket.ACCESS_MASK;
  }
}
