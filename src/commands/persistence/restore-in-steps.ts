/**
 * RESTORE of large hashes, lists, sets and sorted sets: what has been read is put in order and stored leaf by leaf, over several turns.
 *
 * Owns tables of its own. Invariant: the key has what it had until the new value is whole.
 */
import { ItemType } from '../../layout/item.js';
import { HASHES, LISTS, SETS } from '../../store/collections/collection.js';
import { HashMark } from '../../store/collections/forms.js';
import { type LongResult, storeInSteps } from '../collections/long-store.js';
import { orderByHash } from '../collections/ordering.js';
import { TableSource } from '../collections/table-source.js';
import type { Context } from '../context.js';
import { isLong, isSliceOver, type LongWork, type Steps } from '../long-work.js';
import { compareMembers } from '../sets/member-table.js';
import { placeMembers, ScoredMembers } from '../sorted-sets/sorted-set-result.js';
import type { GatheredValue } from './gathered-value.js';

const ORDERED_A_LOOK = 8192;

/** True for a collection of so many elements that storing it takes steps, and that is none of the packed ones by the settings. */
export function isLongValue({ environment }: Context, { type, count }: GatheredValue): boolean {
  const { settings } = environment;
  switch (type) {
    case ItemType.LIST:
      return isLong(count) && count > settings.listMaxListpackSize;
    case ItemType.SET:
      return isLong(count) && count > Math.max(settings.setMaxIntsetEntries, settings.setMaxListpackEntries);
    case ItemType.ZSET:
      return isLong(count) && count > settings.zsetMaxListpackEntries;
    case ItemType.HASH:
      return isLong(count) && count > settings.hashMaxListpackEntries;
    default:
      return false;
  }
}

/** Makes a value the command's key's, with this expiry. False = an error has been replied, or the work must be repeated. */
export function* restoreInSteps(
  context: Context,
  work: LongWork,
  value: GatheredValue,
  expiryMs: number,
): Steps<boolean> {
  const result = yield* place(context, value);
  return yield* storeInSteps(context, work, 0, { ...result, expiryMs });
}

function* place(context: Context, { type, keys, values, numbers }: GatheredValue): Steps<LongResult> {
  const { count } = keys;
  if (type === ItemType.ZSET) {
    const own = new ScoredMembers(keys);
    own.scores = numbers;
    return yield* placeMembers(context, own);
  }
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  if (type === ItemType.LIST) return { shape: LISTS, count, source: new TableSource(keys, order) };
  const byHash = yield* orderByHash(order, keys.hashes, (a, b) => compareMembers(keys, a, b));
  if (type === ItemType.SET) return { shape: SETS, count, source: new TableSource(keys, byHash) };
  const marks = (yield* hasExpiries(numbers, count)) ? HashMark.EXPIRES : 0;
  if (marks !== 0) context.keyspace.noteFieldExpiry(context.keyHash);
  return { shape: HASHES, count, source: new TableSource(keys, byHash, { values, expiriesMs: numbers }), marks };
}

function* hasExpiries(expiriesMs: Float64Array, count: number): Steps<boolean> {
  for (let i = 0; i < count; i++) {
    if (expiriesMs[i] !== 0) return true;
    if (i % ORDERED_A_LOOK === 0 && isSliceOver()) yield;
  }
  return false;
}
