/**
 * What is pending in a group: XPENDING XCLAIM XAUTOCLAIM.
 *
 * Invariant: the position among what is pending is lost with each change, so walks that change go on from the id they have come to.
 */

import { ReplyType } from '../../protocol/resp/reply.js';
import { Change } from '../../store/collections/collection.js';
import { StreamId } from '../../store/streams/stream-id.js';
import { blockArg, integerArg, keyArg, stringArg, tokenArg, unixTimeArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import {
  idArg,
  openStreamToChange,
  openStreamToRead,
  parseIdArg,
  rangeEndArg,
  rangeStartArg,
  replyEntry,
  replyId,
  stream,
} from './stream-arguments.js';
import { findConsumerArg, findGroupArg, groups, noKeyOrGroup, pending, replyName } from './stream-group-arguments.js';

const id = new StreamId();
const end = new StreamId();
const FIRST = new StreamId();

// ---- XPENDING

function xpending(context: Context): void {
  const { reply, argc } = context;
  if (argc === 3) return summarize(context);
  if (argc < 6 || argc > 9) return reply.error(SYNTAX);
  let at = 3;
  let idleMin = 0;
  if (context.argIs(3, 'IDLE')) {
    idleMin = context.argInteger(4);
    if (Number.isNaN(idleMin)) return reply.error(NOT_INTEGER);
    if (argc < 8) return reply.error(SYNTAX);
    at = 5;
  }
  const count = context.argInteger(at + 2);
  if (Number.isNaN(count)) return reply.error(NOT_INTEGER);
  if (!rangeStartArg(context, at, id) || !rangeEndArg(context, at + 1, end)) return;
  if (!openGroupToRead(context)) return;
  let consumer = 0;
  if (at + 3 < argc) {
    if (!groups.findConsumer(context.input, context.argOffset(at + 3), context.argLength(at + 3)))
      return reply.array(0);
    consumer = groups.consumer;
  }
  list(context, consumer, count, idleMin);
}

/** Opens the stream of the key and finds the group, argument 2; false after an error reply. */
function openGroupToRead(context: Context): boolean {
  if (openStreamToRead(context) === null) return false;
  if (findGroupArg(context, 2)) return true;
  context.reply.error(noKeyOrGroup(context));
  return false;
}

function summarize(context: Context): void {
  const { reply } = context;
  if (!openGroupToRead(context)) return;
  const { count } = pending;
  reply.array(4);
  reply.integer(count);
  if (count === 0) {
    reply.nil();
    reply.nil();
    reply.nilArray();
    return;
  }
  pending.seek(FIRST);
  replyId(context, pending.id);
  pending.seekLast();
  replyId(context, pending.id);
  const consumers: number[] = [];
  const all = groups.consumerCount;
  for (let i = 0; i < all; i++) {
    groups.loadConsumer(i);
    if (pending.countOf(groups.consumer) > 0) consumers.push(i);
  }
  reply.array(consumers.length);
  for (const i of consumers) {
    groups.loadConsumer(i);
    reply.array(2);
    replyName(context);
    reply.bulkInteger(pending.countOf(groups.consumer));
  }
}

/** Replies at most `count` of what is pending from `id` to `end`, of one consumer or (0) of all, idle for so long. */
function list(context: Context, consumer: number, count: number, idleMin: number): void {
  const { reply, wallMs } = context;
  reply.deferred();
  let listed = 0;
  let more = consumer === 0 ? pending.seek(id) : pending.seekOwned(consumer, id);
  while (more && listed < count && pending.id.compare(end) <= 0) {
    id.set(pending.id);
    // Of those of a consumer the id alone is known.
    if (consumer !== 0) pending.find(id);
    const idle = wallMs - pending.deliveredMs;
    const isListed = idleMin === 0 || idle >= idleMin;
    if (isListed) {
      listed++;
      reply.array(4);
      replyId(context, id);
      groups.findName(pending.consumer);
      replyName(context);
      reply.integer(Math.max(0, idle));
      reply.integer(pending.deliveries);
    }
    if (!isListed && consumer === 0) more = pending.next();
    else if (!id.increment()) more = false;
    else more = consumer === 0 ? pending.seek(id) : pending.seekOwned(consumer, id);
  }
  reply.endDeferred(ReplyType.ARRAY, listed);
}

// ---- XCLAIM

/** The options of XCLAIM. */
const claim = {
  /** Milliseconds since 1970. */
  deliveredMs: 0,
  /** -1 = one more than before. */
  deliveries: -1,
  isForced: false,
  idsOnly: false,
};

/** Ids in the order in which they were claimed; used anew. */
let claimed: StreamId[] = [];
let claimedCount = 0;

function noteClaimed(): void {
  claimed[claimedCount] ??= new StreamId();
  claimed[claimedCount++].set(pending.id);
}

/** Replies what was claimed, and what `noteClaimed` needs no more. */
function replyClaimed(context: Context): void {
  const { reply } = context;
  reply.array(claimedCount);
  for (let i = 0; i < claimedCount; i++) {
    if (claim.idsOnly) {
      replyId(context, claimed[i]);
    } else {
      stream.find(claimed[i]);
      replyEntry(context);
    }
  }
  if (claimed.length > CLAIMED_KEPT) claimed = [];
  claimedCount = 0;
}

const CLAIMED_KEPT = 1000;

function xclaim(context: Context): void {
  const { reply, argc } = context;
  if (openStreamToChange(context) === null) return;
  if (!findGroupArg(context, 2)) return reply.error(noKeyOrGroup(context));
  const idleMin = context.argInteger(4);
  if (Number.isNaN(idleMin)) return reply.error('ERR Invalid min-idle-time argument for XCLAIM');
  let behind = 5;
  while (behind < argc && parseIdArg(context, behind, id)) behind++;
  end.setZero();
  if (!readClaim(context, behind)) return;
  if (end.compare(groups.lastId) > 0) {
    groups.lastId.set(end);
    groups.save();
  }
  if (!beClaimer(context)) return reply.error(NO_MEMORY);
  claimedCount = 0;
  for (let i = 5; i < behind; i++) {
    parseIdArg(context, i, id);
    if (!claimOne(context, Math.max(0, idleMin))) {
      claimedCount = 0;
      return reply.error(NO_MEMORY);
    }
  }
  if (claimedCount > 0) groups.activeMs = context.wallMs;
  groups.saveConsumer();
  replyClaimed(context);
}

/** Finds or makes the consumer, argument 3; it is seen. False = no memory. */
function beClaimer(context: Context): boolean {
  if (!findConsumerArg(context, 3, 1)) return false;
  groups.seenMs = context.wallMs;
  return true;
}

/** Reads the options from argument `i` on, LASTID into `end`; false after an error reply. */
function readClaim(context: Context, from: number): boolean {
  const { argc, wallMs } = context;
  claim.deliveredMs = -1;
  claim.deliveries = -1;
  claim.isForced = false;
  claim.idsOnly = false;
  for (let i = from; i < argc; i++) {
    const hasMore = i + 1 < argc;
    if (context.argIs(i, 'FORCE')) {
      claim.isForced = true;
    } else if (context.argIs(i, 'JUSTID')) {
      claim.idsOnly = true;
    } else if (context.argIs(i, 'IDLE') && hasMore) {
      const idle = numberOption(context, ++i, 'IDLE');
      if (Number.isNaN(idle)) return false;
      claim.deliveredMs = wallMs - idle;
    } else if (context.argIs(i, 'TIME') && hasMore) {
      claim.deliveredMs = numberOption(context, ++i, 'TIME');
      if (Number.isNaN(claim.deliveredMs)) return false;
    } else if (context.argIs(i, 'RETRYCOUNT') && hasMore) {
      claim.deliveries = numberOption(context, ++i, 'RETRYCOUNT');
      if (Number.isNaN(claim.deliveries)) return false;
    } else if (context.argIs(i, 'LASTID') && hasMore) {
      if (!idArg(context, ++i, end)) return false;
    } else {
      context.reply.error(`ERR Unrecognized XCLAIM option '${context.argString(i)}'`);
      return false;
    }
  }
  // What makes no sense is now: clients compute it by clocks of their own.
  if (claim.deliveredMs < 0 || claim.deliveredMs > wallMs) claim.deliveredMs = wallMs;
  return true;
}

/** NaN after an error reply. */
function numberOption(context: Context, i: number, option: string): number {
  const value = context.argInteger(i);
  if (Number.isNaN(value)) context.reply.error(`ERR Invalid ${option} option argument for XCLAIM`);
  return value;
}

/** Claims the entry `id` for the consumer, if it may be; false = no memory. */
function claimOne(context: Context, idleMin: number): boolean {
  const isPending = pending.find(id);
  if (!stream.find(id)) {
    if (isPending) pending.remove();
    return true;
  }
  const { consumer } = groups;
  if (isPending) {
    if (idleMin > 0 && context.wallMs - pending.deliveredMs < idleMin) return true;
    return take(consumer);
  }
  if (!claim.isForced) return true;
  // As Redis counts: the entry made by FORCE has been delivered once, and now once more.
  pending.id.set(id);
  const first = claim.idsOnly ? 1 : 2;
  if (pending.add(id, consumer, claim.deliveredMs, claim.deliveries >= 0 ? claim.deliveries : first) !== Change.DONE) {
    return false;
  }
  noteClaimed();
  return true;
}

/** Gives the pending entry that was found to a consumer. */
function take(consumer: number): boolean {
  pending.deliveredMs = claim.deliveredMs;
  if (claim.deliveries >= 0) pending.deliveries = claim.deliveries;
  else if (!claim.idsOnly) pending.deliveries++;
  if (pending.save(consumer) !== Change.DONE) return false;
  noteClaimed();
  return true;
}

// ---- XAUTOCLAIM

/** Entries looked at for each that may be claimed. */
const ATTEMPTS = 10;
const COUNT_DEFAULT = 100;
/** Redis keeps sixteen bytes for each. */
const COUNT_MAX = 2 ** 63 / 16;

function xautoClaim(context: Context): void {
  const { reply, argc } = context;
  const idleMin = context.argInteger(4);
  if (Number.isNaN(idleMin)) return reply.error('ERR Invalid min-idle-time argument for XAUTOCLAIM');
  if (!rangeStartArg(context, 5, id)) return;
  let count = COUNT_DEFAULT;
  claim.idsOnly = false;
  for (let i = 6; i < argc; i++) {
    if (context.argIs(i, 'COUNT') && i + 1 < argc) {
      count = context.argInteger(++i);
      if (Number.isNaN(count)) return reply.error(NOT_INTEGER);
      if (count < 1 || count >= COUNT_MAX) return reply.error('ERR COUNT must be > 0');
    } else if (context.argIs(i, 'JUSTID')) {
      claim.idsOnly = true;
    } else {
      return reply.error(SYNTAX);
    }
  }
  if (openStreamToChange(context) === null) return;
  if (!findGroupArg(context, 2)) return reply.error(noKeyOrGroup(context));
  if (!beClaimer(context)) return reply.error(NO_MEMORY);
  claim.deliveredMs = context.wallMs;
  claim.deliveries = -1;
  claimedCount = 0;
  const deleted: string[] = [];
  const isDone = claimIdle(context, count, Math.max(0, idleMin), deleted);
  if (claimedCount > 0) groups.activeMs = context.wallMs;
  groups.saveConsumer();
  if (!isDone) {
    claimedCount = 0;
    return reply.error(NO_MEMORY);
  }
  reply.array(3);
  replyId(context, end);
  replyClaimed(context);
  reply.array(deleted.length);
  for (const each of deleted) reply.bulkString(each);
}

/** Claims from `id` on what has been idle for so long; `end` is then where to go on, 0-0 at the end. False = no memory. */
function claimIdle(context: Context, countMax: number, idleMin: number, deleted: string[]): boolean {
  const { wallMs } = context;
  const { consumer } = groups;
  let left = countMax;
  let more = pending.seek(id);
  for (let attempts = countMax * ATTEMPTS; more && attempts > 0 && left > 0; attempts--) {
    end.set(pending.id);
    const isIdle = idleMin === 0 || wallMs - pending.deliveredMs >= idleMin;
    if (!stream.find(end)) {
      deleted.push(end.toString());
      pending.remove();
      left--;
    } else if (isIdle) {
      if (!take(consumer)) return false;
      left--;
    } else {
      more = pending.next();
      continue;
    }
    more = end.increment() && pending.seek(end);
  }
  if (more) end.set(pending.id);
  else end.setZero();
  return true;
}

const KEY = keyArg('key');
const GROUP = stringArg('group');
const CONSUMER = stringArg('consumer');
const IDLE_MIN = stringArg('min-idle-time');
const COMMON = {
  categories: Category.STREAM,
  group: 'stream',
  since: '5.0.0',
  tips: ['nondeterministic_output'],
} as const;

export const streamPending: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'xpending',
    arity: -3,
    flags: Flag.READONLY,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    summary: 'Returns what is pending in a group: how much and for whom, or entry by entry.',
    complexity: 'O(log(N)+M) for M returned of N; with IDLE M is what is looked at',
    history: [['6.2.0', 'The option IDLE, and bounds that are not part of the range.']],
    args: [
      KEY,
      GROUP,
      blockArg(
        'filters',
        [
          integerArg('min-idle-time', { token: 'IDLE', optional: true, since: '6.2.0' }),
          stringArg('start'),
          stringArg('end'),
          integerArg('count'),
          stringArg('consumer', { optional: true }),
        ],
        { optional: true },
      ),
    ],
    run: xpending,
  },
  {
    ...COMMON,
    name: 'xclaim',
    arity: -6,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Makes entries pending for another consumer.',
    complexity: 'O(M*log(N)) for M ids and N entries pending',
    args: [
      KEY,
      GROUP,
      CONSUMER,
      IDLE_MIN,
      stringArg('id', { multiple: true }),
      integerArg('ms', { token: 'IDLE', optional: true }),
      unixTimeArg('unix-time-milliseconds', { token: 'TIME', optional: true }),
      integerArg('count', { token: 'RETRYCOUNT', optional: true }),
      tokenArg('FORCE', { optional: true }),
      tokenArg('JUSTID', { optional: true }),
      stringArg('lastid', { token: 'LASTID', optional: true }),
    ],
    run: xclaim,
  },
  {
    ...COMMON,
    name: 'xautoclaim',
    arity: -6,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    since: '6.2.0',
    summary: 'Makes entries that have been idle for long pending for another consumer.',
    complexity: 'O(M*log(N)) for M entries looked at of N pending',
    history: [['7.0.0', 'Entries that were deleted are not pending any more, and returned.']],
    args: [
      KEY,
      GROUP,
      CONSUMER,
      IDLE_MIN,
      stringArg('start'),
      integerArg('count', { token: 'COUNT', optional: true }),
      tokenArg('JUSTID', { optional: true }),
    ],
    run: xautoClaim,
  },
];
