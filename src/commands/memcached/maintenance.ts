/**
 * slabs, lru, lru_crawler, cache_memlimit, verbosity: commands that turn memcached's own wheels.
 *
 * What turns something here does it; what has no counterpart is checked and answered as memcached answers it, and has no
 * effect (docs/memcached.md says which).
 */
import { memcachedMemory } from '../../config/index.js';
import { SharedWord } from '../../layout/counters.js';
import { CLASS_COUNT } from '../../memory/slab-classes.js';
import { INVALID_INT32, INVALID_UNSIGNED, parseUint32 } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import type { MemcachedContext } from './context.js';
import { beginDump } from './dump.js';

const MIB = 1024 * 1024;
const MEMORY_MIN_MIB = 8;
const MEMORY_MAX_MIB = 1_000_000_000;
const SLEEP_MAX_MICROSECONDS = 1_000_000;
const SEGMENTS_MAX_PERCENT = 80;
/** Log levels by verbosity. */
const LEVELS = ['warning', 'notice', 'verbose', 'debug'] as const;

/** How much is printed, as memcached counts it: 0 for warnings only. */
export function verbosityOf(context: MemcachedContext): number {
  return Math.max(0, LEVELS.indexOf(context.settings.loglevel as (typeof LEVELS)[number]));
}

function unsigned(context: MemcachedContext, token: number): number {
  return parseUint32(context.input.u8, context.tokenOffset(token), context.tokenLength(token));
}

/** Tokens without the noreply at the end. */
function wordCount(context: MemcachedContext): number {
  return context.tokenCount - (context.hasNoreply ? 1 : 0);
}

/** Settings of all workers; `failed` is the answer when they cannot be. */
function set(context: MemcachedContext, pairs: readonly (readonly [string, string])[], failed: Uint8Array): void {
  const { client, control, reply, hasNoreply } = context;
  if (control === null) return context.answer(failed);
  control.askMain(client, 'configSet', pairs, (error) => {
    if (!hasNoreply) reply.line(error === null ? Replies.OK : failed);
  });
}

/** verbosity level [noreply] */
export function verbosity(context: MemcachedContext): void {
  const level = unsigned(context, 1);
  if (level === INVALID_UNSIGNED) return context.answer(Replies.BAD_FORMAT);
  // Without a server around it nothing is printed.
  if (context.control === null) return context.answer(Replies.OK);
  set(context, [['loglevel', LEVELS[Math.min(level, LEVELS.length - 1)]]], Replies.ERROR);
}

/** Bytes for items, as memcached's -m has them: without the first pages of metadata, which maxmemory counts. */
export function itemLimit({ settings, keyspace }: MemcachedContext): number {
  const { maxmemory, workers } = settings;
  if (maxmemory > 0) return Math.max(0, maxmemory - memcachedMemory(0, workers).usedMib * MIB);
  return (keyspace.memory.dramSize + keyspace.memory.capacitySize) * MIB;
}

/** cache_memlimit megabytes [noreply]: without a capacity tier the DRAM tier becomes as large as -m would make it. */
export function cacheMemoryLimit(context: MemcachedContext): void {
  const mib = unsigned(context, 1);
  if (mib === INVALID_UNSIGNED) return context.answer(Replies.ERROR);
  if (mib < MEMORY_MIN_MIB) return context.answer(Replies.MEMORY_TOO_SMALL);
  if (mib > MEMORY_MAX_MIB) return context.answer(Replies.MEMORY_IN_MEGABYTES);
  const { memory } = context.keyspace;
  const { usedMib, dramMib } = memcachedMemory(mib, context.settings.workers);
  const pairs: [string, string][] = [['maxmemory', String(usedMib * MIB)]];
  if (memory.capacityRoom === 0) pairs.push(['dram', String(dramMib * MIB)]);
  else if (usedMib > memory.dramSize + memory.capacitySize) return context.answer(Replies.MEMORY_NOT_ADJUSTED);
  set(context, pairs, Replies.MEMORY_NOT_ADJUSTED);
}

/** slabs reassign from to | slabs automove 0|1|2 | slabs automove ratio N */
export function slabs(context: MemcachedContext): void {
  const count = wordCount(context);
  const word = count > 1 ? context.tokenText(1) : '';
  if (word === 'reassign' && count === 4) return reassign(context);
  if (word === 'automove' && count >= 3) return automove(context, count);
  context.answer(Replies.ERROR);
}

/** Frees a page of a class; the pool gives it to the class that asks next, named or not. */
function reassign(context: MemcachedContext): void {
  const { keyspace } = context;
  const from = context.tokenInt32(2);
  const to = context.tokenInt32(3);
  if (from === INVALID_INT32 || to === INVALID_INT32) return context.answer(Replies.BAD_FORMAT);
  if (from === to) return context.answer(Replies.SAME_CLASS);
  const { classes } = keyspace.stats();
  const isClass = (number: number): boolean => number > 0 && number <= CLASS_COUNT;
  const source = from === -1 ? largest(classes) : from;
  if (!isClass(source) || !(to === 0 || isClass(to))) return context.answer(Replies.BAD_CLASSES);
  const pages = classes.find(({ slabClass }) => slabClass === source)?.pages ?? 0;
  const isMoved = pages > 1 && keyspace.eviction.moves.freePageOf(source - 1);
  context.answer(isMoved ? Replies.OK : Replies.NO_SPARE_PAGE);
}

/** memcached chooses a source when it is told -1. */
function largest(classes: readonly { readonly slabClass: number; readonly pages: number }[]): number {
  let best = 0;
  let pages = 0;
  for (const candidate of classes) {
    if (candidate.pages <= pages) continue;
    best = candidate.slabClass;
    pages = candidate.pages;
  }
  return best;
}

/** Pages always move by the age of items: levels and ratios are checked only. */
function automove(context: MemcachedContext, count: number): void {
  if (context.tokenText(2) === 'ratio') {
    const isNumber = count >= 4 && Number.isFinite(Number(context.tokenText(3)));
    return context.answer(isNumber ? Replies.OK : Replies.ERROR);
  }
  const level = unsigned(context, 2);
  if (level === INVALID_UNSIGNED) return context.answer(Replies.BAD_FORMAT);
  context.answer(level <= 2 ? Replies.OK : Replies.ERROR);
}

/**
 * lru tune percentHot percentWarm maxHotFactor maxWarmFactor | lru mode flat|segmented | lru temp_ttl seconds. There are no segments: what is
 * asked for is checked.
 */
export function lru(context: MemcachedContext): void {
  const count = wordCount(context);
  const word = count > 2 ? context.tokenText(1) : '';
  if (word === 'tune' && count >= 6) return tune(context);
  if (word === 'mode') {
    const mode = context.tokenText(2);
    return context.answer(mode === 'flat' || mode === 'segmented' ? Replies.OK : Replies.ERROR);
  }
  if (word === 'temp_ttl') return context.answer(context.tokenInt32(2) === INVALID_INT32 ? Replies.ERROR : Replies.OK);
  context.answer(Replies.ERROR);
}

function tune(context: MemcachedContext): void {
  const hot = unsigned(context, 2);
  const warm = unsigned(context, 3);
  const factors = [Number(context.tokenText(4)), Number(context.tokenText(5))];
  if (hot === INVALID_UNSIGNED || warm === INVALID_UNSIGNED || factors.some(Number.isNaN)) {
    return context.answer(Replies.ERROR);
  }
  if (hot + warm > SEGMENTS_MAX_PERCENT) return context.answer(Replies.SEGMENTS_TOO_LARGE);
  if (factors.some((factor) => factor <= 0)) return context.answer(Replies.FACTORS_TOO_SMALL);
  context.answer(Replies.OK);
}

/** lru_crawler enable | disable | crawl classes | metadump classes | mgdump classes | sleep n | tocrawl n */
export function lruCrawler(context: MemcachedContext): void {
  const count = wordCount(context);
  const word = count > 1 ? context.tokenText(1) : '';
  if (count === 2 && (word === 'enable' || word === 'disable')) {
    Atomics.store(context.shared, SharedWord.lruCrawler, word === 'enable' ? 1 : 0);
    return context.answer(Replies.OK);
  }
  if (count !== 3) return context.answer(Replies.ERROR);
  switch (word) {
    case 'crawl':
      return crawl(context);
    case 'metadump':
    case 'mgdump':
      return dump(context, word);
    case 'tocrawl':
      return context.answer(unsigned(context, 2) === INVALID_UNSIGNED ? Replies.BAD_FORMAT : Replies.OK);
    case 'sleep': {
      const microseconds = unsigned(context, 2);
      if (microseconds === INVALID_UNSIGNED) return context.answer(Replies.BAD_FORMAT);
      return context.answer(microseconds > SLEEP_MAX_MICROSECONDS ? Replies.CRAWLER_SLEEP : Replies.OK);
    }
    default:
      return context.answer(Replies.ERROR);
  }
}

/** Expired items are always being swept: nothing needs to be started. */
function crawl(context: MemcachedContext): void {
  if (!isCrawlerOn(context)) return context.answer(Replies.CRAWLER_OFF);
  if (classesOf(context.tokenText(2)) === null) return context.answer(Replies.BAD_CLASS);
  Atomics.add(context.shared, SharedWord.lruCrawlerStarts, 1);
  context.answer(Replies.OK);
}

function dump(context: MemcachedContext, format: 'metadump' | 'mgdump'): void {
  if (!isCrawlerOn(context)) return context.answer(Replies.CRAWLER_OFF);
  if (!context.settings.memcachedDump) return context.answer(Replies.METADUMP_OFF);
  if (context.hasAnswered) return context.answer(Replies.DUMP_PIPELINED);
  const classes = classesOf(context.tokenText(2));
  if (classes === null) return context.answer(Replies.BAD_CLASS);
  beginDump(context, format, classes, Number.POSITIVE_INFINITY);
}

export function isCrawlerOn(context: MemcachedContext): boolean {
  return Atomics.load(context.shared, SharedWord.lruCrawler) === 1;
}

/** `all`, `hash` (both: none named), or numbers of classes with commas; null for anything else. */
function classesOf(text: string): number[] | null {
  if (text === 'all' || text === 'hash') return [];
  if (!/^\d+(,\d+)*$/.test(text)) return null;
  const classes = text.split(',').map(Number);
  return classes.every((number) => number > 0 && number <= CLASS_COUNT) ? classes : null;
}
