/**
 * Walks the index in the background: removes expired items and those of flushed databases, a few buckets at a time.
 *
 * The cursor (shard in turn) is shared, so that several workers divide the work. Invariant: when a whole round has begun and ended since
 * a database was flushed, no item of it is left and its physical number is free again.
 */
import { Bucket } from '../layout/bucket.js';
import { ClassCounter } from '../layout/class-counters.js';
import { Item } from '../layout/item.js';
import { locationOffset, Page } from '../layout/location.js';
import { Database, DatabaseState, Shard, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { Notify } from './change-feed.js';
import { FieldSweep } from './collections/field-sweep.js';
import type { Keyspace } from './keyspace.js';

/** Buckets looked at under one lock: about 10 microseconds. */
const BUCKETS_PER_LOCK = 64;
/** Value of a shard's FIELD_EXPIRY_WORD while a walk looks for hashes with expiring fields. */
const FIELDS_WALKED = 2;

export class Sweep {
  readonly #keyspace: Keyspace;
  readonly #memory: Memory;
  readonly #ctl: Int32Array;
  /** Where this participant is: a shard it took from the shared cursor, and its next bucket. */
  #shard = -1;
  #bucket = 0;
  /** Hashes with expiring fields that this walk through the shard has met. */
  #hashes = 0;
  readonly #fields: FieldSweep;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#memory = keyspace.memory;
    this.#ctl = keyspace.memory.ctl;
    this.#fields = new FieldSweep(keyspace);
  }

  /** Looks at up to BUCKETS_PER_LOCK buckets; returns how many items it removed. Outside any lock, inside a batch. */
  step(): number {
    const ctl = this.#ctl;
    const purging = this.#isPurging();
    const isPaused = this.#isPaused;
    if (isPaused && !purging) {
      this.#shard = -1;
      return 0;
    }
    if (this.#shard < 0) {
      this.#shard = this.#nextShard(purging);
      this.#bucket = 0;
      if (this.#shard < 0) return 0;
    }
    const shardWord = this.#memory.shardTable + this.#shard * Shard.WORDS;
    if (!this.#keyspace.gate.tryLockShard(shardWord)) {
      this.#shard = -1;
      return 0;
    }
    let removed = 0;
    const fields = ctl[shardWord + Shard.FIELD_EXPIRY_WORD] !== 0 && !isPaused;
    const buckets = ctl[shardWord + Shard.BUCKETS_WORD];
    const end = Math.min(buckets, this.#bucket + BUCKETS_PER_LOCK);
    if (fields && this.#bucket === 0) {
      this.#hashes = 0;
      ctl[shardWord + Shard.FIELD_EXPIRY_WORD] = FIELDS_WALKED;
    }
    for (; this.#bucket < end; this.#bucket++) {
      removed += this.#sweepChain(this.#bucket, purging);
      if (fields) this.#hashes += this.#fields.sweepChain(this.#bucket, this.#shard);
    }
    if (this.#bucket >= buckets) {
      const word = shardWord + Shard.FIELD_EXPIRY_WORD;
      // 1 again: a field was given an expiry behind this walk's back, perhaps in a bucket that it had passed.
      if (fields && ctl[word] === FIELDS_WALKED && this.#hashes === 0) ctl[word] = 0;
      this.#shard = -1;
    }
    // Fields have expired.
    this.#keyspace.feed.effects?.emitPending();
    this.#keyspace.settle();
    this.#memory.unlock(shardWord);
    this.#keyspace.freeUnlinked();
    return removed;
  }

  /** The next shard in turn that has something to look at, or -1: a few keys that expire are not looked for in empty shards. */
  #nextShard(purging: boolean): number {
    const { shardCount, shardTable } = this.#memory;
    for (let i = 0; i < shardCount; i++) {
      const shard = Atomics.add(this.#ctl, Super.SWEEP_WORD, 1) & (shardCount - 1);
      const word = shardTable + shard * Shard.WORDS;
      const hasExpiring =
        this.#ctl[word + Shard.EXPIRING_WORD] !== 0 || this.#ctl[word + Shard.FIELD_EXPIRY_WORD] !== 0;
      if (purging || hasExpiring) return shard;
    }
    return -1;
  }

  /** Removes every item of flushed databases now, in all shards. The gate is closed. */
  purgeAll(): void {
    for (let shard = 0; shard < this.#memory.shardCount; shard++) {
      const buckets = this.#ctl[this.#memory.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD];
      this.#shard = shard;
      for (let bucket = 0; bucket < buckets; bucket++) {
        this.#sweepChain(bucket, true);
        this.#keyspace.settle();
        this.#keyspace.freeUnlinked();
      }
    }
    this.#shard = -1;
    this.freeDatabases();
  }

  /** Removes every item of one database, one by one. The gate is closed. */
  removeAll(database: number): void {
    const { index } = this.#keyspace;
    for (let shard = 0; shard < this.#memory.shardCount; shard++) {
      const buckets = this.#ctl[this.#memory.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD];
      for (let bucket = 0; bucket < buckets; bucket++) {
        index.openBucket(bucket, shard);
        do {
          for (let slot = 0; slot < Bucket.SLOTS; slot++) {
            if (index.words[index.base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) continue;
            index.slot = slot;
            const header = locationOffset(index.page, index.unit) >>> 2;
            const { i32 } = this.#memory.arenas[index.page >>> Page.ARENA_SHIFT];
            if (i32[header + Item.SHAPE_WORD] >>> Item.DB_SHIFT === database) this.#keyspace.removeEntry(Notify.NONE);
          }
        } while (index.next());
        this.#keyspace.settle();
        this.#keyspace.freeUnlinked();
      }
    }
  }

  /** Gives physical databases that are flushed and empty back for use. */
  freeDatabases(): void {
    const table = this.#memory.databaseTable;
    // Of a warm pool, once a flush has made sure of it (store/persister).
    const emptied = this.#memory.isWarm ? DatabaseState.EMPTIED : DatabaseState.FREE;
    for (let physical = 0; physical < Database.PHYSICAL; physical++) {
      const state = table + Database.STATE_WORD + physical;
      if (this.#ctl[state] === DatabaseState.DEAD && this.#count(physical) === 0) this.#ctl[state] = emptied;
    }
  }

  /**
   * Items of a physical database, or -1 when that cannot be told now: a shard that is locked may get items back, if its holder
   * dies and is rolled back.
   */
  #count(physical: number): number {
    const memory = this.#memory;
    const alone = this.#keyspace.gate.isExclusive;
    let items = 0;
    for (let shard = 0; shard < memory.shardCount; shard++) {
      const lockWord = memory.shardTable + shard * Shard.WORDS;
      if (!alone && !this.#keyspace.gate.tryLockShard(lockWord)) return -1;
      items += this.#ctl[memory.databaseTable + Database.COUNTS_WORD + shard * Database.SHARD_WORDS + physical];
      if (!alone) memory.unlock(lockWord);
    }
    return items;
  }

  /** Only what was flushed goes. */
  get #isPaused(): boolean {
    return this.#ctl[Super.EXPIRY_PAUSED_WORD] === 1 || this.#keyspace.keepsExpired;
  }

  #isPurging(): boolean {
    const table = this.#memory.databaseTable + Database.STATE_WORD;
    for (let physical = 0; physical < Database.PHYSICAL; physical++) {
      if (this.#ctl[table + physical] === DatabaseState.DEAD) return true;
    }
    return false;
  }

  #sweepChain(bucket: number, purging: boolean): number {
    const keyspace = this.#keyspace;
    const { index } = keyspace;
    const mayExpire = !this.#isPaused;
    let removed = 0;
    index.openBucket(bucket, this.#shard);
    do {
      const { words, base } = index;
      const expiring = words[base + Bucket.BITS_WORD] & ((1 << Bucket.SLOTS) - 1);
      if (expiring === 0 && !purging) continue;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) continue;
        index.slot = slot;
        keyspace.countInClass(index.page, ClassCounter.swept);
        // What was flushed has not expired: it was gone before.
        const isFlushed = purging && keyspace.eviction.isFlushed(index.page, index.unit);
        const hasExpired = !isFlushed && mayExpire && index.hasExpiry && index.expiryMs <= keyspace.nowMs;
        if (!isFlushed && !hasExpired) continue;
        if (hasExpired) {
          keyspace.countInClass(index.page, ClassCounter.sweepRemoved);
          keyspace.countExpired();
        }
        keyspace.removeEntry(hasExpired ? Notify.EXPIRED : Notify.NONE);
        removed++;
      }
    } while (index.next());
    return removed;
  }
}
