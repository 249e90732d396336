/**
 * What of a damaged pool is sound: a walk over its index and whatever that leads to, which believes nothing.
 *
 * An item counts when an entry leads to it, whose key hashes to what its header and the entry say, and which fits the place where it lies; a collection
 * when all of its trees hold together. What no entry leads to is not taken: whether it had been deleted, and when it expires, stood in the
 * entry. Owns the list of what was found and where it lies. Invariant: no unit of memory belongs to two of the items found.
 */
import { Bucket } from '../layout/bucket.js';
import { Item, ItemType, itemBytes } from '../layout/item.js';
import { locationOffset, Page, pageOffset } from '../layout/location.js';
import { Node } from '../layout/node.js';
import { Database, DatabaseState, PageInfo, PageKind, Shard, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_CHUNKS, CLASS_COUNT, CLASS_UNITS } from '../memory/slab-classes.js';
import { checkCollection } from './collections/check.js';
import { hashKey } from './hash.js';

/** An entry as it was found: location, flags, the words of expiry and access. */
export const enum Found {
  PAGE_WORD = 0,
  /** unit | has an expiry << 16 | fetched << 17 | proven << 18 | frequency << 20 */
  UNIT_WORD = 1,
  META_WORD = 2,
  META_HIGH_WORD = 3,
  ACCESS_HIGH_WORD = 4,
  WORDS = 5,

  EXPIRES = 0x1_0000,
  FETCHED = 0x2_0000,
  PROVEN = 0x4_0000,
  FREQUENCY_SHIFT = 20,
}

const enum Verdict {
  SOUND = 0,
  /** No item, or one that is not the entry's. */
  TORN = 1,
  /** A collection that does not hold together. */
  BROKEN = 2,
  /** Of a database that had been flushed, or never finished. */
  DEAD = 3,
}

/** Where something was found, by unit of its page. */
export class Claims {
  readonly #pages = new Map<number, Uint8Array>();

  of(page: number): Uint8Array | undefined {
    return this.#pages.get(page);
  }

  has(page: number, unit: number): boolean {
    return this.#pages.get(page)?.[unit] === 1;
  }

  add(page: number, unit: number): void {
    let units = this.#pages.get(page);
    if (units === undefined) {
      units = new Uint8Array(Page.UNITS);
      this.#pages.set(page, units);
    }
    units[unit] = 1;
  }

  remove(page: number, unit: number): void {
    const units = this.#pages.get(page);
    if (units !== undefined) units[unit] = 0;
  }
}

export class Salvage {
  readonly claims = new Claims();
  /** Found.WORDS each. */
  found = new Int32Array(Found.WORDS * 1024);
  count = 0;
  /** Entries that led to no item of theirs; collections that do not hold together. */
  torn = 0;
  broken = 0;

  readonly #memory: Memory;
  readonly #parts: Parameters<typeof checkCollection>[0];

  readonly #isDoubtful: (shard: number) => boolean;

  /** `isDoubtful`: nothing of the shard is taken, since a change of it was under way that nobody can undo. */
  constructor(memory: Memory, isDoubtful: (shard: number) => boolean) {
    this.#memory = memory;
    this.#isDoubtful = isDoubtful;
    const { ctl } = memory;
    const [low, high] = [ctl[Super.SEED_LOW_WORD], ctl[Super.SEED_HIGH_WORD]];
    this.#parts = { memory, hash: (_db, bytes, offset, length) => hashKey(low, high, bytes, offset, length) };
  }

  run(): void {
    const indexPages = this.#indexPages();
    // By the chains first: a split that was undone leaves copies behind, which are found by no chain.
    this.#walkChains(indexPages);
    for (const page of indexPages) {
      // What the directory alone takes for the index may be anything: nothing is missed that does not look like an entry.
      const isIndex = this.#memory.pageKind(page) === PageKind.INDEX;
      for (let within = 0; within < Bucket.PER_PAGE; within++) this.#visit(page, within, isIndex);
    }
  }

  /** Pages that are the index's by the page table or by the directory: either may be damaged. */
  #indexPages(): Set<number> {
    const memory = this.#memory;
    const { ctl, dramPages, directory, directoryLength } = memory;
    const pages = new Set<number>();
    for (let page = 1; page < dramPages; page++) if (memory.pageKind(page) === PageKind.INDEX) pages.add(page);
    for (let i = 0; i < directoryLength; i++) {
      const page = ctl[directory + i];
      if (page >= ctl[Super.META_PAGES_WORD] && page < dramPages) pages.add(page);
    }
    return pages;
  }

  #walkChains(indexPages: ReadonlySet<number>): void {
    const { ctl, shardCount, shardTable, directory, directoryLength } = this.#memory;
    const bucketsMax = directoryLength * Bucket.PER_PAGE;
    for (let shard = 0; shard < shardCount; shard++) {
      const buckets = ctl[shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD];
      for (let local = 0; local < buckets; local++) {
        const bucket = local * shardCount + shard;
        if (bucket >= bucketsMax) break;
        this.#walkChain(indexPages, ctl[directory + (bucket >>> Bucket.PAGE_SHIFT)], bucket & Bucket.PAGE_MASK);
      }
    }
  }

  #walkChain(indexPages: ReadonlySet<number>, firstPage: number, firstWithin: number): void {
    const seen = new Set<number>();
    let page = firstPage;
    let within = firstWithin;
    while (indexPages.has(page)) {
      const reference = this.#visit(page, within, false);
      if (reference === 0 || seen.has(reference)) return;
      seen.add(reference);
      page = reference >>> Bucket.PAGE_SHIFT;
      within = reference & Bucket.PAGE_MASK;
    }
  }

  /** Takes what the bucket's entries lead to; returns what follows it. */
  #visit(page: number, within: number, counts: boolean): number {
    const words = this.#memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    const base = (pageOffset(page) >>> 2) + within * Bucket.WORDS;
    for (let slot = 0; slot < Bucket.SLOTS; slot++) {
      if (words[base + Bucket.SLOT_WORD + 1 + slot * 2] !== NO_PAGE) this.#take(words, base, slot, counts);
    }
    return words[base + Bucket.OVERFLOW_WORD];
  }

  #take(words: Int32Array, base: number, slot: number, counts: boolean): void {
    const at = base + Bucket.SLOT_WORD + slot * 2;
    const page = words[at + 1];
    const unit = words[at] & 0xffff;
    if (this.claims.has(page, unit)) return;
    const verdict = this.#judge(page, unit, words[at] >>> 16);
    if (verdict === Verdict.SOUND) this.#note(words, base, slot, page, unit);
    else if (counts && verdict === Verdict.TORN) this.torn++;
    else if (counts && verdict === Verdict.BROKEN) this.broken++;
  }

  #note(words: Int32Array, base: number, slot: number, page: number, unit: number): void {
    const at = this.count * Found.WORDS;
    if (at === this.found.length) {
      const larger = new Int32Array(at * 2);
      larger.set(this.found);
      this.found = larger;
    }
    const bits = words[base + Bucket.BITS_WORD];
    const proven = words[base + (Bucket.PROVEN_BYTE >>> 2)] >>> 24;
    const { found } = this;
    found[at + Found.PAGE_WORD] = page;
    found[at + Found.UNIT_WORD] =
      unit |
      (((bits >>> slot) & 1) * Found.EXPIRES) |
      (((bits >>> (Bucket.FETCHED_SHIFT + slot)) & 1) * Found.FETCHED) |
      (((proven >>> slot) & 1) * Found.PROVEN) |
      (((bits >>> (Bucket.FREQUENCY_SHIFT + slot * 2)) & Bucket.FREQUENCY_MAX) << Found.FREQUENCY_SHIFT);
    found[at + Found.META_WORD] = words[base + Bucket.META_WORD + slot * 2];
    found[at + Found.META_HIGH_WORD] = words[base + Bucket.META_WORD + 1 + slot * 2];
    const accessByte = Bucket.ACCESS_HIGH_BYTE + slot;
    found[at + Found.ACCESS_HIGH_WORD] = (words[base + (accessByte >>> 2)] >>> ((accessByte & 3) * 8)) & 0xff;
    this.count++;
  }

  #judge(page: number, unit: number, tag: number): Verdict {
    const memory = this.#memory;
    const { ctl } = memory;
    const room = this.#roomAt(page, unit);
    if (room < Item.HEADER_BYTES) return Verdict.TORN;
    const item = memory.arenas[page >>> Page.ARENA_SHIFT];
    const offset = locationOffset(page, unit);
    const header = offset >>> 2;
    const shape = item.i32[header + Item.SHAPE_WORD];
    const hash = item.i32[header + Item.HASH_WORD];
    const valueLength = item.i32[header + Item.VALUE_LENGTH_WORD];
    const keyLength = shape & Item.KEY_LENGTH_MASK;
    const type = (shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
    const database = shape >>> Item.DB_SHIFT;
    if (database > Database.DRAFTS || type < ItemType.STRING || type > ItemType.STREAM) return Verdict.TORN;
    if (valueLength < 0 || itemBytes(keyLength, valueLength) > room || hash >>> 16 !== tag) return Verdict.TORN;
    if (ctl[memory.databaseTable + Database.STATE_WORD + database] !== DatabaseState.LIVE) return Verdict.DEAD;
    if (this.#parts.hash(0, item, offset + Item.HEADER_BYTES, keyLength) !== hash) return Verdict.TORN;
    if (this.#isDoubtful(hash & (memory.shardCount - 1))) return Verdict.TORN;
    if (type !== ItemType.STRING && !this.#takeNodes(page, unit)) return Verdict.BROKEN;
    this.claims.add(page, unit);
    return Verdict.SOUND;
  }

  /** Claims what a collection consists of, beside its item, if it holds together. */
  #takeNodes(page: number, unit: number): boolean {
    const nodes: [page: number, unit: number][] = [];
    const seen = new Set<number>();
    const note = (p: number, u: number): void => {
      const location = p * Page.UNITS + u;
      const room = this.#roomAt(p, u);
      const header = locationOffset(p, u) >>> 2;
      const bytes = room === 0 ? 0 : this.#memory.arenas[p >>> Page.ARENA_SHIFT].i32[header + Item.VALUE_LENGTH_WORD];
      if (room < Node.HEADER_BYTES + bytes || bytes < 0 || seen.has(location) || this.claims.has(p, u)) {
        throw new Error(`no node at page ${p} unit ${u}`);
      }
      seen.add(location);
      nodes.push([p, u]);
    };
    try {
      checkCollection(this.#parts, page, unit, note);
    } catch {
      // Whatever error nonsense leads to, it is not a sound collection.
      return false;
    }
    for (const [p, u] of nodes) this.claims.add(p, u);
    return true;
  }

  /** Bytes that may lie there, by the page table; 0 = nothing begins there. */
  #roomAt(page: number, unit: number): number {
    const memory = this.#memory;
    if (!memory.isPage(page)) return 0;
    const info = memory.pageInfo(page);
    const kind = memory.ctl[info];
    switch (kind & 0xff) {
      case PageKind.SLAB: {
        const slabClass = (kind >>> 8) & 0xff;
        if (memory.isCapacity(page) || slabClass >= CLASS_COUNT) return 0;
        const units = CLASS_UNITS[slabClass];
        return unit % units === 0 && unit / units < CLASS_CHUNKS[slabClass] ? units * Page.UNIT_BYTES : 0;
      }
      case PageKind.LOG_OPEN:
      case PageKind.LOG_SEALED:
        return memory.isCapacity(page) ? (Page.UNITS - unit) * Page.UNIT_BYTES : 0;
      case PageKind.LARGE:
        return unit === 0 ? runPages(memory, page) * Page.BYTES : 0;
      default:
        return 0;
    }
  }
}

/** Pages of the run that begins at a LARGE page; 0 = it is none. */
export function runPages(memory: Memory, page: number): number {
  const pages = memory.ctl[memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD];
  if (pages < 1 || (page & Page.ARENA_MASK) + pages > Page.ARENA_PAGES) return 0;
  for (let i = 1; i < pages; i++) {
    if (!memory.isPage(page + i) || memory.pageKind(page + i) !== PageKind.LARGE_REST) return 0;
  }
  return pages;
}
