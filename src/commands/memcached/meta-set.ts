/**
 * ms: meta set.
 *
 *   ms key bytes flags*        -> HD | NS | EX | NF, then the return flags
 *
 * Heeds b c C E F I k M N O q s T.
 */
import { Counter } from '../../layout/counters.js';
import { Upper } from '../../protocol/memcached/meta-flags.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { Request, RequestFlag } from '../../protocol/memcached/request.js';
import type { MemcachedContext } from './context.js';
import { MetaCode, MetaMode } from './meta-codes.js';
import { dropOld, fitsItemSize, isAppending, StoreMode, StoreRequest, StoreResult, store } from './store.js';

const request = new StoreRequest();

/** Tokens before the flags: ms, key, bytes. */
export const META_SET_FLAGS_START = 3;

export function metaSet(context: MemcachedContext): void {
  const { reply, flags } = context;
  context.counters[Counter.cmdMeta]++;
  const error = context.takeMeta(META_SET_FLAGS_START) ?? prepareMetaSet(context);
  if (error !== null) return reply.line(error);
  if ((context.word(Request.flags) & RequestFlag.BAD_CHUNK) !== 0) return reply.line(Replies.BAD_CHUNK);
  const result = store(context, request);
  switch (result) {
    case StoreResult.STORED:
      if (!flags.isQuiet) answer(context, MetaCode.HD);
      return;
    case StoreResult.NOT_STORED:
      return answer(context, MetaCode.NS);
    case StoreResult.EXISTS:
      return answer(context, MetaCode.EX);
    case StoreResult.NOT_FOUND:
      return answer(context, MetaCode.NF);
    case StoreResult.WRONG_TYPE:
      return reply.line(Replies.WRONG_TYPE);
    default:
      return reply.line(Replies.NO_MEMORY_STORING);
  }
}

/** Fills `request` from the flags, which have been taken. The error that the command meets whatever its data block is, or null. */
export function prepareMetaSet(context: MemcachedContext): Uint8Array | null {
  const { flags } = context;
  if (context.word(Request.valueOffset) < 0 && !context.isValueStaged) return Replies.BAD_FORMAT;
  request.reset(StoreMode.SET, context.word(Request.valueOffset), context.word(Request.valueLength));
  if (flags.mode !== 0) {
    const mode = modeOf(flags.mode);
    if (mode === StoreMode.INVALID) return Replies.BAD_SET_MODE;
    request.mode = mode;
  }
  request.clientFlags = flags.clientFlags;
  if ((flags.upper & Upper.T) !== 0) request.expiryMs = context.expiryMs(flags.ttl);
  if ((flags.upper & Upper.E) !== 0) request.newCas = flags.newCas;
  if (isAppending(request.mode) && (flags.upper & Upper.N) !== 0) {
    request.vivifies = true;
    request.expiryMs = context.expiryMs(flags.vivifyTtl);
  }
  if ((flags.upper & Upper.C) !== 0) {
    request.compareCas = flags.compareCas;
    // A version to compare makes a set, or a replace, a cas.
    if (request.mode === StoreMode.SET || request.mode === StoreMode.REPLACE) {
      request.mode = StoreMode.CAS;
      request.allowsStale = (flags.upper & Upper.I) !== 0;
    }
  }
  request.wantsVersion = flags.wantsCas;
  if (fitsItemSize(context, context.keyLength, context.word(Request.valueLength), request.clientFlags)) return null;
  context.counters[Counter.storeTooLarge]++;
  dropOld(context, context.hashKey());
  return Replies.TOO_LARGE;
}

function modeOf(letter: number): StoreMode {
  switch (letter) {
    case MetaMode.SET:
      return StoreMode.SET;
    case MetaMode.ADD:
      return StoreMode.ADD;
    case MetaMode.APPEND:
      return StoreMode.APPEND;
    case MetaMode.PREPEND:
      return StoreMode.PREPEND;
    case MetaMode.REPLACE:
      return StoreMode.REPLACE;
    default:
      return StoreMode.INVALID;
  }
}

function answer(context: MemcachedContext, code: MetaCode): void {
  const { reply, input } = context;
  reply.beginMeta(code);
  for (let i = META_SET_FLAGS_START; i < context.tokenCount; i++) {
    const letter = input.u8[context.tokenOffset(i)];
    if (letter === 0x63) reply.metaNumber(letter, request.version);
    else if (letter === 0x73) reply.metaNumber(letter, request.valueBytes);
    else context.echoMetaToken(i, letter);
  }
  reply.endMeta();
}
