/**
 * SPOP, SRANDMEMBER and SSCAN.
 */
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection, SETS } from '../../store/collections/collection.js';
import { integerArg, keyArg, patternArg } from '../arguments.js';
import { isWanted, readCursor, readScanOptions, replyNothing, scanByHash } from '../collections/collection-scan.js';
import { storeInSteps } from '../collections/long-store.js';
import { chooseRanks, replyRandom, seekRandom, visitRanks } from '../collections/random-elements.js';
import { RemainingSource } from '../collections/remaining-source.js';
import type { Context } from '../context.js';
import { BEYOND, NO_MEMORY, NOT_INTEGER, NOT_POSITIVE, SYNTAX } from '../errors.js';
import { beginReply, replyInSteps, takeSteps } from '../long-steps.js';
import { isLong, type LongWork, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { MemberTable, members } from './member-table.js';
import { openSet, openSetToRead } from './set-members.js';

/** Of the collections that a command may have open: number 0 is the draft. */
const SET = 1;

function spop(context: Context): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error(SYNTAX);
  if (context.argc === 3) return popMany(context);
  const set = openSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (!set.exists) return reply.nil();
  context.use();
  members.clear();
  if (!take(set)) return reply.error(NO_MEMORY);
  notifyPopped(context, set);
  reply.bulk(members.bytes, 0, members.lengths[0]);
}

function notifyPopped(context: Context, set: Collection): void {
  context.notify(Notify.SET, 'spop', 1);
  if (!set.exists) context.notify(Notify.GENERIC, 'del', 1);
}

/** Moves a random member to `members`; false = no memory. */
function take(set: Collection): boolean {
  seekRandom(set);
  set.load();
  members.push(set.key, set.keyOffset, set.keyLength);
  return set.remove() === Change.DONE;
}

function popMany(context: Context): void {
  const { reply } = context;
  const count = context.argInteger(2);
  if (!(count >= 0)) return reply.error(NOT_POSITIVE);
  const set = openSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (!set.exists || count === 0) return reply.set(0);
  context.use();
  if (isLong(Math.min(count, set.count))) {
    return takeSteps(context, 0, 1, (work) => popInSteps(context, work, Math.min(count, set.count)));
  }
  if (count >= set.count) {
    reply.set(set.count);
    for (let more = set.first(); more; more = set.next()) replyMember(context, set);
    set.removeKey();
    return notifyPopped(context, set);
  }
  members.clear();
  // The first removal alone can fail: it brings the set to where it can be changed.
  for (let i = 0; i < count; i++) if (!take(set)) return reply.error(NO_MEMORY);
  notifyPopped(context, set);
  reply.set(count);
  for (let i = 0; i < count; i++) reply.bulk(members.bytes, members.offsets[i], members.lengths[i]);
  members.clear();
}

/** The command's set, which exists; opened anew in each turn. */
function openedSet(context: Context): Collection {
  const set = context.keyspace.collections[SET];
  if (!set.exists) openSet(context, SET, context.keyHash, 1);
  return set;
}

/** Of many members: what stays is made a set anew. */
function* popInSteps(context: Context, work: LongWork, count: number): Steps {
  const { reply, keyspace } = context;
  // A transaction's command before may have left another one open.
  keyspace.collections[SET].close();
  const { count: size } = openedSet(context);
  const ranks = yield* chooseRanks(size, count);
  const popped = new MemberTable();
  yield* visitRanks(context, openedSet, ranks, (_, set) => {
    set.load();
    popped.push(set.key, set.keyOffset, set.keyLength);
  });
  const set = openedSet(context);
  if (count === size) {
    set.removeKey();
  } else {
    set.standOnItem();
    const { expiryMs } = keyspace;
    const source = new RemainingSource(context, set, openedSet, ranks);
    if (!(yield* storeInSteps(context, work, 0, { shape: SETS, count: size - count, source, expiryMs }))) return;
  }
  context.notify(Notify.SET, 'spop', 1);
  if (count === size) context.notify(Notify.GENERIC, 'del', 1);
  beginReply(context, work);
  reply.set(count);
  yield* replyInSteps(count, (i) => reply.bulk(popped.bytes, popped.offsets[i], popped.lengths[i]));
}

function replyMember(context: Context, set: Collection): void {
  set.load();
  context.reply.bulk(set.key, set.keyOffset, set.keyLength);
}

function srandMember(context: Context): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error(SYNTAX);
  if (context.argc === 3) return randomMembers(context);
  const set = openSetToRead(context);
  if (set === null) return;
  if (!set.exists) return reply.nil();
  seekRandom(set);
  replyMember(context, set);
}

function randomMembers(context: Context): void {
  const { reply } = context;
  const exact = context.argInteger64(2);
  if (exact === null) return reply.error(NOT_INTEGER);
  if (exact === -0x8000_0000_0000_0000n) return reply.error(BEYOND);
  const count = Number(exact);
  const set = openSetToRead(context);
  if (set === null) return;
  if (!set.exists || count === 0) return reply.array(0);
  replyRandom(context, openedSet, count, (wanted) => reply.array(wanted), replyMember);
}

function sscan(context: Context): void {
  if (!readCursor(context)) return;
  const set = openSetToRead(context);
  if (set === null) return;
  if (!set.exists) return replyNothing(context);
  if (readScanOptions(context, false)) scanByHash(context, set, visitMember);
}

function visitMember(context: Context, set: Collection): number {
  if (!isWanted(context, set.key, set.keyOffset, set.keyLength)) return 0;
  context.reply.bulk(set.key, set.keyOffset, set.keyLength);
  return 1;
}

const COMMON = { categories: Category.SET, group: 'set', tips: ['nondeterministic_output'] } as const;

export const setIteration: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'spop',
    arity: -2,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
    since: '1.0.0',
    summary: 'Removes random members from a set and returns them.',
    complexity: 'O(N) for N members returned, times log of the size of a large set',
    history: [['3.2.0', 'The count.']],
    args: [keyArg('key'), integerArg('count', { optional: true, since: '3.2.0' })],
    run: spop,
  },
  {
    ...COMMON,
    name: 'srandmember',
    arity: -2,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '1.0.0',
    summary: 'Returns random members of a set.',
    complexity: 'O(N) for N members returned, times log of the size of a large set',
    history: [['2.6.0', 'The count.']],
    args: [keyArg('key'), integerArg('count', { optional: true, since: '2.6.0' })],
    run: srandMember,
  },
  {
    ...COMMON,
    name: 'sscan',
    arity: -3,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.8.0',
    summary: 'Walks the members of a set, some at each call.',
    complexity: 'O(1) for each call; O(N) for a whole walk over N members',
    args: [
      keyArg('key'),
      integerArg('cursor'),
      patternArg('pattern', { token: 'MATCH', optional: true }),
      integerArg('count', { token: 'COUNT', optional: true }),
    ],
    run: sscan,
  },
];
