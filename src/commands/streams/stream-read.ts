/**
 * Reading what is new: XREAD, and what XREADGROUP has in common with it. A handler runs again for a waiting client whenever one of its keys
 * has changed (messaging/blocked).
 *
 * Owns: the parsed request. Invariant: the arguments that `findStreamKeys` names are those that `parseRead` reads as keys, since these are
 * locked.
 */
import { ItemType } from '../../layout/item.js';
import { ReplyType } from '../../protocol/resp/reply.js';
import { StreamId } from '../../store/streams/stream-id.js';
import { blockArg, integerArg, keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { isLong, replyElements } from '../long-work.js';
import { WaitReply } from '../messaging/blocked.js';
import { timeoutMsArg } from '../messaging/wait.js';
import { Category, type CommandSpec, Flag, type KeySpec, KeyUse } from '../spec.js';
import { argIsCharacter, idArg, openStream, replyEntry, stream } from './stream-arguments.js';

const NO_GROUP_OPTION = 'ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.';
const NO_NOACK_OPTION = 'ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.';
const GREATER_IN_XREAD =
  'ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.';

const DOLLAR = 0x24;
export const GREATER = 0x3e;

/** The request of the running command. */
export const read = {
  /** -1 = it does not wait. */
  timeoutMs: -1,
  countMax: Number.POSITIVE_INFINITY,
  /** Arguments that name group and consumer; 0 = there is none. */
  group: 0,
  consumer: 0,
  acknowledges: true,
  /** First key, how many there are; their ids follow. */
  firstKey: 0,
  keys: 0,
};

/** Which keys have something to read. */
let isServed = new Uint8Array(16);

/** Reads all options; false after an error reply. */
export function parseRead(context: Context, isGroup: boolean): boolean {
  const { argc } = context;
  read.timeoutMs = -1;
  read.countMax = Number.POSITIVE_INFINITY;
  read.group = 0;
  read.acknowledges = true;
  read.firstKey = 0;
  for (let i = 1; i < argc && read.firstKey === 0; i++) {
    const more = argc - i - 1;
    if (context.argIs(i, 'BLOCK') && more > 0) {
      if (!context.executor.hub.isOf(context.executor)) {
        return refuse(context, `ERR ${context.argString(0)} command is not allowed with BLOCK option from scripts`);
      }
      read.timeoutMs = timeoutMsArg(context, ++i);
      if (read.timeoutMs < 0) return false;
    } else if (context.argIs(i, 'COUNT') && more > 0) {
      const count = context.argInteger(++i);
      if (Number.isNaN(count)) return refuse(context, NOT_INTEGER);
      read.countMax = count > 0 ? count : Number.POSITIVE_INFINITY;
    } else if (context.argIs(i, 'STREAMS') && more > 0) {
      if (more % 2 === 1) return refuse(context, unbalanced(context, isGroup));
      read.firstKey = i + 1;
      read.keys = more / 2;
    } else if (context.argIs(i, 'GROUP') && more >= 2) {
      if (!isGroup) return refuse(context, NO_GROUP_OPTION);
      read.group = i + 1;
      read.consumer = i + 2;
      i += 2;
    } else if (context.argIs(i, 'NOACK')) {
      if (!isGroup) return refuse(context, NO_NOACK_OPTION);
      read.acknowledges = false;
    } else {
      return refuse(context, SYNTAX);
    }
  }
  if (read.firstKey === 0) return refuse(context, SYNTAX);
  if (isServed.length < read.keys) isServed = new Uint8Array(read.keys * 2);
  return true;
}

function unbalanced(context: Context, isGroup: boolean): string {
  const id = isGroup ? '>' : '$';
  const name = context.command.fullName;
  return `ERR Unbalanced '${name}' list of streams: for each stream key an ID or '${id}' must be specified.`;
}

function refuse(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/** Arguments of the keys of XREAD and XREADGROUP. */
export function findStreamKeys(context: Context, add: (argument: number, use: number) => void): void {
  const { argc } = context;
  let i = 1;
  for (; i < argc && !context.argIs(i, 'STREAMS'); i++) {
    if (context.argIs(i, 'BLOCK') || context.argIs(i, 'COUNT')) i++;
    else if (context.argIs(i, 'GROUP')) i += 2;
    else if (!context.argIs(i, 'NOACK')) return;
  }
  const words = argc - i - 1;
  if (words <= 0 || words % 2 === 1) return;
  for (let k = 1; k <= words / 2; k++) add(i + k, KeyUse.RO | KeyUse.ACCESS);
}

const STREAM_KEYS: KeySpec = {
  use: KeyUse.RO | KeyUse.ACCESS,
  begin: { keyword: 'STREAMS', from: 1 },
  find: { last: -1, step: 1, limit: 2 },
};

export const STREAM_GROUP_KEYS: KeySpec = { ...STREAM_KEYS, begin: { keyword: 'STREAMS', from: 4 } };

/** Argument of key `k`, and of its id. */
export function keyArgument(k: number): number {
  return read.firstKey + k;
}

export function idArgument(k: number): number {
  return read.firstKey + read.keys + k;
}

/** Opens the stream of key `k`, if the command may look at it and it exists; false after a WRONGTYPE reply. */
export function openKey(context: Context, k: number): boolean {
  return openStream(context, context.keyHashes[k], keyArgument(k));
}

/** Begins the reply of so many streams. */
export function beginStreams(context: Context, count: number): void {
  if (context.reply.protocol > 2) context.reply.map(count);
  else context.reply.array(count);
}

/** Begins one stream's part of the reply. */
export function beginStream(context: Context, k: number): void {
  const { reply } = context;
  if (reply.protocol === 2) reply.array(2);
  const argument = keyArgument(k);
  reply.bulk(context.input, context.argOffset(argument), context.argLength(argument));
}

// ---- XREAD

const id = new StreamId();

/** The id in whose place a waiting request has `$`, by key; empty = none. */
const lastIds: string[] = [];

function xread(context: Context): void {
  if (!parseRead(context, false)) return;
  const { keys } = read;
  let served = 0;
  let dollars = 0;
  for (let k = 0; k < keys; k++) {
    isServed[k] = 0;
    lastIds[k] = '';
    if (!context.mayUse(k)) continue;
    if (!openKey(context, k)) return;
    const i = idArgument(k);
    if (argIsCharacter(context, i, DOLLAR)) {
      lastIds[k] = stream.lastId.toString();
      dollars++;
      continue;
    }
    if (argIsCharacter(context, i, GREATER)) return context.reply.error(GREATER_IN_XREAD);
    if (!idArg(context, i, id)) return;
    if (!stream.collection.exists) {
      if (!context.isRetry) context.miss();
      continue;
    }
    if (stream.loadLastId() && stream.id.compare(id) > 0) {
      isServed[k] = 1;
      served++;
    }
  }
  if (served === 0) return wait(context, dollars);
  if (keys === 1 && !context.isRetry) {
    idArg(context, idArgument(0), id);
    id.increment();
    stream.seek(id);
    const count = followingCount();
    if (isLong(count)) return replyLong(context, count);
  }
  beginStreams(context, served);
  for (let k = 0; k < keys; k++) {
    if (isServed[k] === 0) continue;
    // Of one key alone the stream is still open.
    if (keys > 1) openKey(context, k);
    context.hit();
    idArg(context, idArgument(k), id);
    id.increment();
    stream.seek(id);
    beginStream(context, k);
    replyFollowing(context);
  }
}

/** Entries from the position on, as many as are asked for. */
function followingCount(): number {
  const { collection } = stream;
  return Math.min(read.countMax, collection.count - collection.rank);
}

/** Replies so many entries of the one key from the position on, over several turns. */
function replyLong(context: Context, count: number): void {
  context.hit();
  const key = context.argString(keyArgument(0));
  const before = `${context.reply.protocol > 2 ? '%1\r\n' : '*1\r\n*2\r\n'}$${key.length}\r\n${key}\r\n`;
  const { collection } = stream;
  replyElements(context, collection, collection.rank, count, false, ReplyType.ARRAY, visitEntry, before);
}

function visitEntry(context: Context): number {
  replyEntry(context);
  return 1;
}

/** Replies the entries from the position on, as many as are asked for. */
function replyFollowing(context: Context): void {
  const count = followingCount();
  context.reply.array(count);
  for (let i = count; i > 0; i--) {
    replyEntry(context);
    stream.next();
  }
}

/** There is nothing: the client waits, if it asked for that. With `$` it waits for what comes after now. */
function wait(context: Context, dollars: number): void {
  if (read.timeoutMs < 0) return context.reply.nilArray();
  const { timeoutMs } = read;
  const options = { type: ItemType.STREAM, timeoutMs, onTimeout: WaitReply.NIL_ARRAY };
  if (dollars === 0 || !context.canBlock) return context.block(options);
  const request: Uint8Array[] = [];
  for (let i = 0; i < context.argc; i++) {
    const lastId = i < idArgument(0) ? '' : lastIds[i - idArgument(0)];
    request.push(lastId === '' ? context.argBytes(i) : Buffer.from(lastId));
  }
  context.block({ ...options, request });
}

const KEYS_AND_IDS = [keyArg('key', { multiple: true }), stringArg('id', { multiple: true })];
export const STREAMS_ARG = blockArg('streams', KEYS_AND_IDS, { token: 'STREAMS' });
export const COUNT_ARG = integerArg('count', { token: 'COUNT', optional: true });
export const BLOCK_ARG = integerArg('milliseconds', { token: 'BLOCK', optional: true });

export const streamReads: readonly CommandSpec[] = [
  {
    name: 'xread',
    arity: -4,
    flags: Flag.READONLY | Flag.BLOCKING,
    categories: Category.STREAM,
    keys: [STREAM_KEYS],
    findKeys: findStreamKeys,
    since: '5.0.0',
    group: 'stream',
    summary: 'Returns the entries behind given ids of several streams; waits for some when asked to.',
    complexity: 'O(log(N)+M) for each stream, of N entries, and M returned',
    args: [COUNT_ARG, BLOCK_ARG, STREAMS_ARG],
    run: xread,
  },
];
