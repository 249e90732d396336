/**
 * LREM, LINSERT and LPOS of long lists: the search for equal elements takes steps, and so does what LREM makes of many.
 *
 * The list is held meanwhile; what is found are ranks. Invariant: it stays as it was until all have been found, and is changed in one step.
 */
import { type Collection, LISTS } from '../../store/collections/collection.js';
import { storeInSteps } from '../collections/long-store.js';
import { RemainingSource } from '../collections/remaining-source.js';
import type { Context } from '../context.js';
import { STEP_ELEMENTS } from '../long-steps.js';
import { isSliceOver, type LongWork, type Steps } from '../long-work.js';
import { isElement, openList } from './list-elements.js';

/** Of the collections that a command may have open: number 0 is the draft. */
const LIST = 1;
/** So many elements are removed one by one, in about a millisecond. */
const ONE_BY_ONE_MAX = 1024;

/** What to look for: the elements equal to an argument. */
export interface Search {
  readonly argument: number;
  readonly isReversed: boolean;
  /** Matches that do not count, then how many are wanted. */
  readonly skip: number;
  readonly wanted: number;
  /** Elements that are looked at, at most. */
  readonly elements: number;
}

const END = Number.POSITIVE_INFINITY;
export const ALL: Omit<Search, 'argument'> = { isReversed: false, skip: 0, wanted: END, elements: END };
export const FIRST: Omit<Search, 'argument'> = { ...ALL, wanted: 1 };

/** The command's list, which exists; opened anew in each turn. */
export function openedList(context: Context): Collection {
  const list = context.keyspace.collections[LIST];
  if (!list.exists) openList(context, LIST, context.keyHash, 1);
  return list;
}

/** Ranks of the matches, in the order in which they are found. */
export function* findMatches(context: Context, search: Search): Steps<Uint32Array> {
  const { argument, isReversed, wanted } = search;
  // A transaction's command before may have left another one open.
  context.keyspace.collections[LIST].close();
  const { count } = openedList(context);
  const end = Math.min(search.elements, count);
  let ranks = new Uint32Array(64);
  let found = 0;
  let { skip } = search;
  for (let i = 0; i < end && found < wanted; ) {
    const list = openedList(context);
    list.seekRank(isReversed ? count - 1 - i : i);
    for (const stop = Math.min(i + STEP_ELEMENTS, end); i < stop && found < wanted; i++) {
      if (isElement(context, list, argument) && --skip < 0) {
        if (found === ranks.length) ranks = grown(ranks);
        ranks[found++] = isReversed ? count - 1 - i : i;
      }
      if (isReversed) list.previous();
      else list.next();
    }
    if (isSliceOver()) yield;
  }
  return ranks.subarray(0, found);
}

function grown(ranks: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(ranks.length * 2);
  larger.set(ranks);
  return larger;
}

/** Removes the elements of these ranks, rising, some but not all. False = the work must be repeated, or an error has been replied. */
export function* removeRanks(context: Context, work: LongWork, ranks: Uint32Array): Steps<boolean> {
  const list = openedList(context);
  if (ranks.length <= ONE_BY_ONE_MAX) {
    for (let i = ranks.length - 1; i >= 0; i--) {
      list.seekRank(ranks[i]);
      list.remove();
    }
    return true;
  }
  const { count, marks } = list;
  list.standOnItem();
  const { expiryMs } = context.keyspace;
  const source = new RemainingSource(context, list, openedList, ranks);
  return yield* storeInSteps(context, work, 0, { shape: LISTS, count: count - ranks.length, source, marks, expiryMs });
}
