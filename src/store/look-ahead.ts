/**
 * Looking ahead over a batch of keys: buckets first, then the items they most likely mean, so that their cache misses overlap.
 *
 * No lock is held: a torn read costs nothing but a useless prefetch. Owns nothing but scratch space. Measured at 100 k
 * keys of 100 bytes (a miss costs 150-190 ns, twelve at once 15 ns each): see ARCHITECTURE.md.
 */
import { Bucket } from '../layout/bucket.js';
import type { Bytes } from '../layout/bytes.js';
import { locationOffset, Page, pageOffset } from '../layout/location.js';
import { Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { addPrefetch, startPrefetch } from '../native/prefetch.js';
import type { IndexCursor } from './index-cursor.js';

/** Most keys of one call. */
export const LOOK_AHEAD_KEYS = 256;
const BUCKET_LINES = 2;
/** Header, key and a value of 100 bytes. */
const ITEM_LINES = 3;

export class LookAhead {
  readonly #memory: Memory;
  readonly #arenas: Bytes[];
  readonly #index: IndexCursor;
  readonly #hashes = new Int32Array(LOOK_AHEAD_KEYS);
  #restored = 0;
  /** Slot that has the key's tag, -1 = none. */
  readonly #slots = new Int32Array(LOOK_AHEAD_KEYS);
  readonly #bucketArenas = new Int32Array(LOOK_AHEAD_KEYS);
  readonly #bucketWords = new Int32Array(LOOK_AHEAD_KEYS);

  constructor(memory: Memory, index: IndexCursor) {
    this.#memory = memory;
    this.#arenas = memory.arenas;
    this.#index = index;
  }

  prefetch(hashes: Int32Array, count: number): void {
    const arenas = this.#arenas;
    const { ctl, directory } = this.#memory;
    const limit = Math.min(count, LOOK_AHEAD_KEYS);
    this.#restored = ctl[Super.RESTORED_WORD];
    for (let i = 0; i < limit; i++) {
      const bucket = this.#index.bucketOf(hashes[i]);
      const page = ctl[directory + (bucket >>> Bucket.PAGE_SHIFT)];
      const offset = pageOffset(page) + ((bucket & Bucket.PAGE_MASK) << Bucket.SHIFT);
      this.#bucketArenas[i] = page >>> Page.ARENA_SHIFT;
      this.#bucketWords[i] = offset >>> 2;
      addPrefetch(arenas[page >>> Page.ARENA_SHIFT].arena, offset, BUCKET_LINES);
    }
    startPrefetch();
    for (let i = 0; i < limit; i++) {
      this.#hashes[i] = hashes[i];
      this.#slots[i] = this.#addItem(hashes[i] >>> 16, arenas[this.#bucketArenas[i]].i32, this.#bucketWords[i]);
    }
    startPrefetch();
  }

  /** Lets the next find begin where key `i` of the last prefetch has been seen. */
  expect(i: number): void {
    const slot = this.#slots[i];
    if (slot < 0) return;
    const index = this.#index;
    index.isExpecting = true;
    index.expectedHash = this.#hashes[i];
    index.expectedRestored = this.#restored;
    index.expectedArena = this.#bucketArenas[i];
    index.expectedBase = this.#bucketWords[i];
    index.expectedSlot = slot;
  }

  /** Adds the item of the first slot that has the tag; returns the slot, -1 = none. */
  #addItem(tag: number, words: Int32Array, base: number): number {
    for (let slot = 0; slot < Bucket.SLOTS; slot++) {
      const word = words[base + Bucket.SLOT_WORD + slot * 2];
      if (word >>> 16 !== tag) continue;
      const page = words[base + Bucket.SLOT_WORD + 1 + slot * 2];
      if (!this.#memory.isPage(page)) continue;
      addPrefetch(this.#arenas[page >>> Page.ARENA_SHIFT].arena, locationOffset(page, word & 0xffff), ITEM_LINES);
      return slot;
    }
    return -1;
  }
}
