/**
 * HSCAN, SSCAN and ZSCAN over one collection. A packed one comes whole; of a tree the cursor is a place in its order by hash, which changes of
 * the tree do not touch: what is there from beginning to end is returned, once.
 */
import type { Collection } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { globMatches } from '../glob.js';
import { finishWork, isSliceOver, resumeWork, yieldWork } from '../long-work.js';

const INVALID_CURSOR = 'ERR invalid cursor';
const COUNT_DEFAULT = 10;
/** Elements between two looks at the clock. */
const ELEMENTS_A_LOOK = 256;

/** The options of the scan in hand. */
export const scanning = {
  cursor: 0,
  count: COUNT_DEFAULT,
  /** Argument of the pattern, 0 = everything. */
  pattern: 0,
  noValues: false,
};

/** Reads the cursor in argument 2; false after an error reply. */
export function readCursor(context: Context): boolean {
  const cursor = context.argInteger(2);
  if (cursor >= 0) {
    scanning.cursor = cursor;
    return true;
  }
  context.reply.error(INVALID_CURSOR);
  return false;
}

/** Reads the options from argument 3 on; false after an error reply. */
export function readScanOptions(context: Context, mayLeaveValuesOut: boolean): boolean {
  scanning.count = COUNT_DEFAULT;
  scanning.pattern = 0;
  scanning.noValues = false;
  for (let i = 3; i < context.argc; i++) {
    const hasNext = i + 1 < context.argc;
    if (hasNext && context.argIs(i, 'COUNT')) {
      scanning.count = context.argInteger(++i);
      if (Number.isNaN(scanning.count)) return fail(context, NOT_INTEGER);
      if (scanning.count < 1) return fail(context, SYNTAX);
    } else if (hasNext && context.argIs(i, 'MATCH')) {
      scanning.pattern = ++i;
    } else if (mayLeaveValuesOut && context.argIs(i, 'NOVALUES')) {
      scanning.noValues = true;
    } else {
      return fail(context, SYNTAX);
    }
  }
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/** The reply to a scan of a key that does not exist. */
export function replyNothing(context: Context): void {
  context.reply.array(2);
  context.reply.bulkString('0');
  context.reply.array(0);
}

/** True when the loaded key matches the scan's pattern. */
export function isWanted(context: Context, key: Collection['key'], offset: number, length: number): boolean {
  const { pattern } = scanning;
  if (pattern === 0) return true;
  return globMatches(context.input, context.argOffset(pattern), context.argLength(pattern), key, offset, length, false);
}

/** Walks a collection ordered by hash from the cursor on; `visit` replies the loaded element and returns how many replies that were. */
export function scanByHash(
  context: Context,
  from: Collection,
  visit: (context: Context, from: Collection) => number,
): void {
  if (!from.isPacked && scanning.cursor <= 0xffff_ffff) return scanTree(context, from, visit);
  let replies = 0;
  context.reply.deferred();
  if (from.isPacked) {
    for (let more = from.first(); more; more = from.next()) {
      from.load();
      replies += visit(context, from);
    }
  }
  endScan(context, 0, replies);
}

/** A large COUNT takes several turns: to the caller that is like several calls, for the place is a hash between them, too. */
function scanTree(context: Context, from: Collection, visit: (context: Context, from: Collection) => number): void {
  const work = resumeWork(context, 0);
  from.seekHash(work.visited === 0 ? scanning.cursor : work.position);
  let hash = -1;
  for (; !from.atEnd; from.next()) {
    // Elements of one hash are not torn apart: the next cursor is a hash.
    if (from.elementHash !== hash) {
      hash = from.elementHash;
      if (work.visited >= scanning.count) break;
      if (++work.looks % ELEMENTS_A_LOOK === 0 && isSliceOver()) {
        work.position = hash;
        return yieldWork(context, work);
      }
    }
    from.load();
    work.found += visit(context, from);
    work.visited++;
  }
  finishWork(context, work, scanHeader(from.atEnd ? 0 : hash, work.found));
}

/** Ends a scan's reply, which has been deferred: the next cursor, 0 = the end, and how many replies have been written. */
export function endScan(context: Context, next: number, replies: number): void {
  context.reply.output.release(scanHeader(next, replies));
}

/** What precedes the elements that a scan replies. */
export function scanHeader(next: number, replies: number): string {
  const cursor = next.toString();
  return `*2\r\n$${cursor.length}\r\n${cursor}\r\n*${replies}\r\n`;
}
