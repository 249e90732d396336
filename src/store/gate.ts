/**
 * The store gate: lets one participant run alone, for commands whose keys are not known before they run.
 *
 * Each participant marks itself in-batch once per loop turn and looks at the gate after; the exclusive one closes the gate and then waits
 * for every mark to go. Invariant: while the gate is closed by X, nobody but X is in a batch.
 */
import {
  GATE_HOLDER,
  GATE_WAITING,
  Participant,
  ParticipantState,
  Shard,
  SlowHolder,
  Super,
} from '../layout/superblock.js';
import { Lone } from '../memory/lone.js';
import type { Memory } from '../memory/memory.js';
import { addon } from '../native/addon.js';

/** After this long the exclusive participant asks whether the one it waits for still lives. */
const PATIENCE_MS = 10;

export class Gate {
  readonly lone: Lone;
  readonly #memory: Memory;
  readonly #batchWord: number;
  #inBatch = false;
  /** A single call of a lone participant that marks no batches is under way: endCall ends it. */
  inCall = false;
  /** Who has shut this participant out at its last tryEnter. */
  shutOutBy: SlowHolder = SlowHolder.NONE;

  constructor(memory: Memory) {
    this.#memory = memory;
    this.lone = new Lone(memory);
    this.#batchWord = memory.participantWord(memory.self) + Participant.IN_BATCH_WORD;
  }

  enter(): void {
    const { ctl, lockMark } = this.#memory;
    this.#inBatch = true;
    if (this.lone.enter()) return;
    for (;;) {
      Atomics.store(ctl, this.#batchWord, 1);
      const holder = Atomics.load(ctl, Super.GATE_WORD);
      if (holder === 0 || (holder & GATE_HOLDER) === lockMark) return;
      this.#stepOut();
      this.#waitOpen(holder);
    }
  }

  /** As enter, but false when a long script keeps the gate closed: the caller then goes on without the store (`shutOutBy` tells). */
  tryEnter(): boolean {
    const { ctl, lockMark } = this.#memory;
    this.#inBatch = true;
    if (this.lone.enter()) {
      this.shutOutBy = SlowHolder.NONE;
      return true;
    }
    for (;;) {
      Atomics.store(ctl, this.#batchWord, 1);
      const holder = Atomics.load(ctl, Super.GATE_WORD);
      if (holder === 0 || (holder & GATE_HOLDER) === lockMark) {
        if (this.shutOutBy !== SlowHolder.NONE) this.shutOutBy = SlowHolder.NONE;
        return true;
      }
      this.#stepOut();
      const slow = Atomics.load(ctl, Super.GATE_SLOW_WORD);
      if (slow !== SlowHolder.NONE && this.#memory.isAlive((holder & GATE_HOLDER) - 1)) {
        this.#inBatch = false;
        this.shutOutBy = slow;
        return false;
      }
      this.#waitOpen(holder);
    }
  }

  /** The exclusive participant runs a script for longer than busy-reply-threshold: the others need not wait in silence until `open`. */
  announceSlow(holder: SlowHolder): void {
    Atomics.store(this.#memory.ctl, Super.GATE_SLOW_WORD, holder);
  }

  leave(): void {
    this.#inBatch = false;
    if (this.#memory.isLone) this.lone.leave();
    else this.#stepOut();
  }

  #stepOut(): void {
    const { ctl } = this.#memory;
    Atomics.store(ctl, this.#batchWord, 0);
    if (Atomics.load(ctl, Super.GATE_WORD) !== 0)
      addon.futexWake(this.#memory.arenas[0].arena, this.#batchWord << 2, 1);
  }

  /** True while this participant runs alone. */
  get isExclusive(): boolean {
    return (this.#memory.ctl[Super.GATE_WORD] & GATE_HOLDER) === this.#memory.lockMark;
  }

  /** Becomes exclusive. The caller is inside its own batch or outside any. */
  close(): void {
    const { ctl, lockMark } = this.#memory;
    const wasInBatch = this.#inBatch;
    for (;;) {
      const holder = Atomics.compareExchange(ctl, Super.GATE_WORD, 0, lockMark);
      if (holder === 0) break;
      if ((holder & GATE_HOLDER) === lockMark) throw new Error('the gate is closed by this participant already');
      // Another wants to be alone: it waits for our mark, so take it down meanwhile.
      if (wasInBatch) this.#stepOut();
      this.#waitOpen(holder);
    }
    if (wasInBatch) Atomics.store(ctl, this.#batchWord, 1);
    let unbatched = 0;
    // An Atomics.load costs some 10 ns (it is a call); all 112 seats were more than the rest of closing.
    const seats = Atomics.load(ctl, Super.SEATS_WORD);
    const end = seats === 0 ? Participant.MAX : seats;
    for (let p = 0; p < end; p++) {
      if (p === this.#memory.self) continue;
      const at = this.#memory.participantWord(p);
      if (Atomics.load(ctl, at + Participant.STATE_WORD) === ParticipantState.FREE) continue;
      unbatched |= Atomics.load(ctl, at + Participant.UNBATCHED_WORD);
      this.#waitOut(p);
    }
    if (unbatched !== 0) this.#waitShards();
  }

  /**
   * From now on this participant marks no batches: it takes one shard lock at a time with `lockShard`, which costs less for single
   * calls. The exclusive participant then waits for shard locks as well.
   */
  becomeUnbatched(): void {
    Atomics.store(this.#memory.ctl, this.#batchWord - Participant.IN_BATCH_WORD + Participant.UNBATCHED_WORD, 1);
  }

  endUnbatched(): void {
    Atomics.store(this.#memory.ctl, this.#batchWord - Participant.IN_BATCH_WORD + Participant.UNBATCHED_WORD, 0);
  }

  /** For eviction and the like, which may run outside a batch: takes a shard's lock if it is free and nobody else is exclusive. */
  tryLockShard(word: number): boolean {
    const { ctl, lockMark } = this.#memory;
    if (!this.#memory.tryLock(word)) return false;
    const holder = Atomics.load(ctl, Super.GATE_WORD);
    if (holder === 0 || (holder & GATE_HOLDER) === lockMark) return true;
    this.#memory.unlock(word);
    return false;
  }

  /** Locks a shard for a participant that marks no batch: not while another is exclusive. */
  lockShard(word: number): void {
    const { ctl, lockMark } = this.#memory;
    if (!this.#memory.isLone && this.lone.enter()) this.inCall = true;
    for (;;) {
      this.#memory.lock(word);
      // Taking the lock was a barrier: a plain load sees what was stored before, and saves a call.
      const holder = ctl[Super.GATE_WORD];
      if (holder === 0 || (holder & GATE_HOLDER) === lockMark) return;
      this.#memory.unlock(word);
      this.#waitOpen(holder);
    }
  }

  /** After the lock of lockShard has been given back, and all that belongs to the call is done. */
  endCall(): void {
    this.inCall = false;
    this.lone.leave();
  }

  open(): void {
    const { ctl } = this.#memory;
    if (ctl[Super.GATE_SLOW_WORD] !== SlowHolder.NONE) Atomics.store(ctl, Super.GATE_SLOW_WORD, SlowHolder.NONE);
    // A wake is a system call: only when somebody sleeps. A script that runs for 3 us took 3 us more with it always.
    if ((Atomics.exchange(ctl, Super.GATE_WORD, 0) & GATE_WAITING) !== 0) {
      addon.futexWake(this.#memory.arenas[0].arena, Super.GATE_WORD << 2, Participant.MAX);
    }
  }

  #waitOpen(holder: number): void {
    const { ctl } = this.#memory;
    const marked = holder | GATE_WAITING;
    // Changed meanwhile: the caller looks again.
    if (holder !== marked && Atomics.compareExchange(ctl, Super.GATE_WORD, holder, marked) !== holder) return;
    const woken = addon.futexWait(this.#memory.arenas[0].arena, Super.GATE_WORD << 2, marked, PATIENCE_MS);
    const owner = (holder & GATE_HOLDER) - 1;
    if (!woken && Atomics.load(ctl, Super.GATE_WORD) === marked && !this.#memory.isAlive(owner)) {
      this.#memory.repairDead(owner);
    }
  }

  /** Who holds a shard lock without a batch mark took it before the gate was closed: wait until it has given it back. */
  #waitShards(): void {
    const memory = this.#memory;
    for (let shard = 0; shard < memory.shardCount; shard++) {
      const word = memory.shardTable + shard * Shard.WORDS + Shard.LOCK_WORD;
      if (memory.holds(word)) continue;
      memory.lock(word);
      memory.unlock(word);
    }
  }

  #waitOut(participant: number): void {
    const { ctl } = this.#memory;
    const at = this.#memory.participantWord(participant);
    if (Atomics.load(ctl, at + Participant.STATE_WORD) === ParticipantState.FREE) return;
    const word = at + Participant.IN_BATCH_WORD;
    for (;;) {
      if (Atomics.load(ctl, word) === 0) return;
      const woken = addon.futexWait(this.#memory.arenas[0].arena, word << 2, 1, PATIENCE_MS);
      if (!woken && Atomics.load(ctl, word) !== 0 && !this.#memory.isAlive(participant)) {
        this.#memory.repairDead(participant);
        return;
      }
    }
  }
}
