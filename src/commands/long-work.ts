/**
 * Requests that are worked on over several turns, so that nobody else waits for them: KEYS, scans with a large COUNT, replies of large
 * collections, and what reads, sorts or stores many elements (long-steps).
 *
 * The driver does not consume such a request: it executes it again in the next turn, and the handler goes on where its LongWork says. What
 * has been replied so far lies in the work; all of it is written when the request is done, so that nothing can come between. The keys that it
 * reads are held meanwhile (store/holds): who would change one of them waits. Invariant: a client has work exactly while its request is not
 * done. Where nothing may happen in between (EXEC, scripts) a request is done in one go.
 */
import { Counter } from '../layout/counters.js';
import type { Output } from '../protocol/output.js';
import type { CollectionType } from '../protocol/resp/reply.js';
import type { Collection } from '../store/collections/collection.js';
import type { Holds } from '../store/holds.js';
import type { Client } from './clients/client.js';
import { ReplyMode } from './clients/client.js';
import { charge } from './clients/client-memory.js';
import { KeyMode } from './command.js';
import type { Context } from './context.js';

/** One request's part of a turn, and that of all such requests together. */
const SLICE_MS = 1;
const TURN_MS = 2;
/** What each of them gets when many share a turn. */
const SLICE_MIN_MS = 0.1;
/** Elements of a collection between two looks at the clock. */
const ELEMENTS_A_LOOK = 256;
const LONG_ELEMENTS = 1024;
/** Of a long reply's bytes, what is written in one turn. */
const SEND_BYTES = 512 * 1024;

/** Work as a generator: it yields where the rest is for the next turn. */
export type Steps<Result = void> = Generator<undefined, Result, undefined>;

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
  /** Of its slices. */
  longestMs = 0;
  /** It goes on in the next turn. */
  goesOn = false;
  readonly parts: Uint8Array[] = [];
  bytes = 0;
  /** What goes on in the next turn; null: the handler, which sees from the above how far it has come. */
  steps: Steps | null = null;
  /** Signatures (Keyspace.watchSignature) of the keys that must not change meanwhile: of the command's keys from number `firstKey` on. */
  firstKey = 0;
  readSignatures: readonly number[] = [];
  /** A part of it has got lost, or what it has read holds no longer: it is to be done anew, in one go. */
  mustRepeat = false;
  /** Nothing that happens to its keys matters any more. */
  isSettled = false;
  /** Its reply is settled and on its way to the client, a part a turn. */
  isSending = false;
  /** Messages to the client that came while a reply was on its way. */
  readonly later: (() => void)[] = [];

  readonly #holds: number[] = [];
  #heldBy: Holds | null = null;

  constructor(stamp: number, isRepeated: boolean) {
    this.stamp = stamp;
    this.isRepeated = isRepeated;
  }

  /** A slice of it is over. */
  countSlice(tookMs: number): void {
    this.elapsedMs += tookMs;
    this.longestMs = Math.max(this.longestMs, tookMs);
  }

  /** Whoever would change a key of this hash waits from now on. */
  hold(holds: Holds, hash: number): void {
    const slot = holds.take(hash);
    this.#heldBy = holds;
    if (slot >= 0) this.#holds.push(slot);
  }

  get holdsKeys(): boolean {
    return this.#heldBy !== null;
  }

  release(): void {
    for (const slot of this.#holds) this.#heldBy!.release(slot);
    this.#holds.length = 0;
  }

  /** It is done, or nobody wants it any more. */
  end(): void {
    this.release();
    this.steps?.return();
    this.steps = null;
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

export function beginSlice(context: Context, work: LongWork): void {
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
  if (!work.isSending) {
    const bytes = reply.output.takeHeld(work.parts);
    work.bytes += bytes;
    charge(client, context.environment.counters.values, bytes);
  }
  work.goesOn = true;
  client.work = work;
}

/** Hash and argument of key `k` of the command. */
export function keyOf(context: Context, k: number): { readonly hash: number; readonly argument: number } {
  const { command } = context;
  if (command.keyMode === KeyMode.ONE) return { hash: context.keyHash, argument: command.firstKey };
  return { hash: context.keyHashes[k], argument: context.keyArguments[k] };
}

/** True when a long reply may leave in parts: nothing else is written to this client while its request goes on. */
export function mayLeaveInParts(context: Context): boolean {
  return mayGoOn(context) && context.client.attention === 0;
}

/** The request is done: writes `header` and all that has been replied, in this turn or, when it is much, in several. */
export function finishWork(context: Context, work: LongWork, header: string): void {
  const { client, reply } = context;
  if (work.parts.length === 0) {
    reply.output.release(header);
    return;
  }
  reply.output.takeHeld(work.parts);
  reply.output.ascii(header);
  work.release();
  work.isSettled = true;
  work.isSending = work.bytes > SEND_BYTES && mayLeaveInParts(context);
  const sending = sendParts(reply.output, work);
  if (sending.next().done === true) return dropWork(client, context.environment.counters.values);
  work.steps = sending;
  yieldWork(context, work);
}

function* sendParts(output: Output, work: LongWork): Steps {
  let sent = 0;
  for (const part of work.parts) {
    output.array(part);
    sent += part.length;
    if (sent < SEND_BYTES || !work.isSending) continue;
    sent = 0;
    yield;
  }
}

/** The client has gone, or its request is done or refused. */
export function dropWork(client: Client, counters: Float64Array): void {
  const { work } = client;
  if (work === null) return;
  client.work = null;
  work.end();
  charge(client, counters, -work.bytes);
}

/** A reply of so many elements is done in one go. */
export function isLong(count: number): boolean {
  return count > LONG_ELEMENTS;
}

/**
 * Replies many elements of an open collection, of the command's first key, from rank `from` on, backwards when `isReversed`: `visit` replies the element at the position
 * and returns how many replies of the header's type that were. `before`, a character a byte, precedes all of it. A collection that changes in the middle is replied anew, as it is then, in
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
  before = '',
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
      if (!work.holdsKeys) work.hold(context.keyspace.holds, context.keyHash);
      return yieldWork(context, work);
    }
    if (isReversed) elements.previous();
    else elements.next();
  }
  finishWork(context, work, before + context.reply.deferredHeader(type, found));
}
