/**
 * XREADGROUP: entries that are new to a group, or what a consumer has not acknowledged. The handler runs again for a waiting client whenever
 * one of its keys has changed (messaging/blocked), also when the key or the group has gone.
 *
 * Invariant: what is replied as new is pending by then; a retry that finds nothing changes nothing, or waiters would wake one another for ever.
 */
import { ItemType } from '../../layout/item.js';
import { NO_COUNTER } from '../../layout/stream.js';
import { Change } from '../../store/collections/collection.js';
import { StreamId } from '../../store/streams/stream-id.js';
import { blockArg, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';
import { WaitReply } from '../messaging/blocked.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { argIsCharacter, idArg, replyEntry, replyId, stream } from './stream-arguments.js';
import { findConsumerArg, findGroupArg, groups, pending } from './stream-group-arguments.js';
import {
  BLOCK_ARG,
  beginStream,
  beginStreams,
  COUNT_ARG,
  findStreamKeys,
  GREATER,
  idArgument,
  keyArgument,
  openKey,
  parseRead,
  read,
  STREAM_GROUP_KEYS,
  STREAMS_ARG,
} from './stream-read.js';

const NO_GROUP = 'ERR Missing GROUP option for XREADGROUP';
const DOLLAR_IN_GROUP =
  'ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.';
const DOLLAR = 0x24;

/** What is to be replied of a key. */
const enum Part {
  NOTHING = 0,
  NEW = 1,
  HISTORY = 2,
}

let parts = new Uint8Array(16);
/** How many new entries of a key, and where they begin. */
let counts = new Float64Array(16);
const firstIds: StreamId[] = [];
const id = new StreamId();

function xreadGroup(context: Context): void {
  if (!parseRead(context, true)) return;
  if (read.group === 0) return context.reply.error(NO_GROUP);
  const served = look(context);
  if (served < 0 || !beConsumer(context, served > 0)) return;
  if (served === 0) return wait(context);
  const { keys } = read;
  beginStreams(context, served);
  for (let k = 0; k < keys; k++) {
    if (parts[k] === Part.NOTHING) continue;
    openKey(context, k);
    context.hit();
    beginStream(context, k);
    if (parts[k] === Part.NEW) replyNew(context, k);
    else replyHistory(context, k);
  }
}

/** Looks what there is for each key; returns how many have something, -1 after an error reply. */
function look(context: Context): number {
  const { keys } = read;
  if (parts.length < keys) {
    parts = new Uint8Array(keys * 2);
    counts = new Float64Array(keys * 2);
  }
  let served = 0;
  for (let k = 0; k < keys; k++) {
    parts[k] = Part.NOTHING;
    if (!context.mayUse(k)) continue;
    if (!openKey(context, k)) return -1;
    if (!findGroupArg(context, read.group)) return refuse(context, noGroup(context, k));
    const i = idArgument(k);
    if (argIsCharacter(context, i, DOLLAR)) return refuse(context, DOLLAR_IN_GROUP);
    if (argIsCharacter(context, i, GREATER)) {
      if (stream.loadLastId() && stream.id.compare(groups.lastId) > 0) parts[k] = Part.NEW;
    } else {
      if (!idArg(context, i, id)) return -1;
      parts[k] = Part.HISTORY;
    }
    if (parts[k] !== Part.NOTHING) served++;
  }
  return served;
}

function refuse(context: Context, text: string): -1 {
  context.reply.error(text);
  return -1;
}

function noGroup(context: Context, k: number): string {
  const key = context.argString(keyArgument(k));
  const group = context.argString(read.group);
  return `NOGROUP No such key '${key}' or consumer group '${group}' in XREADGROUP with GROUP option`;
}

/** Makes the consumer in all groups, and gives it what is new there; false after an error reply. A retry does so only where it is served. */
function beConsumer(context: Context, isServed: boolean): boolean {
  if (context.isRetry && !isServed) return true;
  const { keys } = read;
  for (let k = 0; k < keys; k++) {
    if (!context.mayUse(k)) continue;
    if (keys > 1) {
      openKey(context, k);
      findGroupArg(context, read.group);
    }
    if (!findConsumerArg(context, read.consumer, keyArgument(k))) {
      context.reply.error(NO_MEMORY);
      return false;
    }
    groups.seenMs = context.wallMs;
    if (parts[k] === Part.NEW && !deliver(context, k)) {
      context.reply.error(NO_MEMORY);
      return false;
    }
    groups.saveConsumer();
  }
  return true;
}

/** Notes as delivered what is new in the open stream: as many as are asked for, or fit. False = not even one. */
function deliver(context: Context, k: number): boolean {
  const { collection } = stream;
  const { acknowledges } = read;
  firstIds[k] ??= new StreamId();
  const first = firstIds[k];
  first.set(groups.lastId);
  first.increment();
  stream.findFirst();
  const mayBePending = acknowledges && pending.seekLast() && pending.id.compare(first) >= 0;
  stream.seek(first);
  const wanted = Math.min(read.countMax, collection.count - collection.rank);
  let delivered = 0;
  for (; delivered < wanted; delivered++) {
    stream.loadId();
    if (acknowledges && !makePending(context, mayBePending)) break;
    advance();
    stream.next();
  }
  counts[k] = delivered;
  if (delivered === 0) return false;
  if (acknowledges) groups.activeMs = context.wallMs;
  groups.save();
  return true;
}

/** The entry at the position becomes pending for the consumer, also when it was for another one (XGROUP SETID). */
function makePending(context: Context, mayBePending: boolean): boolean {
  const { consumer } = groups;
  if (!mayBePending || !pending.find(stream.id)) {
    return pending.add(stream.id, consumer, context.wallMs, 1) === Change.DONE;
  }
  pending.deliveredMs = context.wallMs;
  pending.deliveries = 1;
  return pending.save(consumer) === Change.DONE;
}

/** The group has read the entry at the position. */
function advance(): void {
  if (groups.entriesRead !== NO_COUNTER && !stream.hasHoleBehind(stream.id)) groups.entriesRead++;
  else if (stream.entriesAdded > 0) groups.entriesRead = stream.countUpTo(stream.id);
  groups.lastId.set(stream.id);
}

function replyNew(context: Context, k: number): void {
  const count = counts[k];
  context.reply.array(count);
  stream.seek(firstIds[k]);
  for (let i = count; i > 0; i--) {
    replyEntry(context);
    stream.next();
  }
}

/** Replies what is pending for the consumer behind the given id; what is still in the stream counts as delivered once more. */
function replyHistory(context: Context, k: number): void {
  const { reply } = context;
  idArg(context, idArgument(k), id);
  findGroupArg(context, read.group);
  findConsumerArg(context, read.consumer, keyArgument(k));
  const { consumer } = groups;
  // Behind the largest id there is nothing.
  const count = id.increment() ? Math.min(read.countMax, pending.countOwnedFrom(consumer, id)) : 0;
  reply.array(count);
  for (let i = count; i > 0; i--) {
    pending.seekOwned(consumer, id);
    id.set(pending.id);
    if (stream.find(id)) {
      replyEntry(context);
      pending.find(id);
      pending.deliveredMs = context.wallMs;
      pending.deliveries++;
      pending.save(consumer);
    } else {
      reply.array(2);
      replyId(context, id);
      reply.nilArray();
    }
    id.increment();
  }
}

function wait(context: Context): void {
  if (read.timeoutMs < 0) return context.reply.nilArray();
  const { timeoutMs } = read;
  context.block({ type: ItemType.STREAM, timeoutMs, onTimeout: WaitReply.NIL_ARRAY, untilGone: true });
}

export const streamGroupReads: readonly CommandSpec[] = [
  {
    name: 'xreadgroup',
    arity: -7,
    flags: Flag.WRITE | Flag.BLOCKING,
    categories: Category.STREAM,
    keys: [STREAM_GROUP_KEYS],
    findKeys: findStreamKeys,
    since: '5.0.0',
    group: 'stream',
    summary:
      'Gives a consumer entries that are new to its group, or returns what it has not acknowledged; waits when asked to.',
    complexity: 'O(M*log(N)) for each stream, M entries returned and N of them in the stream or pending',
    args: [
      blockArg('group-block', [stringArg('group'), stringArg('consumer')], { token: 'GROUP' }),
      COUNT_ARG,
      BLOCK_ARG,
      tokenArg('NOACK', { optional: true }),
      STREAMS_ARG,
    ],
    run: xreadGroup,
  },
];
