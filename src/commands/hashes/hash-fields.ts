/**
 * What all hash commands share: opening the hash, finding a field, replying values.
 *
 * Invariant: a field whose time has come is not there: whoever finds it removes it. Hashes that have had a field with an expiry carry a
 * mark, so that the others need not look at each field.
 */
import { Notify } from '../../store/change-feed.js';
import { type Change, type Collection, HASHES } from '../../store/collections/collection.js';
import { HashMark } from '../../store/collections/forms.js';
import { INLINE_VALUE_BYTES } from '../../store/keyspace.js';
import { Stat } from '../../store/statistics.js';
import type { Context } from '../context.js';

/** The hash of the key, argument 1; null after a WRONGTYPE reply. */
export function openHash(context: Context): Collection | null {
  const hash = context.open(0, HASHES, context.keyHash, 1);
  if (hash !== null) {
    const { settings } = context.environment;
    hash.packedEntriesMax = settings.hashMaxListpackEntries;
    hash.packedElementMax = settings.hashMaxListpackValue;
  }
  return hash;
}

/** The same for reading: counts a hit or a miss. */
export function openHashToRead(context: Context): Collection | null {
  const hash = openHash(context);
  if (hash === null) return null;
  if (hash.exists) context.hit();
  else context.miss();
  return hash;
}

export function hasExpiries(hash: Collection): boolean {
  return (hash.marks & HashMark.EXPIRES) !== 0;
}

export const enum Field {
  ABSENT = 0,
  THERE = 1,
  /** Its time has come: it has been removed. */
  EXPIRED = 2,
}

/** Positions on the field in argument `i` and loads it. For those who tell themselves who listens that fields have expired. */
export function seekField(context: Context, hash: Collection, i: number): Field {
  if (!hash.seekKey(context.input, context.argOffset(i), context.argLength(i))) return Field.ABSENT;
  hash.load();
  if (isLive(context, hash)) return Field.THERE;
  removeExpired(context, hash);
  // Where it would be inserted, by this command perhaps.
  hash.seekKey(context.input, context.argOffset(i), context.argLength(i));
  return Field.EXPIRED;
}

/** Positions on the field in argument `i` and loads it; false = there is none. */
export function findField(context: Context, hash: Collection, i: number): boolean {
  const field = seekField(context, hash, i);
  if (field === Field.EXPIRED) notifyRemoved(context, hash, 'hexpired');
  return field === Field.THERE;
}

/** Fields of the key, argument 1, have gone by `event`, with the last of them the key. */
export function notifyRemoved(context: Context, hash: Collection, event: string): void {
  context.notify(Notify.HASH, event, 1);
  if (!hash.exists) context.notify(Notify.GENERIC, 'del', 1);
}

export function removeField(hash: Collection): Change {
  return hash.remove();
}

/** Removes the field at the position, whose time has come. */
export function removeExpired(context: Context, hash: Collection): void {
  context.keyspace.statistics[Stat.EXPIRED_FIELDS]++;
  removeField(hash);
}

/** True when the loaded field has not run out. */
export function isLive(context: Context, hash: Collection): boolean {
  return hash.expiryMs === 0 || hash.expiryMs > context.nowMs;
}

/** Replies the loaded value: copied when small, sent from where it lies when large. */
export function replyFieldValue(context: Context, hash: Collection): void {
  const { reply, keyspace } = context;
  if (hash.valueLength > INLINE_VALUE_BYTES && hash.blobPage !== 0) {
    const token = keyspace.pins.pin(hash.blobPage, hash.blobUnit);
    if (token > 0) {
      if (!reply.bulkRegion(hash.value, hash.valueOffset, hash.valueLength, token)) keyspace.unpin(token);
      return;
    }
  }
  reply.bulk(hash.value, hash.valueOffset, hash.valueLength);
}

/** Sets the field in argument `i`, on which `findField` has just been called with the result `found`, to bytes; its expiry goes or stays. */
export function setField(
  context: Context,
  hash: Collection,
  found: boolean,
  i: number,
  value: Collection['value'],
  offset: number,
  length: number,
  expiryMs: number,
): Change {
  if (found) return hash.replaceValue(value, offset, length, expiryMs);
  return hash.insertPair(context.input, context.argOffset(i), context.argLength(i), value, offset, length, expiryMs);
}
