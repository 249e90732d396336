/**
 * md: meta delete.
 *
 *   md key flags*        -> HD | NF | EX, then the return flags
 *
 * Heeds b C E I k O q T x. With I the item stays, marked stale under a new version, and the next client that reads it
 * wins the right to recache; with x its value goes and the item stays.
 */
import { ClassCounter } from '../../layout/class-counters.js';
import { Counter } from '../../layout/counters.js';
import { Encoding, ItemType } from '../../layout/item.js';
import { Lower, Upper } from '../../protocol/memcached/meta-flags.js';
import { Replies } from '../../protocol/memcached/replies.js';
import type { MemcachedContext } from './context.js';
import { MetaCode } from './meta-codes.js';

const FLAGS_START = 2;

const enum DeleteResult {
  DONE = 0,
  NOT_FOUND = 1,
  EXISTS = 2,
  WRONG_TYPE = 3,
  NO_MEMORY = 4,
}

export function metaDelete(context: MemcachedContext): void {
  const { counters, flags, reply } = context;
  counters[Counter.cmdMeta]++;
  const error = context.takeMeta(FLAGS_START);
  if (error !== null) return reply.line(error);
  if (context.prefixes.isOn) context.prefixes.delete();
  const h = context.hashKey();
  context.lock(h);
  const result = remove(context, h);
  context.unlock(h);
  switch (result) {
    case DeleteResult.DONE:
      counters[Counter.deleteHits]++;
      if (flags.isQuiet) return;
      return answer(context, MetaCode.HD);
    case DeleteResult.NOT_FOUND:
      counters[Counter.deleteMisses]++;
      return answer(context, MetaCode.NF);
    case DeleteResult.EXISTS:
      counters[Counter.deleteMisses]++;
      return answer(context, MetaCode.EX);
    case DeleteResult.WRONG_TYPE:
      return reply.line(Replies.WRONG_TYPE);
    case DeleteResult.NO_MEMORY:
      return reply.line(Replies.NO_MEMORY);
  }
}

function remove(context: MemcachedContext, h: number): DeleteResult {
  const { keyspace, flags } = context;
  if (keyspace.isRebuilding) keyspace.noteWritten(h);
  if (!context.lookUp(h)) return DeleteResult.NOT_FOUND;
  if (keyspace.type !== ItemType.STRING) return DeleteResult.WRONG_TYPE;
  if ((flags.upper & Upper.C) !== 0 && flags.compareCas !== context.version) return DeleteResult.EXISTS;
  const invalidates = (flags.upper & Upper.I) !== 0;
  const empties = (flags.lower & Lower.x) !== 0;
  if (!invalidates && !empties) {
    context.countInClass(ClassCounter.deleteHits);
    keyspace.remove();
    return DeleteResult.DONE;
  }
  const hasTtl = (flags.upper & Upper.T) !== 0;
  const newCas = (flags.upper & Upper.E) !== 0 ? flags.newCas : 0;
  if (empties) {
    const { version } = keyspace;
    if (!context.stageKey(h, 0)) return DeleteResult.NO_MEMORY;
    if (!context.findKey(h)) throw new Error('an item under its lock is gone after staging');
    if (!keyspace.commit(ItemType.STRING, 0, flags.clientFlags, 0)) return DeleteResult.NO_MEMORY;
    // Emptied but not invalidated, it keeps its version.
    if (!invalidates) keyspace.setVersion(newCas > 0 ? newCas : version);
  } else if (!renew(context)) {
    return DeleteResult.NO_MEMORY;
  }
  if (invalidates) {
    if (newCas > 0) keyspace.setVersion(newCas);
    // The token is free again: the next client may win it.
    keyspace.setStateFlags(Encoding.STALE);
  }
  if (hasTtl) keyspace.setExpiry(context.expiryMs(flags.ttl));
  context.countInClass(ClassCounter.deleteHits);
  return DeleteResult.DONE;
}

/** Gives the item under the cursor the next version and a place where it can be changed. */
function renew(context: MemcachedContext): boolean {
  return context.keyspace.edit(0, 0) || context.keyspace.rewrite(context.keyspace.encoding);
}

function answer(context: MemcachedContext, code: MetaCode): void {
  context.reply.beginMeta(code);
  context.echoMetaTokens(FLAGS_START);
  context.reply.endMeta();
}
