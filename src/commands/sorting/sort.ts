/**
 * SORT and SORT_RO: elements of a list, a set or a sorted set in another order, or what other keys have for them.
 *
 * BY and GET with a `*` look up keys that follow from the elements, so nobody can lock them beforehand: such a request runs alone, with the
 * store's gate closed, as scripts do. (Locking the shards that the names fall into would take a second pass, for the collection may have
 * changed before it has them all; and with more elements than shards it is the same.) Without them only the key and the destination
 * are locked. Invariant: elements are copied before anything else is looked at, so that the destination may be the source.
 */
import { ItemType } from '../../layout/item.js';
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection, LISTS, SETS, type Shape, SORTED_SETS } from '../../store/collections/collection.js';
import { mayReadEveryKey } from '../acl/check.js';
import { blockArg, integerArg, keyArg, oneOf, patternArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX, WRONG_TYPE } from '../errors.js';
import { End, openListDraft, push } from '../lists/list-elements.js';
import { takeSteps } from '../long-steps.js';
import { isLong } from '../long-work.js';
import { members } from '../sets/member-table.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysUnknown } from '../spec.js';
import { type LongSort, NOT_NUMBERS, partOf, sortInTurns } from './sort-in-turns.js';
import { clearElements, elements, sortedByNumber, sortedByText, unsorted } from './sort-order.js';
import { Found, lookUp, type Pattern, readPattern, replyMeant, value } from './sort-pattern.js';

const BY_DENIED = 'ERR BY option of SORT denied due to insufficient ACL permissions.';
const GET_DENIED = 'ERR GET option of SORT denied due to insufficient ACL permissions.';

/** What the running command asks for. */
const asked = {
  isDescending: false,
  isAlpha: false,
  /** BY without a `*`: elements come as they are. */
  isUnsorted: false,
  by: null as Pattern | null,
  start: 0,
  /** -1 = all. */
  count: -1,
  gets: [] as Pattern[],
  stores: false,
};

/** Elements first..last of the order are the result, last < first = none. */
const slice = { first: 0, last: -1 };

// ---- reading the request

/** Reads the options; false after an error reply. */
function readOptions(context: Context, mayStore: boolean): boolean {
  asked.isDescending = false;
  asked.isAlpha = false;
  asked.isUnsorted = false;
  asked.by = null;
  asked.start = 0;
  asked.count = -1;
  asked.gets.length = 0;
  asked.stores = false;
  for (let i = 2; i < context.argc; i++) {
    const left = context.argc - i - 1;
    if (context.argIs(i, 'ASC')) {
      asked.isDescending = false;
    } else if (context.argIs(i, 'DESC')) {
      asked.isDescending = true;
    } else if (context.argIs(i, 'ALPHA')) {
      asked.isAlpha = true;
    } else if (context.argIs(i, 'LIMIT') && left >= 2) {
      asked.start = context.argInteger(++i);
      asked.count = context.argInteger(++i);
      if (Number.isNaN(asked.start) || Number.isNaN(asked.count)) return fail(context, NOT_INTEGER);
    } else if (mayStore && context.argIs(i, 'STORE') && left >= 1) {
      asked.stores = true;
      i++;
    } else if (context.argIs(i, 'BY') && left >= 1) {
      asked.by = readPattern(context, ++i);
      if (asked.by.star < 0) asked.isUnsorted = true;
      else if (!mayReadAll(context)) return fail(context, BY_DENIED);
    } else if (context.argIs(i, 'GET') && left >= 1) {
      if (!mayReadAll(context)) return fail(context, GET_DENIED);
      asked.gets.push(readPattern(context, ++i));
    } else {
      return fail(context, SYNTAX);
    }
  }
  return true;
}

function mayReadAll(context: Context): boolean {
  const { user } = context.client;
  return user.isUnrestricted || mayReadEveryKey(user, context.command, context);
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/** How many words an option has behind it. */
function wordsBehind(context: Context, i: number): number {
  if (context.argIs(i, 'LIMIT')) return 2;
  return context.argIs(i, 'BY') || context.argIs(i, 'GET') || context.argIs(i, 'STORE') ? 1 : 0;
}

/** The key, and the one behind the last STORE. */
function findKeys(context: Context, add: (argument: number, use: number) => void): void {
  let destination = 0;
  for (let i = 2; i < context.argc; i += 1 + wordsBehind(context, i)) {
    if (context.argIs(i, 'STORE') && i + 1 < context.argc) destination = i + 1;
  }
  add(1, KeyUse.RO | KeyUse.ACCESS);
  if (destination > 0) add(destination, KeyUse.OW | KeyUse.UPDATE);
}

/** True when a BY or GET has a `*`: which keys it means is not known yet. */
function looksUpKeys(context: Context): boolean {
  for (let i = 2; i < context.argc; i += 1 + wordsBehind(context, i)) {
    if (i + 1 >= context.argc || !(context.argIs(i, 'BY') || context.argIs(i, 'GET'))) continue;
    if (readPattern(context, i + 1).star >= 0) return true;
  }
  return false;
}

// ---- the elements

function shapeOf(type: number): Shape | null {
  switch (type) {
    case ItemType.LIST:
      return LISTS;
    case ItemType.SET:
      return SETS;
    case ItemType.ZSET:
      return SORTED_SETS;
    default:
      return null;
  }
}

/** Of the collection that the cursor stands on. */
function sourceShape({ keyspace }: Context): Shape {
  return shapeOf(keyspace.type) as Shape;
}

/** Opens the key's collection, or none where there is none; null after an error reply. */
function openSource(context: Context): Collection | null {
  const { keyspace } = context;
  const [source] = keyspace.collections;
  if (!context.find(context.keyHash, 1)) {
    context.open(0, LISTS, context.keyHash, 1);
    context.miss();
    return source;
  }
  const shape = shapeOf(keyspace.type);
  if (shape === null) {
    context.reply.error(WRONG_TYPE);
    return null;
  }
  context.hit();
  source.openFound(shape);
  return source;
}

/** What LIMIT leaves of `size` elements. */
function cut(size: number): void {
  const part = partOf(asked, size);
  slice.first = part.first;
  slice.last = part.last;
}

function gatherAll(source: Collection): void {
  for (let more = source.first(); more; more = source.next()) {
    source.load();
    elements.push(source.key, source.keyOffset, source.keyLength);
  }
}

/** Gathers those of the slice alone, in the order of a list or a sorted set; the slice is then all of them. */
function gatherSlice(source: Collection): void {
  const { first, last } = slice;
  const rank = asked.isDescending ? source.count - 1 - first : first;
  let left = last - first + 1;
  for (let more = left > 0 && source.seekRank(rank); more && left > 0; left--) {
    source.load();
    elements.push(source.key, source.keyOffset, source.keyLength);
    more = asked.isDescending ? source.previous() : source.next();
  }
  slice.first = 0;
  slice.last = elements.count - 1;
}

/** Gathers the elements and puts them in order; null after an error reply. */
function order(context: Context, source: Collection): Uint32Array | null {
  let { isUnsorted, isAlpha, by } = asked;
  const isSet = source.exists && context.keyspace.type === ItemType.SET;
  // Sets have an order of their own: what is stored, or a script sees, shall not depend on it.
  if (isUnsorted && isSet && (asked.stores || context.isInScript)) {
    isUnsorted = false;
    isAlpha = true;
    by = null;
  }
  cut(source.count);
  if (isUnsorted) {
    if (isSet) gatherAll(source);
    else gatherSlice(source);
    return unsorted();
  }
  gatherAll(source);
  if (isAlpha) return sortedByText(context, by, asked.isDescending);
  const sorted = sortedByNumber(context, by, asked.isDescending);
  if (sorted === null) context.reply.error(NOT_NUMBERS);
  return sorted;
}

// ---- the result

function replyResult(context: Context, sorted: Uint32Array): void {
  const { reply } = context;
  const { gets } = asked;
  const size = slice.last - slice.first + 1;
  reply.array(gets.length === 0 ? size : size * gets.length);
  for (let n = slice.first; n <= slice.last; n++) {
    const i = sorted[n];
    const offset = elements.offsets[i];
    const length = elements.lengths[i];
    if (gets.length === 0) reply.bulk(elements.bytes, offset, length);
    for (let g = 0; g < gets.length; g++) replyMeant(context, gets[g], elements.bytes, offset, length);
  }
}

/** Gathers what is to be stored; what GET does not find is an empty string. */
function gatherResult(context: Context, sorted: Uint32Array): void {
  const { gets } = asked;
  const { bytes } = elements;
  members.clear();
  for (let n = slice.first; n <= slice.last; n++) {
    const i = sorted[n];
    const offset = elements.offsets[i];
    const length = elements.lengths[i];
    if (gets.length === 0) members.push(bytes, offset, length);
    for (let g = 0; g < gets.length; g++) {
      const pattern = gets[g];
      if (pattern.isElement) members.push(bytes, offset, length);
      else if (pattern.star < 0 || lookUp(context, pattern, bytes, offset, length) === Found.NOTHING)
        members.push(bytes, 0, 0);
      else members.push(value.bytes, value.offset, value.length);
    }
  }
}

function store(context: Context): void {
  const { reply } = context;
  const hash = context.keyHashes[1];
  const i = context.keyArguments[1];
  const size = members.count;
  if (size === 0) {
    context.removeKey(hash, i);
    return reply.integer(0);
  }
  const list = openListDraft(context, 0, hash, i);
  const isWhole = fill(list);
  members.clear();
  if (!isWhole) {
    if (list.exists) list.removeKey();
    return reply.error(NO_MEMORY);
  }
  if (!context.publish(list, hash, i)) return;
  context.notify(Notify.LIST, 'sortstore', i);
  reply.integer(size);
}

/** Appends what has been gathered to a list; false = no memory for all of it. */
function fill(list: Collection): boolean {
  for (let n = 0; n < members.count; n++) {
    if (push(list, End.RIGHT, members.bytes, members.offsets[n], members.lengths[n]) !== Change.DONE) return false;
  }
  return true;
}

function run(context: Context, mayStore: boolean): void {
  if (!readOptions(context, mayStore)) return;
  const source = openSource(context);
  if (source === null) return;
  // What other keys have is looked up in one go, with the gate closed.
  if (isLong(source.count) && asked.by === null && !asked.isUnsorted && asked.gets.length === 0) {
    const { isAlpha, isDescending, start, count, stores } = asked;
    const request: LongSort = {
      isAlpha,
      isDescending,
      start,
      count,
      stores,
      shape: sourceShape(context),
      storeFew: store,
    };
    return takeSteps(context, 0, 1, (work) => sortInTurns(context, work, request));
  }
  const sorted = order(context, source);
  if (sorted !== null) {
    if (asked.stores) {
      gatherResult(context, sorted);
      store(context);
    } else {
      replyResult(context, sorted);
    }
  }
  clearElements();
}

function sort(context: Context): void {
  run(context, true);
}

function sortRo(context: Context): void {
  run(context, false);
}

const COMMON = {
  arity: -2,
  categories: Category.SET | Category.SORTEDSET | Category.LIST | Category.DANGEROUS,
  group: 'generic',
  complexity: 'O(N+M*log(M)) for N elements and M returned; without sorting O(N)',
  runsAlone: looksUpKeys,
} as const;
const KEY = keyAt(1, KeyUse.RO | KeyUse.ACCESS);
const LOOKED_UP = keysUnknown(KeyUse.RO | KeyUse.ACCESS);
const ARGS = [
  keyArg('key'),
  patternArg('by-pattern', { token: 'BY', keySpec: 1, optional: true }),
  blockArg('limit', [integerArg('offset'), integerArg('count')], { token: 'LIMIT', optional: true }),
  patternArg('get-pattern', { token: 'GET', keySpec: 1, optional: true, multiple: true, multipleToken: true }),
  oneOf('order', [tokenArg('ASC'), tokenArg('DESC')], { optional: true }),
  tokenArg('ALPHA', { optional: true }),
];

export const sorting: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'sort',
    flags: Flag.WRITE | Flag.DENYOOM,
    keys: [KEY, LOOKED_UP, keysUnknown(KeyUse.OW | KeyUse.UPDATE)],
    findKeys,
    since: '1.0.0',
    summary:
      'Sorts the elements of a list, a set or a sorted set; returns or stores them, or what other keys have for them.',
    args: [...ARGS, keyArg('destination', { token: 'STORE', keySpec: 2, optional: true })],
    run: sort,
  },
  {
    ...COMMON,
    name: 'sort_ro',
    flags: Flag.READONLY,
    keys: [KEY, LOOKED_UP],
    since: '7.0.0',
    summary: 'Returns the elements of a list, a set or a sorted set in order, or what other keys have for them.',
    args: ARGS,
    run: sortRo,
  },
];
