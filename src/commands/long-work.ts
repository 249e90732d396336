/**
 * Requests that are worked on over several turns, so that nobody else waits for them: KEYS, SCAN, HSCAN and SSCAN with a large COUNT, and
 * replies of large collections.
 *
 * The driver does not consume such a request: it executes it again in the next turn, and the handler goes on where its LongWork says. What
 * has been replied so far lies in the work; all of it is written when the request is done, so that nothing can come between. Invariant: a
 * client has work exactly while its request is not done. Where nothing may happen in between (EXEC, scripts) a request is done in one go.
 */
import { Counter } from '../layout/counters.js';
import type { CollectionType } from '../protocol/resp/reply.js';
import type { Collection } from '../store/collections/collection.js';
import type { Client } from './clients/client.js';
import { ReplyMode } from './clients/client.js';
import { charge } from './clients/client-memory.js';
import type { Context } from './context.js';

/** One request's part of a turn, and that of all such requests together. */
const SLICE_MS = 1;
const TURN_MS = 2;
/** What each of them gets when many share a turn. */
const SLICE_MIN_MS = 0.1;
/** Elements of a collection between two looks at the clock. */
const ELEMENTS_A_LOOK = 256;
const LONG_ELEMENTS = 1024;

export class LongWork {
  /** What must not change meanwhile: the version of a collection, the database behind a number. */
  readonly stamp: number;
  /** It has changed once already: this time the request is done in one go. */
  readonly isRepeated: boolean;
  /** Where to go on: a cursor of the key space, elements done. */
  position = 0;
  /** Replies so far, and what has been looked at for them. */
  found = 0;
  visited = 0;
  /** Rounds of a walk, by which looks at the clock are counted. */
  looks = 0;
  elapsedMs = 0;
  /** It goes on in the next turn. */
  goesOn = false;
  readonly parts: Uint8Array[] = [];
  bytes = 0;

  constructor(stamp: number, isRepeated: boolean) {
    this.stamp = stamp;
    this.isRepeated = isRepeated;
  }
}

/** When the slice in hand is over, and what the turn has left for others. */
let sliceEndMs = 0;
let sliceStartMs = 0;
let turn = -1;
let turnLeftMs = 0;

/** The work of the bound request, as far as it has come, if `stamp` is still that of its beginning. Its reply is deferred from here on. */
export function resumeWork(context: Context, stamp: number): LongWork {
  const { client } = context;
  let { work } = client;
  if (work === null || work.stamp !== stamp) {
    const isRepeated = work !== null;
    dropWork(client, context.environment.counters.values);
    work = new LongWork(stamp, isRepeated);
  }
  beginSlice(context, work);
  context.reply.deferred();
  return work;
}

function beginSlice(context: Context, work: LongWork): void {
  if (work.isRepeated || !mayGoOn(context)) {
    sliceEndMs = Number.POSITIVE_INFINITY;
    return;
  }
  const turns = context.environment.counters.values[Counter.turns];
  if (turn !== turns) {
    turn = turns;
    turnLeftMs = TURN_MS;
  }
  sliceStartMs = performance.now();
  sliceEndMs = sliceStartMs + Math.max(SLICE_MIN_MS, Math.min(SLICE_MS, turnLeftMs));
}

/** False where the request must be one step: in transactions and scripts, or when its reply is thrown away. */
function mayGoOn(context: Context): boolean {
  return !context.inTransaction && !context.isInScript && context.client.replyMode === ReplyMode.ON;
}

/** True when the rest is for the next turn. */
export function isSliceOver(): boolean {
  return sliceEndMs !== Number.POSITIVE_INFINITY && performance.now() >= sliceEndMs;
}

/** The request goes on in the next turn: keeps what has been replied. */
export function yieldWork(context: Context, work: LongWork): void {
  const { client, reply } = context;
  turnLeftMs -= performance.now() - sliceStartMs;
  const bytes = reply.output.takeHeld(work.parts);
  work.bytes += bytes;
  charge(client, context.environment.counters.values, bytes);
  work.goesOn = true;
  client.work = work;
}

/** The request is done: writes `header` and all that has been replied. */
export function finishWork(context: Context, work: LongWork, header: string): void {
  const { client, reply } = context;
  if (work.parts.length === 0) {
    reply.output.release(header);
    return;
  }
  reply.output.takeHeld(work.parts);
  reply.output.ascii(header);
  for (const part of work.parts) reply.output.array(part);
  dropWork(client, context.environment.counters.values);
}

/** The client has gone, or its request is done or refused. */
export function dropWork(client: Client, counters: Float64Array): void {
  const { work } = client;
  if (work === null) return;
  client.work = null;
  charge(client, counters, -work.bytes);
}

/** A reply of so many elements is done in one go. */
export function isLong(count: number): boolean {
  return count > LONG_ELEMENTS;
}

/**
 * Replies many elements of an open collection, from rank `from` on, backwards when `isReversed`: `visit` replies the element at the position
 * and returns how many replies of the header's type that were. A collection that changes in the middle is replied anew, as it is then, in
 * one go: so the reply is of one moment.
 */
export function replyElements(
  context: Context,
  elements: Collection,
  from: number,
  count: number,
  isReversed: boolean,
  type: CollectionType,
  visit: (context: Context, elements: Collection) => number,
): void {
  const work = resumeWork(context, elements.version);
  let { position, found } = work;
  elements.seekRank(isReversed ? from - position : from + position);
  while (position < count) {
    found += visit(context, elements);
    position++;
    if (position % ELEMENTS_A_LOOK === 0 && position < count && isSliceOver()) {
      work.position = position;
      work.found = found;
      return yieldWork(context, work);
    }
    if (isReversed) elements.previous();
    else elements.next();
  }
  finishWork(context, work, context.reply.deferredHeader(type, found));
}
