/**
 * Removing many members of a sorted set, over several turns where it takes them.
 *
 * The run of elements is cut out of the main tree at once; what takes time is the side tree, where its members stand anywhere, by hash. It is made
 * anew, as a draft: of the members that stay or, where these are more, of the old one without those that go. Invariant: the set stays as it was
 * until both trees are exchanged, in one step.
 */
import { Change, type Collection } from '../../store/collections/collection.js';
import { draftMembers, type SideMembers } from '../collections/long-store.js';
import { orderByHash } from '../collections/ordering.js';
import type { Context } from '../context.js';
import { STEP_ELEMENTS } from '../long-steps.js';
import { isSliceOver, keyOf, type LongWork, type Steps } from '../long-work.js';
import { openSortedSet } from './sorted-set-members.js';
import { compareScoreBytes } from './sorted-set-result.js';

/** Fewer are removed one by one, in about two milliseconds. */
const ONE_BY_ONE_MAX = 1024;
/** Of the collections that a command may have open: number 0 is the draft. */
const SET = 1;
const HASH_BYTES = 4;

/** True when the removal of so many members of a set takes steps. */
export function isLongRemoval(set: Collection, count: number): boolean {
  return count > ONE_BY_ONE_MAX && count < set.count && !set.isPacked;
}

class Gathered implements SideMembers {
  readonly hashes: Uint32Array;
  readonly scores: Float64Array;
  order: Uint32Array;
  count = 0;

  constructor(size: number) {
    this.hashes = new Uint32Array(size);
    this.scores = new Float64Array(size);
    this.order = new Uint32Array(size);
  }

  add(hash: number, score: number): void {
    const { count } = this;
    this.hashes[count] = hash;
    this.scores[count] = score;
    this.order[count] = count;
    this.count = count + 1;
  }

  /** To the order of a side tree. */
  *sort(): Steps {
    const { scores, hashes } = this;
    const signed = new Int32Array(hashes.buffer);
    this.order = yield* orderByHash(this.order, signed, (a, b) => compareScoreBytes(scores[a], scores[b]));
  }
}

/** The sorted set of key `k` of the command, which exists; opened anew in each turn. */
export function openedSet(context: Context, k: number): Collection {
  const set = context.keyspace.collections[SET];
  if (set.exists) return set;
  const { hash, argument } = keyOf(context, k);
  openSortedSet(context, SET, hash, argument);
  return set;
}

/**
 * Removes the members from rank `from` on, before `to`, some but not all, of key `k`. False = the work must be repeated. Without memory for a side tree
 * they are removed one by one.
 */
export function* removeMembers(context: Context, work: LongWork, k: number, from: number, to: number): Steps<boolean> {
  // A transaction's command before may have left another one open.
  context.keyspace.collections[SET].close();
  const { count } = openedSet(context, k);
  const side =
    count - (to - from) <= to - from
      ? yield* others(context, k, from, to, count)
      : yield* without(context, k, from, to);
  const isDone = yield* draftMembers(context, work, k, side, (draft) => {
    return openedSet(context, k).cutMembers(from, to, draft) === Change.DONE;
  });
  if (isDone || work.mustRepeat) return isDone;
  const set = openedSet(context, k);
  set.seekRank(from);
  for (let left = to - from; left > 0; left--) set.remove();
  return true;
}

/** The members before and behind the run. */
function* others(context: Context, k: number, from: number, to: number, count: number): Steps<Gathered> {
  const into = new Gathered(count - (to - from));
  yield* gather(context, k, into, 0, from);
  yield* gather(context, k, into, to, count);
  yield* into.sort();
  return into;
}

function* gather(context: Context, k: number, into: Gathered, from: number, to: number): Steps {
  const { keyspace } = context;
  for (let rank = from; rank < to; ) {
    const set = openedSet(context, k);
    set.seekRank(rank);
    for (const end = Math.min(rank + STEP_ELEMENTS, to); rank < end; rank++, set.next()) {
      set.load();
      into.add(keyspace.hash(0, set.key, set.keyOffset, set.keyLength) >>> 0, set.score);
    }
    if (isSliceOver()) yield;
  }
}

/** The side tree's members without those of the run. */
function* without(context: Context, k: number, from: number, to: number): Steps<Gathered> {
  const gone = new Gathered(to - from);
  yield* gather(context, k, gone, from, to);
  yield* gone.sort();
  const { side } = openedSet(context, k);
  const size = side.count;
  const into = new Gathered(size - gone.count);
  let next = 0;
  for (let i = 0; i < size; ) {
    openedSet(context, k).side.seekRank(i);
    for (const end = Math.min(i + STEP_ELEMENTS, size); i < end; i++, side.next()) {
      side.load();
      const hash = side.key.view.getUint32(side.keyOffset, false);
      const score = side.key.view.getFloat64(side.keyOffset + HASH_BYTES, false);
      const member = gone.order[next];
      if (next < gone.count && gone.hashes[member] === hash && gone.scores[member] === score) next++;
      else into.add(hash, score);
    }
    if (isSliceOver()) yield;
  }
  return into;
}
