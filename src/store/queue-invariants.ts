/**
 * The part of checkInvariants that walks lists of pages and of overflow buckets: the log's queue, that of large items, pages with free chunks, free
 * buckets, the directory. Nobody else is at work. Invariant: each walk ends, whatever the links say.
 */
import { Bucket } from '../layout/bucket.js';
import { Page, pageOffset } from '../layout/location.js';
import { PageInfo, PageKind, Shard, SlabClass, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_COUNT } from '../memory/slab-classes.js';

type Check = (condition: boolean, message: () => string) => void;

export function checkQueues(memory: Memory, check: Check): void {
  const { ctl } = memory;
  const sealed = checkQueue(memory, check, PageKind.LOG_SEALED, Super.LOG_HEAD_WORD, Super.LOG_TAIL_WORD);
  check(sealed === ctl[Super.LOG_COUNT_WORD], () => `${sealed} log pages, counted ${ctl[Super.LOG_COUNT_WORD]}`);
  checkQueue(memory, check, PageKind.LARGE, Super.LARGE_HEAD_WORD, Super.LARGE_TAIL_WORD);
  for (let c = 0; c < CLASS_COUNT; c++) checkPartial(memory, check, c);
  checkDirectory(memory, check);
  checkOverflow(memory, check);
}

/** All pages of the kind stand in the queue, once each. */
function checkQueue(memory: Memory, check: Check, kind: number, headWord: number, tailWord: number): number {
  const { ctl } = memory;
  let length = 0;
  let previous = NO_PAGE;
  for (let page = ctl[headWord]; page !== NO_PAGE; page = ctl[memory.pageInfo(page) + PageInfo.NEXT_WORD]) {
    const [at, before] = [page, previous];
    check(memory.isPage(at) && memory.pageKind(at) === kind, () => `page ${at} stands in a queue that is not its own`);
    check(
      ctl[memory.pageInfo(at) + PageInfo.PREVIOUS_WORD] === before,
      () => `page ${at} in its queue follows another`,
    );
    previous = page;
    length++;
  }
  check(ctl[tailWord] === previous, () => `a queue ends with page ${previous}, not with ${ctl[tailWord]}`);
  let pages = 0;
  for (let page = 1; page < memory.dramPages; page++) if (memory.pageKind(page) === kind) pages++;
  for (let i = 0; i < memory.capacityPages; i++) if (memory.pageKind(memory.capacityBase + i) === kind) pages++;
  check(pages === length, () => `${pages} pages of kind ${kind}, ${length} in their queue`);
  return length;
}

/** Pages with free chunks stand in their class's list, but for those that are being emptied. */
function checkPartial(memory: Memory, check: Check, slabClass: number): void {
  const { ctl } = memory;
  const listed = new Set<number>();
  let previous = NO_PAGE;
  const head = ctl[memory.classTable + slabClass * SlabClass.WORDS + SlabClass.PARTIAL_WORD];
  for (let page = head; page !== NO_PAGE; page = ctl[memory.pageInfo(page) + PageInfo.PARTIAL_NEXT_WORD]) {
    const [at, before] = [page, previous];
    check(memory.isPage(at) && !memory.isCapacity(at), () => `class ${slabClass}: page ${at} has free chunks`);
    check(
      (ctl[memory.pageInfo(at)] & 0xffff) === (PageKind.SLAB | (slabClass << 8)),
      () => `page ${at} is in class ${slabClass}'s list of free chunks but not of it`,
    );
    check(
      ctl[memory.pageInfo(at) + PageInfo.PARTIAL_PREVIOUS_WORD] === before && !listed.has(at),
      () => `class ${slabClass}: page ${at} follows another`,
    );
    listed.add(at);
    previous = page;
  }
  const first = ctl[memory.classTable + slabClass * SlabClass.WORDS + SlabClass.FIRST_WORD];
  for (let page = first; page !== NO_PAGE; ) {
    const info = memory.pageInfo(page);
    const isClosed = (ctl[info] & PageInfo.CLOSED_FLAG) !== 0;
    const at = page;
    check(
      isClosed || ctl[info + PageInfo.FREE_COUNT_WORD] === 0 || listed.has(at),
      () => `class ${slabClass}: page ${at} has free chunks that nobody gets`,
    );
    page = ctl[info + PageInfo.NEXT_WORD];
    if (page === first) break;
  }
}

/** Every bucket there is has its page. */
function checkDirectory(memory: Memory, check: Check): void {
  const { ctl, shardCount } = memory;
  let buckets = 0;
  for (let shard = 0; shard < shardCount; shard++) {
    buckets = Math.max(buckets, ctl[memory.shardTable + shard * Shard.WORDS + Shard.BUCKETS_WORD]);
  }
  const pages = new Set<number>();
  const used = Math.min(memory.directoryLength, Math.ceil((buckets * shardCount) / Bucket.PER_PAGE));
  for (let i = 0; i < used; i++) {
    const page = ctl[memory.directory + i];
    check(
      memory.isPage(page) && memory.pageKind(page) === PageKind.INDEX && !pages.has(page),
      () => `directory: page ${page} is none of the index, or there twice`,
    );
    pages.add(page);
  }
}

/** Free overflow buckets lie in pages of the index, hold nothing, and are in one list once. */
function checkOverflow(memory: Memory, check: Check): void {
  const { ctl } = memory;
  const open = ctl[Super.OVERFLOW_PAGE_WORD];
  const used = ctl[Super.OVERFLOW_USED_WORD];
  check(
    open === NO_PAGE || (memory.isPage(open) && memory.pageKind(open) === PageKind.INDEX),
    () => `overflow buckets are taken from page ${open}, which is none of the index`,
  );
  check(used >= 0 && used <= Bucket.PER_PAGE, () => `${used} overflow buckets of a page are handed out`);
  const seen = new Set<number>();
  for (let shard = 0; shard < memory.shardCount; shard++) {
    let reference = ctl[memory.shardTable + shard * Shard.WORDS + Shard.FREE_OVERFLOW_WORD];
    while (reference !== 0) {
      const page = reference >>> Bucket.PAGE_SHIFT;
      check(
        memory.isPage(page) && memory.pageKind(page) === PageKind.INDEX && !seen.has(reference),
        () => `shard ${shard}: a free bucket in page ${page}, which is none of the index, or twice`,
      );
      seen.add(reference);
      const words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
      const base = (pageOffset(page) >>> 2) + (reference & Bucket.PAGE_MASK) * Bucket.WORDS;
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        const isEmpty = words[base + Bucket.SLOT_WORD + 1 + slot * 2] === NO_PAGE;
        check(isEmpty, () => `shard ${shard}: a free bucket of page ${page} has entries`);
      }
      reference = words[base + Bucket.OVERFLOW_WORD];
    }
  }
}
