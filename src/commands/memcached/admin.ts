/**
 * flush_all version quit shutdown mn, and unknown commands.
 */
import { Closing } from '../../protocol/driver.js';
import { INVALID_INT32 } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { Request, RequestFlag } from '../../protocol/memcached/request.js';
import type { MemcachedContext } from './context.js';
import { flush } from './effects.js';
import { VERSION } from './version.js';

/** flush_all [delay] [noreply]. With a delay, what is stored by then goes then. */
export function flushAll(context: MemcachedContext): void {
  if (!context.settings.memcachedFlush) return context.answer(Replies.FLUSH_OFF);
  let seconds = 0;
  if (context.tokenCount !== (context.hasNoreply ? 2 : 1)) {
    seconds = context.tokenInt32(1);
    if (seconds === INVALID_INT32) return context.answer(Replies.BAD_EXPTIME);
  }
  flush(context, seconds);
  context.answer(Replies.OK);
}

export function version(context: MemcachedContext): void {
  context.reply.text(`VERSION ${VERSION}\r\n`);
}

export function quit(context: MemcachedContext): void {
  context.client.closing = Closing.AFTER_REPLY;
}

/** shutdown [graceful]: both are graceful here. */
export function shutdown(context: MemcachedContext): void {
  const { client, control, reply } = context;
  if (control === null || !context.settings.enableShutdown) return reply.line(Replies.SHUTDOWN_OFF);
  if (context.tokenCount > 2 || (context.tokenCount === 2 && context.tokenText(1) !== 'graceful')) {
    return reply.line(Replies.BAD_SHUTDOWN_MODE);
  }
  client.suspended = true;
  control.askMain(client, 'shutdown', { abort: false, saves: false, isForced: false }, (error) => {
    if (error !== null) reply.text(`SERVER_ERROR ${error}\r\n`);
  });
}

export function metaNoop(context: MemcachedContext): void {
  context.reply.line(Replies.META_NOOP);
}

/** ERROR, but a web browser or a proxy that tries HTTP is not answered line by line: its connection is closed. */
export function unknown(context: MemcachedContext): void {
  const last = context.tokenCount - 1;
  if (last > 0 && (context.word(Request.flags) & RequestFlag.MORE_TOKENS) === 0 && isHttp(context, last)) {
    context.client.isFaulty = true;
    context.client.closing = Closing.NOW;
    return;
  }
  context.reply.line(Replies.ERROR);
}

const HTTP = new TextEncoder().encode('HTTP/');

function isHttp(context: MemcachedContext, token: number): boolean {
  if (context.tokenLength(token) < HTTP.length) return false;
  const offset = context.tokenOffset(token);
  for (let i = 0; i < HTTP.length; i++) if (context.input.u8[offset + i] !== HTTP[i]) return false;
  return true;
}
