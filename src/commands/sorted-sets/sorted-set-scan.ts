/**
 * ZSCAN. The cursor is a member's hash, as for sets and hashes: what is there from beginning to end is returned, once, whatever its score
 * becomes meanwhile.
 *
 * The side tree, which is ordered by hash, tells the scores of the next members; where many have one score, all of these are walked to find
 * the few whose turn it is. So a scan of such a set, or one with a large COUNT, goes by rank as long as the set does not change: the cursor then holds a rank and a part of
 * the set's version. When it has changed, the scan begins anew by hash, and may return members once more, as SCAN may; a call then returns
 * more than COUNT, so that a whole scan stays a bounded number of walks.
 */
import { Bytes } from '../../layout/bytes.js';
import { formatDouble } from '../../protocol/resp/reply.js';
import { Bound, type Collection } from '../../store/collections/collection.js';
import { integerArg, keyArg, patternArg } from '../arguments.js';
import {
  endScan,
  isWanted,
  readCursor,
  readScanOptions,
  replyNothing,
  scanHeader,
  scanning,
} from '../collections/collection-scan.js';
import type { Context } from '../context.js';
import { finishWork, isSliceOver, resumeWork, yieldWork } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { openSortedSetToRead } from './sorted-set-members.js';

/** A call walks at most about so many members for one that it returns. */
const WALKED_PER_RETURNED = 64;
/** From this COUNT on a scan goes by rank in any case: looking each member's score up costs ten times as much. */
const COUNT_BY_RANK = 1000;
const HASH_END = 0x1_0000_0000;
const HASH_BYTES = 4;
/** Elements between two looks at the clock. */
const ELEMENTS_A_LOOK = 256;
/** Cursors by rank: HASH_END * (1 + check) + rank. Versions of a shard count up in steps of the number of shards, 256 at most. */
const CHECK_SHIFT = 2 ** 8;
const CHECK_LIMIT = 2 ** 20;

const scratch = Bytes.allocate(16);

/** Hashes from the cursor to `windowEnd` are returned; these are the scores that their members have. */
let windowScores = new Set<number>();
let windowEnd = 0;
/** The cursor to reply. */
let next = 0;

/** Takes the next `count` members, and those with the last one's hash, as the window. */
function openWindow(set: Collection, count: number): void {
  const { side } = set;
  windowScores = new Set();
  scratch.view.setUint32(0, scanning.cursor, false);
  side.seek(scratch, 0, HASH_BYTES);
  let before = -1;
  for (let taken = 0; !side.atEnd; taken++, side.next()) {
    side.load();
    const { view } = side.key;
    const hash = view.getUint32(side.keyOffset, false);
    if (taken >= count && hash !== before) {
      windowEnd = hash;
      return;
    }
    before = hash;
    windowScores.add(view.getFloat64(side.keyOffset + HASH_BYTES, false));
  }
  windowEnd = HASH_END;
}

/** Members that must be walked to find those of the window. */
function walkLength(set: Collection): number {
  let length = 0;
  for (const score of windowScores) {
    set.seekScore(score, Bound.AFTER);
    const end = set.rank;
    set.seekScore(score, Bound.BEFORE);
    length += end - set.rank;
  }
  return length;
}

/** True when the scan of a tree goes by rank, from `scanning.cursor` on; by hash otherwise. */
function goesByRank(set: Collection): boolean {
  if (scanning.cursor >= HASH_END) {
    const isAsItWas = Math.floor(scanning.cursor / HASH_END) - 1 === checkOf(set);
    scanning.cursor = isAsItWas ? scanning.cursor % HASH_END : 0;
    return isAsItWas;
  }
  if (scanning.cursor !== 0) return false;
  if (scanning.count >= COUNT_BY_RANK) return true;
  openWindow(set, scanning.count);
  return walkLength(set) > scanning.count * WALKED_PER_RETURNED;
}

/** Tells a version of the set from those before and after it. */
function checkOf(set: Collection): number {
  return Math.floor(set.version / CHECK_SHIFT) % CHECK_LIMIT;
}

/** A large COUNT takes several turns; the set does not change meanwhile. */
function scanByRank(context: Context, set: Collection): void {
  const work = resumeWork(context, set.version);
  set.seekRank(scanning.cursor + work.visited);
  while (work.visited < scanning.count && !set.atEnd) {
    set.load();
    work.found += visit(context, set);
    work.visited++;
    set.next();
    if (work.visited % ELEMENTS_A_LOOK === 0 && isSliceOver()) {
      if (!work.holdsKeys) work.hold(context.keyspace.holds, context.keyHash);
      return yieldWork(context, work);
    }
  }
  const rank = scanning.cursor + work.visited;
  finishWork(context, work, scanHeader(set.atEnd ? 0 : HASH_END * (1 + checkOf(set)) + rank, work.found));
}

function scanByHash(context: Context, set: Collection): number {
  const { keyspace } = context;
  const { cursor } = scanning;
  openWindow(set, scanning.count);
  const needed = Math.ceil(walkLength(set) / WALKED_PER_RETURNED);
  if (needed > scanning.count) openWindow(set, needed);
  let replies = 0;
  for (const score of windowScores) {
    set.seekScore(score, Bound.BEFORE);
    for (; !set.atEnd; set.next()) {
      set.load();
      if (set.score !== score) break;
      const hash = keyspace.hash(0, set.key, set.keyOffset, set.keyLength) >>> 0;
      if (hash >= cursor && hash < windowEnd) replies += visit(context, set);
    }
  }
  next = windowEnd === HASH_END ? 0 : windowEnd;
  return replies;
}

/** Replies the loaded element if it is wanted; returns how many replies that were. */
function visit(context: Context, set: Collection): number {
  if (!isWanted(context, set.key, set.keyOffset, set.keyLength)) return 0;
  context.reply.bulk(set.key, set.keyOffset, set.keyLength);
  context.reply.bulkString(formatDouble(set.score));
  return 2;
}

function zscan(context: Context): void {
  const { reply } = context;
  if (!readCursor(context)) return;
  const set = openSortedSetToRead(context);
  if (set === null) return;
  if (!set.exists) return replyNothing(context);
  if (!readScanOptions(context, false)) return;
  if (!set.isPacked && goesByRank(set)) return scanByRank(context, set);
  reply.deferred();
  let replies = 0;
  next = 0;
  if (set.isPacked) {
    for (let more = set.first(); more; more = set.next()) {
      set.load();
      replies += visit(context, set);
    }
  } else {
    replies = scanByHash(context, set);
  }
  endScan(context, next, replies);
}

export const sortedSetScan: readonly CommandSpec[] = [
  {
    name: 'zscan',
    arity: -3,
    flags: Flag.READONLY,
    categories: Category.SORTEDSET,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.8.0',
    group: 'sorted-set',
    summary: 'Walks the members of a sorted set with their scores, some at each call.',
    complexity: 'O(1) for each call; O(N) where many members have one score and the sorted set changes during the scan',
    tips: ['nondeterministic_output'],
    args: [
      keyArg('key'),
      integerArg('cursor'),
      patternArg('pattern', { token: 'MATCH', optional: true }),
      integerArg('count', { token: 'COUNT', optional: true }),
    ],
    run: zscan,
  },
];
