/**
 * Commands that take steps: what reads, sorts or stores many elements, written as a generator that yields at the end of each slice.
 *
 * Between two slices other commands run, and so does everything that the store does on its own. A generator opens anew what it had open,
 * and has tables of its own: what commands of the thread share is theirs. The keys that it reads are held; before each slice their signatures
 * are compared, and if somebody who could not wait has changed one, the command begins anew and is done in one go. Invariant: what a
 * command replies or stores is of one moment.
 */
import type { Context } from './context.js';
import {
  beginSlice,
  dropWork,
  finishWork,
  isSliceOver,
  keyOf,
  LongWork,
  mayLeaveInParts,
  type Steps,
  yieldWork,
} from './long-work.js';

/** Between two looks at the clock. */
export const STEP_ELEMENTS = 256;

/**
 * Begins a command whose keys from number `firstKey` on, before `endKey`, must not change until it is done. `begin` gets its work and returns what
 * is to be done, the writing of the reply included.
 */
export function takeSteps(context: Context, firstKey: number, endKey: number, begin: (work: LongWork) => Steps): void {
  const { client } = context;
  const work = client.work ?? new LongWork(context.keyspace.physical(context.db), false);
  work.firstKey = firstKey;
  const signatures: number[] = [];
  for (let k = firstKey; k < endKey; k++) signatures.push(signatureOf(context, k));
  work.readSignatures = signatures;
  work.steps = begin(work);
  advance(context, work);
}

/** The executor, in a later turn: the bound request goes on. */
export function goOn(context: Context, work: LongWork): void {
  if (work.isSettled || isAsItWas(context, work)) advance(context, work);
  else repeat(context, work);
}

function isAsItWas(context: Context, work: LongWork): boolean {
  if (context.keyspace.physical(context.db) !== work.stamp) return false;
  const { firstKey, readSignatures: signatures } = work;
  for (let i = 0; i < signatures.length; i++) {
    if (signatureOf(context, firstKey + i) !== signatures[i]) return false;
  }
  return true;
}

function signatureOf(context: Context, k: number): number {
  const { hash, argument } = keyOf(context, k);
  const { keyspace, input, db } = context;
  return keyspace.watchSignature(hash, db, input, context.argOffset(argument), context.argLength(argument));
}

/** From its beginning, in one go. */
function repeat(context: Context, work: LongWork): void {
  const { client, command, environment } = context;
  const again = new LongWork(work.stamp, true);
  again.elapsedMs = work.elapsedMs;
  again.longestMs = work.longestMs;
  dropWork(client, environment.counters.values);
  client.work = again;
  command.run!(context);
}

function advance(context: Context, work: LongWork): void {
  const { client, environment, reply } = context;
  beginSlice(context, work);
  if (!work.isSending) reply.deferred();
  const isDone = work.steps!.next().done === true;
  if (work.mustRepeat) {
    reply.dropDeferred();
    return repeat(context, work);
  }
  if (!isDone) {
    holdKeys(context, work);
    return yieldWork(context, work);
  }
  work.steps = null;
  if (work.isSending) {
    dropWork(client, environment.counters.values);
    for (const write of work.later) write();
    return;
  }
  // Nothing of it is left to be done but to send what it has replied.
  finishWork(context, work, '');
  if (work.steps === null) work.end();
}

/** At the end of the first slice: who would change what is read waits, until the reply is settled. */
function holdKeys(context: Context, work: LongWork): void {
  if (work.holdsKeys || work.isSending) return;
  for (let i = 0; i < work.readSignatures.length; i++) {
    work.hold(context.keyspace.holds, keyOf(context, work.firstKey + i).hash);
  }
}

/** What follows is a reply that nothing can change any more, whatever has been changed for it: it leaves as it is made, and nobody waits for the keys. */
export function beginReply(context: Context, work: LongWork): void {
  work.release();
  work.isSettled = true;
  if (work.isSending || work.parts.length > 0 || !mayLeaveInParts(context)) return;
  context.reply.output.release('');
  work.isSending = true;
}

/** Replies elements 0..count-1 by `visit`, behind their header. */
export function* replyInSteps(count: number, visit: (i: number) => void): Steps {
  for (let i = 0; i < count; i++) {
    visit(i);
    if ((i + 1) % STEP_ELEMENTS === 0 && isSliceOver()) yield;
  }
}
