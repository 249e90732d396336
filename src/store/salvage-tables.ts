/**
 * The tables of a pool made anew around what was found sound in it: superblock, databases, shards, page table, slab classes, queues of pages.
 *
 * Written into a copy of the pool that nobody is attached to. Owns nothing; `found` items stay where they lie. Invariant: afterwards each page is
 * of one kind, each chunk is an item's, a node's or free, and the index is empty (salvage-index fills it).
 */
import { Bucket } from '../layout/bucket.js';
import { Ghost } from '../layout/ghost.js';
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, pageOffset, unitsOf } from '../layout/location.js';
import {
  Database,
  DatabaseState,
  PageInfo,
  PageKind,
  Participant,
  Pin,
  Shard,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_CHUNKS, CLASS_COUNT, CLASS_UNITS } from '../memory/slab-classes.js';
import { FIRST_BUCKETS } from './format.js';
import { POLICY_NAMES } from './policy.js';
import { runPages, type Salvage } from './salvage.js';

/** Below 2^53. */
const VERSION_HIGH_MAX = 1 << 21;

export interface Rebuilt {
  /** Headers of log records that were written anew, so that their page can be walked. */
  readonly fillers: readonly { readonly page: number; readonly unit: number }[];
  /** Capacity pages that are free now, and of which nobody knows whether there is memory behind them. */
  readonly doubtful: readonly number[];
  /** Chunks that held something which nothing led to. */
  readonly orphans: number;
  readonly freedPages: number;
}

/** Makes the words that the walk goes by believable. Before it. */
export function mendSizes(memory: Memory): void {
  const { ctl, dramRoom, capacityRoom } = memory;
  // All that there is room for is looked at: what has no memory is marked as absent.
  ctl[Super.DRAM_EXTENT_WORD] = dramRoom;
  ctl[Super.CAPACITY_EXTENT_WORD] = capacityRoom;
  if (!isSize(ctl[Super.DRAM_TARGET_WORD], dramRoom)) ctl[Super.DRAM_TARGET_WORD] = 0;
  if (!isSize(ctl[Super.CAPACITY_TARGET_WORD], capacityRoom)) ctl[Super.CAPACITY_TARGET_WORD] = 0;
}

const isSize = (pages: number, room: number): boolean => pages >= 0 && pages <= room;

/** Which physical database each number means, where that can be told: one that is mapped is live, and mapped once. Before the walk. */
export function mendDatabases(memory: Memory): void {
  const { ctl, databaseTable } = memory;
  const isLive = (physical: number): boolean =>
    ctl[databaseTable + Database.STATE_WORD + physical] === DatabaseState.LIVE;
  const map = Array.from({ length: Database.LOGICAL }, (_, db) => ctl[databaseTable + Database.MAP_WORD + db]);
  // Of two numbers that mean the same one, it is that of its own number: few pools swap databases.
  const isOwn = (physical: number, db: number): boolean =>
    physical >= 0 &&
    physical < Database.DRAFTS &&
    (physical === db || map.filter((other) => other === physical).length === 1);
  const isSound = map.map((physical, db) => isOwn(physical, db) && isLive(physical));
  const sound = map.filter((_, db) => isSound[db]);
  const spare: number[] = [];
  for (let p = 0; p < Database.DRAFTS; p++) if (isLive(p) && !sound.includes(p)) spare.push(p);
  const broken = map.flatMap((_, db) => (isSound[db] ? [] : [db]));
  const used = new Set([...sound, ...spare]);
  for (const db of broken) {
    if (broken.length === 1 && spare.length === 1) map[db] = spare[0];
    // Its state alone is damaged: no other live database is without a number.
    else if (spare.length === 0 && isOwn(map[db], db)) used.add(map[db]);
    else {
      map[db] = firstUnused(used);
      used.add(map[db]);
    }
  }
  for (let p = 0; p < Database.PHYSICAL; p++) {
    ctl[databaseTable + Database.STATE_WORD + p] = map.includes(p) ? DatabaseState.LIVE : DatabaseState.FREE;
  }
  for (let db = 0; db < Database.LOGICAL; db++) ctl[databaseTable + Database.MAP_WORD + db] = map[db];
}

function firstUnused(used: ReadonlySet<number>): number {
  let physical = 0;
  while (used.has(physical)) physical++;
  return physical;
}

export function rebuildTables(memory: Memory, salvage: Salvage): Rebuilt {
  clearWords(memory);
  clearShards(memory);
  const pages = new PageTable(memory, salvage);
  pages.rebuild();
  return pages;
}

/** All words of participants, locks, queues and counts; what formatting or the operator has set stays. */
function clearWords(memory: Memory): void {
  const { ctl } = memory;
  const targets = [ctl[Super.DRAM_TARGET_WORD], ctl[Super.CAPACITY_TARGET_WORD]];
  const extents = [ctl[Super.DRAM_EXTENT_WORD], ctl[Super.CAPACITY_EXTENT_WORD]];
  ctl.fill(0, Super.GATE_WORD, Super.WORDS);
  ctl.set(targets, Super.DRAM_TARGET_WORD);
  ctl.set(extents, Super.DRAM_EXTENT_WORD);
  if (POLICY_NAMES[ctl[Super.POLICY_WORD]] === undefined) ctl[Super.POLICY_WORD] = 0;
  if (ctl[Super.MAX_DATA_PAGES_WORD] < 0) ctl[Super.MAX_DATA_PAGES_WORD] = 0;
  ctl[Super.CHUNK_TAIL_WORD] = 0;
  ctl[Super.LOST_PAGE_WORD] = 0;
  ctl[Super.LOST_PURGED_WORD] = 0;
  clearGhosts(memory);
  ctl.fill(0, memory.participantTable, memory.participantTable + Participant.MAX * Participant.WORDS);
  ctl.fill(0, memory.classTable, memory.classTable + SlabClass.MAX * SlabClass.WORDS);
  ctl.fill(0, memory.pinTable, memory.pinTable + Pin.SLOTS * Pin.WORDS);
  ctl.fill(0, memory.directory, memory.directory + memory.directoryLength);
}

/** Their table and that of wear lie behind the page table: words that say otherwise are not believed. */
function clearGhosts(memory: Memory): void {
  const { ctl, pageTable, capacityRoom } = memory;
  const first = pageTable + ctl[Super.PAGE_TABLE_LENGTH_WORD] * PageInfo.WORDS;
  const end = (ctl[Super.META_PAGES_WORD] * Page.BYTES) / 4;
  const buckets = ctl[Super.GHOST_BUCKETS_WORD];
  const isPower = buckets >= 0 && (buckets & (buckets - 1)) === 0;
  const fits = ctl[Super.GHOST_TABLE_WORD] === first && isPower && first + buckets * Ghost.BUCKET_WORDS <= end;
  if (!fits) ctl[Super.GHOST_BUCKETS_WORD] = 0;
  const wear = ctl[Super.WEAR_TABLE_WORD];
  const hasWear = fits && wear === first + buckets * Ghost.BUCKET_WORDS && wear + capacityRoom <= end;
  if (!hasWear) ctl[Super.WEAR_TABLE_WORD] = 0;
  ctl.fill(0, first, hasWear ? wear : end);
}

function clearShards(memory: Memory): void {
  const { ctl, shardTable, databaseTable, shardCount } = memory;
  const counts = databaseTable + Database.COUNTS_WORD;
  ctl.fill(0, counts, counts + shardCount * Database.SHARD_WORDS);
  for (let shard = 0; shard < shardCount; shard++) {
    const word = shardTable + shard * Shard.WORDS;
    const [low, high] = [ctl[word + Shard.VERSION_LOW_WORD], ctl[word + Shard.VERSION_HIGH_WORD]];
    ctl.fill(0, word, word + Shard.WORDS);
    ctl[word + Shard.BUCKETS_WORD] = FIRST_BUCKETS;
    ctl[word + Shard.FIELD_EXPIRY_WORD] = 1;
    if (high < 0 || high >= VERSION_HIGH_MAX) continue;
    ctl[word + Shard.VERSION_LOW_WORD] = low;
    ctl[word + Shard.VERSION_HIGH_WORD] = high;
  }
}

class PageTable implements Rebuilt {
  readonly fillers: { page: number; unit: number }[] = [];
  readonly doubtful: number[] = [];
  orphans = 0;
  freedPages = 0;

  readonly #memory: Memory;
  readonly #salvage: Salvage;
  readonly #slabPages: number[][] = Array.from({ length: CLASS_COUNT }, () => []);
  readonly #logPages: number[] = [];
  readonly #largePages: number[] = [];
  readonly #free: number[] = [];

  constructor(memory: Memory, salvage: Salvage) {
    this.#memory = memory;
    this.#salvage = salvage;
  }

  rebuild(): void {
    const { ctl, capacityBase, dramRoom, capacityRoom } = this.#memory;
    const metaPages = ctl[Super.META_PAGES_WORD];
    for (let page = 0; page < metaPages; page++) this.#set(page, PageKind.META);
    this.#tier(metaPages, dramRoom, Super.DRAM_EXTENT_WORD, Super.DRAM_ABSENT_WORD, Super.DRAM_FREE_WORD);
    const end = capacityBase + capacityRoom;
    this.#tier(capacityBase, end, Super.CAPACITY_EXTENT_WORD, Super.CAPACITY_ABSENT_WORD, Super.CAPACITY_FREE_WORD);
    ctl[Super.CAPACITY_HINT_WORD] = capacityBase;
    ctl[Super.DRAM_HINT_WORD] = metaPages;
    for (let c = 0; c < CLASS_COUNT; c++) this.#linkClass(c, this.#slabPages[c]);
    this.#logPages.sort((a, b) => this.#sequence(a) - this.#sequence(b));
    this.#linkQueue(this.#logPages, Super.LOG_HEAD_WORD, Super.LOG_TAIL_WORD);
    this.#logPages.forEach((page, i) => {
      ctl[this.#memory.pageInfo(page) + PageInfo.CARVED_WORD] = i + 1;
    });
    ctl[Super.LOG_COUNT_WORD] = this.#logPages.length;
    ctl[Super.LOG_SEQUENCE_WORD] = this.#logPages.length;
    this.#linkQueue(this.#largePages, Super.LARGE_HEAD_WORD, Super.LARGE_TAIL_WORD);
    this.#beginIndex();
  }

  #set(page: number, kind: number): number {
    const { ctl } = this.#memory;
    const info = this.#memory.pageInfo(page);
    ctl.fill(0, info, info + PageInfo.WORDS);
    ctl[info] = kind;
    return info;
  }

  #sequence(page: number): number {
    return this.#memory.ctl[this.#memory.pageInfo(page) + PageInfo.CARVED_WORD] >>> 0;
  }

  #tier(first: number, end: number, extentWord: number, absentWord: number, freeWord: number): void {
    const { ctl } = this.#memory;
    const base = this.#memory.isCapacity(first) ? first : 0;
    let extent = first - base;
    let absent = 0;
    let free = 0;
    for (let page = first; page < end; page++) {
      const kept = this.#keep(page);
      if (kept > 0) {
        page += kept - 1;
        extent = page + 1 - base;
      } else if (IS_ABSENT.has(this.#memory.pageKind(page))) {
        this.#set(page, PageKind.ABSENT);
        absent++;
      } else {
        this.#release(page);
        free++;
        extent = page + 1 - base;
      }
    }
    ctl[extentWord] = extent;
    ctl[absentWord] = absent - (end - base - extent);
    ctl[freeWord] = free;
  }

  #release(page: number): void {
    const memory = this.#memory;
    const kind = memory.pageKind(page);
    if (memory.isCapacity(page)) {
      if (!HAS_MEMORY.has(kind)) this.doubtful.push(page);
    } else this.#free.push(page);
    if (kind !== PageKind.FREE) this.freedPages++;
    this.#set(page, PageKind.FREE);
  }

  /** Pages that stay what they were, for what was found in them. */
  #keep(page: number): number {
    const memory = this.#memory;
    const units = this.#salvage.claims.of(page);
    if (units === undefined || !units.includes(1)) return 0;
    const kind = memory.ctl[memory.pageInfo(page)];
    if ((kind & 0xff) === PageKind.SLAB) return this.#keepSlab(page, (kind >>> 8) & 0xff, units);
    return (kind & 0xff) === PageKind.LARGE ? this.#keepRun(page) : this.#keepLog(page, units);
  }

  #keepSlab(page: number, slabClass: number, units: Uint8Array): number {
    const memory = this.#memory;
    const chunkUnits = CLASS_UNITS[slabClass];
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const carved = Math.floor(units.lastIndexOf(1) / chunkUnits) + 1;
    const info = this.#set(page, PageKind.SLAB | (slabClass << 8));
    let head = 0;
    let free = 0;
    for (let chunk = carved - 1; chunk >= 0; chunk--) {
      const unit = chunk * chunkUnits;
      if (units[unit] === 1) continue;
      const header = locationOffset(page, unit) >>> 2;
      if (i32[header + Item.VALUE_LENGTH_WORD] !== Item.FREE_CHUNK) this.orphans++;
      i32[header + Item.VALUE_LENGTH_WORD] = Item.FREE_CHUNK;
      i32[header + Item.HASH_WORD] = head;
      head = chunk + 1;
      free++;
    }
    memory.ctl[info + PageInfo.FREE_HEAD_WORD] = head;
    memory.ctl[info + PageInfo.FREE_COUNT_WORD] = free;
    memory.ctl[info + PageInfo.CARVED_WORD] = carved;
    this.#slabPages[slabClass].push(page);
    return 1;
  }

  #keepRun(page: number): number {
    const pages = runPages(this.#memory, page);
    for (let i = 1; i < pages; i++) this.#set(page + i, PageKind.LARGE_REST);
    this.#memory.ctl[this.#set(page, PageKind.LARGE) + PageInfo.FREE_HEAD_WORD] = pages;
    this.#largePages.push(page);
    return pages;
  }

  /** A page of the log ends behind its last item, and is walked from header to header: what lies between items is mended, or made one record. */
  #keepLog(page: number, units: Uint8Array): number {
    const memory = this.#memory;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const sequence = this.#sequence(page);
    let position = 0;
    let live = 0;
    for (let unit = units.indexOf(1); unit >= 0; unit = units.indexOf(1, unit + 1)) {
      if (!this.#bridge(page, position, unit)) {
        this.#salvage.claims.remove(page, unit);
        this.#salvage.torn++;
        continue;
      }
      const taken = unitsAt(i32, page, unit);
      live += taken;
      position = unit + taken;
    }
    if (live === 0) return 0;
    const info = this.#set(page, PageKind.LOG_SEALED);
    memory.ctl[info + PageInfo.FREE_HEAD_WORD] = position;
    memory.ctl[info + PageInfo.FREE_COUNT_WORD] = live;
    memory.ctl[info + PageInfo.CARVED_WORD] = sequence;
    this.#logPages.push(page);
    return 1;
  }

  /** Makes the page one that a walk gets through from `from` to the item at `to`; false when there is no way: items overlap. */
  #bridge(page: number, from: number, to: number): boolean {
    const { i32 } = this.#memory.arenas[page >>> Page.ARENA_SHIFT];
    let position = from;
    while (position < to) {
      const units = unitsAt(i32, page, position);
      if (units === 0) break;
      position += units;
    }
    if (position === to) return true;
    const bytes = (to - from) * Page.UNIT_BYTES;
    if (bytes < Item.HEADER_BYTES) return false;
    const header = locationOffset(page, from) >>> 2;
    i32.fill(0, header, header + Item.HEADER_WORDS);
    i32[header + Item.VALUE_LENGTH_WORD] = bytes - Item.HEADER_BYTES;
    this.fillers.push({ page, unit: from });
    return true;
  }

  #linkClass(slabClass: number, pages: readonly number[]): void {
    if (pages.length === 0) return;
    const memory = this.#memory;
    const { ctl } = memory;
    const word = memory.classTable + slabClass * SlabClass.WORDS;
    ctl[word + SlabClass.FIRST_WORD] = pages[0];
    ctl[word + SlabClass.HAND_PAGE_WORD] = pages[0];
    ctl[word + SlabClass.PAGES_WORD] = pages.length;
    let partial = NO_PAGE;
    for (let i = pages.length - 1; i >= 0; i--) {
      const info = memory.pageInfo(pages[i]);
      ctl[info + PageInfo.NEXT_WORD] = pages[(i + 1) % pages.length];
      ctl[info + PageInfo.PREVIOUS_WORD] = pages[(i + pages.length - 1) % pages.length];
      const carved = ctl[info + PageInfo.CARVED_WORD];
      if (ctl[info + PageInfo.FREE_COUNT_WORD] === 0 && carved === CLASS_CHUNKS[slabClass]) continue;
      ctl[info + PageInfo.PARTIAL_NEXT_WORD] = partial;
      if (partial !== NO_PAGE) ctl[memory.pageInfo(partial) + PageInfo.PARTIAL_PREVIOUS_WORD] = pages[i];
      partial = pages[i];
    }
    ctl[word + SlabClass.PARTIAL_WORD] = partial;
  }

  #linkQueue(pages: readonly number[], headWord: number, tailWord: number): void {
    const memory = this.#memory;
    memory.ctl[headWord] = pages[0] ?? NO_PAGE;
    memory.ctl[tailWord] = pages[pages.length - 1] ?? NO_PAGE;
    for (let i = 0; i < pages.length; i++) {
      const info = memory.pageInfo(pages[i]);
      memory.ctl[info + PageInfo.NEXT_WORD] = pages[i + 1] ?? NO_PAGE;
      memory.ctl[info + PageInfo.PREVIOUS_WORD] = pages[i - 1] ?? NO_PAGE;
    }
  }

  /** The first buckets, empty, in pages that are free now: those of the old index are among them. */
  #beginIndex(): void {
    const memory = this.#memory;
    const wanted = Math.ceil((memory.shardCount * FIRST_BUCKETS) / Bucket.PER_PAGE);
    for (let i = 0; i < wanted; i++) {
      const page = this.#free[i];
      if (page === undefined) throw new Error('no page is free for the index');
      const first = pageOffset(page) >>> 2;
      memory.arenas[page >>> Page.ARENA_SHIFT].i32.fill(0, first, first + Page.BYTES / 4);
      this.#set(page, PageKind.INDEX);
      memory.ctl[memory.directory + i] = page;
      memory.ctl[Super.DRAM_FREE_WORD]--;
    }
  }
}

const IS_ABSENT: ReadonlySet<number> = new Set([PageKind.ABSENT, PageKind.LEAVING, PageKind.ARRIVING]);
const HAS_MEMORY: ReadonlySet<number> = new Set([
  PageKind.FREE,
  PageKind.LOG_OPEN,
  PageKind.LOG_SEALED,
  PageKind.LARGE,
  PageKind.LARGE_REST,
]);

/** Units of the record whose header lies there; 0 when it cannot be one. */
function unitsAt(i32: Int32Array, page: number, unit: number): number {
  const header = locationOffset(page, unit) >>> 2;
  const valueLength = i32[header + Item.VALUE_LENGTH_WORD];
  if (unit + 2 > Page.UNITS || valueLength < 0 || valueLength > Page.BYTES) return 0;
  const units = unitsOf(itemBytes(i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK, valueLength));
  return unit + units > Page.UNITS ? 0 : units;
}
