/**
 * SINTER SINTERCARD SINTERSTORE SUNION SUNIONSTORE SDIFF SDIFFSTORE.
 *
 * The result is gathered beside the store, one open set at a time, so that the destination may be one of the sources; much of it in several
 * turns (long-steps). Invariant: all sources are looked at before anything is gathered, and all is gathered before the destination changes.
 */
import { Notify } from '../../store/change-feed.js';
import { type Collection, SETS } from '../../store/collections/collection.js';
import { integerArg, keyArg } from '../arguments.js';
import { storeInSteps } from '../collections/long-store.js';
import { orderByHash } from '../collections/ordering.js';
import { TableSource } from '../collections/table-source.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NO_NUMKEYS, SYNTAX } from '../errors.js';
import { beginReply, replyInSteps, STEP_ELEMENTS, takeSteps } from '../long-steps.js';
import { isLong, isSliceOver, type LongWork, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted, keysFrom } from '../spec.js';
import { compareMembers, type MemberTable, members } from './member-table.js';
import { Operation, SetAlgebra } from './set-computation.js';
import { Added, addMember, openSetDraft } from './set-members.js';

const TOO_MANY_KEYS = "ERR Number of keys can't be greater than number of args";
const NEGATIVE_LIMIT = "ERR LIMIT can't be negative";

/** Of the commands that are done in one go. */
const usual = new SetAlgebra(members);

/** What a command makes of the result, in one go and in steps. */
interface Ending {
  /** The first key that is a source. */
  readonly firstSource: number;
  now(context: Context): void;
  inSteps(context: Context, work: LongWork, result: MemberTable): Steps;
}

/** Computes and ends. `limit`: no more of the last source is asked than that. */
function run(context: Context, operation: Operation, ending: Ending, limit = Number.POSITIVE_INFINITY): void {
  const { firstSource } = ending;
  if (!usual.measure(context, operation, firstSource, limit)) return;
  if (!isLong(usual.cost)) {
    members.clear();
    usual.step(context, Number.POSITIVE_INFINITY);
    ending.now(context);
    return members.clear();
  }
  takeSteps(context, firstSource, context.keyCount, (work) => runInSteps(context, work, usual.copy(), ending));
}

function* runInSteps(context: Context, work: LongWork, own: SetAlgebra, ending: Ending): Steps {
  while (!own.step(context, STEP_ELEMENTS)) if (isSliceOver()) yield;
  yield* ending.inSteps(context, work, own.table);
}

/** The numbers of the members that have not been dropped. */
export function* remaining(table: MemberTable): Steps<Uint32Array> {
  const order = new Uint32Array(table.size);
  for (let i = 0, at = 0; i < table.count; i++) {
    if (table.has(i)) order[at++] = i;
    if (i % 8192 === 0 && isSliceOver()) yield;
  }
  return order;
}

// ---- replying

const REPLY: Ending = {
  firstSource: 0,
  now: ({ reply }) => {
    reply.set(members.size);
    for (let i = 0; i < members.count; i++) {
      if (members.has(i)) reply.bulk(members.bytes, members.offsets[i], members.lengths[i]);
    }
  },
  *inSteps(context, work, result) {
    const { reply } = context;
    beginReply(context, work);
    reply.set(result.size);
    yield* replyInSteps(result.count, (i) => {
      if (result.has(i)) reply.bulk(result.bytes, result.offsets[i], result.lengths[i]);
    });
  },
};

// ---- storing

/** Makes what has been gathered the value of the first key, and replies its size. `event` is what listeners are told. */
function storing(event: string): Ending {
  return {
    firstSource: 1,
    now: (context) => store(context, members, event),
    *inSteps(context, work, result) {
      const { settings } = context.environment;
      const { size } = result;
      const smallMax = Math.max(settings.setMaxIntsetEntries, settings.setMaxListpackEntries);
      if (!isLong(size) || size <= smallMax) return store(context, result, event);
      const { hashes } = result;
      const compare = (a: number, b: number): number => compareMembers(result, a, b);
      const order = yield* orderByHash(yield* remaining(result), hashes, compare);
      const source = new TableSource(result, order);
      if (!(yield* storeInSteps(context, work, 0, { shape: SETS, count: size, source }))) return;
      context.notify(Notify.SET, event, 1);
      context.reply.integer(size);
    },
  };
}

function store(context: Context, result: MemberTable, event: string): void {
  const { reply, keyHashes } = context;
  const { size } = result;
  if (size === 0) {
    context.removeKey(keyHashes[0], 1);
    return reply.integer(0);
  }
  const set = openSetDraft(context, 0, keyHashes[0], 1);
  if (!fill(context, set, result)) {
    if (set.exists) set.removeKey();
    return reply.error(NO_MEMORY);
  }
  if (!context.publish(set, keyHashes[0], 1)) return;
  context.notify(Notify.SET, event, 1);
  reply.integer(size);
}

/** Adds the gathered members to a set; false = no memory for all of them. */
function fill(context: Context, set: Collection, result: MemberTable): boolean {
  for (let i = 0; i < result.count; i++) {
    if (!result.has(i)) continue;
    const added = addMember(context, set, result.bytes, result.offsets[i], result.lengths[i], 1);
    if (added === Added.FAILED) return false;
  }
  return true;
}

const SINTERSTORE = storing('sinterstore');
const SUNIONSTORE = storing('sunionstore');
const SDIFFSTORE = storing('sdiffstore');

function sinter(context: Context): void {
  run(context, Operation.INTERSECTION, REPLY);
}

function sinterStore(context: Context): void {
  run(context, Operation.INTERSECTION, SINTERSTORE);
}

function sunion(context: Context): void {
  run(context, Operation.UNION, REPLY);
}

function sunionStore(context: Context): void {
  run(context, Operation.UNION, SUNIONSTORE);
}

function sdiff(context: Context): void {
  run(context, Operation.DIFFERENCE, REPLY);
}

function sdiffStore(context: Context): void {
  run(context, Operation.DIFFERENCE, SDIFFSTORE);
}

// ---- counting

const COUNT: Ending = {
  firstSource: 0,
  now: (context) => replyCount(context, members),
  // biome-ignore lint/correctness/useYield: nothing is left to be done but the reply.
  *inSteps(context, _, result) {
    replyCount(context, result);
  },
};

function replyCount(context: Context, { size }: MemberTable): void {
  context.reply.integer(Math.min(size, limitArg(context, context.argInteger(1)) || Number.POSITIVE_INFINITY));
}

/** What LIMIT says, 0 = nothing; negative after an error reply. */
function limitArg(context: Context, keys: number): number {
  let limit = 0;
  for (let i = 2 + keys; i < context.argc; i += 2) {
    if (!context.argIs(i, 'LIMIT') || i + 1 === context.argc) return refuse(context, SYNTAX);
    limit = context.argInteger(i + 1);
    if (!(limit >= 0)) return refuse(context, NEGATIVE_LIMIT);
  }
  return limit;
}

function refuse(context: Context, text: string): -1 {
  context.reply.error(text);
  return -1;
}

function sinterCard(context: Context): void {
  const keys = context.argInteger(1);
  if (!(keys > 0)) return context.reply.error(NO_NUMKEYS);
  if (keys > context.argc - 2) return context.reply.error(TOO_MANY_KEYS);
  const limit = limitArg(context, keys);
  if (limit < 0) return;
  const most = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  if (keys > 1) return run(context, Operation.INTERSECTION, COUNT, most);
  // Of one set nothing need be gathered.
  if (!usual.measure(context, Operation.INTERSECTION, 0, most)) return;
  context.reply.integer(Math.min(usual.smallestSize, most));
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
