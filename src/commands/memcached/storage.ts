/**
 * set add replace append prepend cas: the classic storage commands.
 *
 *   set k flags exptime bytes [noreply]      cas k flags exptime bytes version [noreply]
 */
import { Counter } from '../../layout/counters.js';
import { INVALID_INT32, INVALID_UNSIGNED, parseUint32, parseUnsigned } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, Request, RequestFlag } from '../../protocol/memcached/request.js';
import type { MemcachedContext } from './context.js';
import { dropOld, fitsItemSize, StoreMode, StoreRequest, StoreResult, store } from './store.js';

const request = new StoreRequest();

const MODES: StoreMode[] = [];
MODES[CommandCode.SET] = StoreMode.SET;
MODES[CommandCode.ADD] = StoreMode.ADD;
MODES[CommandCode.REPLACE] = StoreMode.REPLACE;
MODES[CommandCode.APPEND] = StoreMode.APPEND;
MODES[CommandCode.PREPEND] = StoreMode.PREPEND;
MODES[CommandCode.CAS] = StoreMode.CAS;

/** Reply lines by StoreResult. */
const REPLIES: Uint8Array[] = [];
REPLIES[StoreResult.STORED] = Replies.STORED;
REPLIES[StoreResult.NOT_STORED] = Replies.NOT_STORED;
REPLIES[StoreResult.EXISTS] = Replies.EXISTS;
REPLIES[StoreResult.NOT_FOUND] = Replies.NOT_FOUND;
REPLIES[StoreResult.TOO_LARGE] = Replies.TOO_LARGE;
REPLIES[StoreResult.NO_MEMORY] = Replies.NO_MEMORY_STORING;
REPLIES[StoreResult.WRONG_TYPE] = Replies.WRONG_TYPE;

export function storeClassic(context: MemcachedContext): void {
  const error = prepareClassic(context);
  if (error !== null) return context.answer(error);
  if ((context.word(Request.flags) & RequestFlag.BAD_CHUNK) !== 0) return context.answer(Replies.BAD_CHUNK);
  context.answer(REPLIES[store(context, request)]);
}

/**
 * Fills `request` and the context's key. Answers the error that the command meets whatever its data block is, or null.
 * The driver asks as soon as the line is there: a client need not send a megabyte to learn that it is too much.
 */
export function prepareClassic(context: MemcachedContext): Uint8Array | null {
  const u8 = context.input.u8;
  const command = context.word(Request.command);
  const isCas = command === CommandCode.CAS;
  if (!context.takeKey(1)) return Replies.BAD_FORMAT;
  request.reset(MODES[command], context.word(Request.valueOffset), context.word(Request.valueLength));
  request.clientFlags = parseUint32(u8, context.tokenOffset(2), context.tokenLength(2));
  const seconds = context.tokenInt32(3);
  if (request.clientFlags === INVALID_UNSIGNED || seconds === INVALID_INT32) return Replies.BAD_FORMAT;
  if (context.word(Request.valueOffset) < 0 && !context.isValueStaged) return Replies.BAD_FORMAT;
  request.expiryMs = context.expiryMs(seconds);
  if (isCas) {
    request.compareCas = parseUnsigned(u8, context.tokenOffset(5), context.tokenLength(5));
    if (request.compareCas === INVALID_UNSIGNED) return Replies.BAD_FORMAT;
  }
  if (fitsItemSize(context, context.keyLength, context.word(Request.valueLength), request.clientFlags)) return null;
  context.counters[Counter.storeTooLarge]++;
  // As for want of memory: the old value must not outlive a set that the client believes to have done.
  if (request.mode === StoreMode.SET) dropOld(context, context.hashKey());
  return Replies.TOO_LARGE;
}
