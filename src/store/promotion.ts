/**
 * Brings items of the capacity tier that are read again and again up into DRAM: in the background, at a bounded rate. In a warm pool what they
 * leave there stays, as their copy.
 *
 * Reads note what they find worth it; nothing is moved on their way. Owns: this participant's notes, which may be lost or out of date.
 * Invariant: the entry points to the log or to a whole copy; what is in hand in between stands in the moving slot, as for every move.
 */
import { Bucket } from '../layout/bucket.js';
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page } from '../layout/location.js';
import { MOVING_SLOT } from '../memory/held.js';
import { CLASS_OF_UNITS, RELOCATION_RATIO } from '../memory/slab-classes.js';
import { copyBytes } from '../native/copy.js';
import { INLINE_VALUE_BYTES } from './item-cursor.js';
import type { Keyspace } from './keyspace.js';
import { Policy } from './policy.js';
import { Stat } from './statistics.js';

/** Bytes that one participant brings up in a second at most, and at once. */
export const PROMOTION_BYTES_A_SECOND = 32 * 1024 * 1024;
const BURST_BYTES = 1024 * 1024;
/** Uses since the item came to the tier that make it worth a place in DRAM: all that are counted. With two, 30.0 % miss on Zipf 0.7, with three 28.8. */
const USES_WANTED = Bucket.FREQUENCY_MAX;
/** Notes kept; more reads than that between two slices of background work note nothing. */
const NOTES = 256;
const NOTE_WORDS = 3;
/** Items brought up in one step. */
const STEP_ITEMS = 16;
/** When DRAM has no room for what should come up. */
const PAUSE_MS = 1000;

export class Promotion {
  readonly #keyspace: Keyspace;
  /** hash, page, unit */
  readonly #notes = new Int32Array(NOTES * NOTE_WORDS);
  #count = 0;
  #allowance = BURST_BYTES;
  #lastMs = 0;
  #pausedUntilMs = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  /** An item of the capacity tier has been read; its entry, on which the index stands, has counted the use. */
  note(hash: number, page: number, unit: number, valueLength: number): void {
    if (this.#count === NOTES || this.#keyspace.index.frequency < USES_WANTED) return;
    const { memory, copies, isRebuilding } = this.#keyspace;
    // What a rebuild finds of the key is compared with the record that the entry points to.
    if (memory.isWarm && (isRebuilding || !copies.areKept)) return;
    // Longer values are sent from where they lie.
    if (valueLength > INLINE_VALUE_BYTES) return;
    const at = this.#count++ * NOTE_WORDS;
    this.#notes[at] = hash;
    this.#notes[at + 1] = page;
    this.#notes[at + 2] = unit;
  }

  /** Brings a few noted items up. No lock is held. Returns how many. */
  step(): number {
    if (this.#count === 0) return 0;
    const { nowMs, memory } = this.#keyspace;
    if (memory.isCapacityLost) {
      // For what came up something would have to go that can go nowhere.
      this.#count = 0;
      return 0;
    }
    // The clock may have been set back.
    const passedMs = Math.max(0, Math.min(1000, nowMs - this.#lastMs));
    this.#lastMs = nowMs;
    this.#allowance = Math.min(BURST_BYTES, this.#allowance + (passedMs / 1000) * PROMOTION_BYTES_A_SECOND);
    if (nowMs < this.#pausedUntilMs && nowMs > this.#pausedUntilMs - PAUSE_MS) {
      this.#count = 0;
      return 0;
    }
    let promoted = 0;
    for (let i = 0; i < STEP_ITEMS && this.#count > 0 && this.#allowance > 0; i++) {
      const at = --this.#count * NOTE_WORDS;
      if (this.#promote(this.#notes[at], this.#notes[at + 1], this.#notes[at + 2])) promoted++;
    }
    return promoted;
  }

  #promote(hash: number, page: number, unit: number): boolean {
    const keyspace = this.#keyspace;
    const { index, gate, eviction, log } = keyspace;
    const lockWord = index.shardWord(hash);
    if (!gate.tryLockShard(lockWord)) return false;
    let slabClass = this.#classOf(hash, page, unit);
    let isMoved = slabClass >= 0 && this.#move(hash, page, unit, slabClass);
    this.#unlock(lockWord);
    if (isMoved || slabClass < 0) return isMoved;
    // Under noeviction another item must find room below, or a look for one would take long and in vain.
    const mayMakeRoom = eviction.policy !== Policy.NO_EVICTION || !log.isShort;
    if (!mayMakeRoom || !eviction.mayMakeRoom(slabClass) || !eviction.makeRoom(slabClass)) {
      this.#pausedUntilMs = keyspace.nowMs + PAUSE_MS;
      return false;
    }
    if (!gate.tryLockShard(lockWord)) return false;
    slabClass = this.#classOf(hash, page, unit);
    isMoved = slabClass >= 0 && this.#move(hash, page, unit, slabClass);
    this.#unlock(lockWord);
    return isMoved;
  }

  #unlock(lockWord: number): void {
    this.#keyspace.settle();
    this.#keyspace.memory.unlock(lockWord);
    this.#keyspace.freeUnlinked();
  }

  /** Slab class of a noted item; -1 = it is no longer there. Its shard is locked. */
  #classOf(hash: number, page: number, unit: number): number {
    const { index, nowMs } = this.#keyspace;
    if (!index.findLocation(hash, page, unit)) return -1;
    if (index.hasExpiry && index.expiryMs <= nowMs) return -1;
    return CLASS_OF_UNITS[this.#keyspace.memory.chunkUnits(this.#bytesOf(page, unit))];
  }

  #bytesOf(page: number, unit: number): number {
    const { i32 } = this.#keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
    const header = locationOffset(page, unit) >>> 2;
    return itemBytes(i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, i32[header + Item.VALUE_LENGTH_WORD]);
  }

  /** Copies the item of the entry that the index stands on into a free chunk; false when there is none. */
  #move(hash: number, page: number, unit: number, slabClass: number): boolean {
    const { slabs, memory, index, statistics, lost } = this.#keyspace;
    const from = memory.arenas[page >>> Page.ARENA_SHIFT];
    if (!lost.isThere(page, from, locationOffset(page, unit), this.#bytesOf(page, unit))) return false;
    if (!slabs.take(slabClass, MOVING_SLOT) && !slabs.takeLarger(slabClass, RELOCATION_RATIO, MOVING_SLOT))
      return false;
    const bytes = this.#bytesOf(page, unit);
    copyBytes(
      memory.arenas[slabs.page >>> Page.ARENA_SHIFT],
      locationOffset(slabs.page, slabs.unit),
      from,
      locationOffset(page, unit),
      bytes,
    );
    const { copies } = this.#keyspace;
    if (copies.areKept) {
      copies.attach(slabs.page, slabs.unit, page, unit);
      index.setLocation(hash, slabs.page, slabs.unit);
    } else {
      this.#keyspace.moveEntry(hash, slabs.page, slabs.unit);
    }
    this.#keyspace.linkMoved();
    this.#allowance -= bytes;
    statistics[Stat.PROMOTED]++;
    statistics[Stat.PROMOTED_BYTES] += bytes;
    return true;
  }
}
