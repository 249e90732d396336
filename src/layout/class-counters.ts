/**
 * What is counted for each slab class, for memcached's `stats items` and `stats slabs`: a row of doubles a class.
 *
 *   | class 0: items in no slab chunk (whole pages, the capacity tier) | class 1 | ... | class SlabClass.MAX |     index: class * WORDS + counter
 *
 * Invariant: a table has one writer. A worker's is part of its counters (layout/counters); a keyspace without a server has one of its own.
 */
import { SlabClass } from './superblock.js';

export const enum ClassCounter {
  // Requests of memcached's protocols.
  getHits = 0,
  sets = 1,
  deleteHits = 2,
  incrHits = 3,
  decrHits = 4,
  casHits = 5,
  casBadval = 6,
  touchHits = 7,
  // What has become of items, whatever protocol they came by. Those with an expiry; never read; read since the hand last came by.
  evicted = 8,
  evictedExpiring = 9,
  evictedUnfetched = 10,
  evictedActive = 11,
  expired = 12,
  expiredUnfetched = 13,
  /** There was no chunk to be had. */
  outOfMemory = 14,
  /** A request had to make room. */
  roomsMade = 15,
  /** The background's look at entries that expire. */
  swept = 16,
  sweepRemoved = 17,
  /** Passed over by the hand, since a reply that is being sent refers to them. */
  pinned = 18,
  // Pages given to other classes: items and nodes of collections moved for it, items lost by it, chunks that were in use.
  moved = 19,
  nodesMoved = 20,
  moveEvicted = 21,
  moveBusy = 22,
  /** Of the last item evicted: seconds since it was used, and when it went (Unix milliseconds). No sums. */
  lastEvictedIdleS = 23,
  lastEvictedAtMs = 24,
  WORDS = 25,
}

export const CLASS_DOUBLES = (SlabClass.MAX + 1) * ClassCounter.WORDS;
