/**
 * Removes from the index what lies in lost pages of the capacity tier (memory/lost-pages), and tells of it.
 *
 * Alone, behind the gate. Invariant: of a lost item nothing is read, neither its header: counts are made anew.
 */
import { Bucket } from '../layout/bucket.js';
import { Super } from '../layout/superblock.js';
import { NO_PAGE } from '../memory/page-pool.js';
import type { Keyspace } from './keyspace.js';
import { recountShard } from './repair.js';
import { forEachEntry } from './walks.js';

/** Inside a batch, without locks. */
export function purgeLost(keyspace: Keyspace): void {
  keyspace.closeGate();
  const { memory, copies } = keyspace;
  const { ctl } = memory;
  const first = ctl[Super.LOST_PAGE_WORD];
  const isNew = ctl[Super.LOST_PURGED_WORD] !== first;
  let items = 0;
  for (let shard = 0; shard < memory.shardCount && isNew; shard++) {
    forEachEntry(memory, shard, (words, base, slot) => {
      const at = base + Bucket.SLOT_WORD + slot * 2;
      const page = words[at + 1];
      if (page >= first) {
        words[at + 1] = NO_PAGE;
        items++;
      } else if (copies.find(page, words[at] & 0xffff) && copies.page >= first) {
        copies.abandon(page, words[at] & 0xffff);
      }
    });
    recountShard(memory, shard);
  }
  ctl[Super.LOST_PURGED_WORD] = first;
  keyspace.openGate();
  if (isNew) keyspace.onLoss?.(items, memory.capacityBase + memory.capacityPages - first);
}
