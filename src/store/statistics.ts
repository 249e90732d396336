/**
 * Counters of the store: each participant counts in doubles in its own page (ParticipantPage.STATS_WORD), so that nobody writes
 * another's cache line; reading sums over all. What participants that have left had counted is kept in the superblock.
 */
import { Page, pageOffset, unitsOf } from '../layout/location.js';
import {
  ParticipantPage as P,
  PageInfo,
  PageKind,
  Participant,
  ParticipantState,
  Shard,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_CHUNKS, CLASS_COUNT, CLASS_OF_UNITS, CLASS_UNITS, MAX_CHUNK_UNITS } from '../memory/slab-classes.js';

export const enum Stat {
  HITS = 0,
  MISSES = 1,
  EXPIRED = 2,
  EVICTED = 3,
  DEMOTED = 4,
  RECLAIM_KEPT = 5,
  RECLAIM_DROPPED = 6,
  OUT_OF_MEMORY = 7,
  STORED = 8,
  REPAIRS = 9,
  CAPACITY_HITS = 10,
  CAPACITY_BYTES_WRITTEN = 11,
  PAGES_MOVED = 12,
  EXPIRED_FIELDS = 13,
  DEMOTED_BYTES = 14,
  PROMOTED = 15,
  PROMOTED_BYTES = 16,
  /** Items that have left DRAM and were not written to the capacity tier. */
  WRITES_AVOIDED = 17,
  WRITE_BYTES_AVOIDED = 18,
  /** Items that were copied to the capacity tier while they stay in DRAM; those that went down to such a copy, counted in DEMOTED too. */
  WRITTEN_BEHIND = 19,
  WRITTEN_BEHIND_BYTES = 20,
  DEMOTED_CLEAN = 21,
  COUNT = 22,
}

export interface SlabClassStats {
  /** From 1. */
  readonly slabClass: number;
  readonly chunkBytes: number;
  readonly pages: number;
  readonly chunksPerPage: number;
  /** With an item, a node of a collection, or one on its way; not those that participants keep at hand. */
  readonly usedChunks: number;
}

export interface StoreStats {
  readonly hits: number;
  readonly misses: number;
  readonly expired: number;
  readonly expiredFields: number;
  readonly evicted: number;
  readonly demoted: number;
  readonly reclaimKept: number;
  readonly reclaimDropped: number;
  readonly outOfMemory: number;
  readonly stored: number;
  readonly repairs: number;
  readonly capacityHits: number;
  /** Copies that were made in vain and those of reclaim too. */
  readonly capacityBytesWritten: number;
  readonly demotedBytes: number;
  readonly promoted: number;
  readonly promotedBytes: number;
  readonly writesAvoided: number;
  readonly writeBytesAvoided: number;
  readonly writtenBehind: number;
  readonly writtenBehindBytes: number;
  readonly demotedClean: number;
  readonly pagesMoved: number;
  readonly items: number;
  readonly expiring: number;
  /** Of the index, without overflow buckets. */
  readonly buckets: number;
  /** Bytes of both tiers, with memory behind them. */
  readonly dramBytes: number;
  readonly capacityBytes: number;
  /** Sizes that they shall have, and the system's number for why they do not get there; 0 = nothing stands in the way. */
  readonly dramTargetBytes: number;
  readonly capacityTargetBytes: number;
  readonly resizeErrno: number;
  /** How often a page of the capacity tier was begun to be written: the most, and the mean of those with memory behind them. */
  readonly capacityPageWritesMax: number;
  readonly capacityPageWritesMean: number;
  readonly dramFreeBytes: number;
  readonly capacityFreeBytes: number;
  /** Pages that cannot be read any more. */
  readonly capacityLostBytes: number;
  /** Cache Meta, index pages, participants' pages, and those of messages and waits. */
  readonly metadataBytes: number;
  /** Whole slab pages; chunks of them in use. */
  readonly slabBytes: number;
  readonly slabUsedBytes: number;
  readonly largeBytes: number;
  /** Whole log pages; live bytes of them. */
  readonly logBytes: number;
  readonly logLiveBytes: number;
  /** What clients hold outside the pool, and the DRAM pages given back to the system for it. */
  readonly clientBytes: number;
  readonly lentBytes: number;
  /** What data and metadata take: used_memory. */
  readonly usedBytes: number;
  readonly classes: readonly SlabClassStats[];
}

/** Number under which the class of a slab page is shown: from 1; 0 = the page is none. */
export function classOfPage(memory: Memory, page: number): number {
  const kind = memory.ctl[memory.pageInfo(page)];
  return (kind & 0xff) === PageKind.SLAB ? ((kind >>> 8) & 0xff) + 1 : 0;
}

/** The class that an item of so many bytes belongs to, as classOfPage numbers them; 0 = it owns whole pages. */
export function classOfSize(bytes: number): number {
  const units = unitsOf(bytes);
  return units > MAX_CHUNK_UNITS ? 0 : CLASS_OF_UNITS[units] + 1;
}

/** Sums all counters and walks the page table: a few microseconds a thousand pages. */
export function collectStats(memory: Memory): StoreStats {
  const { ctl } = memory;
  const counters = sumCounters(memory);
  let items = 0;
  let expiring = 0;
  let buckets = 0;
  for (let shard = 0; shard < memory.shardCount; shard++) {
    items += ctl[memory.shardTable + shard * Shard.WORDS + Shard.ITEMS_WORD];
    expiring += ctl[memory.shardTable + shard * Shard.WORDS + Shard.EXPIRING_WORD];
    buckets += ctl[memory.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD];
  }
  const used = new Float64Array(CLASS_COUNT);
  const kinds = new Float64Array(32);
  let slabUsed = 0;
  let logLive = 0;
  const visit = (page: number): void => {
    const info = memory.pageInfo(page);
    const kind = ctl[info] & 0xff;
    kinds[kind]++;
    if (kind === PageKind.SLAB) {
      const slabClass = (ctl[info] >>> 8) & 0xff;
      const chunks = ctl[info + PageInfo.CARVED_WORD] - ctl[info + PageInfo.FREE_COUNT_WORD];
      used[slabClass] += chunks;
      slabUsed += chunks * CLASS_UNITS[slabClass] * Page.UNIT_BYTES;
    } else if (kind === PageKind.LOG_OPEN || kind === PageKind.LOG_SEALED) {
      logLive += ctl[info + PageInfo.FREE_COUNT_WORD] * Page.UNIT_BYTES;
    }
  };
  for (let page = 0; page < memory.dramPages; page++) visit(page);
  for (let i = 0; i < memory.capacityPages; i++) visit(memory.capacityBase + i);
  subtractSpares(memory, used);
  const wear = wearOf(memory);
  const classes: SlabClassStats[] = [];
  for (let c = 0; c < CLASS_COUNT; c++) {
    const word = memory.classTable + c * SlabClass.WORDS;
    if (ctl[word + SlabClass.PAGES_WORD] === 0) continue;
    classes.push({
      slabClass: c + 1,
      chunkBytes: CLASS_UNITS[c] * Page.UNIT_BYTES,
      pages: ctl[word + SlabClass.PAGES_WORD],
      chunksPerPage: CLASS_CHUNKS[c],
      usedChunks: used[c],
    });
  }
  const metadataPages =
    kinds[PageKind.META] +
    kinds[PageKind.INDEX] +
    kinds[PageKind.PARTICIPANT] +
    kinds[PageKind.MAILBOX] +
    kinds[PageKind.WAITS] +
    kinds[PageKind.INTEREST] +
    kinds[PageKind.EFFECTS];
  const metadataBytes = metadataPages * Page.BYTES;
  const largeBytes = (kinds[PageKind.LARGE] + kinds[PageKind.LARGE_REST]) * Page.BYTES;
  return {
    hits: counters[Stat.HITS],
    misses: counters[Stat.MISSES],
    expired: counters[Stat.EXPIRED],
    expiredFields: counters[Stat.EXPIRED_FIELDS],
    evicted: counters[Stat.EVICTED],
    demoted: counters[Stat.DEMOTED],
    reclaimKept: counters[Stat.RECLAIM_KEPT],
    reclaimDropped: counters[Stat.RECLAIM_DROPPED],
    outOfMemory: counters[Stat.OUT_OF_MEMORY],
    stored: counters[Stat.STORED],
    repairs: counters[Stat.REPAIRS],
    capacityHits: counters[Stat.CAPACITY_HITS],
    capacityBytesWritten: counters[Stat.CAPACITY_BYTES_WRITTEN],
    demotedBytes: counters[Stat.DEMOTED_BYTES],
    promoted: counters[Stat.PROMOTED],
    promotedBytes: counters[Stat.PROMOTED_BYTES],
    writesAvoided: counters[Stat.WRITES_AVOIDED],
    writeBytesAvoided: counters[Stat.WRITE_BYTES_AVOIDED],
    writtenBehind: counters[Stat.WRITTEN_BEHIND],
    writtenBehindBytes: counters[Stat.WRITTEN_BEHIND_BYTES],
    demotedClean: counters[Stat.DEMOTED_CLEAN],
    pagesMoved: counters[Stat.PAGES_MOVED],
    items,
    expiring,
    buckets,
    dramBytes: memory.dramSize * Page.BYTES,
    capacityBytes: memory.capacitySize * Page.BYTES,
    dramTargetBytes: (memory.dramSize + memory.dramWanted) * Page.BYTES,
    capacityTargetBytes: (memory.capacitySize + memory.capacityWanted) * Page.BYTES,
    resizeErrno: ctl[Super.RESIZE_ERRNO_WORD],
    capacityPageWritesMax: wear.most,
    capacityPageWritesMean: memory.capacitySize === 0 ? 0 : wear.sum / memory.capacitySize,
    dramFreeBytes: ctl[Super.DRAM_FREE_WORD] * Page.BYTES,
    capacityFreeBytes: ctl[Super.CAPACITY_FREE_WORD] * Page.BYTES,
    capacityLostBytes: lostPages(memory) * Page.BYTES,
    metadataBytes,
    slabBytes: kinds[PageKind.SLAB] * Page.BYTES,
    slabUsedBytes: slabUsed,
    largeBytes,
    logBytes: (kinds[PageKind.LOG_OPEN] + kinds[PageKind.LOG_SEALED]) * Page.BYTES,
    logLiveBytes: logLive,
    clientBytes: ctl[Super.CLIENT_KIB_WORD] * 1024,
    lentBytes: ctl[Super.LENT_PAGES_WORD] * Page.BYTES,
    usedBytes: metadataBytes + largeBytes + slabUsed + logLive,
    classes,
  };
}

function lostPages({ ctl, capacityBase, capacityPages }: Memory): number {
  const first = ctl[Super.LOST_PAGE_WORD];
  return first === 0 ? 0 : capacityBase + capacityPages - first;
}

/** Chunks that participants keep at hand are in no page's free list, and hold nothing. */
function subtractSpares(memory: Memory, used: Float64Array): void {
  for (let p = 0; p < Participant.MAX; p++) {
    const at = memory.participantWord(p);
    const page = memory.ctl[at + Participant.PAGE_WORD];
    if (memory.ctl[at + Participant.STATE_WORD] !== ParticipantState.ACTIVE || page === NO_PAGE) continue;
    const words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    const magazines = (pageOffset(page) >>> 2) + P.MAGAZINE_WORD;
    for (let c = 0; c < CLASS_COUNT; c++) used[c] -= words[magazines + c * P.MAGAZINE_WORDS];
  }
}

function wearOf(memory: Memory): { most: number; sum: number } {
  let most = 0;
  let sum = 0;
  for (let i = 0; i < memory.capacityPages && memory.wearTable !== 0; i++) {
    const writes = memory.ctl[memory.wearTable + i] >>> 0;
    if (writes > most) most = writes;
    sum += writes;
  }
  return { most, sum };
}

/** Counters of all participants, living and gone. */
export function sumCounters(memory: Memory): Float64Array {
  const sum = Float64Array.from(departed(memory));
  for (let p = 0; p < Participant.MAX; p++) {
    const at = memory.participantWord(p);
    if (memory.ctl[at + Participant.STATE_WORD] !== ParticipantState.ACTIVE) continue;
    const counters = countersOf(memory, memory.ctl[at + Participant.PAGE_WORD]);
    for (let i = 0; i < Stat.COUNT; i++) sum[i] += counters[i];
  }
  return sum;
}

/** Adds a leaving participant's counters to those of the departed. Page lock held. */
export function keepCounters(memory: Memory, participant: number): void {
  const page = memory.ctl[memory.participantWord(participant) + Participant.PAGE_WORD];
  if (page === NO_PAGE) return;
  const kept = departed(memory);
  const counters = countersOf(memory, page);
  for (let i = 0; i < Stat.COUNT; i++) {
    kept[i] += counters[i];
    counters[i] = 0;
  }
}

/** Sets all counters to zero (CONFIG RESETSTAT, stats reset). */
export function resetCounters(memory: Memory): void {
  departed(memory).fill(0);
  for (let p = 0; p < Participant.MAX; p++) {
    const at = memory.participantWord(p);
    if (memory.ctl[at + Participant.STATE_WORD] === ParticipantState.ACTIVE) {
      countersOf(memory, memory.ctl[at + Participant.PAGE_WORD]).fill(0);
    }
  }
}

function countersOf(memory: Memory, page: number): Float64Array {
  return memory.arenas[page >>> Page.ARENA_SHIFT].doubles(pageOffset(page) + P.STATS_WORD * 4, P.STATS_COUNT);
}

function departed(memory: Memory): Float64Array {
  return memory.arenas[0].doubles(Super.DEPARTED_STATS_WORD * 4, P.STATS_COUNT);
}
