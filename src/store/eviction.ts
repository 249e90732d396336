/**
 * Makes room in the DRAM tier: chooses among the ways to it, and judges single items. Which of a class are looked at: ClassSweep.
 *
 * A victim that is worth it (Admission) is appended to the capacity log when there is one, else evicted if the policy allows. Invariant: an item is only
 * touched under its shard's lock, which is tried, never waited for (the caller may hold others), and items that the running command has
 * just found stay.
 */

import { Bucket } from '../layout/bucket.js';
import { ClassCounter } from '../layout/class-counters.js';
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page } from '../layout/location.js';
import { Database, DatabaseState, PageKind, SlabClass, Super } from '../layout/superblock.js';
import { MOVING_SLOT } from '../memory/held.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_COUNT, RELOCATION_RATIO } from '../memory/slab-classes.js';
import { copyBytes } from '../native/copy.js';
import { Admission } from './admission.js';
import { Notify } from './change-feed.js';
import { ClassSweep } from './class-sweep.js';
import { Graveyard } from './collections/graveyard.js';
import { Ownership } from './collections/ownership.js';
import { Demotion } from './demotion.js';
import type { Index } from './index.js';
import type { Keyspace } from './keyspace.js';
import { PageMoves } from './page-moves.js';
import { Policy } from './policy.js';
import { Reclaim } from './reclaim.js';
import { classOfPage, Stat } from './statistics.js';
import { NOT_LOCKED, Verdict } from './verdict.js';

/** Requests for a class without pages until it is given one. */
const PAGE_DEMAND = 1024;
/** Nodes of deleted trees given back at once. */
const GRAVES_A_STEP = 64;
/** Evictions of a class between two looks at whether another class should give it a page. */
const BALANCE_INTERVAL = 512;
/** More than any item's counter of uses. */
const USES_MAX = 256;
/** An item about to be evicted. */
export interface Victim {
  /** A copy. */
  readonly key: Uint8Array;
  readonly valueBytes: number;
  /** 0 = never. */
  readonly expiryMs: number;
  readonly isFetched: boolean;
  readonly idleSeconds: number;
}

export class Eviction {
  /** Hears of each eviction before it happens, under the item's lock; must change nothing. */
  onEvict: ((page: number, unit: number) => void) | null = null;

  readonly reclaim: Reclaim;
  readonly ownership: Ownership;
  readonly moves: PageMoves;
  readonly demotion: Demotion;
  readonly #admission: Admission;
  readonly #keyspace: Keyspace;
  readonly #memory: Memory;
  readonly #ctl: Int32Array;
  readonly #index: Index;
  /** Evictions of each class at which it next looks for a donor. */
  readonly #balanceAt = new Float64Array(CLASS_COUNT).fill(BALANCE_INTERVAL);
  readonly #sweep: ClassSweep;
  /** Of the item judged last that may go. */
  victimAgeS = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#memory = keyspace.memory;
    this.#ctl = keyspace.memory.ctl;
    this.#index = keyspace.index;
    this.ownership = new Ownership(keyspace);
    this.reclaim = new Reclaim(keyspace, this);
    this.moves = new PageMoves(keyspace, this);
    this.demotion = new Demotion(keyspace);
    this.#admission = new Admission(keyspace, this);
    this.#sweep = new ClassSweep(keyspace, this);
  }

  get policy(): number {
    return this.#ctl[Super.POLICY_WORD];
  }

  hasPages(slabClass: number): boolean {
    return this.#ctl[this.#keyspace.slabs.classWord(slabClass) + SlabClass.PAGES_WORD] > 0;
  }

  /**
   * False when the class has no page and has not been asked for often enough to be given one: emptying a page of a small
   * pool for one item would throw thousands out.
   */
  mayMakeRoom(slabClass: number): boolean {
    if (this.hasPages(slabClass)) return true;
    const word = this.#keyspace.slabs.classWord(slabClass) + SlabClass.EVICTIONS_WORD;
    return ++this.#ctl[word] % PAGE_DEMAND === 0;
  }

  /** Frees at least one chunk of a class, or a page for it; false when nothing may go. */
  makeRoom(slabClass: number): boolean {
    const keyspace = this.#keyspace;
    keyspace.classCounters[(slabClass + 1) * ClassCounter.WORDS + ClassCounter.roomsMade]++;
    keyspace.settle();
    keyspace.freeUnlinked();
    this.reclaim.keepUp();
    if (this.#emptyGraves(slabClass)) return true;
    // Without a free page victims could not be demoted: colder items of the log go first.
    if (this.#memory.capacityPages > 0 && keyspace.pool.capacityFree === 0) this.reclaim.freePage();
    const word = keyspace.slabs.classWord(slabClass);
    if (this.#ctl[word + SlabClass.PAGES_WORD] === 0) return this.moves.makePage(slabClass);
    if (this.#ctl[word + SlabClass.EVICTIONS_WORD] >= this.#balanceAt[slabClass]) {
      this.#balanceAt[slabClass] = this.#ctl[word + SlabClass.EVICTIONS_WORD] + BALANCE_INTERVAL;
      this.moves.balance(slabClass);
    }
    return this.#sweep.run(slabClass) || this.moves.makePage(slabClass);
  }

  /** Gives back nodes of deleted trees, which come before anything that is still there; true when the class has got a chunk by it. */
  #emptyGraves(slabClass: number): boolean {
    const { graveyard, slabs, pool } = this.#keyspace;
    while (graveyard.step(GRAVES_A_STEP) > 0) {
      if (this.#ctl[slabs.classWord(slabClass) + SlabClass.PARTIAL_WORD] !== NO_PAGE || pool.hasRoomForData)
        return true;
    }
    return false;
  }

  /** Works towards a free page of the capacity tier; false when nothing more can go there. */
  freeCapacity(): boolean {
    return this.reclaim.keepUp() || this.moves.evictLarge(this.policy === Policy.NO_EVICTION ? 1 : 2, true);
  }

  /** False when only expired items can go: every other one must stay. */
  mayFreeAny(): boolean {
    return (
      this.policy !== Policy.NO_EVICTION || this.#memory.capacityPages > 0 || this.#keyspace.databases.hasFlushed()
    );
  }

  // ---- one chunk

  #lockedHere = false;

  /** Locks the shard that a chunk's header names, without waiting; NOT_LOCKED when the chunk is free or the shard busy. */
  lockItem(page: number, unit: number): number {
    const memory = this.#memory;
    const header = locationOffset(page, unit) >>> 2;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    if (i32[header + Item.VALUE_LENGTH_WORD] === Item.FREE_CHUNK) return NOT_LOCKED;
    const hash = this.ownership.hashOf(page, unit, i32, header);
    const lockWord = this.#index.shardWord(hash);
    this.#lockedHere = !memory.holds(lockWord);
    if (this.#lockedHere && !this.#keyspace.gate.tryLockShard(lockWord)) return NOT_LOCKED;
    return hash;
  }

  /** Of the last lockItem. */
  unlockItem(hash: number): void {
    if (this.#lockedHere) this.#memory.unlock(this.#index.shardWord(hash));
  }

  /** Seconds since the item in a chunk was last used; -1 = there is none, or it cannot be looked at. */
  idleOf(page: number, unit: number): number {
    const hash = this.lockItem(page, unit);
    if (hash === NOT_LOCKED) return -1;
    const found = this.findItem(hash, page, unit);
    const idle = found ? this.#keyspace.entryIdleS : -1;
    this.unlockItem(hash);
    return idle;
  }

  /**
   * Looks at one chunk and frees it when its item may go: expired, flushed, or unused since the last look. `force`: whatever its
   * use, and rather moved to another chunk of its class than lost.
   */
  examine(page: number, unit: number, force: boolean): Verdict {
    const hash = this.lockItem(page, unit);
    if (hash === NOT_LOCKED) return Verdict.SKIPPED;
    const lockedHere = this.#lockedHere;
    const verdict = this.findItem(hash, page, unit) ? this.#judge(hash, page, unit, force) : Verdict.SKIPPED;
    this.#keyspace.settle();
    if (lockedHere) this.#memory.unlock(this.#index.shardWord(hash));
    this.#keyspace.freeUnlinked();
    return verdict === Verdict.COPY ? this.#copyOut(hash, page, unit) : verdict;
  }

  /** Demotes the noted item; evicts it when the log has no room for it. */
  #copyOut(hash: number, page: number, unit: number): Verdict {
    const keyspace = this.#keyspace;
    const { demotion } = this;
    const isCopied = demotion.copy();
    const lockWord = this.#index.shardWord(hash);
    const lockedHere = !this.#memory.holds(lockWord);
    if (lockedHere && !keyspace.gate.tryLockShard(lockWord)) {
      demotion.drop();
      return Verdict.SKIPPED;
    }
    let verdict = Verdict.SKIPPED;
    if (this.#index.findLocation(hash, page, unit)) {
      if (keyspace.copies.find(page, unit)) {
        // Written behind meanwhile: a second record that counts would have nobody to say when it is out of date.
        demotion.drop();
        demotion.linkCopy(hash);
        verdict = Verdict.FREED;
      } else if (isCopied && demotion.isUnchanged()) {
        demotion.link(hash);
        verdict = Verdict.FREED;
      } else if (!isCopied) {
        verdict = this.mayEvict() ? Verdict.FREED : Verdict.STUCK;
        if (verdict === Verdict.FREED) this.evict(page, unit);
      }
    }
    if (verdict !== Verdict.FREED) demotion.drop();
    keyspace.settle();
    if (lockedHere) this.#memory.unlock(lockWord);
    keyspace.freeUnlinked();
    return verdict;
  }

  /** Positions the index on the entry of a chunk's item; of a collection's node, on that of the root item. */
  findItem(hash: number, page: number, unit: number): boolean {
    return this.#index.findLocation(hash, page, unit) || this.ownership.findRoot(hash, page, unit);
  }

  /** The index stands on the item's entry, or the root item's of a node, and its shard is locked. */
  #judge(hash: number, page: number, unit: number, force: boolean): Verdict {
    const keyspace = this.#keyspace;
    const index = this.#index;
    const isTree = Graveyard.isRoot(this.#memory, index.page, index.unit);
    const isPinned = keyspace.pins.isPinned(page, unit);
    if (isPinned || keyspace.isProtected(index.page, index.unit)) {
      if (isPinned) keyspace.countInClass(page, ClassCounter.pinned);
      if (force) keyspace.countInClass(page, ClassCounter.moveBusy);
      return Verdict.SKIPPED;
    }
    // The running command may have it open.
    if (isTree && (!this.#lockedHere || keyspace.gate.isExclusive)) return Verdict.SKIPPED;
    if (index.hasExpiry && index.expiryMs <= keyspace.nowMs) {
      keyspace.countExpired();
      keyspace.removeEntry(Notify.EXPIRED);
      return Verdict.FREED;
    }
    if (this.isFlushed(index.page, index.unit)) {
      keyspace.removeEntry(Notify.NONE);
      return Verdict.FREED;
    }
    const frequency = index.frequency;
    if (frequency > 0 && !force && !this.#ignoresUse()) {
      index.spare();
      return Verdict.SPARED;
    }
    if (force && (isTree ? this.#relocateOfTree(hash, page, unit) : this.#relocate(hash, page, unit))) {
      keyspace.countInClass(page, isTree ? ClassCounter.nodesMoved : ClassCounter.moved);
      return Verdict.FREED;
    }
    this.victimAgeS = keyspace.entryIdleS;
    if (!isTree && keyspace.copies.find(page, unit)) {
      this.demotion.linkCopy(hash);
      return Verdict.FREED;
    }
    if (!isTree && this.demotion.note(page, unit) && this.#admission.admits(hash, this.demotion.bytes))
      return Verdict.COPY;
    if (!this.mayEvict()) return Verdict.STUCK;
    if (force) keyspace.countInClass(page, ClassCounter.moveEvicted);
    this.evict(index.page, index.unit);
    return Verdict.FREED;
  }

  /**
   * The index has no room for one more entry in a hash's chain: of the items there that may go, the one used least, and longest ago, goes. The
   * hash's shard is locked.
   */
  evictOfChain(hash: number): boolean {
    const keyspace = this.#keyspace;
    const index = this.#index;
    let page = NO_PAGE;
    let unit = 0;
    let most = -1;
    index.locate(hash);
    do {
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        index.slot = slot;
        if (index.page === NO_PAGE || !this.#mayLeaveChain()) continue;
        const uses = keyspace.isLfu ? keyspace.entryFrequency : index.frequency;
        const value = (USES_MAX - uses) * Bucket.ACCESS_MASK + keyspace.entryIdleS;
        if (value <= most) continue;
        most = value;
        page = index.page;
        unit = index.unit;
      }
    } while (index.next());
    if (page === NO_PAGE) return false;
    const header = locationOffset(page, unit) >>> 2;
    const own = this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32[header + Item.HASH_WORD];
    if (!index.findLocation(own, page, unit)) return false;
    this.evict(page, unit);
    return true;
  }

  /** The index stands on an entry of a shard that is locked for another key: trees stay, which the running command may have open. */
  #mayLeaveChain(): boolean {
    const keyspace = this.#keyspace;
    const memory = this.#memory;
    const { page, unit } = this.#index;
    if (memory.isCapacity(page) && memory.isCapacityLost) return false;
    if (!this.mayEvict() || keyspace.isProtected(page, unit) || keyspace.pins.isPinned(page, unit)) return false;
    return !Graveyard.isRoot(memory, page, unit);
  }

  /** Evicts the item of the entry that the index stands on; its shard is locked. */
  evict(page: number, unit: number): void {
    this.onEvict?.(page, unit);
    this.#countEviction(page);
    this.#keyspace.removeEntry(Notify.EVICTED);
    this.#keyspace.statistics[Stat.EVICTED]++;
  }

  /** The index stands on the entry. */
  #countEviction(page: number): void {
    const keyspace = this.#keyspace;
    const index = this.#index;
    const counters = keyspace.classCounters;
    const at = classOfPage(this.#memory, page) * ClassCounter.WORDS;
    counters[at + ClassCounter.evicted]++;
    if (index.hasExpiry) counters[at + ClassCounter.evictedExpiring]++;
    if (!index.isFetched) counters[at + ClassCounter.evictedUnfetched]++;
    else if (index.frequency > 0) counters[at + ClassCounter.evictedActive]++;
    counters[at + ClassCounter.lastEvictedIdleS] = keyspace.entryIdleS;
    counters[at + ClassCounter.lastEvictedAtMs] = keyspace.wallMs;
  }

  /** What is known of an item about to be evicted, for `onEvict`. */
  describe(page: number, unit: number): Victim {
    const index = this.#index;
    const offset = locationOffset(page, unit);
    const { i32, u8 } = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    const key = offset + Item.HEADER_BYTES;
    return {
      key: u8.slice(key, key + (i32[(offset >>> 2) + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK)),
      valueBytes: i32[(offset >>> 2) + Item.VALUE_LENGTH_WORD],
      expiryMs: index.hasExpiry ? index.expiryMs : 0,
      isFetched: index.isFetched,
      idleSeconds: this.#keyspace.entryIdleS,
    };
  }

  /** True when the policy lets the entry that the index stands on be evicted. */
  mayEvict(): boolean {
    const { policy } = this;
    if (policy === Policy.NO_EVICTION) return false;
    return policy < Policy.VOLATILE_LRU || this.#index.hasExpiry;
  }

  /** The policies that choose their victims before they are looked at, by other things than the frequency bits. */
  #ignoresUse(): boolean {
    const { policy } = this;
    return policy !== Policy.NO_EVICTION && policy !== Policy.ALL_LRU && policy !== Policy.VOLATILE_LRU;
  }

  /** True when the item's database has been flushed. */
  isFlushed(page: number, unit: number): boolean {
    const shape =
      this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32[(locationOffset(page, unit) >>> 2) + Item.SHAPE_WORD];
    const state = this.#memory.databaseTable + Database.STATE_WORD + (shape >>> Item.DB_SHIFT);
    return this.#ctl[state] === DatabaseState.DEAD;
  }

  #sizeOf(page: number, unit: number): number {
    const header = locationOffset(page, unit) >>> 2;
    const { i32 } = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    return itemBytes(i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, i32[header + Item.VALUE_LENGTH_WORD]);
  }

  /** Moves a node, or the root item of a tree, whose entry the index stands on, to another chunk; false when there is none. */
  #relocateOfTree(hash: number, page: number, unit: number): boolean {
    if (this.#index.page !== page || this.#index.unit !== unit) return this.ownership.relocate(page, unit);
    if (!this.#relocate(hash, page, unit)) return false;
    this.ownership.markMoved(page, unit);
    return true;
  }

  /** Moves the entry's item to a free chunk of its class or a larger one in another page; false when there is none. */
  #relocate(hash: number, page: number, unit: number): boolean {
    const { slabs } = this.#keyspace;
    const kind = this.#ctl[this.#memory.pageInfo(page)];
    if ((kind & 0xff) !== PageKind.SLAB || !slabs.takeLarger((kind >>> 8) & 0xff, RELOCATION_RATIO, MOVING_SLOT))
      return false;
    const { arenas } = this.#memory;
    copyBytes(
      arenas[slabs.page >>> Page.ARENA_SHIFT],
      locationOffset(slabs.page, slabs.unit),
      arenas[page >>> Page.ARENA_SHIFT],
      locationOffset(page, unit),
      this.#sizeOf(page, unit),
    );
    const { copies } = this.#keyspace;
    if (copies.areKept) copies.carry(page, unit, slabs.page, slabs.unit);
    this.#keyspace.moveEntry(hash, slabs.page, slabs.unit);
    this.#keyspace.linkMoved();
    return true;
  }
}
