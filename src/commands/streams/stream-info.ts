/**
 * XINFO: streams, their groups and consumers.
 *
 * Nothing changes here, so byte ranges and ranks stay valid through a whole reply. Redis's radix tree is not there: its keys are counted as if
 * every node were full.
 */
import { NO_COUNTER } from '../../layout/stream.js';
import { StreamId } from '../../store/streams/stream-id.js';
import { blockArg, integerArg, keyArg, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_SUCH_KEY, NOT_INTEGER } from '../errors.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { openStream, replyEntry, replyId, stream } from './stream-arguments.js';
import { findGroupArg, groups, noGroupForKey, pending, replyName } from './stream-group-arguments.js';

const COUNT_DEFAULT = 10;
const FIRST = new StreamId();
const id = new StreamId();

/** Opens the stream of the key, argument 2; false after an error reply. */
function openToRead(context: Context): boolean {
  if (!openStream(context, context.keyHash, 2)) return false;
  const { exists } = stream.collection;
  if (exists) {
    context.hit();
  } else {
    context.miss();
    context.reply.error(NO_SUCH_KEY);
  }
  return exists;
}

function consumers(context: Context): void {
  const { reply, nowMs } = context;
  if (!openToRead(context)) return;
  if (!findGroupArg(context, 3)) return reply.error(noGroupForKey(context));
  const count = groups.consumerCount;
  reply.array(count);
  for (let i = 0; i < count; i++) {
    groups.loadConsumer(i);
    reply.map(4);
    reply.bulkString('name');
    replyName(context);
    reply.bulkString('pending');
    reply.integer(pending.countOf(groups.consumer));
    reply.bulkString('idle');
    reply.integer(Math.max(0, nowMs - groups.seenMs));
    reply.bulkString('inactive');
    reply.integer(groups.activeMs < 0 ? -1 : nowMs - groups.activeMs);
  }
}

function groupList(context: Context): void {
  const { reply } = context;
  if (!openToRead(context)) return;
  const { count } = groups;
  reply.array(count);
  for (let i = 0; i < count; i++) {
    groups.loadGroup(i);
    reply.map(6);
    reply.bulkString('name');
    replyName(context);
    reply.bulkString('consumers');
    reply.integer(groups.consumerCount);
    reply.bulkString('pending');
    reply.integer(pending.count);
    replyProgress(context);
  }
}

/** How far the group has read: three pairs. */
function replyProgress(context: Context): void {
  const { reply } = context;
  reply.bulkString('last-delivered-id');
  replyId(context, groups.lastId);
  reply.bulkString('entries-read');
  replyCounter(context, groups.entriesRead);
  reply.bulkString('lag');
  const { entriesAdded } = stream;
  if (entriesAdded === 0) return reply.integer(0);
  let read = groups.entriesRead;
  if (read === NO_COUNTER || stream.hasHoleBehind(groups.lastId)) read = stream.countUpTo(groups.lastId);
  if (read === NO_COUNTER) reply.nil();
  else reply.integer(entriesAdded - read);
}

function replyCounter(context: Context, counter: number): void {
  if (counter === NO_COUNTER) context.reply.nil();
  else context.reply.integer(counter);
}

function streamInfo(context: Context): void {
  const { reply, argc } = context;
  if (!openToRead(context)) return;
  if (argc === 3) return replySummary(context);
  const hasCount = argc === 6 && context.argIs(4, 'COUNT');
  if (!context.argIs(3, 'FULL') || (argc !== 4 && !hasCount)) return reply.error(syntaxError(context));
  let count = hasCount ? context.argInteger(5) : COUNT_DEFAULT;
  if (Number.isNaN(count)) return reply.error(NOT_INTEGER);
  if (count < 0) count = COUNT_DEFAULT;
  replyFull(context, count === 0 ? Number.POSITIVE_INFINITY : count);
}

function syntaxError(context: Context): string {
  return `ERR unknown subcommand or wrong number of arguments for '${context.argString(1).slice(0, 128)}'. Try XINFO HELP.`;
}

/** What both forms begin with: seven pairs. */
function replyHead(context: Context): void {
  const { reply } = context;
  const nodeEntries = context.environment.settings.streamNodeMaxEntries;
  const keys = nodeEntries > 0 ? Math.ceil(stream.length / nodeEntries) : Math.min(1, stream.length);
  reply.bulkString('length');
  reply.integer(stream.length);
  reply.bulkString('radix-tree-keys');
  reply.integer(keys);
  reply.bulkString('radix-tree-nodes');
  reply.integer(keys + 1);
  reply.bulkString('last-generated-id');
  replyId(context, stream.lastId);
  reply.bulkString('max-deleted-entry-id');
  replyId(context, stream.maxDeletedId);
  reply.bulkString('entries-added');
  reply.integer(stream.entriesAdded);
  reply.bulkString('recorded-first-entry-id');
  replyId(context, stream.firstId);
}

function replySummary(context: Context): void {
  const { reply } = context;
  reply.map(10);
  replyHead(context);
  reply.bulkString('groups');
  reply.integer(groups.count);
  reply.bulkString('first-entry');
  if (stream.first()) replyEntry(context);
  else reply.nil();
  reply.bulkString('last-entry');
  if (stream.last()) replyEntry(context);
  else reply.nil();
}

function replyFull(context: Context, countMax: number): void {
  const { reply } = context;
  reply.map(9);
  replyHead(context);
  reply.bulkString('entries');
  const entries = Math.min(countMax, stream.length);
  reply.array(entries);
  stream.first();
  for (let i = entries; i > 0; i--) {
    replyEntry(context);
    stream.next();
  }
  reply.bulkString('groups');
  const { count } = groups;
  reply.array(count);
  for (let i = 0; i < count; i++) {
    groups.loadGroup(i);
    replyGroup(context, countMax);
  }
}

function replyGroup(context: Context, countMax: number): void {
  const { reply } = context;
  reply.map(7);
  reply.bulkString('name');
  replyName(context);
  replyProgress(context);
  const { count } = pending;
  reply.bulkString('pel-count');
  reply.integer(count);
  reply.bulkString('pending');
  const shown = Math.min(countMax, count);
  reply.array(shown);
  id.set(FIRST);
  for (let i = shown; i > 0; i--) {
    pending.seek(id);
    id.set(pending.id);
    reply.array(4);
    replyId(context, id);
    groups.findName(pending.consumer);
    replyName(context);
    replyDelivery(context);
    id.increment();
  }
  const consumerCount = groups.consumerCount;
  reply.bulkString('consumers');
  reply.array(consumerCount);
  for (let i = 0; i < consumerCount; i++) {
    groups.loadConsumer(i);
    replyConsumer(context, countMax);
  }
}

function replyConsumer(context: Context, countMax: number): void {
  const { reply } = context;
  const { consumer } = groups;
  reply.map(5);
  reply.bulkString('name');
  replyName(context);
  reply.bulkString('seen-time');
  reply.integer(groups.seenMs);
  reply.bulkString('active-time');
  reply.integer(groups.activeMs);
  const count = pending.countOf(consumer);
  reply.bulkString('pel-count');
  reply.integer(count);
  reply.bulkString('pending');
  const shown = Math.min(countMax, count);
  reply.array(shown);
  id.set(FIRST);
  for (let i = shown; i > 0; i--) {
    pending.seekOwned(consumer, id);
    id.set(pending.id);
    pending.find(id);
    reply.array(3);
    replyId(context, id);
    replyDelivery(context);
    id.increment();
  }
}

function replyDelivery(context: Context): void {
  context.reply.integer(pending.deliveredMs);
  context.reply.integer(pending.deliveries);
}

const KEY = keyArg('key');
const COMMON = {
  flags: Flag.READONLY,
  categories: Category.STREAM,
  keys: [keyAt(2, KeyUse.RO | KeyUse.ACCESS)],
  group: 'stream',
  since: '5.0.0',
} as const;

export const streamInfos: readonly CommandSpec[] = [
  {
    name: 'xinfo',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '5.0.0',
    group: 'stream',
    summary: 'Commands that look at streams.',
    complexity: 'Depends on the subcommand.',
    subcommands: [
      {
        ...COMMON,
        name: 'consumers',
        arity: 4,
        summary: 'Returns the consumers of a group.',
        complexity: 'O(M*log(N)) for M consumers and N entries pending',
        history: [['7.2.0', 'The field inactive.']],
        tips: ['nondeterministic_output'],
        args: [KEY, stringArg('group')],
        run: consumers,
      },
      {
        ...COMMON,
        name: 'groups',
        arity: 3,
        summary: 'Returns the consumer groups of a stream.',
        complexity: 'O(M*log(N)) for M groups and N entries pending',
        history: [['7.0.0', 'The fields entries-read and lag.']],
        args: [KEY],
        run: groupList,
      },
      {
        ...COMMON,
        name: 'stream',
        arity: -3,
        summary: 'Returns what a stream knows of itself; with FULL also its entries and groups.',
        complexity: 'O(log(N)) for N entries; with FULL O(M*log(N)) for M of what is returned',
        history: [
          ['6.0.0', 'The option FULL.'],
          ['7.0.0', 'The fields max-deleted-entry-id, entries-added, recorded-first-entry-id, entries-read and lag.'],
          ['7.2.0', 'The field active-time; seen-time says when a consumer last asked.'],
        ],
        args: [
          KEY,
          blockArg('full-block', [tokenArg('FULL'), integerArg('count', { token: 'COUNT', optional: true })], {
            optional: true,
          }),
        ],
        run: streamInfo,
      },
      helpCommand('xinfo', 'stream', Category.STREAM, '5.0.0'),
    ],
  },
];
