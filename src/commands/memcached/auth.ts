/**
 * Authentication as in memcached's text protocol: before anything else the client sends a set (any key, flags, exptime)
 * whose data block is "user password". The user is `default`, the password the server's (requirepass).
 */
import { timingSafeEqual } from 'node:crypto';
import { Counter } from '../../layout/counters.js';
import { Closing } from '../../protocol/driver.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, Request, RequestFlag } from '../../protocol/memcached/request.js';
import type { MemcachedContext } from './context.js';

/** Longest "user password". */
export const MAX_CREDENTIALS_BYTES = 16_384;
const USER = 'default';

/** What a client that is not authenticated gets for its request. */
export function authenticate(context: MemcachedContext): void {
  const { client, reply, counters } = context;
  const command = context.word(Request.command);
  if (command === CommandCode.QUIT) {
    client.closing = Closing.AFTER_REPLY;
    return;
  }
  if (command !== CommandCode.SET || context.word(Request.valueOffset) < 0) return reply.line(Replies.UNAUTHENTICATED);
  if (context.word(Request.valueLength) > MAX_CREDENTIALS_BYTES) return reply.line(Replies.AUTH_TOO_LONG);
  if ((context.word(Request.flags) & RequestFlag.BAD_CHUNK) !== 0) return reply.line(Replies.AUTH_TERMINATION);
  const offset = context.word(Request.valueOffset);
  const credentials = Buffer.from(context.input.u8.slice(offset, offset + context.word(Request.valueLength)));
  const space = credentials.indexOf(32);
  if (space < 0) return reply.line(Replies.AUTH_FORMAT);
  counters[Counter.authCmds]++;
  const user = credentials.subarray(0, space).toString('latin1');
  const isRight = isSame(credentials.subarray(space + 1), Buffer.from(context.settings.requirepass));
  if (user !== USER || !isRight) {
    counters[Counter.authErrors]++;
    counters[Counter.authFailures]++;
    return reply.line(Replies.AUTH_FAILED);
  }
  client.isAuthenticated = true;
  reply.line(Replies.STORED);
}

/** Takes as long for a wrong password as for the right one. */
function isSame(given: Buffer, expected: Buffer): boolean {
  const padded = Buffer.alloc(expected.length);
  given.copy(padded);
  return timingSafeEqual(padded, expected) && given.length === expected.length;
}
