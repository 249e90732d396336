/**
 * Items that come back after a reboot: their records lie in the log already and are entered into the index where they are.
 *
 * Owns the step that enters one. Invariant: what was written, removed or flushed since the start
 * stays so, whatever is found of it later.
 */
import { Item, ItemType, itemBytes } from '../layout/item.js';
import { locationOffset, Page, pageOffset, unitsOf } from '../layout/location.js';
import { LogPage } from '../layout/log-record.js';
import { Database, DatabaseState, PageInfo, Shard, Super } from '../layout/superblock.js';
import { FILL_TENTHS } from './index.js';
import { WRITTEN_BITS } from './item-cursor.js';
import { Staging } from './staging.js';

export const enum Adopted {
  /** It is in the index now. */
  DONE = 0,
  /** It was there: a rebuild that was cut short is done again. */
  BEFORE = 1,
  /** Expired, flushed, or its key was written since. */
  DEAD = 2,
  /** The index has no room. */
  LOST = 3,
}

/** A shard is locked for some 100 microseconds. */
const SPLITS_AHEAD = 256;

export abstract class Adoption extends Staging {
  #isWritten(hash: number): boolean {
    const page = this.ctl[Super.REBUILD_WRITTEN_WORD];
    const bit = (hash >>> 0) & (WRITTEN_BITS - 1);
    const { i32 } = this.arenas[page >>> Page.ARENA_SHIFT];
    // Whoever has written the key has noted it under its lock, which is held here: no Atomics, which are calls.
    return (i32[(pageOffset(page) >>> 2) + (bit >>> 5)] & (1 << (bit & 31))) !== 0;
  }

  /** Buckets for so many items of a shard, some at a time; false when they are there, or DRAM has no room for them. Inside a batch. */
  growAhead(shard: number, items: number): boolean {
    const lockWord = this.memory.shardTable + shard * Shard.WORDS;
    this.memory.lock(lockWord);
    const hasMore = this.index.growTo(shard, Math.floor((items * 10) / FILL_TENTHS), SPLITS_AHEAD);
    this.memory.unlock(lockWord);
    return hasMore;
  }

  /** Lets an entry point to the item of a record that has been found sound. Takes the key's lock; inside a batch. */
  adopt(page: number, unit: number, expiryMs: number): Adopted {
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
    const header = locationOffset(page, unit) >>> 2;
    const hash = item.i32[header + Item.HASH_WORD];
    this.memory.lock(this.index.shardWord(hash));
    const adopted = this.#adoptLocked(hash, page, unit, expiryMs);
    this.settle();
    if (this.growPending) this.growShard(hash);
    this.memory.unlock(this.index.shardWord(hash));
    this.forgetFinds();
    if (this.held.count !== 0) this.freeUnlinked();
    return adopted;
  }

  /**
   * What a checkpoint (its last part lies there) says of its key may take the place of what the key has, which is older or nothing. The key's lock
   * is held.
   */
  mayRestore(hash: number, page: number, unit: number, expiryMs: number): boolean {
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, unit);
    const header = itemOffset >>> 2;
    const shape = item.i32[header + Item.SHAPE_WORD];
    const database = shape >>> Item.DB_SHIFT;
    if (!this.#isLive(hash, database) || (expiryMs !== 0 && expiryMs <= this.nowMs)) return false;
    this.#raiseVersion(hash, item.i32, header);
    const key = itemOffset + Item.HEADER_BYTES;
    return !this.findKey(hash, database, item, key, shape & Item.KEY_LENGTH_MASK) || this.#isOlder(item.i32, header);
  }

  /** The collection that the cursor stands on was made of the checkpoint whose last part lies there, which stays its copy. */
  keepCheckpoint(page: number, unit: number): void {
    this.copies.forEachPart(page, unit, (partPage, partUnit) => {
      const { i32 } = this.arenas[partPage >>> Page.ARENA_SHIFT];
      this.#countUnits(partPage, i32, locationOffset(partPage, partUnit) >>> 2);
    });
    this.copies.attach(this.page, this.unit, page, unit);
  }

  abstract growShard(hash: number): void;

  #adoptLocked(hash: number, page: number, unit: number, expiryMs: number): Adopted {
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, unit);
    const header = itemOffset >>> 2;
    const shape = item.i32[header + Item.SHAPE_WORD];
    const database = shape >>> Item.DB_SHIFT;
    const keyLength = shape & Item.KEY_LENGTH_MASK;
    if (!this.#isLive(hash, database) || (expiryMs !== 0 && expiryMs <= this.nowMs)) return Adopted.DEAD;
    this.#raiseVersion(hash, item.i32, header);
    if (this.findKey(hash, database, item, itemOffset + Item.HEADER_BYTES, keyLength)) {
      if (this.page === page && this.unit === unit) return Adopted.BEFORE;
      if (!this.#isOlder(item.i32, header)) return Adopted.DEAD;
      this.restore();
      this.makeHeldRoom();
      this.discard(this.page, this.unit);
      this.countExpiring(hash, database, this.index.hasExpiry, expiryMs !== 0);
      this.#countUnits(page, item.i32, header);
      this.index.setLocation(hash, page, unit);
      this.index.setExpiry(hash, expiryMs);
      return Adopted.DONE;
    }
    const { index } = this;
    this.#countUnits(page, item.i32, header);
    if (!index.insert(hash, page, unit, this.accessNow) && !this.insertInNewRoom(hash, page, unit)) {
      this.log.drop(page, unit, this.#units(item.i32, header));
      return Adopted.LOST;
    }
    if (expiryMs !== 0) index.setExpiry(hash, expiryMs);
    const counts = this.counts(hash, database);
    this.ctl[counts]++;
    if (expiryMs !== 0) this.ctl[counts + Database.EXPIRING_OFFSET]++;
    if (((shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK) === ItemType.HASH) {
      this.ctl[index.shardWord(hash) + Shard.FIELD_EXPIRY_WORD] = 1;
    }
    this.growPending = true;
    return Adopted.DONE;
  }

  /** The record's database is as it was, and nobody has written its key since the start. */
  #isLive(hash: number, database: number): boolean {
    if (this.ctl[this.databaseTable + Database.STATE_WORD + database] !== DatabaseState.LIVE) return false;
    return ((this.ctl[Super.REBUILD_FLUSHED_WORD] >>> database) & 1) === 0 && !this.#isWritten(hash);
  }

  /** The found item came back from an older record of its key, and is not of this start. */
  #isOlder(words: Int32Array, header: number): boolean {
    const { page, memory } = this;
    if (!memory.isCapacity(page)) return false;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    if (i32[(pageOffset(page) >>> 2) + LogPage.EPOCH_WORD] === this.ctl[Super.LOG_EPOCH_WORD]) return false;
    const found = this.itemOffset >>> 2;
    const high = words[header + Item.VERSION_HIGH_WORD] - this.value.i32[found + Item.VERSION_HIGH_WORD];
    if (high !== 0) return high > 0;
    return words[header + Item.VERSION_LOW_WORD] >>> 0 > this.value.i32[found + Item.VERSION_LOW_WORD] >>> 0;
  }

  /** The next version that the shard gives is above the item's. */
  #raiseVersion(hash: number, words: Int32Array, header: number): void {
    const { ctl } = this;
    const shard = this.index.shardWord(hash);
    const high = words[header + Item.VERSION_HIGH_WORD];
    const low = words[header + Item.VERSION_LOW_WORD];
    const ownHigh = ctl[shard + Shard.VERSION_HIGH_WORD];
    if (high < ownHigh || (high === ownHigh && low >>> 0 <= ctl[shard + Shard.VERSION_LOW_WORD] >>> 0)) return;
    ctl[shard + Shard.VERSION_HIGH_WORD] = high;
    ctl[shard + Shard.VERSION_LOW_WORD] = low;
  }

  #units(words: Int32Array, header: number): number {
    const keyLength = words[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    return unitsOf(itemBytes(keyLength, words[header + Item.VALUE_LENGTH_WORD]));
  }

  #countUnits(page: number, words: Int32Array, header: number): void {
    const word = this.memory.pageInfo(page) + PageInfo.FREE_COUNT_WORD;
    Atomics.add(this.ctl, word, this.#units(words, header));
  }
}
