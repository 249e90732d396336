/** What the index takes where items come and go: overflow buckets that a chain can do without are freed. */
import { expect, it } from 'vitest';
import { openTestStore } from '../../test/helpers/store.js';
import { Bucket } from '../layout/bucket.js';
import { Bytes } from '../layout/bytes.js';
import { Shard } from '../layout/superblock.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';

const MIB = 1024 * 1024;
const ITEMS = 30_000;
/** Times that each item is replaced by another. */
const ROUNDS = 3;

/** Chains of several buckets, and those of them whose entries would fit in fewer. */
function chains({ memory, index }: Keyspace): { long: number; wasteful: number } {
  let long = 0;
  let wasteful = 0;
  for (let shard = 0; shard < memory.shardCount; shard++) {
    const buckets = memory.ctl[memory.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD];
    for (let bucket = 0; bucket < buckets; bucket++) {
      let links = 0;
      let entries = 0;
      index.openBucket(bucket, shard);
      do {
        links++;
        for (let slot = 0; slot < Bucket.SLOTS; slot++) {
          if (index.words[index.base + Bucket.SLOT_WORD + 1 + slot * 2] !== NO_PAGE) entries++;
        }
      } while (index.next());
      if (links > 1) long++;
      if (links > 1 && entries <= Bucket.SLOTS * (links - 1)) wasteful++;
    }
  }
  return { long, wasteful };
}

it('stays as short as the items ask for', () => {
  const keyspace = openTestStore({ dramBytes: 32 * MIB, policy: 'noeviction' });
  const key = Bytes.allocate(8);
  const hashOf = (i: number): number => {
    key.i32[0] = i;
    return keyspace.hash(0, key, 0, 8);
  };
  const add = (i: number): void => {
    const hash = hashOf(i);
    if (!keyspace.stage(hash, 0, key, 0, 8, 8)) throw new Error('out of memory');
    keyspace.lock(hash);
    keyspace.commit(1, 0, 0, 0);
    keyspace.unlock(hash);
  };
  keyspace.enterBatch();
  for (let i = 0; i < ITEMS; i++) add(i);
  for (let i = 0; i < ITEMS * ROUNDS; i++) {
    const hash = hashOf(i);
    keyspace.lock(hash);
    if (!keyspace.find(hash, 0, key, 0, 8)) throw new Error(`key ${i} is lost`);
    keyspace.remove();
    keyspace.unlock(hash);
    add(ITEMS + i);
  }
  checkInvariants(keyspace);
  const { long, wasteful } = chains(keyspace);
  expect(long).toBeGreaterThan(200);
  expect(wasteful / long).toBeLessThan(0.4);
  for (let i = ITEMS * ROUNDS; i < ITEMS * (ROUNDS + 1); i++) {
    const hash = hashOf(i);
    keyspace.lock(hash);
    if (!keyspace.find(hash, 0, key, 0, 8)) throw new Error(`key ${i} is lost`);
    keyspace.unlock(hash);
  }
  keyspace.leaveBatch();
});
