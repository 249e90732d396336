/**
 * Pins: items whose bytes must stay in place because a socket still sends from them.
 *
 * A bounded table in the superblock's tables, consulted by whoever frees or moves large items. Invariant: an unlinked item
 * with a pin is doomed and freed by its last unpin. A slot belongs to one participant, so that its death releases it.
 */
import { Pin, Super } from '../layout/superblock.js';
import { type Held, UNPINNED_SLOT } from './held.js';
import type { Journal } from './journal.js';
import type { Memory } from './memory.js';
import { NO_PAGE } from './page-pool.js';

const DOOMED = 1;
const OWNER_SHIFT = 8;

export class Pins {
  readonly #memory: Memory;
  readonly #journal: Journal;
  readonly #held: Held;
  #hint = 0;

  constructor(memory: Memory, journal: Journal, held: Held) {
    this.#memory = memory;
    this.#journal = journal;
    this.#held = held;
  }

  /** Pins a location; returns a token > 0, or 0 when the table is full. Shard lock held. */
  pin(page: number, unit: number): number {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PIN_LOCK_WORD);
    let token = 0;
    for (let i = 0; i < Pin.SLOTS; i++) {
      const slot = (this.#hint + i) % Pin.SLOTS;
      const at = this.#word(slot);
      if (ctl[at + Pin.PAGE_WORD] !== NO_PAGE) continue;
      ctl[at + Pin.UNIT_WORD] = unit;
      ctl[at + Pin.COUNT_WORD] = 1;
      ctl[at + Pin.DOOMED_WORD] = this.#memory.lockMark << OWNER_SHIFT;
      ctl[at + Pin.PAGE_WORD] = page;
      ctl[Super.PIN_COUNT_WORD]++;
      token = slot + 1;
      this.#hint = slot + 1;
      break;
    }
    this.#memory.unlock(Super.PIN_LOCK_WORD);
    return token;
  }

  /** Ends a pin. Returns the page of an item that must now be freed (unit in `freedUnit`), or NO_PAGE. */
  unpin(token: number): number {
    return this.#drop(token - 1);
  }

  freedUnit = 0;

  #drop(slot: number): number {
    const { ctl } = this.#memory;
    this.#memory.lock(Super.PIN_LOCK_WORD);
    const at = this.#word(slot);
    const page = ctl[at + Pin.PAGE_WORD];
    const unit = ctl[at + Pin.UNIT_WORD];
    const doomed = (ctl[at + Pin.DOOMED_WORD] & DOOMED) !== 0;
    let free = NO_PAGE;
    if (doomed && !this.#isElsewhere(page, unit, slot)) {
      free = page;
      this.freedUnit = unit;
      // Noted as held before the pin goes: at every moment one of the two knows of the item.
      this.#held.set(UNPINNED_SLOT, page, unit);
    }
    ctl[at + Pin.PAGE_WORD] = NO_PAGE;
    ctl[Super.PIN_COUNT_WORD]--;
    this.#memory.unlock(Super.PIN_LOCK_WORD);
    return free;
  }

  /**
   * True when the unlinked item is pinned; it is then doomed, and not the caller's to free any more: the held slot that
   * names it (its arena and word) is cleared in the same step.
   */
  doom(page: number, unit: number, heldArena: number, heldWord: number): boolean {
    const { ctl } = this.#memory;
    // Whoever unlinked the item held its shard's lock, as whoever pins does: a pin of it would be counted by now.
    if (ctl[Super.PIN_COUNT_WORD] === 0) return false;
    this.#memory.lock(Super.PIN_LOCK_WORD);
    let pinned = false;
    for (let slot = 0; slot < Pin.SLOTS; slot++) {
      const at = this.#word(slot);
      if (ctl[at + Pin.PAGE_WORD] !== page || ctl[at + Pin.UNIT_WORD] !== unit) continue;
      this.#journal.setControl(at + Pin.DOOMED_WORD, ctl[at + Pin.DOOMED_WORD] | DOOMED);
      pinned = true;
    }
    // Not pinned: what the caller has begun in the allocator's journal goes on.
    if (pinned) {
      this.#journal.clearWord(heldArena, heldWord);
      this.#journal.commitAlloc();
    }
    this.#memory.unlock(Super.PIN_LOCK_WORD);
    return pinned;
  }

  isPinned(page: number, unit: number): boolean {
    if (this.#memory.ctl[Super.PIN_COUNT_WORD] === 0) return false;
    this.#memory.lock(Super.PIN_LOCK_WORD);
    const pinned = this.#find(page, unit) >= 0;
    this.#memory.unlock(Super.PIN_LOCK_WORD);
    return pinned;
  }

  /** True when any item of the page is pinned: a log page then waits to be freed. */
  isPagePinned(page: number): boolean {
    const { ctl } = this.#memory;
    for (let slot = 0; slot < Pin.SLOTS; slot++) if (ctl[this.#word(slot) + Pin.PAGE_WORD] === page) return true;
    return false;
  }

  /** Token of one pin that a (dead) participant still has, 0 = none. */
  tokenOf(participant: number): number {
    const { ctl } = this.#memory;
    for (let slot = 0; slot < Pin.SLOTS; slot++) {
      const at = this.#word(slot);
      if (ctl[at + Pin.PAGE_WORD] !== NO_PAGE && ctl[at + Pin.DOOMED_WORD] >>> OWNER_SHIFT === participant + 1)
        return slot + 1;
    }
    return 0;
  }

  #isElsewhere(page: number, unit: number, exceptSlot: number): boolean {
    const { ctl } = this.#memory;
    for (let slot = 0; slot < Pin.SLOTS; slot++) {
      const at = this.#word(slot);
      if (slot !== exceptSlot && ctl[at + Pin.PAGE_WORD] === page && ctl[at + Pin.UNIT_WORD] === unit) return true;
    }
    return false;
  }

  #find(page: number, unit: number): number {
    const { ctl } = this.#memory;
    for (let slot = 0; slot < Pin.SLOTS; slot++) {
      const at = this.#word(slot);
      if (ctl[at + Pin.PAGE_WORD] === page && ctl[at + Pin.UNIT_WORD] === unit) return slot;
    }
    return -1;
  }

  #word(slot: number): number {
    return this.#memory.pinTable + slot * Pin.WORDS;
  }
}
