/**
 * Large hashes, lists, sets and sorted sets that have been read from bytes of RDB: put in order, and stored leaf by leaf, which costs a tenth of
 * inserting the elements.
 *
 * Owns tables of its own. Invariant: nothing is stored before all of it has been read; none of these would be packed by the settings.
 */
import type { Settings } from '../../config/index.js';
import { ItemType } from '../../layout/item.js';
import { Change, type Collection, HASHES, LISTS, SETS } from '../../store/collections/collection.js';
import { HashMark } from '../../store/collections/forms.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { LongResult } from '../collections/long-store.js';
import { orderByHash } from '../collections/ordering.js';
import { TableSource } from '../collections/table-source.js';
import { isLong, isSliceOver, type Steps } from '../long-work.js';
import { compareMembers } from '../sets/member-table.js';
import { placeMembers, ScoredMembers } from '../sorted-sets/sorted-set-result.js';
import type { GatheredValue } from './gathered-value.js';

const ORDERED_A_LOOK = 8192;

/** True for a collection of so many elements that it is stored this way. */
export function isLarge(settings: Readonly<Settings>, type: ItemType, count: number): boolean {
  if (!isLong(count)) return false;
  switch (type) {
    case ItemType.LIST:
      return count > settings.listMaxListpackSize;
    case ItemType.SET:
      return count > Math.max(settings.setMaxIntsetEntries, settings.setMaxListpackEntries);
    case ItemType.ZSET:
      return count > settings.zsetMaxListpackEntries;
    case ItemType.HASH:
      return count > settings.hashMaxListpackEntries;
    default:
      return false;
  }
}

/** Puts a value in the order in which it is stored, for a key of this hash. */
export function* placeValue(keyspace: Keyspace, hash: number, value: GatheredValue): Steps<LongResult> {
  const { type, keys, values, numbers } = value;
  const { count } = keys;
  if (type === ItemType.ZSET) {
    const own = new ScoredMembers(keys);
    own.scores = numbers;
    return yield* placeMembers(keyspace, own);
  }
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  if (type === ItemType.LIST) return { shape: LISTS, count, source: new TableSource(keys, order) };
  const byHash = yield* orderByHash(order, keys.hashes, (a, b) => compareMembers(keys, a, b));
  if (type === ItemType.SET) return { shape: SETS, count, source: new TableSource(keys, byHash) };
  const marks = (yield* hasExpiries(numbers, count)) ? HashMark.EXPIRES : 0;
  if (marks !== 0) keyspace.noteFieldExpiry(hash);
  return { shape: HASHES, count, source: new TableSource(keys, byHash, { values, expiriesMs: numbers }), marks };
}

function* hasExpiries(expiriesMs: Float64Array, count: number): Steps<boolean> {
  for (let i = 0; i < count; i++) {
    if (expiriesMs[i] !== 0) return true;
    if (i % ORDERED_A_LOOK === 0 && isSliceOver()) yield;
  }
  return false;
}

/** Stores a value at once as an open collection that does not exist yet. False = no memory: nothing of it is there. */
export function storeLarge(keyspace: Keyspace, hash: number, value: GatheredValue, into: Collection): boolean {
  const placing = placeValue(keyspace, hash, value);
  let placed = placing.next();
  while (placed.done !== true) placed = placing.next();
  const { source, count, side, marks = 0 } = placed.value;
  if (into.createTree() !== Change.DONE) return false;
  let isWhole = fill(count, (at) => into.append(source, at, count));
  if (isWhole && side !== undefined) {
    const { hashes, scores, order } = side;
    isWhole = fill(count, (at) => into.appendMembers(hashes, scores, order, at));
  }
  if (isWhole && marks !== 0) isWhole = into.setMarks(marks) === Change.DONE;
  if (!isWhole) into.removeKey();
  return isWhole;
}

function fill(count: number, append: (at: number) => number): boolean {
  for (let at = 0; at < count; ) {
    const added = append(at);
    if (added === 0) return false;
    at += added;
  }
  return true;
}
