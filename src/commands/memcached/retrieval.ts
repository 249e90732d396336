/**
 * get gets gat gats: any number of keys.
 *
 *   get k*        gat exptime k*        -> for each hit: VALUE k flags bytes [version] CR LF data CR LF; then END
 *
 * A line of more than MAX_TOKENS words may go on for as long as the input buffer allows, so it is done in pieces: what a
 * turn has no time for hangs on the client (LongRetrieval) and the driver comes back to it.
 */
import { MAX_REPLY_BYTES_PER_TURN, MAX_REQUESTS_PER_TURN } from '../../protocol/driver.js';
import { INVALID_INT32 } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, MAX_KEY_BYTES, Request, RequestFlag } from '../../protocol/memcached/request.js';
import { LongRetrieval } from './client.js';
import type { MemcachedContext } from './context.js';
import { countRetrieval, findString, Lookup } from './effects.js';
import { writeValue } from './value.js';

const SPACE = 32;
/** A header without version. */
const NO_VERSION = -1;
/** No new expiry. */
const KEEP_TTL = -1;
/** Fewer keys than this are not worth two passes. */
const PREFETCH_MIN = 4;
const LOOK_AHEAD_KEYS = 64;

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
  const count = context.tokenCount;
  const hasMore = (context.word(Request.flags) & RequestFlag.MORE_TOKENS) !== 0;
  if (!areKeysShort(context, first, hasMore)) return context.reply.line(Replies.BAD_FORMAT);
  if (hasMore || (count - first >= PREFETCH_MIN && context.keyspace.prefetchWorthwhile)) {
    return begin(context, context.tokenOffset(first), withVersion, expiryMs);
  }
  for (let i = first; i < count; i++) {
    context.takeKey(i);
    retrieveKey(context, withVersion, expiryMs);
  }
  context.reply.line(Replies.END);
}

/** The retrieval in hand; a copy hangs on the client when it is not done at once. */
const current = new LongRetrieval();

function begin(context: MemcachedContext, position: number, withVersion: boolean, expiryMs: number): void {
  const lineEnd = context.word(Request.lineEnd);
  current.withVersion = withVersion;
  current.expiryMs = expiryMs;
  current.leftBytes = lineEnd - position;
  current.endBytes = context.word(Request.next) - lineEnd;
  context.isHashKnown = false;
  const consumed = goOn(context, current, position);
  if (current.leftBytes === 0) return;
  context.client.retrieval = current.copy();
  context.setNext(consumed);
}

const hashes = new Int32Array(LOOK_AHEAD_KEYS);

/** First pass over the next keys: all their cache misses overlap. Returns how many keys. */
function lookAhead(context: MemcachedContext, position: number, lineEnd: number): number {
  let at = position;
  let count = 0;
  while (count < LOOK_AHEAD_KEYS && nextKey(context, at, lineEnd) > 0) {
    hashes[count++] = context.hashKey();
    at = context.keyOffset + context.keyLength;
  }
  context.keyspace.prefetch(hashes, count);
  return count;
}

/**
 * Goes on with a long retrieval, whose rest begins at `position` of the context's input; returns the offset up to which it
 * is done, line end included when it is done with. A datagram's is done at once, or cut off when its reply is too large.
 */
export function goOn(context: MemcachedContext, long: LongRetrieval, position: number): number {
  const { output } = context.reply;
  const lineEnd = position + long.leftBytes;
  const start = output.written;
  const isDatagram = context.client.conn < 0;
  const looksAhead = context.keyspace.prefetchWorthwhile;
  let at = position;
  let ahead = 0;
  let known = 0;
  for (let keys = 0; isDatagram || keys < MAX_REQUESTS_PER_TURN; keys++) {
    if (output.written - start > MAX_REPLY_BYTES_PER_TURN) break;
    if (looksAhead && ahead === known) {
      known = lookAhead(context, at, lineEnd);
      ahead = 0;
    }
    if (nextKey(context, at, lineEnd) === 0) {
      at = lineEnd;
      break;
    }
    if (ahead < known) {
      context.isHashKnown = true;
      context.keyspace.expect(ahead);
      context.knownHash = hashes[ahead++];
    }
    retrieveKey(context, long.withVersion, long.expiryMs);
    at = context.keyOffset + context.keyLength;
  }
  if (at < lineEnd && !isDatagram) {
    long.leftBytes = lineEnd - at;
    return at;
  }
  long.leftBytes = 0;
  context.reply.line(Replies.END);
  return lineEnd + long.endBytes;
}

/** One key too long spoils the whole command, before any value is sent. */
function areKeysShort(context: MemcachedContext, first: number, hasMore: boolean): boolean {
  const count = context.tokenCount;
  for (let i = first; i < count; i++) if (context.tokenLength(i) > MAX_KEY_BYTES) return false;
  if (!hasMore) return true;
  const lineEnd = context.word(Request.lineEnd);
  let at = context.tokenOffset(count - 1) + context.tokenLength(count - 1);
  while (nextKey(context, at, lineEnd) > 0) {
    if (context.keyLength > MAX_KEY_BYTES) return false;
    at = context.keyOffset + context.keyLength;
  }
  return true;
}

/** Takes the next key of a line from `offset` on; returns its length, 0 at the end. */
function nextKey(context: MemcachedContext, offset: number, lineEnd: number): number {
  const u8 = context.input.u8;
  let i = offset;
  while (i < lineEnd && u8[i] === SPACE) i++;
  context.key = context.input;
  context.keyOffset = i;
  while (i < lineEnd && u8[i] !== SPACE) i++;
  context.keyLength = i - context.keyOffset;
  return context.keyLength;
}

function retrieveKey(context: MemcachedContext, withVersion: boolean, expiryMs: number): void {
  const { keyspace, reply } = context;
  const isTouching = expiryMs !== KEEP_TTL;
  // Room for the header is made before the lock: a full buffer is a system call.
  reply.reserveHeader();
  const h = context.hashKey();
  context.lock(h);
  if (findString(context, h) !== Lookup.HIT) {
    context.unlock(h);
    return countRetrieval(context, isTouching, false);
  }
  reply.valueHeader(
    context.key,
    context.keyOffset,
    context.keyLength,
    keyspace.clientFlags,
    keyspace.valueLength,
    withVersion ? context.version : NO_VERSION,
  );
  keyspace.access();
  writeValue(context);
  if (isTouching) keyspace.setExpiry(expiryMs);
  context.unlock(h);
  reply.crlf();
  countRetrieval(context, isTouching, true);
}
