/**
 * Puts back what a dead participant had in hand: its half-made changes, its locks, its chunks, its pages.
 *
 * Whoever finds it dead takes its byte lock, which makes it the only one at work; if that one dies too, the next
 * begins again: every step can be repeated. Invariant afterwards: checkInvariants holds, and every write the dead had answered is there.
 */
import { Bucket } from '../layout/bucket.js';
import { Doubt } from '../layout/effects.js';
import { Item } from '../layout/item.js';
import { locationOffset, Page, pageOffset } from '../layout/location.js';
import {
  Database,
  DatabaseState,
  GATE_HOLDER,
  ParticipantPage as P,
  PageInfo,
  PageKind,
  Participant,
  ParticipantState,
  Pin,
  Shard,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import { FIRST_DEFERRED } from '../memory/held.js';
import { Journal } from '../memory/journal.js';
import { closeMailbox, releaseMailboxLocks } from '../memory/mailboxes.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_COUNT } from '../memory/slab-classes.js';
import { addon } from '../native/addon.js';
import { forgetClients } from './client-memory.js';
import { Graveyard } from './collections/graveyard.js';
import { forgetHolds } from './holds.js';
import { localBucket } from './index-cursor.js';
import { LINKED } from './item-cursor.js';
import type { Keyspace } from './keyspace.js';
import { keepCounters, Stat } from './statistics.js';
import { forEachEntry, forEachLogItem, forEachSlot } from './walks.js';

/**
 * First half: rolls the dead one's changes back and releases its locks. Takes no lock, so a waiter that holds others may call it.
 * Nothing happens when somebody else is at it.
 */
export function restoreParticipant(memory: Memory, dead: number): void {
  if (!addon.lockByte(memory.controlFd, dead)) return;
  try {
    const state = memory.participantWord(dead) + Participant.STATE_WORD;
    if (Atomics.load(memory.ctl, state) !== ParticipantState.FREE) restoreLocked(memory, dead);
  } finally {
    addon.unlockByte(memory.controlFd, dead);
  }
}

function restoreLocked(memory: Memory, dead: number): void {
  const { ctl } = memory;
  const at = memory.participantWord(dead);
  const page = ctl[at + Participant.PAGE_WORD];
  // Before anything: an item that was half changed gets its old version back, and who copies it must notice.
  Atomics.add(ctl, Super.RESTORED_WORD, 1);
  if (page !== NO_PAGE) {
    const words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    const base = pageOffset(page) >>> 2;
    const journal = new Journal(memory, words, base);
    // What it was at may be done and not written down, or the other way round.
    if (memory.isDurable && (journal.isOpen || isAtWork(memory, dead))) {
      Atomics.store(ctl, Super.EFFECTS_DOUBT_WORD, Doubt.YES);
    }
    // The allocator's changes first: they are the newest, and the data's undo does not touch their words.
    journal.rollbackAlloc();
    releaseAllocatorLocks(memory, dead);
    sortOutDeferred(journal.isOpen, words, base);
    journal.rollback();
    forgetLinked(memory, dead, words, base);
  } else {
    releaseAllocatorLocks(memory, dead);
  }
  // It may have been making a collection, of which parts are settled: the sweep removes them.
  Atomics.store(ctl, memory.databaseTable + Database.STATE_WORD + Database.DRAFTS, DatabaseState.DEAD);
  releaseShards(memory, dead);
  Atomics.store(ctl, at + Participant.UNBATCHED_WORD, 0);
  Atomics.store(ctl, at + Participant.STATE_WORD, ParticipantState.RESTORED);
  Atomics.store(ctl, at + Participant.IN_BATCH_WORD, 0);
  addon.futexWake(memory.arenas[0].arena, (at + Participant.IN_BATCH_WORD) << 2, Participant.MAX);
}

/**
 * Looks for dead participants and finishes their repair: frees their chunks, pages and pins. Called without locks
 * (start-up, background). Returns how many were found.
 */
export function collectDead(keyspace: Keyspace): number {
  const { memory } = keyspace;
  let found = 0;
  for (let p = 0; p < Participant.MAX; p++) {
    if (p === memory.self) continue;
    const state = memory.participantWord(p) + Participant.STATE_WORD;
    if (Atomics.load(memory.ctl, state) === ParticipantState.FREE) continue;
    if (!addon.lockByte(memory.controlFd, p)) continue;
    try {
      if (Atomics.load(memory.ctl, state) === ParticipantState.FREE) continue;
      restoreLocked(memory, p);
      collectLocked(keyspace, p);
      keyspace.statistics[Stat.REPAIRS]++;
      found++;
    } finally {
      addon.unlockByte(memory.controlFd, p);
    }
  }
  return found;
}

/** Second half of the repair, for the holder of the dead one's byte lock; a participant that leaves does it for itself. */
export function collectLocked(keyspace: Keyspace, dead: number): void {
  const { memory } = keyspace;
  const { ctl } = memory;
  const at = memory.participantWord(dead);
  const page = ctl[at + Participant.PAGE_WORD];
  forgetClients(memory, dead);
  forgetHolds(memory, dead);
  // Nobody sends to it or serves its clients any more before its pages go.
  keyspace.interests.forget(dead);
  keyspace.patterns.forget(dead);
  closeMailbox(memory, dead);
  keyspace.mailboxes.forget(dead);
  if (page !== NO_PAGE) {
    const words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    const base = pageOffset(page) >>> 2;
    freeHeld(keyspace, page, words, base);
    freeMagazines(keyspace, page, words, base);
    sealLogPage(keyspace, words, base);
  }
  dropPins(keyspace, dead);
  freeTakenPages(keyspace, dead, page);
  if (page !== NO_PAGE) {
    keepCounters(memory, dead);
    keyspace.pool.freeParticipant(page, at + Participant.PAGE_WORD);
  }
  Atomics.store(ctl, at + Participant.STATE_WORD, ParticipantState.FREE);
}

/** It has died within a batch, or with a shard locked. */
function isAtWork(memory: Memory, dead: number): boolean {
  const { ctl, shardTable, shardCount } = memory;
  if (Atomics.load(ctl, memory.participantWord(dead) + Participant.IN_BATCH_WORD) !== 0) return true;
  for (let shard = 0; shard < shardCount; shard++) {
    if (isOwnedBy(memory, shardTable + shard * Shard.WORDS + Shard.LOCK_WORD, dead)) return true;
  }
  return false;
}

function isOwnedBy(memory: Memory, word: number, participant: number): boolean {
  return (Atomics.load(memory.ctl, word) & 0xff) === participant + 1;
}

function releaseAllocatorLocks(memory: Memory, dead: number): void {
  for (const word of [
    Super.PAGE_LOCK_WORD,
    Super.RECLAIM_LOCK_WORD,
    Super.PIN_LOCK_WORD,
    Super.INTEREST_LOCK_WORD,
    Super.GRAVE_LOCK_WORD,
  ]) {
    if (!isOwnedBy(memory, word, dead)) continue;
    if (word === Super.PAGE_LOCK_WORD) recountFreePages(memory);
    if (word === Super.PIN_LOCK_WORD) recountPins(memory);
    memory.releaseFor(word);
  }
  for (let c = 0; c < CLASS_COUNT; c++) {
    const word = memory.classTable + c * SlabClass.WORDS + SlabClass.LOCK_WORD;
    if (isOwnedBy(memory, word, dead)) memory.releaseFor(word);
  }
  releaseMailboxLocks(memory, dead);
}

function recountFreePages(memory: Memory): void {
  const { ctl } = memory;
  let dram = 0;
  let lent = 0;
  let dramAbsent = 0;
  for (let page = 1; page < memory.dramPages; page++) {
    const kind = memory.pageKind(page);
    if (kind === PageKind.FREE) dram++;
    else if (kind === PageKind.LENT || kind === PageKind.RETURNING) lent++;
    else if (kind === PageKind.ABSENT || kind === PageKind.LEAVING) dramAbsent++;
  }
  let capacity = 0;
  let capacityAbsent = 0;
  for (let i = 0; i < memory.capacityPages; i++) {
    const kind = memory.pageKind(memory.capacityBase + i);
    if (kind === PageKind.FREE) capacity++;
    else if (kind === PageKind.ABSENT || kind === PageKind.LEAVING) capacityAbsent++;
  }
  ctl[Super.DRAM_ABSENT_WORD] = dramAbsent;
  ctl[Super.CAPACITY_ABSENT_WORD] = capacityAbsent;
  ctl[Super.DRAM_FREE_WORD] = dram;
  ctl[Super.LENT_PAGES_WORD] = lent;
  ctl[Super.CAPACITY_FREE_WORD] = capacity;
}

function recountPins(memory: Memory): void {
  let pins = 0;
  for (let slot = 0; slot < Pin.SLOTS; slot++) {
    if (memory.ctl[memory.pinTable + slot * Pin.WORDS + Pin.PAGE_WORD] !== NO_PAGE) pins++;
  }
  memory.ctl[Super.PIN_COUNT_WORD] = pins;
}

/**
 * Clears held slots whose items the index points to: linked by a command that had settled, or unlinked by one that is rolled
 * back. While the dead one still holds their shards: once these are released the items are other people's to remove.
 */
function forgetLinked(memory: Memory, dead: number, words: Int32Array, base: number): void {
  const exclusive = (Atomics.load(memory.ctl, Super.GATE_WORD) & GATE_HOLDER) === dead + 1;
  for (let slot = 0; slot < P.HELD_SLOTS; slot++) {
    const at = base + P.HELD_WORD + slot * 2;
    const page = words[at];
    if (page === NO_PAGE) continue;
    const unit = words[at + 1] & 0xffff;
    const hash = memory.arenas[page >>> Page.ARENA_SHIFT].i32[(locationOffset(page, unit) >>> 2) + Item.HASH_WORD];
    const shard = hash & (memory.shardCount - 1);
    const lockWord = memory.shardTable + shard * Shard.WORDS + Shard.LOCK_WORD;
    if (!exclusive && !isOwnedBy(memory, lockWord, dead)) continue;
    if (isInIndex(memory, hash, page, unit)) words[at] = NO_PAGE;
  }
}

/**
 * What a command has linked and unlinked stands in the deferred slots, and which of the two holds follows from the state of the journal.
 * Settled: what was linked stays, what was unlinked is free. Open, about to be rolled back: the other way round, for the slots noted since
 * the command last settled. A negative HELD_SETTLED_WORD remembers that this has been done, for a next repairer who finds the journal
 * rolled back. (An item unlinked just before its first word was journaled is in the index still: forgetLinked finds it there.)
 */
function sortOutDeferred(isOpen: boolean, words: Int32Array, base: number): void {
  const settled = words[base + P.HELD_SETTLED_WORD];
  if (settled < 0) return;
  for (let slot = FIRST_DEFERRED; slot < P.HELD_SLOTS; slot++) {
    const at = base + P.HELD_WORD + slot * 2;
    if (words[at] === NO_PAGE) continue;
    const isLinked = (words[at + 1] & LINKED) !== 0;
    const stands = !isOpen || slot - FIRST_DEFERRED < settled;
    if (isLinked === stands) words[at] = NO_PAGE;
  }
  if (isOpen) words[base + P.HELD_SETTLED_WORD] = -1;
}

/** True when an entry of the hash's chain points to the location. The caller keeps others out of the shard. */
function isInIndex(memory: Memory, hash: number, page: number, unit: number): boolean {
  const shard = hash & (memory.shardCount - 1);
  const buckets = memory.ctl[memory.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD];
  let found = false;
  forEachSlot(memory, shard, localBucket(hash >>> memory.shardShift, buckets), (words, base, slot) => {
    const at = base + Bucket.SLOT_WORD + slot * 2;
    found ||= words[at + 1] === page && words[at] === (((hash >>> 16) << 16) | unit);
  });
  return found;
}

/** Recounts and releases the shards whose locks the dead one held; all of them when it held the gate. */
function releaseShards(memory: Memory, dead: number): void {
  const exclusive = (Atomics.load(memory.ctl, Super.GATE_WORD) & GATE_HOLDER) === dead + 1;
  for (let shard = 0; shard < memory.shardCount; shard++) {
    const word = memory.shardTable + shard * Shard.WORDS;
    const held = isOwnedBy(memory, word + Shard.LOCK_WORD, dead);
    if (!held && !exclusive) continue;
    recountShard(memory, shard);
    if (held) memory.releaseFor(word + Shard.LOCK_WORD);
  }
  if (!exclusive) return;
  Atomics.store(memory.ctl, Super.GATE_SLOW_WORD, 0);
  memory.releaseFor(Super.GATE_WORD);
}

/** Counts a shard's entries anew: its counters are not journaled. */
export function recountShard(memory: Memory, shard: number): void {
  const { ctl } = memory;
  const word = memory.shardTable + shard * Shard.WORDS;
  const counts = memory.databaseTable + Database.COUNTS_WORD + shard * Database.SHARD_WORDS;
  ctl.fill(0, counts, counts + Database.SHARD_WORDS);
  let items = 0;
  let expiring = 0;
  forEachEntry(memory, shard, (words, base, slot) => {
    const page = words[base + Bucket.SLOT_WORD + 1 + slot * 2];
    const header = locationOffset(page, words[base + Bucket.SLOT_WORD + slot * 2] & 0xffff) >>> 2;
    const database = memory.arenas[page >>> Page.ARENA_SHIFT].i32[header + Item.SHAPE_WORD] >>> Item.DB_SHIFT;
    items++;
    ctl[counts + database]++;
    if (((words[base + Bucket.BITS_WORD] >>> slot) & 1) === 1) {
      expiring++;
      ctl[counts + Database.EXPIRING_OFFSET + database]++;
    }
  });
  ctl[word + Shard.ITEMS_WORD] = items;
  ctl[word + Shard.EXPIRING_WORD] = expiring;
}

/**
 * Frees what the dead one had in hand. Each slot is cleared in the step that hands its chunk over, so that a next repairer, if this one
 * dies, finds only what is still to do.
 */
function freeHeld(keyspace: Keyspace, deadPage: number, words: Int32Array, base: number): void {
  const { memory } = keyspace;
  clearTwins(words, base);
  for (let slot = 0; slot < P.HELD_SLOTS; slot++) {
    const at = base + P.HELD_WORD + slot * 2;
    if (words[at] === NO_PAGE) continue;
    // What the dead one had unlinked owns its tree; what it had not linked yet may lead to nodes that are others'.
    const isUnlinked = slot >= FIRST_DEFERRED && (words[at + 1] & LINKED) === 0;
    if (isUnlinked && Graveyard.isRoot(memory, words[at], words[at + 1] & 0xffff)) {
      keyspace.graveyard.bury(words[at], words[at + 1] & 0xffff, deadPage >>> Page.ARENA_SHIFT, at);
    } else {
      freeOrphan(keyspace, deadPage, words, base, at);
    }
  }
}

/** An item moving from one slot to another (parked, committed) may stand in both. */
function clearTwins(words: Int32Array, base: number): void {
  const seen = new Set<number>();
  for (let slot = 0; slot < P.HELD_SLOTS; slot++) {
    const at = base + P.HELD_WORD + slot * 2;
    if (words[at] === NO_PAGE) continue;
    const location = words[at] * Page.UNITS + (words[at + 1] & 0xffff);
    if (seen.has(location)) words[at] = NO_PAGE;
    seen.add(location);
  }
}

/** Frees the location in the dead one's held word `at`: nothing points to it, but it may be pinned, or a spare already. */
function freeOrphan(keyspace: Keyspace, deadPage: number, words: Int32Array, base: number, at: number): void {
  const { memory } = keyspace;
  const page = words[at];
  const unit = words[at + 1] & 0xffff;
  const arena = deadPage >>> Page.ARENA_SHIFT;
  if (keyspace.pins.doom(page, unit, arena, at)) return;
  const kind = memory.pageKind(page);
  if (kind === PageKind.SLAB && !isInMagazine(memory, words, base, page, unit)) {
    keyspace.slabs.giveToPage(page, unit, arena, at);
  } else if (kind === PageKind.LARGE) {
    keyspace.pool.freeRun(page, arena, at);
  } else {
    words[at] = NO_PAGE;
  }
}

function isLinked(keyspace: Keyspace, hash: number, page: number, unit: number): boolean {
  return locked(keyspace, hash, () => keyspace.index.findLocation(hash, page, unit));
}

function isCopy(keyspace: Keyspace, hash: number, page: number, unit: number): boolean {
  return locked(keyspace, hash, () => keyspace.copies.findOwner(keyspace.index, hash, page, unit));
}

function locked(keyspace: Keyspace, hash: number, look: () => boolean): boolean {
  const { memory, index } = keyspace;
  const lockWord = index.shardWord(hash);
  const mine = memory.holds(lockWord);
  if (!mine) memory.lock(lockWord);
  const found = look();
  if (!mine) memory.unlock(lockWord);
  return found;
}

function isInMagazine(memory: Memory, words: Int32Array, base: number, page: number, unit: number): boolean {
  const slabClass = (memory.ctl[memory.pageInfo(page)] >>> 8) & 0xff;
  const magazine = base + P.MAGAZINE_WORD + slabClass * P.MAGAZINE_WORDS;
  for (let i = 0; i < words[magazine]; i++) {
    if (words[magazine + 1 + i * 2] === page && words[magazine + 2 + i * 2] === unit) return true;
  }
  return false;
}

/** Counts the live units of a log page, and copies among them, by asking the index for each of its items. */
function recountLogPage(keyspace: Keyspace, page: number): void {
  const { memory } = keyspace;
  const info = memory.pageInfo(page);
  let live = 0;
  let copies = 0;
  forEachLogItem(memory, page, (unit, units, hash) => {
    if (isLinked(keyspace, hash, page, unit)) live += units;
    else if (isCopy(keyspace, hash, page, unit)) copies += units;
    else if (memory.isWarm) keyspace.log.markDead(page, unit);
  });
  Atomics.store(memory.ctl, info + PageInfo.FREE_COUNT_WORD, live + copies);
  if (memory.isWarm) Atomics.store(memory.ctl, info + PageInfo.COPY_UNITS_WORD, copies);
}

function freeMagazines(keyspace: Keyspace, deadPage: number, words: Int32Array, base: number): void {
  for (let c = 0; c < CLASS_COUNT; c++) {
    const magazine = base + P.MAGAZINE_WORD + c * P.MAGAZINE_WORDS;
    for (let i = 0; i < words[magazine]; i++) {
      const at = magazine + 1 + i * 2;
      if (words[at] !== NO_PAGE) {
        keyspace.slabs.giveToPage(words[at], words[at + 1], deadPage >>> Page.ARENA_SHIFT, at);
      }
    }
    words[magazine] = 0;
  }
}

function sealLogPage(keyspace: Keyspace, words: Int32Array, base: number): void {
  const { memory } = keyspace;
  const page = words[base + P.LOG_PAGE_WORD];
  if (page === NO_PAGE) return;
  if (memory.pageKind(page) === PageKind.LOG_OPEN) keyspace.pool.sealLog(page);
  // An append that was not linked yet counts as live: take it out again.
  recountLogPage(keyspace, page);
  words[base + P.LOG_PAGE_WORD] = NO_PAGE;
}

function dropPins(keyspace: Keyspace, dead: number): void {
  for (let token = keyspace.pins.tokenOf(dead); token !== 0; token = keyspace.pins.tokenOf(dead)) keyspace.unpin(token);
}

/** An interest page that is in use has no owner. */
const FREED_WITH_OWNER = new Set<number>([PageKind.TAKEN, PageKind.MAILBOX, PageKind.WAITS, PageKind.INTEREST]);

/** Pages that the dead one took from the pool and had not put to use, those that were its own, and open log pages it had not noted yet. */
function freeTakenPages(keyspace: Keyspace, dead: number, ownPage: number): void {
  const { memory } = keyspace;
  const visit = (page: number): void => {
    const kind = memory.ctl[memory.pageInfo(page)];
    if (((kind >>> 16) & 0xff) !== dead + 1 || page === ownPage) return;
    if (FREED_WITH_OWNER.has(kind & 0xff)) keyspace.pool.free(page);
    else if ((kind & 0xff) === PageKind.RETURNING) keyspace.pool.endReturn(page, false);
    else if ((kind & 0xff) === PageKind.LEAVING || (kind & 0xff) === PageKind.ARRIVING)
      keyspace.sizes.pages.orphan(page);
    else if ((kind & 0xff) === PageKind.SLAB) keyspace.slabs.reopenPage(page);
    else if ((kind & 0xff) === PageKind.LOG_OPEN) keyspace.pool.sealLog(page);
    else if (
      (kind & 0xff) === PageKind.LARGE &&
      !isLinked(keyspace, memory.arenas[page >>> Page.ARENA_SHIFT].i32[pageOffset(page) >>> 2], page, 0)
    ) {
      // Taken for an item and not noted in a held slot before the end; doomed ones go with their last pin.
      if (!keyspace.pins.isPinned(page, 0)) keyspace.pool.freeRun(page, 0, -1);
    }
  };
  for (let page = 1; page < memory.dramPages; page++) visit(page);
  for (let i = 0; i < memory.capacityPages; i++) visit(memory.capacityBase + i);
}
