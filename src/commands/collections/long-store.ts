/**
 * Storing many elements over several turns: as a draft, built leaf by leaf, that takes the key's place at the end.
 *
 * Invariant: the key has what it had until the draft is whole; a draft that is not wanted any more is removed.
 */
import { type Collection, type ElementSource, type Shape, SORTED_SETS } from '../../store/collections/collection.js';
import { LongDraft } from '../../store/collections/draft.js';
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';
import { isSliceOver, keyOf, type LongWork, type Steps } from '../long-work.js';

/** Members of a sorted set, for its side tree. */
export interface SideMembers {
  readonly hashes: Uint32Array;
  readonly scores: Float64Array;
  /** Their numbers by hash, those of one hash by the bytes of their scores. */
  readonly order: Uint32Array;
}

/** What is to be stored. */
export interface LongResult {
  readonly shape: Shape;
  readonly count: number;
  readonly source: ElementSource;
  readonly side?: SideMembers;
  /** What the family keeps beside the elements. */
  readonly marks?: number;
  /** In ms since 1970, 0 = none. */
  readonly expiryMs?: number;
  /** The key is one of this database; else of the client's. */
  readonly db?: number;
}

/** Makes a result the value of key `k` of the command. False = no memory, of which the error has been replied, or the work must be repeated. */
export function* storeInSteps(context: Context, work: LongWork, k: number, result: LongResult): Steps<boolean> {
  const draft = new LongDraft(context.keyspace, result.shape, keyOf(context, k).hash);
  const [into] = context.keyspace.collections;
  try {
    if (!draft.create(into)) return refuse(context);
    const { source, count, side } = result;
    const isWhole = yield* fill(context, work, draft, count, (at) => into.append(source, at, count));
    if (isWhole && (side === undefined || (yield* fillSide(context, work, draft, side)))) {
      return publish(context, k, draft, into, result);
    }
    return work.mustRepeat ? false : refuse(context);
  } finally {
    draft.abandon();
  }
}

/**
 * Makes a side tree of these members, in a draft of its own beside key `k`, a sorted set, and hands it to `use`, which takes it or returns false. False also:
 * no memory, or the work must be repeated; nothing is left of the draft then.
 */
export function* draftMembers(
  context: Context,
  work: LongWork,
  k: number,
  side: SideMembers,
  use: (draft: Collection) => boolean,
): Steps<boolean> {
  const draft = new LongDraft(context.keyspace, SORTED_SETS, keyOf(context, k).hash);
  const [into] = context.keyspace.collections;
  try {
    if (!draft.create(into) || !(yield* fillSide(context, work, draft, side))) return false;
    draft.leave();
    if (use(into)) return true;
    into.removeKey();
    return false;
  } finally {
    draft.abandon();
  }
}

function fillSide(context: Context, work: LongWork, draft: LongDraft, side: SideMembers): Steps<boolean> {
  const [into] = context.keyspace.collections;
  const { hashes, scores, order } = side;
  return fill(context, work, draft, order.length, (at) => into.appendMembers(hashes, scores, order, at));
}

/** Appends `count` elements; false = no memory, and the draft is gone, or the work must be repeated. The draft is open before and behind it. */
function* fill(
  context: Context,
  work: LongWork,
  draft: LongDraft,
  count: number,
  append: (at: number) => number,
): Steps<boolean> {
  const [into] = context.keyspace.collections;
  for (let at = 0; at < count; ) {
    const added = append(at);
    if (added === 0) {
      draft.leave();
      into.removeKey();
      return false;
    }
    at += added;
    if (!isSliceOver()) continue;
    yield;
    if (draft.reopen(into)) continue;
    work.mustRepeat = true;
    return false;
  }
  return true;
}

function publish(context: Context, k: number, draft: LongDraft, into: Collection, result: LongResult): boolean {
  const { marks = 0, expiryMs = 0 } = result;
  if (marks !== 0) into.setMarks(marks);
  if (expiryMs !== 0) {
    into.standOnItem();
    context.keyspace.setExpiry(expiryMs);
  }
  draft.leave();
  const { hash, argument } = keyOf(context, k);
  return context.publish(into, hash, argument, result.db);
}

function refuse(context: Context): false {
  context.reply.error(NO_MEMORY);
  return false;
}
