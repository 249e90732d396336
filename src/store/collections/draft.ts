/**
 * Drafts: a collection that is made to take the place of whatever a key has (SUNIONSTORE and the like, COPY).
 *
 * While it is being made it has the key's name in a database that no number leads to, in the key's own shard: nobody sees it, and what the
 * key has stays as it is. `publish` then hands it over as RENAME does, in one small step. So neither a want of memory nor a death in the
 * middle loses anything; the draft of a dead participant is removed as the items of flushed databases are (repair, sweep).
 * Invariant: with no lock held, the database of drafts is empty, but for what dead participants have left.
 */
import type { Bytes } from '../../layout/bytes.js';
import type { Keyspace } from '../keyspace.js';
import type { Collection } from './collection.js';
import { moveCollection } from './rekey.js';

/** Gives the key of the draft, which has elements or is a stream, to it. False = no memory: the draft is gone, nothing else has changed. */
export function publish(
  keyspace: Keyspace,
  draft: Collection,
  hash: number,
  db: number,
  key: Bytes,
  offset: number,
  length: number,
): boolean {
  // The hand-over is one step, also for a crash.
  keyspace.makeChangeRoom();
  draft.standOnItem();
  if (moveCollection(keyspace, hash, db, key, offset, length)) {
    draft.close();
    return true;
  }
  draft.removeKey();
  return false;
}
