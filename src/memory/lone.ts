/**
 * A participant alone in its pool takes lock words by plain stores: two atomic operations are a fifth of an embedded get.
 *
 * Owns: LONE_WORD, which names that participant. Protocol (Dekker's, with the fence on the side that is rarely at work):
 *
 *     the lone one    IN_BATCH := 1; LONE_WORD still names it? then plain stores until IN_BATCH := 0; else as everybody
 *     a newcomer      LONE_WORD |= ENDING; memory barrier in all threads of all processes; waits for IN_BATCH = 0 (or a death);
 *                     the barrier again, for what was stored before; LONE_WORD := 0
 *
 * Invariant: a newcomer takes no lock before `end`; whoever becomes lone has found all other seats free after it set LONE_WORD, and a
 * newcomer occupies its seat before it reads that. The lock words are set as ever, so that a repair sees what a dead one held.
 */
import { Participant, ParticipantState, Super } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import type { Memory } from './memory.js';

/** Set in LONE_WORD by a newcomer: from here the lone one is as everybody. */
const ENDING = 0x100;
const PATIENCE_MS = 10;
/** Where the kernel has no barrier for a newcomer to ask for: no store stays in a processor's buffer for as long. */
const DRAIN_MS = 100;

export class Lone {
  readonly #memory: Memory;
  readonly #batchWord: number;

  constructor(memory: Memory) {
    this.#memory = memory;
    this.#batchWord = memory.participantWord(memory.self) + Participant.IN_BATCH_WORD;
  }

  /** Becomes the lone participant where nobody else is there. Without locks, outside a batch or in one. */
  become(): void {
    const { ctl, lockMark } = this.#memory;
    if (ctl[Super.LONE_WORD] !== 0 || !addon.hasGlobalBarrier() || this.#hasCompany()) return;
    if (Atomics.compareExchange(ctl, Super.LONE_WORD, 0, lockMark) !== 0) return;
    if (this.#hasCompany()) this.resign();
  }

  /** No longer lone: before the seat is left. */
  resign(): void {
    Atomics.compareExchange(this.#memory.ctl, Super.LONE_WORD, this.#memory.lockMark, 0);
  }

  #hasCompany(): boolean {
    const { ctl, self } = this.#memory;
    for (let p = 0; p < Participant.MAX; p++) {
      const state = this.#memory.participantWord(p) + Participant.STATE_WORD;
      if (p !== self && Atomics.load(ctl, state) !== ParticipantState.FREE) return true;
    }
    return false;
  }

  /** Marks the batch (or single call) as the lone one's: until `leave`, locks are plain stores. False = there is company. */
  enter(): boolean {
    const memory = this.#memory;
    const { ctl, lockMark } = memory;
    if (ctl[Super.LONE_WORD] !== lockMark) return false;
    ctl[this.#batchWord] = 1;
    if (ctl[Super.LONE_WORD] === lockMark) {
      memory.isLone = true;
      return true;
    }
    this.#unmark();
    return false;
  }

  leave(): void {
    this.#memory.isLone = false;
    this.#unmark();
  }

  /** A newcomer that goes to sleep just now wakes by itself after PATIENCE_MS. */
  #unmark(): void {
    const { ctl, lockMark, arenas } = this.#memory;
    ctl[this.#batchWord] = 0;
    if (ctl[Super.LONE_WORD] !== lockMark) addon.futexWake(arenas[0].arena, this.#batchWord << 2, 1);
  }

  /** For a newcomer, whose seat is marked as taken: nobody is lone from here on. `repair` mends a lone one that has died. */
  static end(memory: Memory, repair: (dead: number) => void): void {
    const { ctl } = memory;
    for (;;) {
      const word = Atomics.load(ctl, Super.LONE_WORD);
      if (word === 0) return;
      const ending = word | ENDING;
      if (word !== ending && Atomics.compareExchange(ctl, Super.LONE_WORD, word, ending) !== word) continue;
      fenceAll(memory);
      waitOut(memory, (word & ~ENDING) - 1, repair);
      fenceAll(memory);
      Atomics.compareExchange(ctl, Super.LONE_WORD, ending, 0);
    }
  }
}

function fenceAll(memory: Memory): void {
  if (addon.globalBarrier()) return;
  const end = addon.monotonicMs() + DRAIN_MS;
  // A word that nobody wakes.
  while (addon.monotonicMs() < end)
    addon.futexWait(memory.arenas[0].arena, Super.MAGIC_WORD << 2, Super.MAGIC, DRAIN_MS);
}

function waitOut(memory: Memory, participant: number, repair: (dead: number) => void): void {
  const { ctl } = memory;
  const word = memory.participantWord(participant) + Participant.IN_BATCH_WORD;
  while (Atomics.load(ctl, word) !== 0) {
    const woken = addon.futexWait(memory.arenas[0].arena, word << 2, 1, PATIENCE_MS);
    if (!woken && Atomics.load(ctl, word) !== 0 && !memory.isAlive(participant)) repair(participant);
  }
}
