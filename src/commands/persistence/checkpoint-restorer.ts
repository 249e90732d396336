/**
 * Makes collections of what the rebuild of a warm pool finds of their checkpoints.
 *
 * Invariant: a collection is there whole or not at all, and never in place of anything that is newer.
 */
import type { Settings } from '../../config/index.js';
import type { Bytes } from '../../layout/bytes.js';
import { Item } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { Database } from '../../layout/superblock.js';
import { Graveyard } from '../../store/collections/graveyard.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { CheckpointRestorer as Restorer } from '../../store/rebuild.js';
import { type Target, ValueStore } from './value-store.js';

export class CheckpointRestorer implements Restorer {
  readonly #keyspace: Keyspace;
  readonly #values: ValueStore;

  constructor(keyspace: Keyspace, settings: Readonly<Settings>) {
    this.#keyspace = keyspace;
    this.#values = new ValueStore({ keyspace, environment: { settings } });
  }

  restore(page: number, unit: number, expiryMs: number, payload: Bytes): boolean {
    const keyspace = this.#keyspace;
    const values = this.#values;
    const key = keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, unit);
    const header = itemOffset >>> 2;
    const shape = key.i32[header + Item.SHAPE_WORD];
    const hash = key.i32[header + Item.HASH_WORD];
    const db = this.#logical(shape >>> Item.DB_SHIFT);
    if (db < 0 || !values.gather(payload, 0, payload.length)) return false;
    const target = { hash, db, key, offset: itemOffset + Item.HEADER_BYTES, length: shape & Item.KEY_LENGTH_MASK };
    keyspace.lock(hash);
    try {
      if (!keyspace.mayRestore(hash, page, unit, expiryMs)) return false;
      if (values.gathered.count === 0 || !values.store(payload, 0, payload.length, target)) return false;
      return this.#settle(target, page, unit, expiryMs);
    } finally {
      keyspace.unlock(hash);
      values.gathered.clear();
    }
  }

  /** False = the collection, though it is there, has no copy in the checkpoint: settings that have changed have made it small. */
  #settle({ hash, db, key, offset, length }: Target, page: number, unit: number, expiryMs: number): boolean {
    const keyspace = this.#keyspace;
    if (!keyspace.find(hash, db, key, offset, length)) return false;
    if (expiryMs !== 0) keyspace.setExpiry(expiryMs);
    if (!Graveyard.isRoot(keyspace.memory, keyspace.page, keyspace.unit)) return false;
    keyspace.keepCheckpoint(page, unit);
    return true;
  }

  /** Number of the database that a physical one is; -1 = it was flushed. */
  #logical(physical: number): number {
    for (let db = 0; db < Database.LOGICAL; db++) if (this.#keyspace.physical(db) === physical) return db;
    return -1;
  }
}
