/** What a client that waits gets when its time is up. */
import type { Context } from '../context.js';

export const enum WaitReply {
  NIL = 0,
  NIL_ARRAY = 1,
  /** :0 (WAIT). */
  ZERO = 2,
}

export function replyTimeout(context: Context, onTimeout: WaitReply): void {
  if (onTimeout === WaitReply.NIL_ARRAY) context.reply.nilArray();
  else if (onTimeout === WaitReply.ZERO) context.reply.integer(0);
  else context.reply.nil();
}
