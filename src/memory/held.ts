/**
 * Chunks in flight: locations that this participant has taken and not yet linked, or unlinked and not yet freed, written
 * into its page so that whoever repairs after its death knows them.
 *
 * Slot 0 is the item being staged, 1 one being unpinned, 2 one being moved; the next PARKED_SLOTS hold values that arrive over several
 * turns, the rest is a stack of items unlinked by the running command, freed when its locks are released.
 */
import { ParticipantPage as P } from '../layout/superblock.js';
import type { Memory } from './memory.js';

export const STAGED_SLOT = 0;
/** Item whose last pin has just gone. */
export const UNPINNED_SLOT = 1;
/** Chunk that an item is being moved to. */
export const MOVING_SLOT = 2;
const FIRST_PARKED = 3;
/** Values that may be arriving at once in one participant. */
export const PARKED_SLOTS = 1021;
export const FIRST_DEFERRED = FIRST_PARKED + PARKED_SLOTS;
export const DEFERRED_SLOTS = P.HELD_SLOTS - FIRST_DEFERRED;

export class Held {
  readonly #words: Int32Array;
  readonly #base: number;
  readonly #settledWord: number;
  readonly #freeParked: Int32Array;
  #freeParkedCount = PARKED_SLOTS;
  /** Deferred frees now. */
  count = 0;

  constructor(memory: Memory) {
    this.#words = memory.own;
    this.#base = memory.ownBase + P.HELD_WORD;
    this.#settledWord = memory.ownBase + P.HELD_SETTLED_WORD;
    this.#freeParked = new Int32Array(PARKED_SLOTS);
    for (let i = 0; i < PARKED_SLOTS; i++) this.#freeParked[i] = FIRST_PARKED + i;
  }

  set(slot: number, page: number, unit: number): void {
    const at = this.#base + slot * 2;
    this.#words[at + 1] = unit;
    this.#words[at] = page;
  }

  clear(slot: number): void {
    this.#words[this.#base + slot * 2] = 0;
  }

  /** Index of the slot's page word in this participant's page: what `clearWord` of the journal takes. */
  word(slot: number): number {
    return this.#base + slot * 2;
  }

  page(slot: number): number {
    return this.#words[this.#base + slot * 2];
  }

  unit(slot: number): number {
    return this.#words[this.#base + slot * 2 + 1];
  }

  /** Slot for a parked item; -1 when all are taken. */
  takeParked(): number {
    return this.#freeParkedCount === 0 ? -1 : this.#freeParked[--this.#freeParkedCount];
  }

  giveParked(slot: number): void {
    this.clear(slot);
    this.#freeParked[this.#freeParkedCount++] = slot;
  }

  /** True when fewer than four more can be noted. */
  get isNearlyFull(): boolean {
    return this.count > DEFERRED_SLOTS - 4;
  }

  /** What is noted now belongs to changes that stand. */
  noteSettled(): void {
    this.#words[this.#settledWord] = this.count;
  }

  /** Everything noted has been dealt with. */
  reset(): void {
    this.count = 0;
    this.#words[this.#settledWord] = 0;
  }

  /** True when so many more can be noted. */
  hasRoom(chunkCount: number): boolean {
    return this.count <= DEFERRED_SLOTS - chunkCount;
  }

  /** Notes an item to be freed (or, with a flag in `unit`, only to be remembered) until the command settles. */
  defer(page: number, unit: number): void {
    this.set(FIRST_DEFERRED + this.count, page, unit);
    this.count++;
  }

  deferredSlot(index: number): number {
    return FIRST_DEFERRED + index;
  }
}
