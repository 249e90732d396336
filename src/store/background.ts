/**
 * The slices of background work that every participant does between its turns: expiry, deleted trees, purge of flushed databases, log
 * reclaim, a scheduled flush, the dead, and keeping to limits and sizes.
 *
 * Owns when each of them is due next. Invariant: it runs inside a batch and without locks, so each step may take what it needs; what one
 * slice leaves undone, any participant's next one finds.
 */
import { Super } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { Lending } from './client-memory.js';
import type { Keyspace } from './keyspace.js';
import { purgeLost } from './purge-lost.js';
import { collectDead } from './repair.js';
import { Resizing } from './resize.js';

/** How often to look for participants that died without holding anything anybody waits for. */
const LOOK_FOR_DEAD_MS = 1000;
/** Sweep steps of a turn in which nothing was found: 64 buckets each. */
const STEPS = 16;
/** Nodes of deleted trees that one step gives back. */
const GRAVES_A_STEP = 64;
/** When no page of data could be freed: the look for dead items takes its time, and not in each turn. */
const SHRINK_AGAIN_MS = 100;

export class Background {
  readonly #keyspace: Keyspace;
  readonly #lending: Lending;
  readonly #resizing: Resizing;
  #lastLookForDeadMs = 0;
  #nextShrinkMs = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#lending = new Lending(keyspace.memory, keyspace.pool);
    this.#resizing = new Resizing(keyspace);
  }

  /** Works for about `budgetUs` microseconds. True when there is more to do soon. */
  run(budgetUs: number): boolean {
    const keyspace = this.#keyspace;
    const { databases, sweep, eviction, pool } = keyspace;
    const { ctl } = keyspace.memory;
    // All by the monotonic clock: the wall clock may be set back.
    const end = addon.monotonicMs() + budgetUs / 1000;
    keyspace.slabs.drainIfAsked();
    if (databases.flushAtMs !== 0 && databases.flushAtMs <= keyspace.nowMs) {
      keyspace.closeGate();
      const db = databases.takeScheduled(keyspace.nowMs);
      if (db >= 0) keyspace.flush(db);
      keyspace.openGate();
    }
    if (end - this.#lastLookForDeadMs > LOOK_FOR_DEAD_MS) {
      this.#lastLookForDeadMs = end;
      collectDead(keyspace);
      keyspace.gate.lone.become();
    }
    keyspace.lost.look();
    if (ctl[Super.LOST_PAGE_WORD] !== ctl[Super.LOST_PURGED_WORD]) purgeLost(keyspace);
    keyspace.abandonedDrafts.remove(keyspace);
    let removed = 0;
    let steps = 0;
    let isLending = false;
    let isResizing = false;
    do {
      if (pool.mustShrink && end > this.#nextShrinkMs && !eviction.moves.freeOne(-1, true)) {
        this.#nextShrinkMs = end + SHRINK_AGAIN_MS;
      }
      isLending = this.#lending.step(end);
      isResizing = this.#resizing.step(end);
      removed += keyspace.graveyard.step(GRAVES_A_STEP);
      const isReclaiming = eviction.reclaim.keepUp();
      removed += keyspace.promotion.step();
      removed += sweep.step();
      steps++;
      if (!isReclaiming && !isLending && !isResizing && steps >= STEPS && removed === 0) break;
    } while (addon.monotonicMs() < end);
    if (removed === 0) sweep.freeDatabases();
    return removed > 0 || isLending || isResizing;
  }
}
