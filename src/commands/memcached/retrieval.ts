/**
 * get gets gat gats: any number of keys.
 *
 *   get k*        gat exptime k*        -> for each hit: VALUE k flags bytes [version] CR LF data CR LF; then END
 */
import { Counter } from '../../layout/counters.js';
import { ItemType } from '../../layout/item.js';
import { INVALID_INT32 } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, MAX_KEY_BYTES, Request, RequestFlag } from '../../protocol/memcached/request.js';
import type { MemcachedContext } from './context.js';
import { writeValue } from './value.js';

const SPACE = 32;
/** No new expiry. */
const KEEP_TTL = -1;

export function retrieve(context: MemcachedContext): void {
  const command = context.word(Request.command);
  const isTouching = command === CommandCode.GAT || command === CommandCode.GATS;
  const withVersion = command === CommandCode.GETS || command === CommandCode.GATS;
  let expiryMs = KEEP_TTL;
  let first = 1;
  if (isTouching) {
    const seconds = context.tokenInt32(1);
    if (seconds === INVALID_INT32) return context.reply.line(Replies.BAD_EXPTIME);
    expiryMs = context.expiryMs(seconds);
    first = 2;
  }
  const hasMore = (context.word(Request.flags) & RequestFlag.MORE_TOKENS) !== 0;
  if (!areKeysShort(context, first, hasMore)) return context.reply.line(Replies.BAD_FORMAT);
  for (let i = first; i < context.tokenCount; i++) {
    context.takeKey(i);
    retrieveKey(context, withVersion, expiryMs);
  }
  if (hasMore) {
    let length = nextKey(
      context,
      context.tokenOffset(context.tokenCount - 1) + context.tokenLength(context.tokenCount - 1),
    );
    while (length > 0) {
      retrieveKey(context, withVersion, expiryMs);
      length = nextKey(context, context.keyOffset + length);
    }
  }
  context.reply.line(Replies.END);
}

/** One key too long spoils the whole command, before any value is sent. */
function areKeysShort(context: MemcachedContext, first: number, hasMore: boolean): boolean {
  const count = context.tokenCount;
  for (let i = first; i < count; i++) if (context.tokenLength(i) > MAX_KEY_BYTES) return false;
  if (!hasMore) return true;
  let length = nextKey(context, context.tokenOffset(count - 1) + context.tokenLength(count - 1));
  while (length > 0) {
    if (length > MAX_KEY_BYTES) return false;
    length = nextKey(context, context.keyOffset + length);
  }
  return true;
}

/** Takes the next key of the line from `offset` on, behind the recorded tokens; returns its length, 0 at the end. */
function nextKey(context: MemcachedContext, offset: number): number {
  const u8 = context.input.u8;
  const end = context.word(Request.lineEnd);
  let i = offset;
  while (i < end && u8[i] === SPACE) i++;
  context.key = context.input;
  context.keyOffset = i;
  while (i < end && u8[i] !== SPACE) i++;
  context.keyLength = i - context.keyOffset;
  return context.keyLength;
}

function retrieveKey(context: MemcachedContext, withVersion: boolean, expiryMs: number): void {
  const { keyspace, counters, reply } = context;
  const isTouching = expiryMs !== KEEP_TTL;
  counters[isTouching ? Counter.cmdTouch : Counter.cmdGet]++;
  // Room for the header is made before the lock: a full buffer is a system call.
  reply.reserveHeader();
  const h = context.hashKey();
  context.lock(h);
  if (!context.findKey(h) || keyspace.type !== ItemType.STRING) {
    context.unlock(h);
    counters[Counter.misses]++;
    counters[isTouching ? Counter.touchMisses : Counter.getMisses]++;
    return;
  }
  reply.valueHeader(
    context.key,
    context.keyOffset,
    context.keyLength,
    keyspace.clientFlags,
    keyspace.valueLength,
    withVersion ? keyspace.version : 0,
  );
  keyspace.access();
  writeValue(context);
  if (isTouching) keyspace.setExpiry(expiryMs);
  context.unlock(h);
  reply.crlf();
  counters[Counter.hits]++;
  counters[isTouching ? Counter.touchHits : Counter.getHits]++;
}
