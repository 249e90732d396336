/**
 * The Hashmap: linear hashing, one independent table a shard, buckets of seven entries (layout/bucket).
 *
 * Owns: buckets, their overflow chains, item counts of shards. Everything here runs under the shard's lock (the prefetch
 * passes excepted) and saves words in the undo journal before it changes them.
 *
 * Growth: a shard with n buckets splits one bucket when its mean fill passes FILL; bucket p = n - 2^L moves the entries whose next hash
 * bit is set to bucket n. So growth costs one bucket at a time and never pauses. Bucket i of shard s is bucket i * shards + s of the
 * pool: since shards grow in step, all share the index pages, and 1 MiB is enough to begin with.
 */

import { Bucket } from '../layout/bucket.js';
import type { Bytes } from '../layout/bytes.js';
import { Item } from '../layout/item.js';
import { locationOffset, Page, pageOffset } from '../layout/location.js';
import { PageKind, Shard, Super } from '../layout/superblock.js';
import type { Journal } from '../memory/journal.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE, type PagePool } from '../memory/page-pool.js';

/** Entries a bucket at which a shard splits, in tenths. */
const FILL_TENTHS = 44;
/** Overflow buckets a shard takes from the pool at once. */
const OVERFLOW_BATCH = 4;

export class Index {
  /** Position that the last walk ended on: typed array, first word of the bucket, slot, and the arena's number in `arenas`. */
  words: Int32Array;
  base = 0;
  slot = 0;
  arena = 0;

  readonly #memory: Memory;
  readonly #arenas: Bytes[];
  readonly #ctl: Int32Array;
  readonly #journal: Journal;
  readonly #pool: PagePool;
  readonly #shardMask: number;
  readonly #shardShift: number;
  readonly #shardTable: number;
  readonly #directory: number;
  /** Keeps the prefetch passes' loads alive. */
  touched = 0;

  constructor(memory: Memory, journal: Journal, pool: PagePool) {
    this.#memory = memory;
    this.#arenas = memory.arenas;
    this.#ctl = memory.ctl;
    this.#journal = journal;
    this.#pool = pool;
    this.#shardShift = memory.shardShift;
    this.#shardMask = memory.shardCount - 1;
    this.#shardTable = memory.shardTable;
    this.#directory = memory.directory;
    this.words = memory.ctl;
  }

  /** First word of the block of a hash's shard; its lock word too. */
  shardWord(hash: number): number {
    return this.#shardTable + (hash & this.#shardMask) * Shard.WORDS;
  }

  /** Positions on the first bucket of a hash's chain. */
  locate(hash: number): void {
    const local = hash >>> this.#shardShift;
    const buckets = this.#ctl[this.shardWord(hash) + Shard.BUCKETS_WORD];
    this.#openBucket(localBucket(local, buckets), hash & this.#shardMask);
  }

  /** Positions on bucket `local` of a shard. */
  openBucket(local: number, shard: number): void {
    this.#openBucket(local, shard);
  }

  #openBucket(local: number, shard: number): void {
    const bucket = (local << this.#shardShift) | shard;
    const page = this.#ctl[this.#directory + (bucket >>> Bucket.PAGE_SHIFT)];
    const arena = page >>> Page.ARENA_SHIFT;
    this.arena = arena;
    this.words = this.#arenas[arena].i32;
    this.base = (pageOffset(page) >>> 2) + ((bucket & Bucket.PAGE_MASK) << 5);
  }

  /** Moves to the bucket's overflow bucket; false at the chain's end. */
  next(): boolean {
    const reference = this.words[this.base + Bucket.OVERFLOW_WORD];
    if (reference === 0) return false;
    this.#openReference(reference);
    return true;
  }

  #openReference(reference: number): void {
    const page = reference >>> Bucket.PAGE_SHIFT;
    const arena = page >>> Page.ARENA_SHIFT;
    this.arena = arena;
    this.words = this.#arenas[arena].i32;
    this.base = (pageOffset(page) >>> 2) + ((reference & Bucket.PAGE_MASK) << 5);
  }

  /** Positions on the entry that points to a location; false when the index has none. */
  findLocation(hash: number, page: number, unit: number): boolean {
    const word = ((hash >>> 16) << 16) | unit;
    this.locate(hash);
    do {
      const { words, base } = this;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (
          words[base + Bucket.SLOT_WORD + slot * 2] === word &&
          words[base + Bucket.SLOT_WORD + 1 + slot * 2] === page
        ) {
          this.slot = slot;
          return true;
        }
      }
    } while (this.next());
    return false;
  }

  // ---- fields of the entry at the position

  get page(): number {
    return this.words[this.base + Bucket.SLOT_WORD + 1 + this.slot * 2];
  }

  get unit(): number {
    return this.words[this.base + Bucket.SLOT_WORD + this.slot * 2] & 0xffff;
  }

  get hasExpiry(): boolean {
    return ((this.words[this.base + Bucket.BITS_WORD] >>> this.slot) & 1) === 1;
  }

  /** Milliseconds since 1970, 0 = none. */
  get expiryMs(): number {
    if (!this.hasExpiry) return 0;
    const at = this.base + Bucket.META_WORD + this.slot * 2;
    return (this.words[at + 1] >>> 16) * 0x1_0000_0000 + (this.words[at] >>> 0);
  }

  get access(): number {
    const low = this.words[this.base + Bucket.META_WORD + 1 + this.slot * 2] & 0xffff;
    return low | (this.#bytes()[this.#accessByte()] << 16);
  }

  get frequency(): number {
    return (
      (this.words[this.base + Bucket.BITS_WORD] >>> (Bucket.FREQUENCY_SHIFT + this.slot * 2)) & Bucket.FREQUENCY_MAX
    );
  }

  get isFetched(): boolean {
    return ((this.words[this.base + Bucket.BITS_WORD] >>> (Bucket.FETCHED_SHIFT + this.slot)) & 1) === 1;
  }

  /** Notes a use: frequency, fetched bit, access word. Not journaled: harmless when torn. */
  use(access: number): void {
    const { words, base, slot } = this;
    const bits = words[base + Bucket.BITS_WORD];
    const shift = Bucket.FREQUENCY_SHIFT + slot * 2;
    let changed = bits | (1 << (Bucket.FETCHED_SHIFT + slot));
    if (((bits >>> shift) & Bucket.FREQUENCY_MAX) !== Bucket.FREQUENCY_MAX) changed += 1 << shift;
    if (changed !== bits) words[base + Bucket.BITS_WORD] = changed;
    this.setAccess(access);
  }

  setAccess(access: number): void {
    const at = this.base + Bucket.META_WORD + 1 + this.slot * 2;
    const old = this.words[at];
    if ((old & 0xffff) === (access & 0xffff)) return; // the high byte moves once in 18 hours, with the low half
    this.words[at] = (old & ~0xffff) | (access & 0xffff);
    this.#bytes()[this.#accessByte()] = access >>> 16;
  }

  clearFetched(): void {
    this.words[this.base + Bucket.BITS_WORD] &= ~(1 << (Bucket.FETCHED_SHIFT + this.slot));
  }

  setFrequency(frequency: number): void {
    const shift = Bucket.FREQUENCY_SHIFT + this.slot * 2;
    const at = this.base + Bucket.BITS_WORD;
    this.words[at] = (this.words[at] & ~(Bucket.FREQUENCY_MAX << shift)) | (frequency << shift);
  }

  #bytes(): Uint8Array {
    return this.#arenas[this.arena].u8;
  }

  #accessByte(): number {
    return (this.base << 2) + Bucket.ACCESS_HIGH_BYTE + this.slot;
  }

  // ---- changes, journaled

  setLocation(hash: number, page: number, unit: number): void {
    const at = this.base + Bucket.SLOT_WORD + this.slot * 2;
    const { words, arena } = this;
    this.#journal.save(arena, words, at);
    this.#journal.save(arena, words, at + 1);
    words[at] = ((hash >>> 16) << 16) | unit;
    words[at + 1] = page;
  }

  setExpiry(hash: number, expiryMs: number): void {
    const { words, arena, base, slot } = this;
    const at = base + Bucket.META_WORD + slot * 2;
    const bitsAt = base + Bucket.BITS_WORD;
    const had = (words[bitsAt] >>> slot) & 1;
    if (had === 0 && expiryMs === 0) return;
    this.#journal.save(arena, words, at);
    this.#journal.save(arena, words, at + 1);
    const has = expiryMs === 0 ? 0 : 1;
    if (has !== had) {
      this.#journal.save(arena, words, bitsAt);
      words[bitsAt] = words[bitsAt] ^ (1 << slot);
      const shard = this.shardWord(hash);
      this.#ctl[shard + Shard.EXPIRING_WORD] += has - had;
    }
    const high = Math.floor(expiryMs / 0x1_0000_0000);
    words[at] = (expiryMs - high * 0x1_0000_0000) | 0;
    words[at + 1] = (high << 16) | (words[at + 1] & 0xffff);
  }

  /** Adds an entry for a hash that has none for this key, and positions on it. False when the index cannot grow. */
  insert(hash: number, page: number, unit: number, access: number): boolean {
    this.locate(hash);
    if (!this.#findEmpty() && !this.#extendChain(hash)) return false;
    const { words, base, slot, arena } = this;
    const journal = this.#journal;
    const at = base + Bucket.SLOT_WORD + slot * 2;
    journal.save(arena, words, at + 1);
    journal.save(arena, words, base + Bucket.BITS_WORD);
    words[base + Bucket.BITS_WORD] &= ~(
      (1 << slot) |
      (1 << (Bucket.FETCHED_SHIFT + slot)) |
      (3 << (Bucket.FREQUENCY_SHIFT + slot * 2))
    );
    words[base + Bucket.META_WORD + slot * 2] = 0;
    words[base + Bucket.META_WORD + 1 + slot * 2] = access & 0xffff;
    this.#bytes()[this.#accessByte()] = access >>> 16;
    words[at] = ((hash >>> 16) << 16) | unit;
    words[at + 1] = page;
    this.#ctl[this.shardWord(hash) + Shard.ITEMS_WORD]++;
    return true;
  }

  /** Splits a bucket when the hash's shard is full enough. The position is lost. */
  growIfNeeded(hash: number): void {
    const shard = this.shardWord(hash);
    const buckets = this.#ctl[shard + Shard.BUCKETS_WORD];
    if (this.#ctl[shard + Shard.ITEMS_WORD] * 10 > buckets * FILL_TENTHS) this.#split(hash & this.#shardMask, buckets);
  }

  /** Removes the entry at the position. */
  remove(hash: number): void {
    const { words, base, slot, arena } = this;
    const at = base + Bucket.SLOT_WORD + slot * 2;
    const shard = this.shardWord(hash);
    if (this.hasExpiry) this.#ctl[shard + Shard.EXPIRING_WORD]--;
    this.#journal.save(arena, words, at + 1);
    words[at + 1] = NO_PAGE;
    this.#ctl[shard + Shard.ITEMS_WORD]--;
  }

  #findEmpty(): boolean {
    for (;;) {
      const { words, base } = this;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) {
          this.slot = slot;
          return true;
        }
      }
      if (!this.next()) return false;
    }
  }

  /** Hangs an empty overflow bucket behind the chain's last bucket (the position) and moves to it. */
  #extendChain(hash: number): boolean {
    const shard = this.shardWord(hash);
    const { words, base, arena } = this;
    let reference = this.#ctl[shard + Shard.FREE_OVERFLOW_WORD];
    if (reference === 0) {
      if (!this.#takeOverflow(shard)) return false;
      reference = this.#ctl[shard + Shard.FREE_OVERFLOW_WORD];
    }
    const journal = this.#journal;
    journal.save(arena, words, base + Bucket.OVERFLOW_WORD);
    journal.save(0, this.#ctl, shard + Shard.FREE_OVERFLOW_WORD);
    this.#openReference(reference);
    // A free bucket's words but the first are clear already: kept so by #freeOverflow.
    journal.save(this.arena, this.words, this.base + Bucket.OVERFLOW_WORD);
    this.#ctl[shard + Shard.FREE_OVERFLOW_WORD] = this.words[this.base + Bucket.OVERFLOW_WORD];
    this.words[this.base + Bucket.OVERFLOW_WORD] = 0;
    words[base + Bucket.OVERFLOW_WORD] = reference;
    this.slot = 0;
    return true;
  }

  /** Takes a few buckets of the pool's open overflow page into the shard's free list. */
  #takeOverflow(shard: number): boolean {
    const memory = this.#memory;
    const ctl = this.#ctl;
    let fresh = NO_PAGE;
    for (;;) {
      memory.lock(Super.PAGE_LOCK_WORD);
      const page = ctl[Super.OVERFLOW_PAGE_WORD];
      const used = ctl[Super.OVERFLOW_USED_WORD];
      if (page !== NO_PAGE && used < Bucket.PER_PAGE) {
        ctl[Super.OVERFLOW_USED_WORD] = used + OVERFLOW_BATCH;
        memory.unlock(Super.PAGE_LOCK_WORD);
        if (fresh !== NO_PAGE) this.#pool.free(fresh);
        for (let i = 0; i < OVERFLOW_BATCH; i++) {
          this.#pushFree(shard, (page << Bucket.PAGE_SHIFT) | (used + i));
        }
        return true;
      }
      if (fresh !== NO_PAGE) {
        ctl[Super.OVERFLOW_PAGE_WORD] = fresh;
        ctl[Super.OVERFLOW_USED_WORD] = 0;
        ctl[memory.pageInfo(fresh)] = PageKind.INDEX;
        fresh = NO_PAGE;
        memory.unlock(Super.PAGE_LOCK_WORD);
        continue;
      }
      memory.unlock(Super.PAGE_LOCK_WORD);
      fresh = this.#pool.takeDram(PageKind.TAKEN, 0, 0);
      if (fresh === NO_PAGE) return false;
      this.#clearPage(fresh);
    }
  }

  #clearPage(page: number): void {
    const at = pageOffset(page) >>> 2;
    this.#arenas[page >>> Page.ARENA_SHIFT].i32.fill(0, at, at + Page.BYTES / 4);
  }

  /** Adds an empty overflow bucket to a shard's free list (linked through the overflow words). */
  #pushFree(shard: number, reference: number): void {
    const page = reference >>> Bucket.PAGE_SHIFT;
    const arena = page >>> Page.ARENA_SHIFT;
    const words = this.#arenas[arena].i32;
    const base = (pageOffset(page) >>> 2) + ((reference & Bucket.PAGE_MASK) << 5);
    this.#journal.save(arena, words, base + Bucket.OVERFLOW_WORD);
    this.#journal.save(0, this.#ctl, shard + Shard.FREE_OVERFLOW_WORD);
    words[base + Bucket.OVERFLOW_WORD] = this.#ctl[shard + Shard.FREE_OVERFLOW_WORD];
    this.#ctl[shard + Shard.FREE_OVERFLOW_WORD] = reference;
  }

  /** Page for bucket number `bucket`; false when DRAM has none. */
  #ensurePage(bucket: number): boolean {
    const memory = this.#memory;
    const at = bucket >>> Bucket.PAGE_SHIFT;
    if (at >= memory.directoryLength) return false;
    const word = this.#directory + at;
    if (this.#ctl[word] !== NO_PAGE) return true;
    const page = this.#pool.takeDram(PageKind.TAKEN, 0, 0);
    if (page === NO_PAGE) return false;
    this.#clearPage(page);
    memory.lock(Super.PAGE_LOCK_WORD);
    const mine = this.#ctl[word] === NO_PAGE;
    if (mine) {
      this.#ctl[word] = page;
      this.#ctl[memory.pageInfo(page)] = PageKind.INDEX;
    }
    memory.unlock(Super.PAGE_LOCK_WORD);
    if (!mine) this.#pool.free(page);
    return true;
  }

  /** Splits bucket n - 2^L of a shard into itself and bucket n. Without a page for it the chains just grow longer. */
  #split(shard: number, buckets: number): void {
    const level = 31 - Math.clz32(buckets);
    if (!this.#ensurePage((buckets << this.#shardShift) | shard)) return;
    const journal = this.#journal;
    const shardWord = this.#shardTable + shard * Shard.WORDS;
    this.#openBucket(buckets, shard);
    const upperWords = this.words;
    const upperArena = this.arena;
    const upperFirst = this.base;
    upperWords.fill(0, upperFirst, upperFirst + Bucket.WORDS);
    let upperBase = upperFirst;
    let upperChainWords = upperWords;
    let upperChainArena = upperArena;
    let upperSlot = 0;

    this.#openBucket(buckets - (1 << level), shard);
    journal.save(0, this.#ctl, shardWord + Shard.BUCKETS_WORD);
    // Hash bit that decides; bits 16 and up stand in the tag, lower ones only in the item.
    const bit = this.#shardShift + level;
    do {
      const { words, base, arena } = this;
      journal.saveRange(arena, words, base, Bucket.WORDS);
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        const at = base + Bucket.SLOT_WORD + slot * 2;
        const page = words[at + 1];
        if (page === NO_PAGE) continue;
        if ((this.#hashBits(words[at], page, bit) & 1) === 0) continue;
        if (upperSlot === Bucket.SLOTS) {
          // The upper chain is full: hang an overflow bucket on it. Its own position is restored afterwards.
          this.words = upperChainWords;
          this.base = upperBase;
          this.arena = upperChainArena;
          if (!this.#extendChain(shard)) {
            journal.rollback();
            return;
          }
          upperChainWords = this.words;
          upperBase = this.base;
          upperChainArena = this.arena;
          journal.saveRange(upperChainArena, upperChainWords, upperBase, Bucket.WORDS);
          upperSlot = 0;
          this.words = words;
          this.base = base;
          this.arena = arena;
        }
        this.#moveEntry(words, base, slot, arena, upperChainWords, upperBase, upperSlot, upperChainArena);
        upperSlot++;
      }
    } while (this.next());
    this.#ctl[shardWord + Shard.BUCKETS_WORD] = buckets + 1;
    this.#compactChain(shardWord, buckets - (1 << level), shard);
  }

  #hashBits(slotWord: number, page: number, bit: number): number {
    if (bit >= 16) return slotWord >>> bit;
    const offset = locationOffset(page, slotWord & 0xffff) >>> 2;
    return this.#arenas[page >>> Page.ARENA_SHIFT].i32[offset + Item.HASH_WORD] >>> bit;
  }

  #moveEntry(
    from: Int32Array,
    fromBase: number,
    fromSlot: number,
    fromArena: number,
    to: Int32Array,
    toBase: number,
    toSlot: number,
    toArena: number,
  ): void {
    const fromAt = fromBase + Bucket.SLOT_WORD + fromSlot * 2;
    const toAt = toBase + Bucket.SLOT_WORD + toSlot * 2;
    to[toAt] = from[fromAt];
    to[toAt + 1] = from[fromAt + 1];
    const fromMeta = fromBase + Bucket.META_WORD + fromSlot * 2;
    const toMeta = toBase + Bucket.META_WORD + toSlot * 2;
    to[toMeta] = from[fromMeta];
    to[toMeta + 1] = from[fromMeta + 1];
    this.#arenas[toArena].u8[(toBase << 2) + Bucket.ACCESS_HIGH_BYTE + toSlot] =
      this.#arenas[fromArena].u8[(fromBase << 2) + Bucket.ACCESS_HIGH_BYTE + fromSlot];
    const bits = from[fromBase + Bucket.BITS_WORD];
    const moved =
      (((bits >>> fromSlot) & 1) << toSlot) |
      (((bits >>> (Bucket.FETCHED_SHIFT + fromSlot)) & 1) << (Bucket.FETCHED_SHIFT + toSlot)) |
      (((bits >>> (Bucket.FREQUENCY_SHIFT + fromSlot * 2)) & 3) << (Bucket.FREQUENCY_SHIFT + toSlot * 2));
    const mask = (1 << toSlot) | (1 << (Bucket.FETCHED_SHIFT + toSlot)) | (3 << (Bucket.FREQUENCY_SHIFT + toSlot * 2));
    to[toBase + Bucket.BITS_WORD] = (to[toBase + Bucket.BITS_WORD] & ~mask) | moved;
    from[fromAt + 1] = NO_PAGE;
  }

  /**
   * Pulls the entries of a chain's overflow buckets forward into empty slots and frees the buckets that become empty.
   * The chain was saved whole by #split.
   */
  #compactChain(shardWord: number, local: number, shard: number): void {
    this.#openBucket(local, shard);
    let headWords = this.words;
    let headBase = this.base;
    let headArena = this.arena;
    for (;;) {
      const reference = headWords[headBase + Bucket.OVERFLOW_WORD];
      if (reference === 0) return;
      this.#openReference(reference);
      const { words, base, arena } = this;
      let left = 0;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) continue;
        const empty = emptySlot(headWords, headBase);
        if (empty < 0) left++;
        else this.#moveEntry(words, base, slot, arena, headWords, headBase, empty, headArena);
      }
      if (left === 0) {
        headWords[headBase + Bucket.OVERFLOW_WORD] = words[base + Bucket.OVERFLOW_WORD];
        words[base + Bucket.BITS_WORD] = 0;
        words[base + Bucket.OVERFLOW_WORD] = this.#ctl[shardWord + Shard.FREE_OVERFLOW_WORD];
        this.#journal.save(0, this.#ctl, shardWord + Shard.FREE_OVERFLOW_WORD);
        this.#ctl[shardWord + Shard.FREE_OVERFLOW_WORD] = reference;
      } else {
        headWords = words;
        headBase = base;
        headArena = arena;
      }
    }
  }

  // ---- prefetch passes: no lock, results unused; a torn read costs nothing but a useless load

  /** Loads the first line of a hash's bucket. */
  prefetchBucket(hash: number): void {
    const local = hash >>> this.#shardShift;
    const buckets = this.#ctl[this.#shardTable + (hash & this.#shardMask) * Shard.WORDS + Shard.BUCKETS_WORD];
    const bucket = (localBucket(local, buckets) << this.#shardShift) | (hash & this.#shardMask);
    const page = this.#ctl[this.#directory + (bucket >>> Bucket.PAGE_SHIFT)];
    const base = (pageOffset(page) >>> 2) + ((bucket & Bucket.PAGE_MASK) << 5);
    this.touched ^= this.#arenas[page >>> Page.ARENA_SHIFT].i32[base];
  }

  /** Loads the header of the item that a hash's bucket most likely points to. */
  prefetchItem(hash: number): void {
    this.locate(hash);
    const { words, base } = this;
    const tag = hash >>> 16;
    for (let slot = 0; slot < Bucket.SLOTS; slot++) {
      const word = words[base + Bucket.SLOT_WORD + slot * 2];
      if (word >>> 16 !== tag) continue;
      const page = words[base + Bucket.SLOT_WORD + 1 + slot * 2];
      if (!this.#memory.isPage(page)) continue;
      this.touched ^= this.#arenas[page >>> Page.ARENA_SHIFT].i32[locationOffset(page, word & 0xffff) >>> 2];
      return;
    }
  }
}

/** Bucket of a shard-local hash in a table of `buckets` (linear hashing). */
export function localBucket(local: number, buckets: number): number {
  const level = 31 - Math.clz32(buckets);
  const wide = local & ((2 << level) - 1);
  return wide < buckets ? wide : local & ((1 << level) - 1);
}

function emptySlot(words: Int32Array, base: number): number {
  for (let slot = 0; slot < Bucket.SLOTS; slot++) {
    if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) return slot;
  }
  return -1;
}
