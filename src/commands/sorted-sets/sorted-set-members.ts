/**
 * What all sorted set commands share: opening one, finding a member, replying elements.
 *
 * Invariant: a sorted set holds no score that is NaN.
 */
import { Notify } from '../../store/change-feed.js';
import { type Collection, SORTED_SETS } from '../../store/collections/collection.js';
import type { Context } from '../context.js';

/** The sorted set of argument `i`, whose key's hash is `h`, as number `index` of those that are open; null after a WRONGTYPE reply. */
export function openSortedSet(context: Context, index: number, h: number, i: number): Collection | null {
  const set = context.open(index, SORTED_SETS, h, i);
  if (set !== null) setLimits(context, set);
  return set;
}

/** A draft for the key in argument `i`: see Context.openDraft. */
export function openSortedSetDraft(context: Context, index: number, h: number, i: number): Collection {
  const set = context.openDraft(index, SORTED_SETS, h, i);
  setLimits(context, set);
  return set;
}

function setLimits(context: Context, set: Collection): void {
  const { settings } = context.environment;
  set.packedEntriesMax = settings.zsetMaxListpackEntries;
  set.packedElementMax = settings.zsetMaxListpackValue;
}

/** The sorted set of the key, argument 1, for reading: counts a hit or a miss. */
export function openSortedSetToRead(context: Context): Collection | null {
  const set = openSortedSet(context, 0, context.keyHash, 1);
  if (set === null) return null;
  if (set.exists) context.hit();
  else context.miss();
  return set;
}

/** Positions on the member in argument `i` and loads it; false = there is none. */
export function findMember(context: Context, set: Collection, i: number): boolean {
  if (!set.seekKey(context.input, context.argOffset(i), context.argLength(i))) return false;
  set.load();
  return true;
}

/** Members of the sorted set of argument `i` have gone by `event`, with the last of them the key. */
export function notifyRemoved(context: Context, set: Collection, event: string, i: number): void {
  context.notify(Notify.ZSET, event, i);
  if (!set.exists) context.notify(Notify.GENERIC, 'del', i);
}

/** Begins a reply of `count` elements: with scores they are pairs in RESP3, twice as many replies before. */
export function beginElements(context: Context, count: number, withScores: boolean): void {
  const { reply } = context;
  reply.array(withScores && reply.protocol < 3 ? count * 2 : count);
}

/** Replies the element at the position. */
export function replyElement(context: Context, set: Collection, withScores: boolean): void {
  const { reply } = context;
  set.load();
  if (withScores && reply.protocol > 2) reply.array(2);
  reply.bulk(set.key, set.keyOffset, set.keyLength);
  if (withScores) reply.double(set.score);
}
