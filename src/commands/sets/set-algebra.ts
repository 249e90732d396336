/**
 * SINTER SINTERCARD SINTERSTORE SUNION SUNIONSTORE SDIFF SDIFFSTORE.
 *
 * The result is gathered beside the store, one open set at a time, so that the destination may be one of the sources. Invariant: all
 * sources are looked at before anything is gathered, and all is gathered before the destination changes.
 */
import { Notify } from '../../store/change-feed.js';
import type { Collection } from '../../store/collections/collection.js';
import { integerArg, keyArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NO_NUMKEYS, SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted, keysFrom } from '../spec.js';
import { members } from './member-table.js';
import { Added, addMember, openSet, openSetDraft } from './set-members.js';

const TOO_MANY_KEYS = "ERR Number of keys can't be greater than number of args";
const NEGATIVE_LIMIT = "ERR LIMIT can't be negative";

/** Members of the sources, in the order of the command's keys; grows with the longest command. */
let sizes = new Float64Array(64);

/** Reads the sizes of all sources, keys `first` on of the command; -1 after a WRONGTYPE reply, else the number of the smallest. */
function measure(context: Context, first: number): number {
  const { keyCount, keyHashes, keyArguments } = context;
  if (sizes.length < keyCount) sizes = new Float64Array(keyCount * 2);
  let smallest = first;
  for (let k = first; k < keyCount; k++) {
    const set = openSet(context, 0, keyHashes[k], keyArguments[k]);
    if (set === null) return -1;
    if (set.exists) context.hit();
    else context.miss();
    sizes[k] = set.count;
    if (sizes[k] < sizes[smallest]) smallest = k;
  }
  return smallest;
}

/** A source that `measure` has seen. */
function openSource(context: Context, k: number): Collection {
  return openSet(context, 0, context.keyHashes[k], context.keyArguments[k]) as Collection;
}

function gatherAll(context: Context, k: number): void {
  const { keyspace } = context;
  const set = openSource(context, k);
  for (let more = set.first(); more; more = set.next()) {
    set.load();
    members.add(keyspace.hash(0, set.key, set.keyOffset, set.keyLength), set.key, set.keyOffset, set.keyLength);
  }
}

/** Drops the gathered members that the set has (`isIn` true) or has not, until `limit` that stay have been seen. */
function dropThose(set: Collection, isIn: boolean, limit: number): void {
  let kept = 0;
  for (let i = 0; i < members.count && kept < limit; i++) {
    if (!members.has(i)) continue;
    if (set.seekKey(members.bytes, members.offsets[i], members.lengths[i]) === isIn) members.drop(i);
    else kept++;
  }
}

/** Gathers what all sources from key `first` on have; false after an error reply. */
function intersect(context: Context, first: number): boolean {
  const smallest = measure(context, first);
  if (smallest < 0) return false;
  members.clear();
  if (sizes[smallest] === 0) return true;
  gatherAll(context, smallest);
  for (let k = first; k < context.keyCount && members.size > 0; k++) {
    if (k !== smallest) dropThose(openSource(context, k), false, Number.POSITIVE_INFINITY);
  }
  return true;
}

function unite(context: Context, first: number): boolean {
  if (measure(context, first) < 0) return false;
  members.clear();
  for (let k = first; k < context.keyCount; k++) gatherAll(context, k);
  return true;
}

function subtract(context: Context, first: number): boolean {
  if (measure(context, first) < 0) return false;
  members.clear();
  gatherAll(context, first);
  for (let k = first + 1; k < context.keyCount && members.size > 0; k++) {
    const set = openSource(context, k);
    if (sizes[k] >= members.size) dropThose(set, true, Number.POSITIVE_INFINITY);
    else dropAllOf(context, set);
  }
  return true;
}

function dropAllOf(context: Context, set: Collection): void {
  const { keyspace } = context;
  for (let more = set.first(); more; more = set.next()) {
    set.load();
    members.dropEqual(keyspace.hash(0, set.key, set.keyOffset, set.keyLength), set.key, set.keyOffset, set.keyLength);
  }
}

function replyMembers(context: Context): void {
  const { reply } = context;
  reply.set(members.size);
  for (let i = 0; i < members.count; i++) {
    if (members.has(i)) reply.bulk(members.bytes, members.offsets[i], members.lengths[i]);
  }
  members.clear();
}

/** Makes what has been gathered the value of the first key, and replies its size. `event` is what listeners are told. */
function store(context: Context, event: string): void {
  const { reply, keyHashes } = context;
  const { size } = members;
  if (size === 0) {
    context.removeKey(keyHashes[0], 1);
    return reply.integer(0);
  }
  const set = openSetDraft(context, 0, keyHashes[0], 1);
  const isWhole = fill(context, set);
  members.clear();
  if (!isWhole) {
    if (set.exists) set.removeKey();
    return reply.error(NO_MEMORY);
  }
  if (!context.publish(set, keyHashes[0], 1)) return;
  context.notify(Notify.SET, event, 1);
  reply.integer(size);
}

/** Adds the gathered members to a set; false = no memory for all of them. */
function fill(context: Context, set: Collection): boolean {
  for (let i = 0; i < members.count; i++) {
    if (!members.has(i)) continue;
    const added = addMember(context, set, members.bytes, members.offsets[i], members.lengths[i], 1);
    if (added === Added.FAILED) return false;
  }
  return true;
}

function sinter(context: Context): void {
  if (intersect(context, 0)) replyMembers(context);
}

function sinterStore(context: Context): void {
  if (intersect(context, 1)) store(context, 'sinterstore');
}

function sunion(context: Context): void {
  if (unite(context, 0)) replyMembers(context);
}

function sunionStore(context: Context): void {
  if (unite(context, 1)) store(context, 'sunionstore');
}

function sdiff(context: Context): void {
  if (subtract(context, 0)) replyMembers(context);
}

function sdiffStore(context: Context): void {
  if (subtract(context, 1)) store(context, 'sdiffstore');
}

function sinterCard(context: Context): void {
  const { reply } = context;
  const keys = context.argInteger(1);
  if (!(keys > 0)) return reply.error(NO_NUMKEYS);
  if (keys > context.argc - 2) return reply.error(TOO_MANY_KEYS);
  let limit = 0;
  for (let i = 2 + keys; i < context.argc; i += 2) {
    if (!context.argIs(i, 'LIMIT') || i + 1 === context.argc) return reply.error(SYNTAX);
    limit = context.argInteger(i + 1);
    if (!(limit >= 0)) return reply.error(NEGATIVE_LIMIT);
  }
  const smallest = measure(context, 0);
  if (smallest < 0) return;
  if (limit === 0) limit = Number.POSITIVE_INFINITY;
  if (sizes[smallest] === 0 || keys === 1) return reply.integer(Math.min(sizes[smallest], limit));
  members.clear();
  gatherAll(context, smallest);
  let last = keys - 1;
  if (last === smallest) last--;
  for (let k = 0; k <= last && members.size > 0; k++) {
    // Of the last set no more is asked than the limit.
    if (k !== smallest) dropThose(openSource(context, k), false, k === last ? limit : Number.POSITIVE_INFINITY);
  }
  const { size } = members;
  members.clear();
  reply.integer(Math.min(size, limit));
}

const UNORDERED = ['nondeterministic_output_order'];
const KEYS = keyArg('key', { multiple: true });
const SOURCES = keyArg('key', { multiple: true, keySpec: 1 });
const SOURCE_KEYS = keysFrom(2, KeyUse.RO | KeyUse.ACCESS);
const DESTINATION = keyArg('destination');
const COMMON = { categories: Category.SET, group: 'set', since: '1.0.0' } as const;
const READ = {
  ...COMMON,
  arity: -2,
  flags: Flag.READONLY,
  keys: [keysFrom(1, KeyUse.RO | KeyUse.ACCESS)],
  tips: UNORDERED,
  args: [KEYS],
} as const;
const STORE = {
  ...COMMON,
  arity: -3,
  flags: Flag.WRITE | Flag.DENYOOM,
  keys: [keyAt(1, KeyUse.OW | KeyUse.UPDATE), SOURCE_KEYS],
  args: [DESTINATION, SOURCES],
} as const;
const OF_ALL = 'O(N) for N members of all sets';
const OF_SMALLEST = 'O(N*M) for N members of the smallest of M sets';

export const setAlgebra: readonly CommandSpec[] = [
  { ...READ, name: 'sinter', summary: 'Returns what all sets have.', complexity: OF_SMALLEST, run: sinter },
  {
    ...COMMON,
    name: 'sintercard',
    arity: -3,
    flags: Flag.READONLY | Flag.MOVABLE_KEYS,
    keys: [keysCounted(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '7.0.0',
    summary: 'Returns how many members all sets have in common, up to a limit.',
    complexity: OF_SMALLEST,
    args: [integerArg('numkeys'), KEYS, integerArg('limit', { token: 'LIMIT', optional: true })],
    run: sinterCard,
  },
  {
    ...STORE,
    name: 'sinterstore',
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE), SOURCE_KEYS],
    summary: 'Stores what all sets have as a set.',
    complexity: OF_SMALLEST,
    run: sinterStore,
  },
  { ...READ, name: 'sunion', summary: 'Returns what any of the sets has.', complexity: OF_ALL, run: sunion },
  {
    ...STORE,
    name: 'sunionstore',
    summary: 'Stores what any of the sets has as a set.',
    complexity: OF_ALL,
    run: sunionStore,
  },
  {
    ...READ,
    name: 'sdiff',
    summary: 'Returns what the first set has and none of the others.',
    complexity: OF_ALL,
    run: sdiff,
  },
  {
    ...STORE,
    name: 'sdiffstore',
    summary: 'Stores what the first set has and none of the others as a set.',
    complexity: OF_ALL,
    run: sdiffStore,
  },
];
