/**
 * The interest table: which participants (and, for waiters, which requests) want to hear of a key or a channel.
 *
 * Owns: the heads page and the node pages (layout/interest), all under one lock that is a leaf: whoever holds it takes no other,
 * so it may be taken with shards locked. Invariants: a node is reachable from exactly one head or from the free list; the
 * counts that let others pass by (a shard's INTERESTS_WORD, CHANNELS_WORD, WAITERS_WORD) are never too low.
 */
import type { Bytes } from '../layout/bytes.js';
import { Interest, InterestKind } from '../layout/interest.js';
import { Page, pageOffset } from '../layout/location.js';
import { PageKind, Participant, ParticipantRole, Shard, Super } from '../layout/superblock.js';
import type { Journal } from '../memory/journal.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE, type PagePool } from '../memory/page-pool.js';
import { hashKey } from './hash.js';

/** The second hash of a name: the same function under another key. */
const CHECK_LOW = 0x5bd1e995;
const CHECK_HIGH = 0x1b873593;
/** Node pages at most, as a share of DRAM. */
const PAGES_DIVISOR = 16;
/** Buckets that a clean-up looks at under one lock. */
const CLEAN_BUCKETS = 4096;

export class Interests {
  /** What `collect` and `takeAll` have found. */
  seats = new Int32Array(16);
  values = new Int32Array(16);
  units = new Int32Array(16);
  tickets = new Int32Array(16);

  readonly #memory: Memory;
  readonly #journal: Journal;
  readonly #pool: PagePool;
  readonly #ctl: Int32Array;
  readonly #pagesMax: number;
  readonly #seedLow: number;
  readonly #seedHigh: number;
  /** Where the last node looked at lies. */
  #words: Int32Array;
  #arena = 0;
  #base = 0;

  constructor(memory: Memory, journal: Journal, pool: PagePool) {
    this.#memory = memory;
    this.#journal = journal;
    this.#pool = pool;
    this.#ctl = memory.ctl;
    this.#words = memory.ctl;
    this.#pagesMax = Math.max(1, Math.min(Interest.NODE_PAGES_MAX, Math.floor(memory.dramPages / PAGES_DIVISOR)));
    this.#seedLow = memory.ctl[Super.SEED_LOW_WORD] ^ CHECK_LOW;
    this.#seedHigh = memory.ctl[Super.SEED_HIGH_WORD] ^ CHECK_HIGH;
  }

  check(bytes: Bytes, offset: number, length: number): number {
    return hashKey(this.#seedLow, this.#seedHigh, bytes, offset, length);
  }

  // ---- adding and taking away

  /**
   * Adds `delta` to this participant's count of a channel's subscribers. False = no memory for one more.
   */
  addSubscribers(kind: InterestKind, hash: number, check: number, delta: number): boolean {
    if (!this.#prepare()) return false;
    const { self } = this.#memory;
    this.#lock();
    let added = true;
    const previous = this.#findOwn(kind, hash, check, self);
    if (previous !== NOT_FOUND) {
      const count = this.#words[this.#base + Interest.VALUE_WORD] + delta;
      if (count > 0) this.#set(Interest.VALUE_WORD, count);
      else this.#unlink(hash, previous);
    } else if (delta > 0) {
      added = this.#append(kind, hash, check, self, delta, 0, 0);
    }
    this.#unlock();
    return added;
  }

  /** This participant wants to hear of the next change of a key: at most one node. The key's shard is locked. */
  track(hash: number, check: number): boolean {
    if (!this.#prepare()) return false;
    const { self } = this.#memory;
    this.#lock();
    let added = true;
    if (this.#findOwn(InterestKind.TRACKED, hash, check, self) === NOT_FOUND) {
      added = this.#append(InterestKind.TRACKED, hash, check, self, 0, 0, 0);
    }
    this.#unlock();
    return added;
  }

  untrack(hash: number, check: number): void {
    if (this.#ctl[Super.INTEREST_HEADS_WORD] === NO_PAGE) return;
    this.#lock();
    const previous = this.#findOwn(InterestKind.TRACKED, hash, check, this.#memory.self);
    if (previous !== NOT_FOUND) this.#unlink(hash, previous);
    this.#unlock();
  }

  /** A waiter of this participant, behind those of the same key. The key's shard is locked. */
  addWaiter(hash: number, check: number, page: number, unit: number, ticket: number): boolean {
    if (!this.#prepare()) return false;
    this.#lock();
    const added = this.#append(InterestKind.WAITER, hash, check, this.#memory.self, page, unit, ticket);
    this.#unlock();
    return added;
  }

  /** With or without the key's shard locked. */
  removeWaiter(hash: number, check: number, ticket: number): void {
    this.#lock();
    let previous = 0;
    for (let node = this.#head(hash); node !== 0; node = this.#words[this.#base + Interest.NEXT_WORD]) {
      this.#open(node);
      if (
        this.#matches(InterestKind.WAITER, hash, check) &&
        this.#words[this.#base + Interest.TICKET_WORD] === ticket
      ) {
        this.#unlink(hash, previous);
        break;
      }
      previous = node;
    }
    this.#unlock();
  }

  // ---- looking

  /** Every waiter, once for each of its keys; `see` takes no lock. */
  visitWaiters(see: (hash: number, check: number, page: number, unit: number) => void): void {
    if (this.#ctl[Super.INTEREST_HEADS_WORD] === NO_PAGE) return;
    this.#lock();
    for (let bucket = 0; bucket <= Interest.HEADS_MASK; bucket++) {
      for (let node = this.#head(bucket); node !== 0; node = this.#words[this.#base + Interest.NEXT_WORD]) {
        this.#open(node);
        const [words, at] = [this.#words, this.#base];
        if ((words[at + Interest.SHAPE_WORD] & 0xff) !== InterestKind.WAITER) continue;
        const [page, unit] = [words[at + Interest.VALUE_WORD], words[at + Interest.UNIT_WORD]];
        see(words[at + Interest.HASH_WORD], words[at + Interest.CHECK_WORD], page, unit);
      }
    }
    this.#unlock();
  }

  /** Notes who is interested, in order; returns how many. */
  collect(kind: InterestKind, hash: number, check: number): number {
    if (this.#ctl[Super.INTEREST_HEADS_WORD] === NO_PAGE) return 0;
    this.#lock();
    let count = 0;
    for (let node = this.#head(hash); node !== 0; node = this.#words[this.#base + Interest.NEXT_WORD]) {
      this.#open(node);
      if (this.#matches(kind, hash, check)) this.#note(count++);
    }
    this.#unlock();
    return count;
  }

  /** The same, and takes them out of the table: whoever tracks a key hears of one change. */
  takeAll(kind: InterestKind, hash: number, check: number): number {
    if (this.#ctl[Super.INTEREST_HEADS_WORD] === NO_PAGE) return 0;
    this.#lock();
    let count = 0;
    let previous = 0;
    for (let node = this.#head(hash); node !== 0; ) {
      this.#open(node);
      const next = this.#words[this.#base + Interest.NEXT_WORD];
      if (this.#matches(kind, hash, check)) {
        this.#note(count++);
        this.#unlink(hash, previous);
      } else {
        previous = node;
      }
      node = next;
    }
    this.#unlock();
    return count;
  }

  #note(i: number): void {
    if (i === this.seats.length) {
      this.seats = grown(this.seats);
      this.values = grown(this.values);
      this.units = grown(this.units);
      this.tickets = grown(this.tickets);
    }
    const words = this.#words;
    const base = this.#base;
    this.seats[i] = words[base + Interest.SHAPE_WORD] >>> 8;
    this.values[i] = words[base + Interest.VALUE_WORD];
    this.units[i] = words[base + Interest.UNIT_WORD];
    this.tickets[i] = words[base + Interest.TICKET_WORD];
  }

  // ---- roles

  /** Says of this participant whether it has clients of a kind: see ParticipantRole. */
  setRole(role: ParticipantRole, on: boolean): void {
    const { self } = this.#memory;
    const word = this.#memory.participantWord(self) + Participant.ROLES_WORD;
    if (((this.#ctl[word] & role) !== 0) === on) return;
    // Counts go up first and down last, so that they are never too low.
    if (on) {
      this.#countRole(role, 1);
      Atomics.or(this.#ctl, word, role);
    } else {
      Atomics.and(this.#ctl, word, ~role);
      this.#countRole(role, -1);
    }
  }

  #countRole(role: ParticipantRole, delta: number): void {
    if (role === ParticipantRole.MONITORS) Atomics.add(this.#ctl, Super.MONITORS_WORD, delta);
    if (role !== ParticipantRole.BROADCAST) return;
    Atomics.add(this.#ctl, Super.BROADCAST_WORD, delta);
    this.#addToAllShards(delta);
  }

  hasRole(seat: number, role: ParticipantRole): boolean {
    return (this.#ctl[this.#memory.participantWord(seat) + Participant.ROLES_WORD] & role) !== 0;
  }

  #addToAllShards(delta: number): void {
    const { shardTable, shardCount } = this.#memory;
    for (let shard = 0; shard < shardCount; shard++) {
      Atomics.add(this.#ctl, shardTable + shard * Shard.WORDS + Shard.INTERESTS_WORD, delta);
    }
  }

  /** Forgets everything a participant wanted: it leaves, or it is dead and the caller holds its byte lock. */
  forget(seat: number): void {
    const word = this.#memory.participantWord(seat) + Participant.ROLES_WORD;
    const roles = this.#ctl[word];
    if (roles === 0) return;
    if ((roles & ParticipantRole.INTERESTED) !== 0 && this.#ctl[Super.INTEREST_HEADS_WORD] !== NO_PAGE) {
      for (let head = 0; head < Interest.HEADS; head += CLEAN_BUCKETS) this.#forgetIn(seat, head, head + CLEAN_BUCKETS);
    }
    this.#ctl[word] = 0;
    if ((roles & ParticipantRole.MONITORS) !== 0) this.#countRole(ParticipantRole.MONITORS, -1);
    if ((roles & ParticipantRole.BROADCAST) !== 0) this.#countRole(ParticipantRole.BROADCAST, -1);
  }

  #forgetIn(seat: number, from: number, end: number): void {
    this.#lock();
    for (let head = from; head < end; head++) {
      let previous = 0;
      for (let node = this.#head(head); node !== 0; ) {
        this.#open(node);
        const next = this.#words[this.#base + Interest.NEXT_WORD];
        if (this.#words[this.#base + Interest.SHAPE_WORD] >>> 8 === seat) this.#unlink(head, previous);
        else previous = node;
        node = next;
      }
    }
    this.#unlock();
  }

  // ---- nodes

  #lock(): void {
    this.#memory.lock(Super.INTEREST_LOCK_WORD);
  }

  #unlock(): void {
    this.#memory.unlock(Super.INTEREST_LOCK_WORD);
  }

  /** The heads page and one free node, before the lock: taking a page takes another one. */
  #prepare(): boolean {
    const ctl = this.#ctl;
    const roles = this.#memory.participantWord(this.#memory.self) + Participant.ROLES_WORD;
    if ((ctl[roles] & ParticipantRole.INTERESTED) === 0) Atomics.or(ctl, roles, ParticipantRole.INTERESTED);
    if (ctl[Super.INTEREST_HEADS_WORD] === NO_PAGE && !this.#addPage(true)) return false;
    const isFull =
      ctl[Super.INTEREST_FREE_WORD] === 0 &&
      ctl[Super.INTEREST_CARVED_WORD] === ctl[Super.INTEREST_PAGES_WORD] * Interest.NODES_PER_PAGE;
    return !isFull || this.#addPage(false);
  }

  /** Takes a page and enters it, unless another participant was faster. */
  #addPage(asHeads: boolean): boolean {
    const ctl = this.#ctl;
    const seen = ctl[Super.INTEREST_PAGES_WORD];
    if (!asHeads && seen >= this.#pagesMax) return false;
    const page = this.#pool.takeDram(PageKind.INTEREST, 0, this.#pool.indexReserve);
    if (page === NO_PAGE) return false;
    const first = pageOffset(page) >>> 2;
    if (asHeads) this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32.fill(0, first, first + Interest.HEADS);
    this.#lock();
    const isWanted = asHeads ? ctl[Super.INTEREST_HEADS_WORD] === NO_PAGE : ctl[Super.INTEREST_PAGES_WORD] === seen;
    if (isWanted) {
      // It belongs to all from here on; the kind word is the mark of that.
      this.#journal.setControl(this.#memory.pageInfo(page), PageKind.INTEREST);
      if (asHeads) {
        this.#journal.setControl(Super.INTEREST_HEADS_WORD, page);
      } else {
        this.#journal.setControl(Super.INTEREST_DIRECTORY_WORD + seen, page);
        this.#journal.setControl(Super.INTEREST_PAGES_WORD, seen + 1);
      }
      this.#journal.commitAlloc();
    }
    this.#unlock();
    if (!isWanted) this.#pool.free(page);
    return true;
  }

  #head(hash: number): number {
    const page = this.#ctl[Super.INTEREST_HEADS_WORD];
    return this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32[(pageOffset(page) >>> 2) + (hash & Interest.HEADS_MASK)];
  }

  #open(node: number): void {
    const index = node - 1;
    const page = this.#ctl[Super.INTEREST_DIRECTORY_WORD + (index >>> Interest.NODE_PAGE_SHIFT)];
    this.#arena = page >>> Page.ARENA_SHIFT;
    this.#words = this.#memory.arenas[this.#arena].i32;
    this.#base = (pageOffset(page) >>> 2) + ((index & (Interest.NODES_PER_PAGE - 1)) << Interest.NODE_SHIFT);
  }

  #matches(kind: InterestKind, hash: number, check: number): boolean {
    const words = this.#words;
    const base = this.#base;
    return (
      words[base + Interest.HASH_WORD] === hash &&
      words[base + Interest.CHECK_WORD] === check &&
      (words[base + Interest.SHAPE_WORD] & 0xff) === kind
    );
  }

  /** Opens the participant's node of that name; returns the one before it in its bucket (0 = none), or NOT_FOUND. */
  #findOwn(kind: InterestKind, hash: number, check: number, seat: number): number {
    let previous = 0;
    for (let node = this.#head(hash); node !== 0; node = this.#words[this.#base + Interest.NEXT_WORD]) {
      this.#open(node);
      if (this.#matches(kind, hash, check) && this.#words[this.#base + Interest.SHAPE_WORD] >>> 8 === seat) {
        return previous;
      }
      previous = node;
    }
    return NOT_FOUND;
  }

  /** Journals and sets one word of the open node. */
  #set(word: number, value: number): void {
    this.#journal.saveAlloc(this.#arena, this.#words, this.#base + word);
    this.#words[this.#base + word] = value;
    this.#journal.commitAlloc();
  }

  /** Lets `previous`, or the bucket's head where that is 0, point to `next`; journaled, not committed. */
  #link(hash: number, previous: number, next: number): void {
    const memory = this.#memory;
    if (previous !== 0) {
      this.#open(previous);
      this.#journal.saveAlloc(this.#arena, this.#words, this.#base + Interest.NEXT_WORD);
      this.#words[this.#base + Interest.NEXT_WORD] = next;
      return;
    }
    const page = this.#ctl[Super.INTEREST_HEADS_WORD];
    const arena = page >>> Page.ARENA_SHIFT;
    const word = (pageOffset(page) >>> 2) + (hash & Interest.HEADS_MASK);
    this.#journal.saveAlloc(arena, memory.arenas[arena].i32, word);
    memory.arenas[arena].i32[word] = next;
  }

  #append(
    kind: InterestKind,
    hash: number,
    check: number,
    seat: number,
    value: number,
    unit: number,
    ticket: number,
  ): boolean {
    const ctl = this.#ctl;
    let last = 0;
    for (let node = this.#head(hash); node !== 0; node = this.#words[this.#base + Interest.NEXT_WORD]) {
      this.#open(node);
      last = node;
    }
    let node = ctl[Super.INTEREST_FREE_WORD];
    if (node === 0) {
      // Another participant took the last one after #prepare: rare enough to say no.
      if (ctl[Super.INTEREST_CARVED_WORD] === ctl[Super.INTEREST_PAGES_WORD] * Interest.NODES_PER_PAGE) return false;
      node = ctl[Super.INTEREST_CARVED_WORD] + 1;
      this.#journal.setControl(Super.INTEREST_CARVED_WORD, node);
      this.#open(node);
    } else {
      this.#open(node);
      this.#journal.setControl(Super.INTEREST_FREE_WORD, this.#words[this.#base + Interest.NEXT_WORD]);
      // A rollback puts the node back at the head of the free list: its link must be as it was.
      this.#journal.saveAlloc(this.#arena, this.#words, this.#base + Interest.NEXT_WORD);
      this.#journal.saveAlloc(this.#arena, this.#words, this.#base + Interest.SHAPE_WORD);
    }
    const words = this.#words;
    const base = this.#base;
    words[base + Interest.NEXT_WORD] = 0;
    words[base + Interest.HASH_WORD] = hash;
    words[base + Interest.CHECK_WORD] = check;
    words[base + Interest.SHAPE_WORD] = kind | (seat << 8);
    words[base + Interest.VALUE_WORD] = value;
    words[base + Interest.UNIT_WORD] = unit;
    words[base + Interest.TICKET_WORD] = ticket;
    Atomics.add(ctl, this.#countWord(kind, hash), 1);
    if (kind === InterestKind.WAITER) Atomics.add(ctl, Super.WAITERS_WORD, 1);
    this.#link(hash, last, node);
    this.#journal.commitAlloc();
    return true;
  }

  /** Takes the open node, which stands behind `previous`, out of its bucket and frees it. */
  #unlink(hash: number, previous: number): void {
    const ctl = this.#ctl;
    const words = this.#words;
    const base = this.#base;
    const arena = this.#arena;
    const kind = words[base + Interest.SHAPE_WORD] & 0xff;
    const nodeHash = words[base + Interest.HASH_WORD];
    const next = words[base + Interest.NEXT_WORD];
    const node = this.#nodeBehind(hash, previous);
    this.#link(hash, previous, next);
    this.#journal.saveAlloc(arena, words, base + Interest.NEXT_WORD);
    this.#journal.saveAlloc(arena, words, base + Interest.SHAPE_WORD);
    words[base + Interest.NEXT_WORD] = ctl[Super.INTEREST_FREE_WORD];
    words[base + Interest.SHAPE_WORD] = InterestKind.FREE;
    this.#journal.setControl(Super.INTEREST_FREE_WORD, node);
    this.#journal.commitAlloc();
    if (kind === InterestKind.WAITER) Atomics.sub(ctl, Super.WAITERS_WORD, 1);
    Atomics.sub(ctl, this.#countWord(kind, nodeHash), 1);
  }

  #nodeBehind(hash: number, previous: number): number {
    if (previous === 0) return this.#head(hash);
    this.#open(previous);
    return this.#words[this.#base + Interest.NEXT_WORD];
  }

  /** The count that a node of this kind belongs to. */
  #countWord(kind: number, hash: number): number {
    if (kind !== InterestKind.WAITER && kind !== InterestKind.TRACKED) return Super.CHANNELS_WORD;
    const { shardTable, shardCount } = this.#memory;
    return shardTable + (hash & (shardCount - 1)) * Shard.WORDS + Shard.INTERESTS_WORD;
  }
}

const NOT_FOUND = -1;

function grown(from: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(from.length * 2);
  larger.set(from);
  return larger;
}
