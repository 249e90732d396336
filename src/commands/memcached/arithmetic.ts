/**
 * incr and decr.
 *
 *   incr key delta [noreply]        -> the new number | NOT_FOUND
 */
import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, Request } from '../../protocol/memcached/request.js';
import type { MemcachedContext } from './context.js';
import { applyDelta, DeltaResult } from './delta.js';

export function arithmetic(context: MemcachedContext): void {
  if (!context.takeKey(1)) return context.answer(Replies.BAD_FORMAT);
  if (!context.delta.parse(context.input.u8, context.tokenOffset(2), context.tokenLength(2))) {
    return context.answer(Replies.BAD_DELTA);
  }
  const h = context.hashKey();
  context.lock(h);
  const result = applyDelta(context, h, context.word(Request.command) === CommandCode.INCR, 0);
  context.unlock(h);
  switch (result) {
    case DeltaResult.DONE:
      if (!context.hasNoreply) context.reply.number(context.number);
      return;
    case DeltaResult.NON_NUMERIC:
      return context.answer(Replies.NON_NUMERIC);
    case DeltaResult.WRONG_TYPE:
      return context.answer(Replies.WRONG_TYPE);
    case DeltaResult.NO_MEMORY:
      return context.answer(Replies.NO_MEMORY);
    default:
      return context.answer(Replies.NOT_FOUND);
  }
}
