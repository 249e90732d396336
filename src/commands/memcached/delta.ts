/**
 * Adding to and subtracting from a stored number: what incr, decr and ma have in common. Values are unsigned 64-bit
 * decimal text; incr wraps, decr stops at 0. A result that is shorter than the text it replaces is padded with spaces.
 */
import { ClassCounter } from '../../layout/class-counters.js';
import { Counter } from '../../layout/counters.js';
import { ItemType } from '../../layout/item.js';
import type { MemcachedContext } from './context.js';

export const enum DeltaResult {
  DONE = 0,
  NOT_FOUND = 1,
  NON_NUMERIC = 2,
  EXISTS = 3,
  NO_MEMORY = 4,
  WRONG_TYPE = 5,
}

/** Longer values are no numbers, even if they begin with one. */
const MAX_NUMBER_BYTES = 512 * 1024;
const SPACE = 32;

/**
 * Applies `context.delta` to the current key's value, under its lock; the result is in `context.number`. `compareCas` 0 =
 * any version. After DONE the cursor is on the changed item.
 */
export function applyDelta(
  context: MemcachedContext,
  h: number,
  isIncrement: boolean,
  compareCas: number,
): DeltaResult {
  const { keyspace, counters, number, delta } = context;
  if (!context.lookUp(h)) {
    counters[isIncrement ? Counter.incrMisses : Counter.decrMisses]++;
    return DeltaResult.NOT_FOUND;
  }
  if (keyspace.type !== ItemType.STRING) return DeltaResult.WRONG_TYPE;
  const oldBytes = keyspace.valueLength;
  if (oldBytes === 0 || oldBytes > MAX_NUMBER_BYTES) return DeltaResult.NON_NUMERIC;
  if (compareCas > 0 && compareCas !== context.version) return DeltaResult.EXISTS;
  if (!number.parseStored(keyspace.value.u8, keyspace.valueOffset, oldBytes)) return DeltaResult.NON_NUMERIC;
  counters[isIncrement ? Counter.incrHits : Counter.decrHits]++;
  context.countInClass(isIncrement ? ClassCounter.incrHits : ClassCounter.decrHits);
  if (isIncrement) number.add(delta);
  else number.subtract(delta);

  const newBytes = Math.max(oldBytes, number.digits);
  if (newBytes === oldBytes && keyspace.edit(0, oldBytes)) {
    write(context, keyspace.value.u8, keyspace.valueOffset, newBytes);
    keyspace.access();
    return DeltaResult.DONE;
  }
  const { clientFlags, expiryMs } = keyspace;
  if (!context.stageKey(h, newBytes)) return DeltaResult.NO_MEMORY;
  if (!context.findKey(h)) throw new Error('an item under its lock is gone after staging');
  write(context, keyspace.staged.u8, keyspace.stagedOffset, newBytes);
  return keyspace.commit(ItemType.STRING, 0, clientFlags, expiryMs) ? DeltaResult.DONE : DeltaResult.NO_MEMORY;
}

/** Stores `context.number` under the missing key, under its lock; the cursor is on it then. */
export function createNumber(context: MemcachedContext, h: number, expiryMs: number): boolean {
  const { keyspace, number } = context;
  const length = number.digits;
  if (!context.stageKey(h, length)) return false;
  number.write(keyspace.staged.u8, keyspace.stagedOffset);
  return keyspace.commit(ItemType.STRING, 0, 0, expiryMs);
}

function write(context: MemcachedContext, u8: Uint8Array, offset: number, length: number): void {
  const end = offset + length;
  for (let i = context.number.write(u8, offset); i < end; i++) u8[i] = SPACE;
}
