/**
 * Random elements of a collection: HRANDFIELD, SRANDMEMBER, ZRANDMEMBER with a count, SPOP.
 */
import type { Collection } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { STEP_ELEMENTS, takeSteps } from '../long-steps.js';
import { isLong, isSliceOver, type Steps } from '../long-work.js';

/** Draws between two looks at the clock. */
const DRAWS_A_LOOK = 4096;

type Visit = (context: Context, from: Collection) => void;
/** Opens the command's collection, which exists, or returns it as it is open. */
export type Open = (context: Context) => Collection;

/** To a random element of a collection that has some. */
export function seekRandom(from: Collection): void {
  from.seekRank(Math.floor(Math.random() * from.count));
}

/**
 * Replies random elements of the collection that `open` opens, behind what `begin` replies: `count` distinct ones, at most all, each as probable
 * as the others; of a negative count as many as that says, each of all. Many take steps.
 */
export function replyRandom(
  context: Context,
  open: Open,
  count: number,
  begin: (wanted: number) => void,
  visit: Visit,
): void {
  const wanted = count < 0 ? -count : Math.min(count, open(context).count);
  if (isLong(wanted)) {
    return takeSteps(context, 0, 1, () => inSteps(context, open, wanted, count < 0, begin, visit));
  }
  begin(wanted);
  if (count >= 0) return visitDistinct(context, open(context), wanted, visit);
  const from = open(context);
  for (let i = 0; i < wanted; i++) {
    seekRandom(from);
    visit(context, from);
  }
}

function visitDistinct(context: Context, from: Collection, wanted: number, visit: Visit): void {
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
function visitSparse(context: Context, from: Collection, wanted: number, visit: Visit): void {
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

function* inSteps(
  context: Context,
  open: Open,
  wanted: number,
  mayRepeat: boolean,
  begin: (wanted: number) => void,
  visit: Visit,
): Steps {
  begin(wanted);
  if (!mayRepeat) return yield* visitRanks(context, open, yield* chooseRanks(open(context).count, wanted), visit);
  for (let i = 0; i < wanted; i++) {
    const from = open(context);
    seekRandom(from);
    visit(context, from);
    if (i % STEP_ELEMENTS === STEP_ELEMENTS - 1 && isSliceOver()) yield;
  }
}

/** `wanted` of the ranks below `size`, each choice as probable as the others, rising. */
export function* chooseRanks(size: number, wanted: number): Steps<Uint32Array> {
  const ranks = new Uint32Array(wanted);
  let left = wanted;
  for (let rank = 0; left > 0; rank++) {
    if (Math.random() * (size - rank) < left) ranks[wanted - left--] = rank;
    if (rank % DRAWS_A_LOOK === 0 && isSliceOver()) yield;
  }
  return ranks;
}

/** Visits the elements of these ranks, rising. */
export function* visitRanks(context: Context, open: Open, ranks: Uint32Array, visit: Visit): Steps {
  for (let i = 0; i < ranks.length; ) {
    const from = open(context);
    from.seekRank(ranks[i]);
    for (const end = Math.min(i + STEP_ELEMENTS, ranks.length); i < end; ) {
      visit(context, from);
      if (++i === end) break;
      if (ranks[i] === ranks[i - 1] + 1) from.next();
      else from.seekRank(ranks[i]);
    }
    if (isSliceOver()) yield;
  }
}
