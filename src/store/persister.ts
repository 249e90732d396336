/**
 * Makes the capacity tier of a warm pool persistent, once a second: pages changed since, then which database is which.
 *
 * Owns the marks of changed pages, which whoever changes a page sets. Invariant: the map of databases that is written is one from before the
 * pages were, and a number that it does not mean is used again only when what is persistent has nothing living of it: so an item never comes
 * back in another database than its own, nor after its flush.
 */
import { Page, pageOffset } from '../layout/location.js';
import { LogPage, markScanned, readPageKey } from '../layout/log-record.js';
import { Database, DatabaseState, PageChange, PageInfo, PageKind, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { addon } from '../native/addon.js';
import { WarmStateFile } from './capacity-file.js';
import type { Keyspace } from './keyspace.js';

export class Persister {
  readonly #keyspace: Keyspace;
  readonly #memory: Memory;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#memory = keyspace.memory;
  }

  /** Outside a batch: it waits for the medium. Throws what the system says. */
  run(): void {
    const { ctl, databaseTable, capacityBase, capacityPages } = this.#memory;
    const startedMs = performance.now();
    this.#keyspace.enterBatch();
    const databases = mapOf(this.#memory);
    const swaps = ctl[Super.SWAPS_WORD];
    const rebuildEpoch = epochOf(this.#memory);
    const states = ctl.slice(
      databaseTable + Database.STATE_WORD,
      databaseTable + Database.STATE_WORD + Database.PHYSICAL,
    );
    this.#keyspace.leaveBatch();
    for (let page = capacityBase; page < capacityBase + capacityPages; page++) {
      if (ctl[this.#memory.pageInfo(page) + PageInfo.CHANGED_WORD] !== PageChange.NONE) this.#persistPage(page);
    }
    this.#memory.lock(Super.WARM_LOCK_WORD);
    const isOutdated = ctl[Super.SWAPS_WORD] !== swaps;
    try {
      if (!isOutdated) saveState(this.#memory, databases, rebuildEpoch);
    } finally {
      this.#memory.unlock(Super.WARM_LOCK_WORD);
    }
    for (let physical = 0; physical < Database.PHYSICAL && !isOutdated; physical++) {
      if (states[physical] !== DatabaseState.EMPTIED) continue;
      Atomics.store(ctl, databaseTable + Database.STATE_WORD + physical, DatabaseState.FREE);
    }
    ctl[Super.PERSIST_MS_WORD] = Math.ceil(performance.now() - startedMs);
    ctl[Super.PERSIST_AT_WORD] = Math.floor(Date.now() / 1000);
  }

  #persistPage(page: number): void {
    const { ctl, arenas } = this.#memory;
    const word = this.#memory.pageInfo(page) + PageInfo.CHANGED_WORD;
    // First the mark: what changes from here on is for the next time.
    const change = Atomics.exchange(ctl, word, PageChange.NONE);
    try {
      addon.persist(arenas[page >>> Page.ARENA_SHIFT].arena, pageOffset(page), Page.BYTES);
    } catch (error) {
      Atomics.store(ctl, word, change);
      throw error;
    }
    if (change === PageChange.SCANNED) this.#markScanned(page);
  }

  /** What is dead in the page is persistent: after a power cut during the rebuild, the next one may go by it. */
  #markScanned(page: number): void {
    const memory = this.#memory;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const base = pageOffset(page) >>> 2;
    const epoch = memory.ctl[Super.LOG_EPOCH_WORD];
    const key = readPageKey(i32, base, memory.logSalt, page - memory.capacityBase);
    // Freed and opened anew meanwhile, it needs no mark; one that comes too late is none, being made with the old key.
    if (key === 0 || memory.pageKind(page) !== PageKind.LOG_SEALED || i32[base + LogPage.EPOCH_WORD] === epoch) return;
    markScanned(i32, base, key, epoch);
    this.#keyspace.log.noteChange(page);
  }
}

function mapOf({ ctl, databaseTable }: Memory): Int32Array {
  return ctl.slice(databaseTable + Database.MAP_WORD, databaseTable + Database.MAP_WORD + Database.LOGICAL);
}

/** Of the rebuild under way; 0 = none. */
function epochOf({ ctl }: Memory): number {
  return ctl[Super.REBUILD_STATE_WORD] === 0 ? 0 : ctl[Super.LOG_EPOCH_WORD];
}

function saveState(memory: Memory, databases: Int32Array, rebuildEpoch: number): void {
  const file = new WarmStateFile(memory.capacityPath, memory.capacityRoom);
  try {
    file.save(databases, rebuildEpoch);
  } finally {
    file.close();
  }
}

/**
 * SWAPDB, with the gate closed: the new map is persistent when it returns, and before it what the pages say: else what has just died in one
 * database would come back in the other.
 */
export function saveSwap(memory: Memory): void {
  const { capacityBase, capacityPages, ctl, arenas } = memory;
  for (let page = capacityBase; page < capacityBase + capacityPages; page++) {
    // The mark stays: a scanned page is to be marked as such by the next flush.
    if (ctl[memory.pageInfo(page) + PageInfo.CHANGED_WORD] === PageChange.NONE) continue;
    addon.persist(arenas[page >>> Page.ARENA_SHIFT].arena, pageOffset(page), Page.BYTES);
  }
  memory.lock(Super.WARM_LOCK_WORD);
  try {
    memory.ctl[Super.SWAPS_WORD]++;
    saveState(memory, mapOf(memory), epochOf(memory));
  } finally {
    memory.unlock(Super.WARM_LOCK_WORD);
  }
}
