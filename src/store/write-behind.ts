/**
 * Write-behind of a warm pool: gives items that stay in DRAM a copy in the capacity log, so that a reboot does not cost the most used ones.
 *
 * Walks the slab pages in rounds, at a bounded rate. By S3-FIFO's rule what was stored and never used is not worth a write; nor is what
 * changes faster than the rounds come by: it goes on merging in DRAM. Owns the walk. Invariant: an item is copied as Demotion does
 * it, and what changes it later lets its copy go (memory/log-copies); so a copy that counts is never older than its item.
 */
import { Item, ItemType } from '../layout/item.js';
import { locationOffset, Page } from '../layout/location.js';
import { Database, PageInfo, PageKind } from '../layout/superblock.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_UNITS } from '../memory/slab-classes.js';
import { addon } from '../native/addon.js';
import { Graveyard } from './collections/graveyard.js';
import { Demotion } from './demotion.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';

/** Bytes that are appended in a second at most, and at once. */
export const WRITE_BEHIND_BYTES_A_SECOND = 16 * 1024 * 1024;
const BURST_BYTES = 1024 * 1024;
/** Chunks of one step: some 20 microseconds where all have copies, half a millisecond where all must be looked up. */
const STEP_CHUNKS = 512;
/** From the beginning of a round to that of the next one: at first, and when nothing was found for long. */
const ROUND_MS_MIN = 1000;
const ROUND_MS_MAX = 16_000;
/** When the rate is used up, or the log has no room. */
const WAIT_MS = 20;
const FIRST_PAGE = 1;

/** Writes large collections, which are not copied as they lie (rdb/checkpoint-writer). */
export interface CheckpointTaker {
  /** Returns the bytes that were appended to the log. */
  take(hash: number, page: number, unit: number): number;
}

export class WriteBehind {
  readonly #keyspace: Keyspace;
  readonly #demotion: Demotion;
  /** The next chunk; page 0 = between two rounds. */
  #page = NO_PAGE;
  #chunk = 0;
  /** Items of the round that were written, or that the next one may write. */
  #found = 0;
  #roundMs = ROUND_MS_MIN;
  #nextRoundMs = 0;
  #allowance = BURST_BYTES;
  #lastMs = 0;
  /** The last round of all: neither rate nor rest. */
  #isLast = false;

  readonly #checkpoints: CheckpointTaker;

  constructor(keyspace: Keyspace, checkpoints: CheckpointTaker) {
    this.#keyspace = keyspace;
    this.#checkpoints = checkpoints;
    this.#demotion = new Demotion(keyspace);
  }

  /** Looks at a few hundred chunks. Returns after how many milliseconds there is more to do, 0 = at once. Inside a batch, without locks. */
  step(): number {
    const { copies, isRebuilding } = this.#keyspace;
    // A rebuild needs the time, and DRAM holds little yet.
    if (!copies.areKept || isRebuilding) return ROUND_MS_MIN;
    const nowMs = addon.monotonicMs();
    const passedMs = Math.min(ROUND_MS_MIN, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    this.#allowance = Math.min(BURST_BYTES, this.#allowance + (passedMs / 1000) * WRITE_BEHIND_BYTES_A_SECOND);
    if (this.#page === NO_PAGE) {
      if (nowMs < this.#nextRoundMs) return this.#nextRoundMs - nowMs;
      this.#page = FIRST_PAGE;
      this.#chunk = 0;
      this.#found = 0;
      this.#nextRoundMs = nowMs + this.#roundMs;
    }
    if (!this.#mayWrite()) return WAIT_MS;
    this.#walk();
    return 0;
  }

  /** The next steps are a last round, which writes all that is worth it at once: the machine may be about to stop. */
  beginLast(): void {
    this.#isLast = true;
    this.#page = NO_PAGE;
    this.#nextRoundMs = 0;
  }

  #walk(): void {
    const { memory } = this.#keyspace;
    const { ctl } = memory;
    for (let i = 0; i < STEP_CHUNKS && this.#mayWrite(); i++) {
      const info = memory.pageInfo(this.#page);
      const kind = ctl[info];
      if ((kind & 0xff) === PageKind.SLAB && this.#chunk < ctl[info + PageInfo.CARVED_WORD]) {
        this.#look(this.#page, this.#chunk++ * CLASS_UNITS[(kind >>> 8) & 0xff]);
        continue;
      }
      this.#chunk = 0;
      if (++this.#page < memory.dramPages) continue;
      this.#page = NO_PAGE;
      this.#roundMs = this.#found > 0 ? ROUND_MS_MIN : Math.min(ROUND_MS_MAX, this.#roundMs * 2);
      return;
    }
  }

  /** False while the rate is used up, or while reclaim is behind; where the log holds what nobody may evict, before that. */
  #mayWrite(): boolean {
    const { log, eviction } = this.#keyspace;
    if (this.#allowance <= 0 && !this.#isLast) return false;
    const isByAge = eviction.policy !== Policy.NO_EVICTION && eviction.policy < Policy.VOLATILE_LRU;
    return isByAge ? !log.isShort : !log.isFull;
  }

  #look(page: number, unit: number): void {
    const keyspace = this.#keyspace;
    const { memory, copies, index, gate } = keyspace;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const header = locationOffset(page, unit) >>> 2;
    // Without the lock, so that most chunks cost nothing more: what is read may be out of date.
    if (i32[header + Item.VALUE_LENGTH_WORD] === Item.FREE_CHUNK) return;
    const type = (i32[header + Item.SHAPE_WORD] >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
    if (type === ItemType.NONE || type >= ItemType.NODE || copies.find(page, unit)) return;
    const hash = i32[header + Item.HASH_WORD];
    const lockWord = index.shardWord(hash);
    if (!gate.tryLockShard(lockWord)) return;
    const isWanted = index.findLocation(hash, page, unit) && this.#isWanted(page, unit);
    const isTree = isWanted && Graveyard.isRoot(memory, page, unit);
    const isNoted = isWanted && !isTree && this.#demotion.note(page, unit);
    memory.unlock(lockWord);
    if (isTree) this.#allowance -= this.#checkpoints.take(hash, page, unit);
    if (!isNoted) return;
    const isCopied = this.#demotion.copy();
    if (isCopied) this.#allowance -= this.#demotion.bytes;
    if (!gate.tryLockShard(lockWord)) {
      this.#demotion.drop();
      return;
    }
    // It may have gone down and come up again meanwhile, with a copy.
    const isSame = index.findLocation(hash, page, unit) && this.#demotion.isUnchanged() && !copies.find(page, unit);
    if (isCopied && isSame) this.#demotion.attach();
    else this.#demotion.drop();
    memory.unlock(lockWord);
  }

  /** The item of the entry that the index stands on, whose shard is locked, is worth a copy and has none. */
  #isWanted(page: number, unit: number): boolean {
    const keyspace = this.#keyspace;
    const { memory, index, eviction, copies } = keyspace;
    if (copies.find(page, unit)) return false;
    if ((index.hasExpiry && index.expiryMs <= keyspace.nowMs) || eviction.isFlushed(page, unit)) return false;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    if (i32[(locationOffset(page, unit) >>> 2) + Item.SHAPE_WORD] >>> Item.DB_SHIFT === Database.DRAFTS) return false;
    if (eviction.mayEvict() && index.frequency === 0 && !index.isProven) return false;
    this.#found++;
    return copies.isSettled(page, unit) || this.#isLast;
  }
}
