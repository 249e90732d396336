/**
 * Walks over the entries of the index and the records of log pages, for whoever mends or checks a pool.
 *
 * While nobody else is at work in what is walked. Invariant: a walk ends, also in a damaged pool, if by an error.
 */
import { Bucket } from '../layout/bucket.js';
import { Item } from '../layout/item.js';
import { locationOffset, Page, pageOffset } from '../layout/location.js';
import { PageInfo, Shard } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';

/** Buckets of a chain; more are a circle. Where the index cannot grow, chains do. */
const CHAIN_MAX = 1 << 20;

/** Calls `visit` for each occupied slot of a shard's buckets and overflow buckets. */
export function forEachEntry(
  memory: Memory,
  shard: number,
  visit: (words: Int32Array, base: number, slot: number, arena: number) => void,
): void {
  const buckets = memory.ctl[memory.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD];
  for (let local = 0; local < buckets; local++) forEachSlot(memory, shard, local, visit);
}

/** Calls `visit` for each occupied slot of one bucket of a shard and its overflow buckets. */
export function forEachSlot(
  memory: Memory,
  shard: number,
  local: number,
  visit: (words: Int32Array, base: number, slot: number, arena: number) => void,
): void {
  const bucket = (local << memory.shardShift) | shard;
  let page = memory.ctl[memory.directory + (bucket >>> Bucket.PAGE_SHIFT)];
  let within = bucket & Bucket.PAGE_MASK;
  for (let length = 1; ; length++) {
    if (length > CHAIN_MAX) throw new Error(`shard ${shard}: the chain of bucket ${local} does not end`);
    const arena = page >>> Page.ARENA_SHIFT;
    const words = memory.arenas[arena].i32;
    const base = (pageOffset(page) >>> 2) + (within << 5);
    for (let slot = 0; slot < Bucket.SLOTS; slot++) {
      if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] !== NO_PAGE) visit(words, base, slot, arena);
    }
    const reference = words[base + Bucket.OVERFLOW_WORD];
    if (reference === 0) break;
    page = reference >>> Bucket.PAGE_SHIFT;
    within = reference & Bucket.PAGE_MASK;
  }
}

/** Calls `visit` for each record of a log page. */
export function forEachLogItem(
  memory: Memory,
  page: number,
  visit: (unit: number, units: number, hash: number) => void,
): void {
  const end = memory.ctl[memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD];
  const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
  for (let position = memory.logFirstUnit; position < end; ) {
    const unit = position + memory.logPrefixUnits;
    const header = locationOffset(page, unit) >>> 2;
    const bytes =
      Item.HEADER_BYTES + (i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK) + i32[header + Item.VALUE_LENGTH_WORD];
    const units = (bytes + Page.UNIT_BYTES - 1) >>> Page.UNIT_SHIFT;
    if (units === 0) throw new Error(`page ${page} unit ${unit}: a record without length`);
    visit(unit, units, i32[header + Item.HASH_WORD]);
    position = unit + units;
  }
}
