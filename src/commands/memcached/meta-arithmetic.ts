/**
 * ma: meta arithmetic.
 *
 *   ma key flags*        -> HD flags* | VA bytes flags* CR LF number | NF | NS | EX
 *
 * Heeds b c C D E J k M N O q t T v.
 */
import { Counter } from '../../layout/counters.js';
import { Lower, Upper } from '../../protocol/memcached/meta-flags.js';
import { Replies } from '../../protocol/memcached/replies.js';
import type { MemcachedContext } from './context.js';
import { applyDelta, createNumber, DeltaResult } from './delta.js';
import { MetaCode, MetaMode } from './meta-codes.js';

const FLAGS_START = 2;

export function metaArithmetic(context: MemcachedContext): void {
  const { keyspace, flags, reply } = context;
  context.counters[Counter.cmdMeta]++;
  const error = context.takeMeta(FLAGS_START);
  if (error !== null) {
    return reply.line(error === Replies.BAD_FORMAT ? error : Replies.INVALID_OR_DUPLICATE_FLAG);
  }
  let isIncrement = true;
  switch (flags.mode) {
    case 0:
    case MetaMode.INCREMENT:
    case MetaMode.PLUS:
      break;
    case MetaMode.DECREMENT:
    case MetaMode.MINUS:
      isIncrement = false;
      break;
    default:
      return reply.line(Replies.BAD_ARITHMETIC_MODE);
  }
  context.delta.copy(flags.delta);
  const compareCas = (flags.upper & Upper.C) !== 0 ? flags.compareCas : 0;
  reply.reserveHeader();
  const h = context.hashKey();
  context.lock(h);
  let result = applyDelta(context, h, isIncrement, compareCas);
  let isCreated = false;
  if (result === DeltaResult.NOT_FOUND && (flags.upper & Upper.N) !== 0) {
    context.number.copy(flags.initial);
    isCreated = createNumber(context, h, 0);
    result = isCreated ? DeltaResult.DONE : DeltaResult.NO_MEMORY;
  }
  if (result === DeltaResult.DONE) {
    if ((flags.upper & Upper.E) !== 0 && flags.newCas > 0) keyspace.setVersion(flags.newCas);
    done(context, isCreated);
  }
  context.unlock(h);
  if (result !== DeltaResult.DONE) failed(context, result);
}

/** Writes the reply for the item under the cursor and sets its expiry as the flags say, in their order. */
function done(context: MemcachedContext, isCreated: boolean): void {
  const { keyspace, flags, reply, number } = context;
  let expiryMs = keyspace.expiryMs;
  const isSilent = flags.isQuiet;
  const sendsValue = (flags.lower & Lower.v) !== 0;
  if (!isSilent) {
    if (sendsValue) reply.beginMetaValue(number.digits);
    else reply.beginMeta(MetaCode.HD);
  }
  for (let i = FLAGS_START; i < context.tokenCount; i++) {
    const letter = context.input.u8[context.tokenOffset(i)];
    if (letter === 0x54) expiryMs = context.expiryMs(flags.ttl);
    else if (letter === 0x4e && isCreated) expiryMs = context.expiryMs(flags.vivifyTtl);
    else if (isSilent) continue;
    else if (letter === 0x63) reply.metaNumber(letter, context.version);
    else if (letter === 0x74) {
      reply.metaNumber(letter, expiryMs === 0 ? -1 : Math.max(0, context.secondsLeft(expiryMs)));
    } else context.echoMetaToken(i, letter);
  }
  if (!isSilent) {
    reply.endMeta();
    if (sendsValue) reply.number(number);
  }
  if (expiryMs !== keyspace.expiryMs) keyspace.setExpiry(expiryMs);
}

function failed(context: MemcachedContext, result: DeltaResult): void {
  const { reply } = context;
  switch (result) {
    case DeltaResult.NON_NUMERIC:
      return reply.line(Replies.NON_NUMERIC);
    case DeltaResult.WRONG_TYPE:
      return reply.line(Replies.WRONG_TYPE);
    case DeltaResult.NO_MEMORY:
      return reply.line(Replies.NO_MEMORY);
    default:
      reply.beginMeta(result === DeltaResult.EXISTS ? MetaCode.EX : MetaCode.NF);
      context.echoMetaTokens(FLAGS_START);
      reply.endMeta();
  }
}
