/**
 * delete and touch.
 *
 *   delete key [0] [noreply]        touch key exptime [noreply]
 */
import { ClassCounter } from '../../layout/class-counters.js';
import { Counter } from '../../layout/counters.js';
import { INVALID_INT32 } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import type { MemcachedContext } from './context.js';
import { findString, Lookup, RemoveResult, removeString } from './effects.js';

export function deleteKey(context: MemcachedContext): void {
  if (!hasValidDeleteArguments(context)) return context.answer(Replies.BAD_DELETE);
  if (!context.takeKey(1)) return context.answer(Replies.BAD_FORMAT);
  switch (removeString(context, 0)) {
    case RemoveResult.DONE:
      return context.answer(Replies.DELETED);
    case RemoveResult.WRONG_TYPE:
      return context.answer(Replies.WRONG_TYPE);
    default:
      return context.answer(Replies.NOT_FOUND);
  }
}

/** Old clients send a delay, which must be 0. */
function hasValidDeleteArguments(context: MemcachedContext): boolean {
  const count = context.tokenCount;
  if (count === 2) return true;
  const isZero = context.tokenLength(2) === 1 && context.input.u8[context.tokenOffset(2)] === 0x30;
  return count === 3 ? isZero || context.hasNoreply : isZero && context.hasNoreply;
}

export function touch(context: MemcachedContext): void {
  const { keyspace, counters } = context;
  if (!context.takeKey(1)) return context.answer(Replies.BAD_FORMAT);
  const seconds = context.tokenInt32(2);
  if (seconds === INVALID_INT32) return context.answer(Replies.BAD_EXPTIME);
  counters[Counter.cmdTouch]++;
  const h = context.hashKey();
  context.lock(h);
  const lookup = findString(context, h);
  if (lookup !== Lookup.HIT) {
    context.unlock(h);
    if (lookup === Lookup.WRONG_TYPE) return context.answer(Replies.WRONG_TYPE);
    counters[Counter.touchMisses]++;
    return context.answer(Replies.NOT_FOUND);
  }
  keyspace.access();
  context.countInClass(ClassCounter.touchHits);
  keyspace.setExpiry(context.expiryMs(seconds));
  context.unlock(h);
  counters[Counter.touchHits]++;
  context.answer(Replies.TOUCHED);
}
