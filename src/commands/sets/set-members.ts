/**
 * What all set commands share: opening a set, adding members, and the three forms that OBJECT ENCODING tells apart.
 *
 * Invariant: a set with the mark INTEGERS is packed, holds integers only, and has them in numerical order, as Redis's intsets do; one
 * without it never gets it again. The limits at which a set changes its form are those of Redis 7.2.
 */
import type { Settings } from '../../config/index.js';
import type { Bytes } from '../../layout/bytes.js';
import { Change, type Collection, SETS } from '../../store/collections/collection.js';
import { SetMark } from '../../store/collections/forms.js';
import type { Context } from '../context.js';
import { parseInteger, parseInteger64 } from '../numbers.js';

/** '-9223372036854775808' */
const INTEGER_BYTES_MAX = 20;

/** Where the limits stand: a command's context has them, and so has the loading of a file. */
export interface Limited {
  readonly environment: { readonly settings: Readonly<Settings> };
}

/** What `addMember` has come to. */
export const enum Added {
  NEW = 0,
  PRESENT = 1,
  /** No memory; nothing has changed. */
  FAILED = 2,
}

/** The set of argument `i`, whose key's hash is `h`, as number `index` of those that are open; null after a WRONGTYPE reply. */
export function openSet(context: Context, index: number, h: number, i: number): Collection | null {
  const set = context.open(index, SETS, h, i);
  if (set !== null) setLimits(context, set);
  return set;
}

/** A draft for the key in argument `i`: see Context.openDraft. */
export function openSetDraft(context: Context, index: number, h: number, i: number): Collection {
  const set = context.openDraft(index, SETS, h, i);
  setLimits(context, set);
  return set;
}

/** The set of the key, argument 1, for reading: counts a hit or a miss. */
export function openSetToRead(context: Context): Collection | null {
  const set = openSet(context, 0, context.keyHash, 1);
  if (set === null) return null;
  if (set.exists) context.hit();
  else context.miss();
  return set;
}

function setLimits(context: Limited, set: Collection): void {
  const { settings } = context.environment;
  if (isIntegers(set)) {
    set.packedEntriesMax = settings.setMaxIntsetEntries;
    set.packedElementMax = INTEGER_BYTES_MAX;
  } else {
    set.packedEntriesMax = settings.setMaxListpackEntries;
    set.packedElementMax = settings.setMaxListpackValue;
  }
}

function isIntegers(set: Collection): boolean {
  return (set.marks & SetMark.INTEGERS) !== 0;
}

/** True when the set has the member in argument `i`; the set is then positioned on it. */
export function findMember(context: Context, set: Collection, i: number): boolean {
  return set.seekKey(context.input, context.argOffset(i), context.argLength(i));
}

/** Before `count` members are added: a set that is given more than fit a packed one becomes a tree at once. */
export function prepareFor(context: Limited, set: Collection, count: number): Change {
  if (!set.exists || !set.isPacked || count <= set.packedEntriesMax) return Change.DONE;
  return makeTable(context, set);
}

function makeTable(context: Limited, set: Collection): Change {
  const change = set.unpack();
  if (change !== Change.DONE || !isIntegers(set)) return change;
  const cleared = set.setMarks(0);
  setLimits(context, set);
  return cleared;
}

/** Adds a member, whose bytes are none of a collection's. `hint`: how many the command brings, should the set be new. */
export function addMember(
  context: Limited,
  set: Collection,
  bytes: Bytes,
  offset: number,
  length: number,
  hint: number,
): Added {
  if (!set.exists) return addFirst(context, set, bytes, offset, length, hint);
  if (isIntegers(set)) {
    const integer = parseInteger(bytes, offset, length);
    if (!Number.isNaN(integer)) return addInteger(context, set, integer, bytes, offset, length);
    if (leaveIntegers(context, set, length) !== Change.DONE) return Added.FAILED;
  }
  if (set.seekKey(bytes, offset, length)) return Added.PRESENT;
  return set.insert(bytes, offset, length) === Change.DONE ? Added.NEW : Added.FAILED;
}

function addFirst(
  context: Limited,
  set: Collection,
  bytes: Bytes,
  offset: number,
  length: number,
  hint: number,
): Added {
  const { settings } = context.environment;
  const isInteger = !Number.isNaN(parseInteger(bytes, offset, length)) && hint <= settings.setMaxIntsetEntries;
  setLimits(context, set);
  if (isInteger) set.packedEntriesMax = settings.setMaxIntsetEntries;
  else if (hint > set.packedEntriesMax) set.packedEntriesMax = 0;
  if (isInteger) set.packedElementMax = INTEGER_BYTES_MAX;
  set.seekKey(bytes, offset, length);
  if (set.insert(bytes, offset, length) !== Change.DONE) return Added.FAILED;
  if (isInteger && set.isPacked && set.setMarks(SetMark.INTEGERS) !== Change.DONE) {
    set.removeKey();
    return Added.FAILED;
  }
  setLimits(context, set);
  return Added.NEW;
}

function addInteger(
  context: Limited,
  set: Collection,
  integer: number,
  bytes: Bytes,
  offset: number,
  length: number,
): Added {
  if (seekInteger(set, integer, bytes, offset, length)) return Added.PRESENT;
  if (set.insert(bytes, offset, length) !== Change.DONE) return Added.FAILED;
  // It has become a tree, which is no intset: by its limit, or by the length of its integers.
  if (!set.isPacked) {
    set.setMarks(0);
    setLimits(context, set);
  }
  return Added.NEW;
}

/** Positions on the integer, or on the first greater one. */
function seekInteger(set: Collection, integer: number, bytes: Bytes, offset: number, length: number): boolean {
  let low = 0;
  let high = set.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    set.seekRank(middle);
    set.load();
    let there = parseInteger(set.key, set.keyOffset, set.keyLength) - integer;
    if (there === 0 && !Number.isSafeInteger(integer)) {
      const a = parseInteger64(set.key, set.keyOffset, set.keyLength) as bigint;
      there = Number(a - (parseInteger64(bytes, offset, length) as bigint));
    }
    if (there === 0) return true;
    if (there < 0) low = middle + 1;
    else high = middle;
  }
  set.seekRank(low);
  return false;
}

/** A set of integers is about to get a member of `length` bytes that is none. */
function leaveIntegers(context: Limited, set: Collection, length: number): Change {
  const { settings } = context.environment;
  if (set.count >= settings.setMaxListpackEntries || length > settings.setMaxListpackValue) {
    return makeTable(context, set);
  }
  // Its integers have at most 20 bytes: longer than a member of a packed set may be under odd settings only.
  const change = longestMember(set) > settings.setMaxListpackValue ? makeTable(context, set) : set.setMarks(0);
  setLimits(context, set);
  return change;
}

/** Of a set of integers: one of its ends is the longest. */
function longestMember(set: Collection): number {
  set.first();
  set.load();
  const first = set.keyLength;
  set.last();
  set.load();
  return Math.max(first, set.keyLength);
}
