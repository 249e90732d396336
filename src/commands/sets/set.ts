/**
 * Sets, member by member: SADD SREM SISMEMBER SMISMEMBER SCARD SMEMBERS SMOVE.
 */
import { ReplyType } from '../../protocol/resp/reply.js';
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import { keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';
import { isSameKey } from '../keyspace/generic.js';
import { isLong, replyElements } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { Added, addMember, findMember, openSet, openSetToRead, prepareFor } from './set-members.js';

function sadd(context: Context): void {
  const { reply } = context;
  const set = openSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (set.exists) context.use();
  const given = context.argc - 2;
  if (prepareFor(context, set, given) !== Change.DONE) return reply.error(NO_MEMORY);
  let created = 0;
  for (let i = 2; i < context.argc; i++) {
    const added = addMember(context, set, context.input, context.argOffset(i), context.argLength(i), given);
    if (added === Added.FAILED) return reply.error(NO_MEMORY);
    if (added === Added.NEW) created++;
  }
  if (created > 0) context.notify(Notify.SET, 'sadd', 1);
  reply.integer(created);
}

function srem(context: Context): void {
  const { reply } = context;
  const set = openSet(context, 0, context.keyHash, 1);
  if (set === null) return;
  if (set.exists) context.use();
  let removed = 0;
  for (let i = 2; i < context.argc && set.exists; i++) {
    if (!findMember(context, set, i)) continue;
    if (set.remove() !== Change.DONE) return reply.error(NO_MEMORY);
    removed++;
  }
  if (removed > 0) context.notify(Notify.SET, 'srem', 1);
  if (removed > 0 && !set.exists) context.notify(Notify.GENERIC, 'del', 1);
  reply.integer(removed);
}

function sisMember(context: Context): void {
  const set = openSetToRead(context);
  if (set !== null) context.reply.integer(findMember(context, set, 2) ? 1 : 0);
}

function smisMember(context: Context): void {
  const set = openSetToRead(context);
  if (set === null) return;
  context.reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) context.reply.integer(findMember(context, set, i) ? 1 : 0);
}

function scard(context: Context): void {
  const set = openSetToRead(context);
  if (set !== null) context.reply.integer(set.count);
}

function smembers(context: Context): void {
  const { reply } = context;
  const set = openSetToRead(context);
  if (set === null) return;
  if (isLong(set.count)) return replyElements(context, set, 0, set.count, false, ReplyType.SET, visitMember);
  reply.set(set.count);
  for (let more = set.first(); more; more = set.next()) visitMember(context, set);
}

function visitMember(context: Context, set: Collection): number {
  set.load();
  context.reply.bulk(set.key, set.keyOffset, set.keyLength);
  return 1;
}

function smove(context: Context): void {
  const { reply, keyHashes } = context;
  const from = openSet(context, 0, keyHashes[0], 1);
  if (from === null) return;
  if (!from.exists) return reply.integer(0);
  context.use();
  const to = openSet(context, 1, keyHashes[1], 2);
  if (to === null) return;
  const found = findMember(context, from, 3);
  if (!found || isSameKey(context, 1, 2)) return reply.integer(found ? 1 : 0);
  if (to.exists) context.use();
  const before = to.count;
  const isNew = !to.exists;
  // What the store says of a new key comes behind the events of the old one, as in Redis.
  const { feed } = context.keyspace;
  const { notifies } = feed;
  feed.notifies &= ~Notify.NEW;
  const isMoved = moveMember(context, from, to);
  feed.notifies = notifies;
  if (!isMoved) return reply.error(NO_MEMORY);
  context.notify(Notify.SET, 'srem', 1);
  if (!from.exists) context.notify(Notify.GENERIC, 'del', 1);
  if (isNew) context.notify(Notify.NEW, 'new', 2);
  if (to.count > before) context.notify(Notify.SET, 'sadd', 2);
  reply.integer(1);
}

/** Moves the member in argument 3, on which `from` stands; false = no memory, nothing has changed. */
function moveMember(context: Context, from: Collection, to: Collection): boolean {
  const added = addMember(context, to, context.input, context.argOffset(3), context.argLength(3), 1);
  if (added === Added.FAILED) return false;
  // Once more: what made room may have moved it.
  findMember(context, from, 3);
  if (from.remove() === Change.DONE) return true;
  if (added === Added.NEW && findMember(context, to, 3)) to.remove();
  return false;
}

const KEY = keyArg('key');
const MEMBER = stringArg('member');
const MEMBERS = stringArg('member', { multiple: true });
const COMMON = { categories: Category.SET, group: 'set' } as const;

export const sets: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'sadd',
    arity: -3,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.INSERT)],
    since: '1.0.0',
    summary: 'Adds members to a set; returns how many of them are new.',
    complexity: 'O(N) for N members, times log of the size of a large set',
    history: [['2.4.0', 'Several members.']],
    args: [KEY, MEMBERS],
    repeatable: true,
    run: sadd,
  },
  {
    ...COMMON,
    name: 'srem',
    arity: -3,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    since: '1.0.0',
    summary: 'Removes members from a set; the set goes with the last of them.',
    complexity: 'O(N) for N members',
    history: [['2.4.0', 'Several members.']],
    args: [KEY, MEMBERS],
    repeatable: true,
    run: srem,
  },
  {
    ...COMMON,
    name: 'sismember',
    arity: 3,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    since: '1.0.0',
    summary: 'Tells whether a set has a member.',
    complexity: 'O(1)',
    args: [KEY, MEMBER],
    run: sisMember,
  },
  {
    ...COMMON,
    name: 'smismember',
    arity: -3,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '6.2.0',
    summary: 'Tells of each member whether a set has it.',
    complexity: 'O(N) for N members',
    args: [KEY, MEMBERS],
    run: smisMember,
  },
  {
    ...COMMON,
    name: 'scard',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    since: '1.0.0',
    summary: 'Returns the number of members of a set.',
    complexity: 'O(1)',
    args: [KEY],
    run: scard,
  },
  {
    ...COMMON,
    name: 'smembers',
    arity: 2,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '1.0.0',
    summary: 'Returns all members of a set.',
    complexity: 'O(N) for N members',
    tips: ['nondeterministic_output_order'],
    args: [KEY],
    run: smembers,
  },
  {
    ...COMMON,
    name: 'smove',
    arity: 4,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE), keyAt(2, KeyUse.RW | KeyUse.INSERT)],
    since: '1.0.0',
    summary: 'Moves a member from one set to another.',
    complexity: 'O(1)',
    args: [keyArg('source'), keyArg('destination', { keySpec: 1 }), MEMBER],
    run: smove,
  },
];
