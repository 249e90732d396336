/**
 * mg and me: meta get and meta debug.
 *
 *   mg key flags*     -> VA bytes flags* CR LF data | HD flags* | EN
 *   me key [b]        -> ME key exp= la= cas= fetch= cls= size= | EN
 *
 * mg heeds b c C E f h k l N O q R s t T u v, in the order given. Stale items and won tokens: an item is STALE after an
 * invalidation, and at most one client at a time holds the token to recache it (W); the others see Z.
 */
import { Counter } from '../../layout/counters.js';
import { Encoding, ItemType } from '../../layout/item.js';
import { Lower, Upper } from '../../protocol/memcached/meta-flags.js';
import { Replies } from '../../protocol/memcached/replies.js';
import type { MemcachedContext } from './context.js';
import { countRetrieval } from './effects.js';
import { MetaCode } from './meta-codes.js';
import { writeValue } from './value.js';

const FLAGS_START = 2;

/** What a lookup for mg ended in. */
const enum Lookup {
  MISS = 0,
  HIT = 1,
  CREATED = 2,
  WRONG_TYPE = 3,
}

export function metaGet(context: MemcachedContext): void {
  const { counters, flags, reply } = context;
  counters[Counter.cmdMeta]++;
  const error = context.takeMeta(FLAGS_START);
  if (error !== null) return reply.line(error);
  reply.reserveHeader();
  const h = context.hashKey();
  context.lock(h);
  const lookup = lookUp(context, h);
  const isTouching = (flags.upper & Upper.T) !== 0;
  if (lookup === Lookup.HIT || lookup === Lookup.CREATED) {
    hit(context, lookup === Lookup.CREATED);
    context.unlock(h);
    return countRetrieval(context, isTouching, true);
  }
  context.unlock(h);
  countRetrieval(context, isTouching, false);
  if (lookup === Lookup.WRONG_TYPE) return reply.line(Replies.WRONG_TYPE);
  if (flags.isQuiet) return;
  reply.beginMeta(MetaCode.EN);
  context.echoMetaTokens(FLAGS_START);
  reply.endMeta();
}

/** Leaves the cursor on the item of a hit. A miss with N makes an empty item that this client is to fill. */
function lookUp(context: MemcachedContext, h: number): Lookup {
  const { keyspace, flags } = context;
  const vivifies = (flags.upper & Upper.N) !== 0;
  if (context.lookUp(h)) {
    if (keyspace.type === ItemType.STRING) return Lookup.HIT;
    return vivifies ? Lookup.WRONG_TYPE : Lookup.MISS;
  }
  if (!vivifies) return Lookup.MISS;
  if (!context.stageKey(h, 0)) {
    context.counters[Counter.storeNoMemory]++;
    return Lookup.MISS;
  }
  // Without expiry for now: the flags set it in their order, and an expired item could not be found.
  if (!keyspace.commit(ItemType.STRING, 0, 0, 0)) {
    context.counters[Counter.storeNoMemory]++;
    return Lookup.MISS;
  }
  if ((flags.upper & Upper.E) !== 0 && flags.newCas > 0) keyspace.setVersion(flags.newCas);
  return Lookup.CREATED;
}

/** Writes the reply for the item under the cursor and changes the item as the flags say. */
function hit(context: MemcachedContext, isCreated: boolean): void {
  const { keyspace, flags, reply, input } = context;
  const u8 = input.u8;
  const state = keyspace.stateFlags;
  const { version } = context;
  const valueBytes = keyspace.valueLength;
  let expiryMs = keyspace.expiryMs;
  let hasWon = false;
  const isUnchanged = (flags.upper & Upper.C) !== 0 && flags.compareCas === version;
  const sendsValue = (flags.lower & Lower.v) !== 0 && !isUnchanged;
  if (sendsValue) reply.beginMetaValue(valueBytes);
  else reply.beginMeta(MetaCode.HD);

  const last = context.tokenCount;
  for (let i = FLAGS_START; i < last; i++) {
    const letter = u8[context.tokenOffset(i)];
    switch (letter) {
      case 0x54: // T
        expiryMs = context.expiryMs(flags.ttl);
        break;
      case 0x4e: // N
        if (isCreated) {
          expiryMs = context.expiryMs(flags.vivifyTtl);
          hasWon = true;
        }
        break;
      case 0x52: // R
        if (!isCreated && (state & Encoding.WIN_SENT) === 0 && expiryMs !== 0) {
          const recacheMs = context.expiryMs(flags.recacheTtl);
          if (context.secondsLeft(expiryMs) < context.secondsLeft(recacheMs)) hasWon = true;
        }
        break;
      case 0x73: // s
        reply.metaNumber(letter, valueBytes);
        break;
      case 0x74: // t
        reply.metaNumber(letter, expiryMs === 0 ? -1 : Math.max(0, context.secondsLeft(expiryMs)));
        break;
      case 0x63: // c
        reply.metaNumber(letter, version);
        break;
      case 0x66: // f
        reply.metaNumber(letter, keyspace.clientFlags);
        break;
      case 0x6c: // l
        reply.metaNumber(letter, keyspace.accessAgeS);
        break;
      case 0x68: // h
        reply.metaNumber(letter, keyspace.isFetched ? 1 : 0);
        break;
      default:
        context.echoMetaToken(i, letter);
    }
  }
  if ((state & Encoding.WIN_SENT) !== 0) reply.metaFlag(0x5a); // Z
  if ((state & Encoding.STALE) !== 0) {
    reply.metaFlag(0x58); // X
    if ((state & Encoding.WIN_SENT) === 0) hasWon = true;
  }
  if (hasWon) reply.metaFlag(0x57); // W
  reply.endMeta();

  if (sendsValue) {
    writeValue(context);
    reply.crlf();
  }
  if ((flags.lower & Lower.u) === 0) keyspace.access();
  if (hasWon) keyspace.setStateFlags((state & Encoding.STALE) | Encoding.WIN_SENT);
  if (expiryMs !== keyspace.expiryMs) keyspace.setExpiry(expiryMs);
}

export function metaDebug(context: MemcachedContext): void {
  const { keyspace, reply } = context;
  context.counters[Counter.cmdMeta]++;
  const error = context.takeMeta(FLAGS_START);
  if (error !== null) return reply.line(Replies.BAD_FORMAT);
  reply.reserveHeader();
  const h = context.hashKey();
  context.lock(h);
  if (!context.findKey(h)) {
    context.unlock(h);
    return reply.line(Replies.META_MISS);
  }
  const left = keyspace.expiryMs === 0 ? -1 : Math.max(0, context.secondsLeft(keyspace.expiryMs));
  const fetched = keyspace.isFetched ? 'yes' : 'no';
  const text =
    ` exp=${left} la=${keyspace.accessAgeS} cas=${context.version} fetch=${fetched}` +
    ` cls=${keyspace.type} size=${keyspace.memoryUsage}\r\n`;
  context.unlock(h);
  reply.debugKey(context.key, context.keyOffset, context.keyLength, context.flags.isBinaryKey);
  reply.text(text);
}
