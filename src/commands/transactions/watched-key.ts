/**
 * What WATCH remembers of a key, and whether it is still so.
 */
import type { Bytes } from '../../layout/bytes.js';
import type { Keyspace } from '../../store/keyspace.js';

/**
 * A key under WATCH: its own copy of the name and the state it had. The physical database belongs to the state: FLUSHALL and
 * SWAPDB put another one behind the number.
 */
export interface WatchedKey {
  readonly db: number;
  readonly physical: number;
  readonly key: Bytes;
  readonly signature: number;
}

export function hashWatched(keyspace: Keyspace, { db, key }: WatchedKey): number {
  return keyspace.hash(db, key, 0, key.length);
}

/** True when all watched keys are as they were; their locks are held. */
export function areUnchanged(keyspace: Keyspace, watched: ReadonlyMap<string, WatchedKey>): boolean {
  for (const w of watched.values()) {
    const signature = keyspace.watchSignature(hashWatched(keyspace, w), w.db, w.key, 0, w.key.length);
    if (signature !== w.signature) return false;
    // Signatures tell the states of one key apart, not those of two keys of one name in different databases.
    if (signature !== 0 && keyspace.physical(w.db) !== w.physical) return false;
  }
  return true;
}
