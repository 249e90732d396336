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
import { Item } from '../layout/item.js';
import { locationOffset, Page, pageOffset } from '../layout/location.js';
import { PageKind, Shard, Super } from '../layout/superblock.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { IndexCursor } from './index-cursor.js';

/** Entries a bucket at which a shard splits, in tenths. */
export const FILL_TENTHS = 54;
/** Overflow buckets a shard takes from the pool at once. */
const OVERFLOW_BATCH = 4;
/** Chains looked at for each that was extended: in the long run one in so many has an overflow bucket that it could do without. */
const TIDY_CHAINS = 16;

export class Index extends IndexCursor {
  /** Chains that were extended since `tidy` last looked, and where it goes on. */
  #extended = 0;
  #tidyAt = 0;

  // ---- changes, journaled

  setLocation(hash: number, page: number, unit: number): void {
    const at = this.base + Bucket.SLOT_WORD + this.slot * 2;
    const { words, arena } = this;
    this.journal.save(arena, words, at);
    this.journal.save(arena, words, at + 1);
    words[at] = ((hash >>> 16) << 16) | unit;
    words[at + 1] = page;
  }

  setExpiry(hash: number, expiryMs: number): void {
    const { words, arena, base, slot } = this;
    const at = base + Bucket.META_WORD + slot * 2;
    const bitsAt = base + Bucket.BITS_WORD;
    const had = (words[bitsAt] >>> slot) & 1;
    if (had === 0 && expiryMs === 0) return;
    this.journal.save(arena, words, at);
    this.journal.save(arena, words, at + 1);
    const has = expiryMs === 0 ? 0 : 1;
    if (has !== had) {
      this.journal.save(arena, words, bitsAt);
      words[bitsAt] = words[bitsAt] ^ (1 << slot);
      const shard = this.shardWord(hash);
      this.ctl[shard + Shard.EXPIRING_WORD] += has - had;
    }
    const high = Math.floor(expiryMs / 0x1_0000_0000);
    words[at] = (expiryMs - high * 0x1_0000_0000) | 0;
    words[at + 1] = (high << 16) | (words[at + 1] & 0xffff);
  }

  /** Adds an entry for a hash that has none for this key, and positions on it. False when the index cannot grow. */
  insert(hash: number, page: number, unit: number, access: number): boolean {
    this.locate(hash);
    if (!this.findEmpty() && !this.extendChain(hash)) return false;
    const { words, base, slot, arena } = this;
    const journal = this.journal;
    const at = base + Bucket.SLOT_WORD + slot * 2;
    // The running command may have emptied the slot: its undo then needs all of it.
    if (journal.isOpen) {
      journal.save(arena, words, at);
      journal.saveRange(arena, words, base + Bucket.META_WORD + slot * 2, 2);
    }
    journal.save(arena, words, at + 1);
    journal.save(arena, words, base + Bucket.BITS_WORD);
    words[base + Bucket.BITS_WORD] &= ~(
      (1 << slot) |
      (1 << (Bucket.FETCHED_SHIFT + slot)) |
      (3 << (Bucket.FREQUENCY_SHIFT + slot * 2))
    );
    this.bytes()[(base << 2) + Bucket.PROVEN_BYTE] &= ~(1 << slot);
    words[base + Bucket.META_WORD + slot * 2] = 0;
    words[base + Bucket.META_WORD + 1 + slot * 2] = access & 0xffff;
    this.bytes()[this.accessByte()] = access >>> 16;
    words[at] = ((hash >>> 16) << 16) | unit;
    words[at + 1] = page;
    this.ctl[this.shardWord(hash) + Shard.ITEMS_WORD]++;
    return true;
  }

  /** Splits a bucket when the hash's shard is full enough; true when it did. The position is lost. */
  growIfNeeded(hash: number): boolean {
    const shard = this.shardWord(hash);
    const buckets = this.ctl[shard + Shard.BUCKETS_WORD];
    if (this.ctl[shard + Shard.ITEMS_WORD] * 10 <= buckets * FILL_TENTHS) return false;
    return this.split(hash & this.shardMask, buckets);
  }

  /**
   * Frees overflow buckets of the hash's shard that their chains can do without: what was removed has left holes, and where items come and go
   * every chain is long at some time. Does nothing unless chains have been extended. The position is lost; the journal holds what was done.
   */
  tidy(hash: number): void {
    if (this.#extended === 0) return;
    const shard = this.shardWord(hash);
    const buckets = this.ctl[shard + Shard.BUCKETS_WORD];
    for (let i = 0; i < TIDY_CHAINS; i++) {
      this.#tidyAt = this.#tidyAt + 1 < buckets ? this.#tidyAt + 1 : 0;
      if (!this.#isWasteful(this.#tidyAt, hash & this.shardMask)) continue;
      this.openBucket(this.#tidyAt, hash & this.shardMask);
      do this.journal.saveRange(this.arena, this.words, this.base, Bucket.WORDS);
      while (this.next());
      this.compactChain(shard, this.#tidyAt, hash & this.shardMask);
      this.journal.commit();
    }
    this.#extended = 0;
  }

  /** True when a chain's entries would fit in fewer buckets. */
  #isWasteful(local: number, shard: number): boolean {
    this.openBucket(local, shard);
    if (this.words[this.base + Bucket.OVERFLOW_WORD] === 0) return false;
    let holes = 0;
    do {
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (this.words[this.base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) holes++;
      }
    } while (this.next());
    return holes >= Bucket.SLOTS;
  }

  /** Splits buckets of a shard up to a number of them, so many at once; false when there are as many, or no room. Where little is in them it is cheap. */
  growTo(shard: number, buckets: number, splits: number): boolean {
    const word = this.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD;
    for (let i = 0; i < splits; i++) {
      if (this.ctl[word] >= buckets || !this.split(shard, this.ctl[word])) return false;
      this.journal.commit();
    }
    return true;
  }

  /** Removes the entry at the position. */
  remove(hash: number): void {
    const { words, base, slot, arena } = this;
    const at = base + Bucket.SLOT_WORD + slot * 2;
    const shard = this.shardWord(hash);
    if (this.hasExpiry) this.ctl[shard + Shard.EXPIRING_WORD]--;
    this.journal.save(arena, words, at + 1);
    words[at + 1] = NO_PAGE;
    this.ctl[shard + Shard.ITEMS_WORD]--;
  }

  protected findEmpty(): boolean {
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
  protected extendChain(hash: number): boolean {
    const shard = this.shardWord(hash);
    const { words, base, arena } = this;
    let reference = this.ctl[shard + Shard.FREE_OVERFLOW_WORD];
    if (reference === 0) {
      if (!this.takeOverflow(shard)) return false;
      reference = this.ctl[shard + Shard.FREE_OVERFLOW_WORD];
    }
    const journal = this.journal;
    journal.save(arena, words, base + Bucket.OVERFLOW_WORD);
    journal.save(0, this.ctl, shard + Shard.FREE_OVERFLOW_WORD);
    this.openReference(reference);
    // A free bucket's words but the first are clear already: kept so by #freeOverflow.
    journal.save(this.arena, this.words, this.base + Bucket.OVERFLOW_WORD);
    this.ctl[shard + Shard.FREE_OVERFLOW_WORD] = this.words[this.base + Bucket.OVERFLOW_WORD];
    this.words[this.base + Bucket.OVERFLOW_WORD] = 0;
    words[base + Bucket.OVERFLOW_WORD] = reference;
    this.slot = 0;
    this.#extended++;
    return true;
  }

  /** Takes a few buckets of the pool's open overflow page into the shard's free list. */
  protected takeOverflow(shard: number): boolean {
    const memory = this.memory;
    const ctl = this.ctl;
    let fresh = NO_PAGE;
    for (;;) {
      memory.lock(Super.PAGE_LOCK_WORD);
      const page = ctl[Super.OVERFLOW_PAGE_WORD];
      const used = ctl[Super.OVERFLOW_USED_WORD];
      if (page !== NO_PAGE && used < Bucket.PER_PAGE) {
        // A death after this step costs these few buckets, no more.
        ctl[Super.OVERFLOW_USED_WORD] = used + OVERFLOW_BATCH;
        memory.unlock(Super.PAGE_LOCK_WORD);
        if (fresh !== NO_PAGE) this.pool.free(fresh);
        for (let i = 0; i < OVERFLOW_BATCH; i++) {
          this.pushFree(shard, (page << Bucket.PAGE_SHIFT) | (used + i));
        }
        return true;
      }
      if (fresh !== NO_PAGE) {
        this.journal.setControl(memory.pageInfo(fresh), PageKind.INDEX);
        this.journal.setControl(Super.OVERFLOW_USED_WORD, 0);
        this.journal.setControl(Super.OVERFLOW_PAGE_WORD, fresh);
        this.journal.commitAlloc();
        fresh = NO_PAGE;
        memory.unlock(Super.PAGE_LOCK_WORD);
        continue;
      }
      memory.unlock(Super.PAGE_LOCK_WORD);
      fresh = this.#takePage();
      if (fresh === NO_PAGE) return false;
      this.clearPage(fresh);
    }
  }

  #takePage(): number {
    return this.pool.hasRoomForIndex ? this.pool.takeDram(PageKind.TAKEN, 0, this.pool.indexReserve) : NO_PAGE;
  }

  protected clearPage(page: number): void {
    const at = pageOffset(page) >>> 2;
    this.arenas[page >>> Page.ARENA_SHIFT].i32.fill(0, at, at + Page.BYTES / 4);
  }

  /** Adds an empty overflow bucket to a shard's free list (linked through the overflow words). */
  protected pushFree(shard: number, reference: number): void {
    const page = reference >>> Bucket.PAGE_SHIFT;
    const arena = page >>> Page.ARENA_SHIFT;
    const words = this.arenas[arena].i32;
    const base = (pageOffset(page) >>> 2) + ((reference & Bucket.PAGE_MASK) << 5);
    this.journal.save(arena, words, base + Bucket.OVERFLOW_WORD);
    this.journal.save(0, this.ctl, shard + Shard.FREE_OVERFLOW_WORD);
    words[base + Bucket.OVERFLOW_WORD] = this.ctl[shard + Shard.FREE_OVERFLOW_WORD];
    this.ctl[shard + Shard.FREE_OVERFLOW_WORD] = reference;
  }

  /** Page for bucket number `bucket`; false when DRAM has none. */
  protected ensurePage(bucket: number): boolean {
    const memory = this.memory;
    const at = bucket >>> Bucket.PAGE_SHIFT;
    if (at >= memory.directoryLength) return false;
    const word = this.directory + at;
    if (this.ctl[word] !== NO_PAGE) return true;
    const page = this.#takePage();
    if (page === NO_PAGE) return false;
    this.clearPage(page);
    if (!this.pool.enterIndexPage(page, word)) this.pool.free(page);
    return true;
  }

  /** Splits bucket n - 2^L of a shard into itself and bucket n. Without a page for it the chains just grow longer. */
  protected split(shard: number, buckets: number): boolean {
    const level = 31 - Math.clz32(buckets);
    if (!this.ensurePage((buckets << this.shardShift) | shard)) return false;
    const journal = this.journal;
    const shardWord = this.shardTable + shard * Shard.WORDS;
    this.openBucket(buckets, shard);
    const upperWords = this.words;
    const upperArena = this.arena;
    const upperFirst = this.base;
    upperWords.fill(0, upperFirst, upperFirst + Bucket.WORDS);
    let upperBase = upperFirst;
    let upperChainWords = upperWords;
    let upperChainArena = upperArena;
    let upperSlot = 0;

    this.openBucket(buckets - (1 << level), shard);
    journal.save(0, this.ctl, shardWord + Shard.BUCKETS_WORD);
    // Hash bit that decides; bits 16 and up stand in the tag, lower ones only in the item.
    const bit = this.shardShift + level;
    do {
      const { words, base, arena } = this;
      journal.saveRange(arena, words, base, Bucket.WORDS);
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        const at = base + Bucket.SLOT_WORD + slot * 2;
        const page = words[at + 1];
        if (page === NO_PAGE) continue;
        if ((this.hashBits(words[at], page, bit) & 1) === 0) continue;
        if (upperSlot === Bucket.SLOTS) {
          // The upper chain is full: hang an overflow bucket on it. Its own position is restored afterwards.
          this.words = upperChainWords;
          this.base = upperBase;
          this.arena = upperChainArena;
          if (!this.extendChain(shard)) {
            journal.rollback();
            return false;
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
        this.moveEntry(words, base, slot, arena, upperChainWords, upperBase, upperSlot, upperChainArena);
        upperSlot++;
      }
    } while (this.next());
    this.ctl[shardWord + Shard.BUCKETS_WORD] = buckets + 1;
    this.compactChain(shardWord, buckets - (1 << level), shard);
    return true;
  }

  protected hashBits(slotWord: number, page: number, bit: number): number {
    if (bit >= 16) return slotWord >>> bit;
    const offset = locationOffset(page, slotWord & 0xffff) >>> 2;
    return this.arenas[page >>> Page.ARENA_SHIFT].i32[offset + Item.HASH_WORD] >>> bit;
  }

  protected moveEntry(
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
    const toBytes = this.arenas[toArena].u8;
    const fromBytes = this.arenas[fromArena].u8;
    toBytes[(toBase << 2) + Bucket.ACCESS_HIGH_BYTE + toSlot] =
      fromBytes[(fromBase << 2) + Bucket.ACCESS_HIGH_BYTE + fromSlot];
    const proven = (fromBytes[(fromBase << 2) + Bucket.PROVEN_BYTE] >>> fromSlot) & 1;
    const provenAt = (toBase << 2) + Bucket.PROVEN_BYTE;
    toBytes[provenAt] = (toBytes[provenAt] & ~(1 << toSlot)) | (proven << toSlot);
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
  protected compactChain(shardWord: number, local: number, shard: number): void {
    this.openBucket(local, shard);
    let headWords = this.words;
    let headBase = this.base;
    let headArena = this.arena;
    for (;;) {
      const reference = headWords[headBase + Bucket.OVERFLOW_WORD];
      if (reference === 0) return;
      this.openReference(reference);
      const { words, base, arena } = this;
      let left = 0;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) continue;
        const empty = emptySlot(headWords, headBase);
        if (empty < 0) left++;
        else this.moveEntry(words, base, slot, arena, headWords, headBase, empty, headArena);
      }
      if (left === 0) {
        headWords[headBase + Bucket.OVERFLOW_WORD] = words[base + Bucket.OVERFLOW_WORD];
        words[base + Bucket.BITS_WORD] = 0;
        words[base + Bucket.OVERFLOW_WORD] = this.ctl[shardWord + Shard.FREE_OVERFLOW_WORD];
        this.journal.save(0, this.ctl, shardWord + Shard.FREE_OVERFLOW_WORD);
        this.ctl[shardWord + Shard.FREE_OVERFLOW_WORD] = reference;
      } else {
        headWords = words;
        headBase = base;
        headArena = arena;
      }
    }
  }
}

function emptySlot(words: Int32Array, base: number): number {
  for (let slot = 0; slot < Bucket.SLOTS; slot++) {
    if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE) return slot;
  }
  return -1;
}
