/**
 * Drafts: a collection that is made to take the place of whatever a key has (SUNIONSTORE and the like, COPY).
 *
 * While it is being made it stands in a database that no number leads to, in the key's own shard: nobody sees it, and what the key has stays
 * as it is. `publish` then hands it over as RENAME does, in one small step. So neither a want of memory nor a death in the middle loses
 * anything; the draft of a dead participant is removed as the items of flushed databases are (repair, sweep).
 * One that is made in one go has the key's name; one of several turns (LongDraft) a name of its own, since others may be made for the key
 * meanwhile. Invariant: with no lock held, the database of drafts holds nothing but these, and what dead participants have left.
 */
import { Bytes } from '../../layout/bytes.js';
import { Database, Super } from '../../layout/superblock.js';
import type { Keyspace } from '../keyspace.js';
import type { Collection } from './collection.js';
import { moveCollection } from './rekey.js';
import { Change, type Shape } from './shapes.js';

/** A draft that is made over several turns. Between them others may have taken it away: room was needed, another participant has died. */
export class LongDraft {
  readonly #keyspace: Keyspace;
  readonly #shape: Shape;
  readonly #hash: number;
  readonly #name: Bytes;
  #isThere = false;

  /** For a key of this hash. */
  constructor(keyspace: Keyspace, shape: Shape, hash: number) {
    this.#keyspace = keyspace;
    this.#shape = shape;
    this.#hash = hash;
    this.#name = Bytes.from(`draft ${Atomics.add(keyspace.memory.ctl, Super.TICKET_WORD, 1)}`);
  }

  /** Makes it, empty. The key's lock is held, here and below. False = no memory. */
  create(collection: Collection): boolean {
    collection.openDraft(this.#shape, this.#hash, this.#name, 0, this.#name.length);
    this.#isThere = collection.createTree() === Change.DONE;
    return this.#isThere;
  }

  /** Opens it once more; false = it is gone. */
  reopen(collection: Collection): boolean {
    const { length } = this.#name;
    if (!this.#keyspace.findIn(this.#hash, Database.DRAFTS, this.#name, 0, length)) return false;
    collection.openFound(this.#shape);
    return true;
  }

  /** It has become a key's, or has been removed. */
  leave(): void {
    this.#isThere = false;
  }

  /** Whoever makes it is gone, and its lock perhaps not held: the background removes what there is. */
  abandon(): void {
    if (this.#isThere) this.#keyspace.abandonedDrafts.add(this.#hash, this.#name);
    this.#isThere = false;
  }
}

/** Drafts of this participant that nobody wants any more. */
export class AbandonedDrafts {
  readonly #drafts: { readonly hash: number; readonly name: Bytes }[] = [];

  add(hash: number, name: Bytes): void {
    this.#drafts.push({ hash, name });
  }

  /** Inside a batch and without locks. */
  remove(keyspace: Keyspace): void {
    for (const { hash, name } of this.#drafts) {
      keyspace.lock(hash);
      if (keyspace.findIn(hash, Database.DRAFTS, name, 0, name.length)) keyspace.remove();
      keyspace.unlock(hash);
    }
    this.#drafts.length = 0;
  }
}

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
