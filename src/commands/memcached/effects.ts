/**
 * What commands of all front ends (text, meta, binary) do to one key, and how they count it. Locks are taken here where the
 * reply needs nothing of the item, by the caller where it does.
 */
import { ClassCounter } from '../../layout/class-counters.js';
import { Counter } from '../../layout/counters.js';
import { ItemType } from '../../layout/item.js';
import { DB, type MemcachedContext } from './context.js';

export const enum Lookup {
  MISS = 0,
  HIT = 1,
  WRONG_TYPE = 2,
}

/** Puts the cursor on the string that the key holds. Under the key's lock. */
export function findString(context: MemcachedContext, h: number): Lookup {
  if (!context.lookUp(h)) return Lookup.MISS;
  return context.keyspace.type === ItemType.STRING ? Lookup.HIT : Lookup.WRONG_TYPE;
}

/** Counts a get, or a get-and-touch. */
export function countRetrieval(context: MemcachedContext, isTouching: boolean, isHit: boolean): void {
  const { counters } = context;
  if (context.prefixes.isOn) context.prefixes.get(isHit);
  counters[isTouching ? Counter.cmdTouch : Counter.cmdGet]++;
  if (isHit) {
    counters[Counter.hits]++;
    counters[isTouching ? Counter.touchHits : Counter.getHits]++;
    context.countInClass(isTouching ? ClassCounter.touchHits : ClassCounter.getHits);
  } else {
    counters[Counter.misses]++;
    counters[isTouching ? Counter.touchMisses : Counter.getMisses]++;
    if (context.hasExpired) counters[Counter.getExpired]++;
  }
}

export const enum RemoveResult {
  DONE = 0,
  NOT_FOUND = 1,
  EXISTS = 2,
  WRONG_TYPE = 3,
}

/** Removes the string under the current key, if its version is `compareCas` (0 = any). */
export function removeString(context: MemcachedContext, compareCas: number): RemoveResult {
  const { keyspace, counters } = context;
  if (context.prefixes.isOn) context.prefixes.delete();
  const h = context.hashKey();
  context.lock(h);
  if (keyspace.isRebuilding) keyspace.noteWritten(h);
  const lookup = findString(context, h);
  if (lookup !== Lookup.HIT) {
    context.unlock(h);
    if (lookup === Lookup.WRONG_TYPE) return RemoveResult.WRONG_TYPE;
    counters[Counter.deleteMisses]++;
    return RemoveResult.NOT_FOUND;
  }
  if (compareCas !== 0 && compareCas !== context.version) {
    context.unlock(h);
    return RemoveResult.EXISTS;
  }
  context.countInClass(ClassCounter.deleteHits);
  keyspace.remove();
  context.unlock(h);
  counters[Counter.deleteHits]++;
  return RemoveResult.DONE;
}

/** flush_all: at once, or what is stored by then at that time. */
export function flush(context: MemcachedContext, seconds: number): void {
  const { keyspace } = context;
  context.counters[Counter.cmdFlush]++;
  if (seconds > 0) {
    keyspace.scheduleFlush(DB, context.expiryMs(seconds));
    return;
  }
  keyspace.closeGate();
  try {
    keyspace.flush(DB);
  } finally {
    keyspace.openGate();
  }
}
