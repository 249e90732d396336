/**
 * Distinct random elements of a collection: HRANDFIELD, SRANDMEMBER, ZRANDMEMBER with a positive count.
 */
import type { Collection } from '../../store/collections/collection.js';
import type { Context } from '../context.js';

/** To a random element of a collection that has some. */
export function seekRandom(from: Collection): void {
  from.seekRank(Math.floor(Math.random() * from.count));
}

/** Calls `visit` on `wanted` (at most all) distinct elements, each as probable as the others. */
export function visitRandom(
  context: Context,
  from: Collection,
  wanted: number,
  visit: (context: Context, from: Collection) => void,
): void {
  const size = from.count;
  // Few of many.
  if (wanted * 8 < size) return visitSparse(context, from, wanted, visit);
  // Each element is taken with the probability that is left: a walk in the collection's own order.
  let left = wanted;
  from.first();
  for (let seen = 0; left > 0; seen++, from.next()) {
    if (Math.random() * (size - seen) >= left) continue;
    visit(context, from);
    left--;
  }
}

/** Distinct ranks, drawn by Floyd's method. */
function visitSparse(
  context: Context,
  from: Collection,
  wanted: number,
  visit: (context: Context, from: Collection) => void,
): void {
  const ranks = new Set<number>();
  const size = from.count;
  for (let i = size - wanted; i < size; i++) {
    const rank = Math.floor(Math.random() * (i + 1));
    ranks.add(ranks.has(rank) ? i : rank);
  }
  for (const rank of ranks) {
    from.seekRank(rank);
    visit(context, from);
  }
}
