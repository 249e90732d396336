/**
 * Authentication as in memcached's text protocol: before anything else the client sends a set (any key, flags, exptime)
 * whose data block is "user password". Which users there are is the affair of credentials.ts.
 */
import { Counter } from '../../layout/counters.js';
import { Closing } from '../../protocol/driver.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, Request, RequestFlag } from '../../protocol/memcached/request.js';
import type { MemcachedContext } from './context.js';

/** Longest "user password". */
export const MAX_CREDENTIALS_BYTES = 16_384;
const SPACE = 32;

/** What a client that is not authenticated gets for its request. */
export function authenticate(context: MemcachedContext): void {
  const { client, reply } = context;
  const command = context.word(Request.command);
  if (command === CommandCode.QUIT) {
    client.closing = Closing.AFTER_REPLY;
    return;
  }
  if (command !== CommandCode.SET || context.word(Request.valueOffset) < 0) return reply.line(Replies.UNAUTHENTICATED);
  if (context.word(Request.valueLength) > MAX_CREDENTIALS_BYTES) return reply.line(Replies.AUTH_TOO_LONG);
  if ((context.word(Request.flags) & RequestFlag.BAD_CHUNK) !== 0) return reply.line(Replies.AUTH_TERMINATION);
  const offset = context.word(Request.valueOffset);
  const given = context.input.u8.slice(offset, offset + context.word(Request.valueLength));
  const space = given.indexOf(SPACE);
  if (space < 0 || space === given.length - 1) return reply.line(Replies.AUTH_FORMAT);
  const isRight = context.credentials.areRight(given.subarray(0, space), given.subarray(space + 1));
  countAuthentication(context.counters, isRight);
  if (!isRight) return reply.line(Replies.AUTH_FAILED);
  client.isAuthenticated = true;
  reply.line(Replies.STORED);
}

export function countAuthentication(counters: Float64Array, isRight: boolean): void {
  counters[Counter.authCmds]++;
  if (isRight) return;
  counters[Counter.authErrors]++;
  counters[Counter.authFailures]++;
}
