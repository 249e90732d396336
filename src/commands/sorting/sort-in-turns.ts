/**
 * SORT and SORT_RO of many elements without patterns: gathered, weighed, sorted, and replied or stored over several turns.
 *
 * Owns tables of its own. Invariant: the destination may be the source: it has what it had until the result is whole.
 */
import { Notify } from '../../store/change-feed.js';
import { type Collection, LISTS, type Shape } from '../../store/collections/collection.js';
import { storeInSteps } from '../collections/long-store.js';
import { sortInSteps } from '../collections/ordering.js';
import { TableSource } from '../collections/table-source.js';
import type { Context } from '../context.js';
import { beginReply, replyInSteps, STEP_ELEMENTS } from '../long-steps.js';
import { isLong, isSliceOver, type LongWork, type Steps } from '../long-work.js';
import { MemberTable, members } from '../sets/member-table.js';
import { byNumber, byText, weigh } from './sort-order.js';

export const NOT_NUMBERS = "ERR One or more scores can't be converted into double";

/** LIMIT; `count` -1 = all. */
interface Limit {
  readonly start: number;
  readonly count: number;
}

export interface LongSort extends Limit {
  readonly isAlpha: boolean;
  readonly isDescending: boolean;
  readonly stores: boolean;
  readonly shape: Shape;
  /** Stores the elements gathered in `members` in one go. */
  readonly storeFew: (context: Context) => void;
}

/** First and last of `size` elements that LIMIT leaves; last < first = none. */
export function partOf({ start, count }: Limit, size: number): { readonly first: number; readonly last: number } {
  const most = Math.min(Math.max(count, -1), size);
  const first = Math.min(Math.max(start, 0), size);
  return { first, last: most < 0 ? size - 1 : Math.min(first + most, size) - 1 };
}

export function* sortInTurns(context: Context, work: LongWork, request: LongSort): Steps {
  const table = yield* gather(context, request.shape);
  const order = new Uint32Array(table.count);
  for (let i = 0; i < order.length; i++) order[i] = i;
  let compare = byText(table, request.isDescending);
  if (!request.isAlpha) {
    const weights = new Float64Array(table.count);
    for (let at = 0; at < table.count; at += STEP_ELEMENTS) {
      if (!weigh(table, weights, at, Math.min(at + STEP_ELEMENTS, table.count)))
        return context.reply.error(NOT_NUMBERS);
      if (isSliceOver()) yield;
    }
    compare = byNumber(table, weights, request.isDescending);
  }
  const sorted = yield* sortInSteps(order, compare);
  const { first, last } = partOf(request, sorted.length);
  const part = sorted.subarray(first, Math.max(first, last + 1));
  if (request.stores) return yield* store(context, work, request, table, part);
  const { reply } = context;
  beginReply(context, work);
  reply.array(part.length);
  yield* replyInSteps(part.length, (n) => reply.bulk(table.bytes, table.offsets[part[n]], table.lengths[part[n]]));
}

function* gather(context: Context, shape: Shape): Steps<MemberTable> {
  const table = new MemberTable();
  let source = open(context, shape);
  table.expect(source.count, source.chunkBytes);
  for (let at = 0; source.seekRank(at); source = open(context, shape)) {
    for (let left = STEP_ELEMENTS; left > 0 && !source.atEnd; left--, source.next()) {
      source.load();
      table.push(source.key, source.keyOffset, source.keyLength);
      at++;
    }
    if (isSliceOver()) yield;
  }
  return table;
}

/** The command's key, which holds such a collection. */
function open(context: Context, shape: Shape): Collection {
  return context.open(0, shape, context.keyHashes[0], 1) as Collection;
}

function* store(context: Context, work: LongWork, request: LongSort, table: MemberTable, part: Uint32Array): Steps {
  const { length } = part;
  if (!isLong(length)) {
    members.clear();
    for (const i of part) members.push(table.bytes, table.offsets[i], table.lengths[i]);
    return request.storeFew(context);
  }
  const source = new TableSource(table, part);
  if (!(yield* storeInSteps(context, work, 1, { shape: LISTS, count: length, source }))) return;
  context.notify(Notify.LIST, 'sortstore', context.keyArguments[1]);
  context.reply.integer(length);
}
