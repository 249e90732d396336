/**
 * The index of a pool made anew from the entries that were found sound (store/salvage).
 *
 * By the only participant of a copy. Owns nothing. Invariant: of two items of one key the newer stays, the other is removed as any command removes one.
 */
import { Bucket } from '../layout/bucket.js';
import { Item } from '../layout/item.js';
import { locationOffset, Page } from '../layout/location.js';
import { Shard } from '../layout/superblock.js';
import { Notify } from './change-feed.js';
import type { Keyspace } from './keyspace.js';
import { recountShard } from './repair.js';
import { Found, type Salvage } from './salvage.js';

/** Returns how many items are in it. Throws when DRAM has no room for the index. */
export function rebuildIndex(keyspace: Keyspace, salvage: Salvage): number {
  const { memory } = keyspace;
  let items = 0;
  keyspace.enterBatch();
  for (let i = 0; i < salvage.count; i++) items += enter(keyspace, salvage, i * Found.WORDS);
  for (let shard = 0; shard < memory.shardCount; shard++) recountShard(memory, shard);
  keyspace.leaveBatch();
  return items;
}

/** Items that there are more. */
function enter(keyspace: Keyspace, { found, claims }: Salvage, at: number): number {
  const { memory, index } = keyspace;
  const page = found[at + Found.PAGE_WORD];
  const unit = found[at + Found.UNIT_WORD] & 0xffff;
  if (!claims.has(page, unit)) return 0;
  const item = memory.arenas[page >>> Page.ARENA_SHIFT];
  const offset = locationOffset(page, unit);
  const header = offset >>> 2;
  const shape = item.i32[header + Item.SHAPE_WORD];
  const hash = item.i32[header + Item.HASH_WORD];
  const lockWord = index.shardWord(hash);
  memory.lock(lockWord);
  const keyLength = shape & Item.KEY_LENGTH_MASK;
  const isDouble = keyspace.findIn(hash, shape >>> Item.DB_SHIFT, item, offset + Item.HEADER_BYTES, keyLength);
  const isOlder = isDouble && compareVersions(item.i32, header, keyspace.value.i32, keyspace.itemOffset >>> 2) < 0;
  if (isDouble && !isOlder) {
    keyspace.removeEntry(Notify.NONE);
    keyspace.settle();
  }
  if (!index.insert(hash, page, unit, accessOf(found, at))) throw new Error('DRAM has no room for the index');
  restoreUse(keyspace, found, at, hash);
  raiseVersion(keyspace, hash, item.i32, header);
  if (isOlder) keyspace.removeEntry(Notify.NONE);
  keyspace.settle();
  keyspace.growShard(hash);
  memory.unlock(lockWord);
  keyspace.forgetFinds();
  keyspace.freeUnlinked();
  return isDouble ? 0 : 1;
}

function accessOf(found: Int32Array, at: number): number {
  return (found[at + Found.META_HIGH_WORD] & 0xffff) | (found[at + Found.ACCESS_HIGH_WORD] << 16);
}

/** The index stands on the new entry. */
function restoreUse({ index }: Keyspace, found: Int32Array, at: number, hash: number): void {
  const flags = found[at + Found.UNIT_WORD];
  const frequency = (flags >>> Found.FREQUENCY_SHIFT) & 3;
  if ((flags & Found.FETCHED) !== 0)
    index.words[index.base + Bucket.BITS_WORD] |= 1 << (Bucket.FETCHED_SHIFT + index.slot);
  if ((flags & Found.PROVEN) !== 0) index.spare();
  index.setFrequency(frequency);
  if ((flags & Found.EXPIRES) === 0) return;
  const high = found[at + Found.META_HIGH_WORD] >>> 16;
  index.setExpiry(hash, high * 0x1_0000_0000 + (found[at + Found.META_WORD] >>> 0));
}

/** The next version that the shard gives is above the item's. */
function raiseVersion({ index, memory }: Keyspace, hash: number, i32: Int32Array, header: number): void {
  const { ctl } = memory;
  const own = index.shardWord(hash) + Shard.VERSION_LOW_WORD;
  if (compareVersions(i32, header, ctl, own - Item.VERSION_LOW_WORD) <= 0) return;
  ctl[own] = i32[header + Item.VERSION_LOW_WORD];
  ctl[own + 1] = i32[header + Item.VERSION_HIGH_WORD];
}

function compareVersions(a: Int32Array, aHeader: number, b: Int32Array, bHeader: number): number {
  const high = a[aHeader + Item.VERSION_HIGH_WORD] - b[bHeader + Item.VERSION_HIGH_WORD];
  if (high !== 0) return high;
  return (a[aHeader + Item.VERSION_LOW_WORD] >>> 0) - (b[bHeader + Item.VERSION_LOW_WORD] >>> 0);
}
