/**
 * A position in the index: how to get to a bucket, along its chain, and at the fields of an entry.
 *
 * Owns: address arithmetic of linear hashing. Bucket i of shard s is bucket i * shards + s of the pool; the directory knows the
 * page of each 8192. Invariant: between calls the position is a bucket (and a slot of it) of a shard that the caller has locked.
 */
import { Bucket } from '../layout/bucket.js';
import type { Bytes } from '../layout/bytes.js';
import { Page, pageOffset } from '../layout/location.js';
import { Shard, Super } from '../layout/superblock.js';
import type { Journal } from '../memory/journal.js';
import type { Memory } from '../memory/memory.js';
import type { PagePool } from '../memory/page-pool.js';
import { lfuUsed } from './lfu.js';

export class IndexCursor {
  /** Position that the last walk ended on: typed array, first word of the bucket, slot, and the arena's number in `arenas`. */
  words: Int32Array;
  base = 0;
  slot = 0;
  arena = 0;

  /** A look ahead has seen an entry that may be that of a key with `expectedHash`: the next find looks there first. */
  isExpecting = false;
  expectedHash = 0;
  expectedRestored = 0;
  expectedArena = 0;
  expectedBase = 0;
  expectedSlot = 0;

  protected readonly memory: Memory;
  protected readonly arenas: Bytes[];
  protected readonly ctl: Int32Array;
  protected readonly journal: Journal;
  protected readonly pool: PagePool;
  protected readonly shardMask: number;
  protected readonly shardShift: number;
  protected readonly shardTable: number;
  protected readonly directory: number;

  constructor(memory: Memory, journal: Journal, pool: PagePool) {
    this.memory = memory;
    this.arenas = memory.arenas;
    this.ctl = memory.ctl;
    this.journal = journal;
    this.pool = pool;
    this.shardShift = memory.shardShift;
    this.shardMask = memory.shardCount - 1;
    this.shardTable = memory.shardTable;
    this.directory = memory.directory;
    this.words = memory.ctl;
  }

  /** First word of the block of a hash's shard; its lock word too. */
  shardWord(hash: number): number {
    return this.shardTable + (hash & this.shardMask) * Shard.WORDS;
  }

  /**
   * Positions on the expected entry, once; false when it is for another hash. Whatever has happened to its bucket, the entry is live or has
   * no page; only an undone split leaves copies behind.
   */
  takeExpected(hash: number): boolean {
    this.isExpecting = false;
    if (this.expectedHash !== hash || this.ctl[Super.RESTORED_WORD] !== this.expectedRestored) return false;
    this.arena = this.expectedArena;
    const words = this.arenas[this.arena].i32;
    if (this.words !== words) this.words = words;
    this.base = this.expectedBase;
    this.slot = this.expectedSlot;
    return true;
  }

  /** Positions on the first bucket of a hash's chain. */
  locate(hash: number): void {
    const local = hash >>> this.shardShift;
    const buckets = this.ctl[this.shardWord(hash) + Shard.BUCKETS_WORD];
    this.openBucket(localBucket(local, buckets), hash & this.shardMask);
  }

  /** Positions on bucket `local` of a shard. */
  openBucket(local: number, shard: number): void {
    const bucket = (local << this.shardShift) | shard;
    const page = this.ctl[this.directory + (bucket >>> Bucket.PAGE_SHIFT)];
    const arena = page >>> Page.ARENA_SHIFT;
    this.arena = arena;
    const words = this.arenas[arena].i32;
    if (this.words !== words) this.words = words;
    this.base = (pageOffset(page) >>> 2) + ((bucket & Bucket.PAGE_MASK) << 5);
  }

  /** Moves to the bucket's overflow bucket; false at the chain's end. */
  next(): boolean {
    const reference = this.words[this.base + Bucket.OVERFLOW_WORD];
    if (reference === 0) return false;
    this.openReference(reference);
    return true;
  }

  protected openReference(reference: number): void {
    const page = reference >>> Bucket.PAGE_SHIFT;
    const arena = page >>> Page.ARENA_SHIFT;
    this.arena = arena;
    const words = this.arenas[arena].i32;
    if (this.words !== words) this.words = words;
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

  hasTag(hash: number): boolean {
    return this.words[this.base + Bucket.SLOT_WORD + this.slot * 2] >>> 16 === hash >>> 16;
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
    return low | (this.bytes()[this.accessByte()] << 16);
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
    this.countUse();
    this.setAccess(access);
  }

  /** As use, under the LFU policies: the access word is one of store/lfu. */
  useLfu(minutesNow: number, decayMinutes: number, factor: number): void {
    this.countUse();
    this.setAccessWord(lfuUsed(this.access, minutesNow, decayMinutes, factor, Math.random()));
  }

  /** All 24 bits, whatever they mean. */
  setAccessWord(word: number): void {
    const at = this.base + Bucket.META_WORD + 1 + this.slot * 2;
    this.words[at] = (this.words[at] & ~0xffff) | (word & 0xffff);
    this.bytes()[this.accessByte()] = word >>> 16;
  }

  protected countUse(): void {
    const { words, base, slot } = this;
    const bits = words[base + Bucket.BITS_WORD];
    const shift = Bucket.FREQUENCY_SHIFT + slot * 2;
    let changed = bits | (1 << (Bucket.FETCHED_SHIFT + slot));
    if (((bits >>> shift) & Bucket.FREQUENCY_MAX) !== Bucket.FREQUENCY_MAX) changed += 1 << shift;
    if (changed !== bits) words[base + Bucket.BITS_WORD] = changed;
  }

  setAccess(access: number): void {
    const at = this.base + Bucket.META_WORD + 1 + this.slot * 2;
    const old = this.words[at];
    if ((old & 0xffff) === (access & 0xffff)) return; // the high byte moves once in 18 hours, with the low half
    this.words[at] = (old & ~0xffff) | (access & 0xffff);
    this.bytes()[this.accessByte()] = access >>> 16;
  }

  /** The item has been used since it was stored, as an eviction that spared it has seen. */
  get isProven(): boolean {
    return ((this.bytes()[(this.base << 2) + Bucket.PROVEN_BYTE] >>> this.slot) & 1) === 1;
  }

  /** An eviction spares the item, which has been used: the hand takes the uses away. Not journaled, as uses are not. */
  spare(): void {
    this.setFrequency(0);
    this.bytes()[(this.base << 2) + Bucket.PROVEN_BYTE] |= 1 << this.slot;
  }

  /** The item has been written over: a use, as far as its place is concerned. */
  noteOverwrite(): void {
    this.countUse();
    this.clearFetched();
  }

  clearFetched(): void {
    this.words[this.base + Bucket.BITS_WORD] &= ~(1 << (Bucket.FETCHED_SHIFT + this.slot));
  }

  setFrequency(frequency: number): void {
    const shift = Bucket.FREQUENCY_SHIFT + this.slot * 2;
    const at = this.base + Bucket.BITS_WORD;
    this.words[at] = (this.words[at] & ~(Bucket.FREQUENCY_MAX << shift)) | (frequency << shift);
  }

  protected bytes(): Uint8Array {
    return this.arenas[this.arena].u8;
  }

  protected accessByte(): number {
    return (this.base << 2) + Bucket.ACCESS_HIGH_BYTE + this.slot;
  }

  /** Number of a hash's bucket in the pool. */
  bucketOf(hash: number): number {
    const buckets = this.ctl[this.shardWord(hash) + Shard.BUCKETS_WORD];
    return (localBucket(hash >>> this.shardShift, buckets) << this.shardShift) | (hash & this.shardMask);
  }
}

/** Seconds from an access word to now, both modulo 2^24; 0 when the clock has been set back. */
export function idleSeconds(now: number, access: number): number {
  const seconds = (now - access) & Bucket.ACCESS_MASK;
  return seconds > Bucket.ACCESS_MASK >>> 1 ? 0 : seconds;
}

/** Bucket of a shard-local hash in a table of `buckets` (linear hashing). */
export function localBucket(local: number, buckets: number): number {
  const level = 31 - Math.clz32(buckets);
  const wide = local & ((2 << level) - 1);
  return wide < buckets ? wide : local & ((1 << level) - 1);
}
