/**
 * The sixteen logical databases over physical ones: counts, FLUSHDB, FLUSHALL, SWAPDB, delayed flush.
 *
 * A key belongs to a physical database; flushing gives the logical number a fresh one and leaves the old one's items,
 * unreachable at once, to the sweep. Invariant: each logical number maps to a LIVE physical one of its own.
 */
import { Database, DatabaseState, Shard, Super } from '../layout/superblock.js';
import type { Journal } from '../memory/journal.js';
import type { Memory } from '../memory/memory.js';
import { saveSwap } from './persister.js';
import type { Sweep } from './sweep.js';

export class Databases {
  readonly #memory: Memory;
  readonly #journal: Journal;
  readonly #sweep: Sweep;

  constructor(memory: Memory, journal: Journal, sweep: Sweep) {
    this.#memory = memory;
    this.#journal = journal;
    this.#sweep = sweep;
  }

  /** Live items, expired ones not yet removed included, as Redis counts. */
  size(db: number): number {
    return this.#sum(db, 0);
  }

  expiring(db: number): number {
    return this.#sum(db, Database.EXPIRING_OFFSET);
  }

  #sum(db: number, offset: number): number {
    const { ctl, databaseTable, shardCount } = this.#memory;
    const first = databaseTable + Database.COUNTS_WORD + ctl[databaseTable + db] + offset;
    let items = 0;
    for (let shard = 0; shard < shardCount; shard++) items += ctl[first + shard * Database.SHARD_WORDS];
    return items;
  }

  /** Empties one database. The gate is closed. */
  flush(db: number): void {
    const { ctl, databaseTable } = this.#memory;
    const isRebuilding = ctl[Super.REBUILD_STATE_WORD] !== 0;
    const keys = this.size(db);
    if (keys === 0 && !isRebuilding) return;
    // All shards are this participant's: the first one counts for them.
    ctl[this.#memory.shardTable + Shard.OTHER_CHANGES_WORD] += keys;
    let fresh = this.#findFree();
    if (fresh < 0) {
      this.#sweep.freeDatabases();
      fresh = this.#findFree();
    }
    if (fresh < 0) {
      this.#sweep.purgeAll();
      fresh = this.#findFree();
    }
    const old = ctl[databaseTable + db];
    // What the rebuild has yet to find in it is flushed, whatever the number is used for by then.
    if (isRebuilding) this.#set(Super.REBUILD_FLUSHED_WORD, ctl[Super.REBUILD_FLUSHED_WORD] | (1 << old));
    if (fresh < 0) {
      // Of a warm pool that was flushed a dozen times since its state was last made persistent.
      this.#sweep.removeAll(old);
      return;
    }
    this.#set(databaseTable + Database.STATE_WORD + fresh, DatabaseState.LIVE);
    this.#set(databaseTable + db, fresh);
    this.#set(databaseTable + Database.STATE_WORD + old, DatabaseState.DEAD);
  }

  /** Journaled: a participant that dies between two of these leaves the databases as they were. */
  #set(word: number, value: number): void {
    const { ctl } = this.#memory;
    this.#journal.save(0, ctl, word);
    ctl[word] = value;
  }

  flushAll(): void {
    for (let db = 0; db < Database.LOGICAL; db++) this.flush(db);
  }

  /** The gate is closed. */
  swap(a: number, b: number): void {
    const { ctl, databaseTable } = this.#memory;
    const first = ctl[databaseTable + a];
    this.#set(databaseTable + a, ctl[databaseTable + b]);
    this.#set(databaseTable + b, first);
    // Before anything is written to either: a reboot would find it in the other one.
    if (this.#memory.isWarm) saveSwap(this.#memory);
  }

  /** Flushes `db` once the clock reaches `atMs` (flush_all with a delay); a later call replaces an earlier one, 0 cancels. */
  scheduleFlush(db: number, atMs: number): void {
    const { ctl } = this.#memory;
    const high = Math.floor(atMs / 0x1_0000_0000);
    // The database last: without it (stored as number + 1) the time, half-written perhaps, means nothing.
    Atomics.store(ctl, Super.FLUSH_DATABASE_WORD, 0);
    ctl[Super.FLUSH_AT_LOW_WORD] = (atMs - high * 0x1_0000_0000) | 0;
    ctl[Super.FLUSH_AT_HIGH_WORD] = high;
    if (atMs !== 0) Atomics.store(ctl, Super.FLUSH_DATABASE_WORD, db + 1);
  }

  /** Time of the scheduled flush, 0 = none. */
  get flushAtMs(): number {
    const { ctl } = this.#memory;
    if (ctl[Super.FLUSH_DATABASE_WORD] === 0) return 0;
    return ctl[Super.FLUSH_AT_HIGH_WORD] * 0x1_0000_0000 + (ctl[Super.FLUSH_AT_LOW_WORD] >>> 0);
  }

  /** The database whose scheduled flush is due, once; -1 = none. The gate is closed. */
  takeScheduled(nowMs: number): number {
    const at = this.flushAtMs;
    if (at === 0 || at > nowMs) return -1;
    const db = this.#memory.ctl[Super.FLUSH_DATABASE_WORD] - 1;
    this.scheduleFlush(0, 0);
    return db;
  }

  /** True while items of flushed databases may be left. */
  hasFlushed(): boolean {
    const { ctl, databaseTable } = this.#memory;
    for (let physical = 0; physical < Database.PHYSICAL; physical++) {
      if (ctl[databaseTable + Database.STATE_WORD + physical] === DatabaseState.DEAD) return true;
    }
    return false;
  }

  #findFree(): number {
    const { ctl, databaseTable } = this.#memory;
    for (let physical = 0; physical < Database.DRAFTS; physical++) {
      if (ctl[databaseTable + Database.STATE_WORD + physical] === DatabaseState.FREE) return physical;
    }
    return -1;
  }
}
