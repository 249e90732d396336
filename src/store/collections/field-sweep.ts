/**
 * Active expiry of hash fields: the part of the sweep that looks into hashes.
 *
 * A packed hash is looked through whole; of a tree a bounded stretch at each visit, from a random place on, so that no hash holds its shard
 * for long and every field's turn comes. Invariant: the shard's lock is held, and the index's position is what it was.
 */
import { Bucket } from '../../layout/bucket.js';
import { ItemType } from '../../layout/item.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import { Notify } from '../change-feed.js';
import type { Keyspace } from '../keyspace.js';
import { Stat } from '../statistics.js';
import type { Collection } from './collection.js';
import { HashMark, marksOf } from './forms.js';
import { HASHES } from './shapes.js';

/** Fields of a tree looked at in one visit: about 20 microseconds. */
const FIELDS_A_VISIT = 256;

export class FieldSweep {
  readonly #keyspace: Keyspace;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  /** Looks into the hashes of one bucket of a shard and its overflow buckets; returns how many have expiring fields. */
  sweepChain(bucket: number, shard: number): number {
    const keyspace = this.#keyspace;
    const { index } = keyspace;
    let hashes = 0;
    index.openBucket(bucket, shard);
    do {
      const { words, base, arena } = index;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) continue;
        index.slot = slot;
        keyspace.openEntry();
        if (keyspace.type !== ItemType.HASH || (marksOf(keyspace) & HashMark.EXPIRES) === 0) continue;
        hashes++;
        this.#sweepHash();
        index.words = words;
        index.base = base;
        index.arena = arena;
      }
    } while (index.next());
    return hashes;
  }

  #sweepHash(): void {
    const fields = this.#keyspace.collections[0];
    fields.openFound(HASHES);
    let left = fields.isPacked ? fields.count : FIELDS_A_VISIT;
    if (!fields.isPacked && fields.count > FIELDS_A_VISIT) fields.seekHash(Math.floor(Math.random() * 2 ** 32));
    let removed = 0;
    for (; left > 0 && fields.exists && !fields.atEnd; left--) if (this.#sweepField(fields)) removed++;
    if (removed > 0 && fields.exists) this.#tell(fields, Notify.HASH);
  }

  /** True when the field's time had come. */
  #sweepField(fields: Collection): boolean {
    fields.load();
    if (fields.expiryMs === 0 || fields.expiryMs > this.#keyspace.nowMs) {
      fields.next();
      return false;
    }
    // With the last field the key goes, and its name.
    if (fields.count === 1) {
      this.#tell(fields, Notify.HASH);
      this.#tell(fields, Notify.GENERIC);
    }
    this.#keyspace.statistics[Stat.EXPIRED_FIELDS]++;
    fields.remove();
    return true;
  }

  /** Fields have expired (HASH), and with the last of them the key has gone (GENERIC). */
  #tell(fields: Collection, event: Notify): void {
    const keyspace = this.#keyspace;
    if ((keyspace.feed.notifies & event) === 0) return;
    fields.standOnItem();
    keyspace.feed.noteEvent(event, keyspace.value, keyspace.itemOffset >>> 2);
  }
}
