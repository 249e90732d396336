/**
 * Iteration with SCAN's guarantee: a key that is there from beginning to end is visited, however the index grows meanwhile.
 *
 * A cursor is shard * 2^24 + position, where position counts through the shard-local hash bits in bit-reversed order. Bucket i of a table with
 * k-bit buckets holds one prefix of that order; splitting only refines it, so a position stays meaningful (the idea of
 * Redis's dictScan, carried over to linear hashing).
 */
import { Bucket } from '../layout/bucket.js';
import { Database, Shard } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { Notify } from './change-feed.js';
import { localBucket } from './index-cursor.js';
import type { Keyspace } from './keyspace.js';

const POSITION_BITS = 24;
const POSITIONS = 1 << POSITION_BITS;

/**
 * Visits the live items of one bucket of a database under its shard's lock, with the cursor of `keyspace` on each, and removes those whose
 * time has come; `visit` must not change anything. Returns the next cursor, 0 at the end. An unknown cursor begins at the nearest one. Shards without items of
 * the database are passed over: a walk through a small one is short.
 */
export function scanBucket(
  keyspace: Keyspace,
  db: number,
  cursor: number,
  visit: (keyspace: Keyspace) => void,
): number {
  const { memory, index } = keyspace;
  const shard = Math.floor(cursor / POSITIONS);
  if (!(cursor >= 0) || shard >= memory.shardCount) return 0;
  const position = cursor % POSITIONS;
  const physical = keyspace.physical(db);
  if (isEmpty(memory, shard, physical)) return firstOfNext(memory, shard, physical);
  const shardWord = memory.shardTable + shard * Shard.WORDS;
  const exclusive = keyspace.gate.isExclusive;
  if (!exclusive) memory.lock(shardWord);
  const buckets = memory.ctl[shardWord + Shard.BUCKETS_WORD];
  const bucket = localBucket(reverseBits(position), buckets);
  index.openBucket(bucket, shard);
  do {
    const { words, base } = index;
    for (let slot = 0; slot < Bucket.SLOTS; slot++) {
      if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) continue;
      index.slot = slot;
      keyspace.openEntry();
      if (keyspace.itemDatabase !== physical) continue;
      if (!index.hasExpiry || index.expiryMs > keyspace.nowMs) {
        visit(keyspace);
        continue;
      }
      if (keyspace.keepsExpired) continue;
      keyspace.countExpired();
      keyspace.removeEntry(Notify.EXPIRED);
    }
  } while (index.next());
  if (!exclusive) {
    keyspace.settle();
    memory.unlock(shardWord);
    keyspace.freeUnlinked();
  }

  const next = (Math.floor(position / span(bucket, buckets)) + 1) * span(bucket, buckets);
  if (next < POSITIONS) return shard * POSITIONS + next;
  return firstOfNext(memory, shard, physical);
}

/** Without the lock: a shard that holds an item throughout never counts none. */
function isEmpty(memory: Memory, shard: number, physical: number): boolean {
  return memory.ctl[memory.databaseTable + Database.COUNTS_WORD + shard * Database.SHARD_WORDS + physical] === 0;
}

/** The first cursor behind a shard, in the next one that holds something; 0 = there is none. */
function firstOfNext(memory: Memory, shard: number, physical: number): number {
  for (let next = shard + 1; next < memory.shardCount; next++) {
    if (!isEmpty(memory, next, physical)) return next * POSITIONS;
  }
  return 0;
}

/** A random live key of a database (its own copy), or null when it is empty. */
export function randomKey(keyspace: Keyspace, db: number, items: number): Uint8Array | null {
  if (items === 0) return null;
  const { memory } = keyspace;
  let key: Uint8Array | null = null;
  let seen = 0;
  // Reservoir of one over the items of a bucket.
  const visit = (at: Keyspace): void => {
    seen++;
    if (Math.random() * seen < 1) key = at.keyBytes.u8.slice(at.keyOffset, at.keyOffset + at.keyLength);
  };
  const total = memory.shardCount * POSITIONS;
  for (let tries = 0; tries < RANDOM_TRIES && key === null; tries++) {
    scanBucket(keyspace, db, Math.floor(Math.random() * total), visit);
  }
  // A nearly empty database: go through it in order from a random shard on.
  if (key === null) {
    const start = Math.floor(Math.random() * memory.shardCount);
    for (let i = 0; i < memory.shardCount && key === null; i++) {
      const shard = (start + i) % memory.shardCount;
      if (isEmpty(memory, shard, keyspace.physical(db))) continue;
      let cursor = shard * POSITIONS;
      do {
        cursor = scanBucket(keyspace, db, cursor, visit);
      } while (key === null && cursor !== 0 && Math.floor(cursor / POSITIONS) === shard);
    }
  }
  return key;
}

/** Random buckets looked into before the ordered walk. */
const RANDOM_TRIES = 64;

/** Positions that a bucket covers: its low hash bits are fixed, the reversed position's high bits. */
function span(bucket: number, buckets: number): number {
  const level = 31 - Math.clz32(buckets);
  const split = bucket >= 1 << level || bucket < buckets - (1 << level);
  return 1 << (POSITION_BITS - (split ? level + 1 : level));
}

function reverseBits(position: number): number {
  let reversed = 0;
  for (let bit = 0; bit < POSITION_BITS; bit++) reversed |= ((position >>> bit) & 1) << (POSITION_BITS - 1 - bit);
  return reversed;
}
