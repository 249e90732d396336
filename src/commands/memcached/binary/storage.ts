/** set add replace append prepend of the binary protocol, and their quiet forms. A cas in the header makes each of the first three a cas. */
import { Counter } from '../../../layout/counters.js';
import { BinaryRecord, readCas, readUint32 } from '../../../protocol/memcached/binary.js';
import { BinaryHeader, Opcode, Status } from '../../../protocol/memcached/binary-codes.js';
import type { MemcachedContext } from '../context.js';
import { dropOld, fitsItemSize, isAppending, StoreMode, StoreRequest, StoreResult, store } from '../store.js';

const request = new StoreRequest();

const MODES: StoreMode[] = [];
MODES[Opcode.SET] = StoreMode.SET;
MODES[Opcode.SETQ] = StoreMode.SET;
MODES[Opcode.ADD] = StoreMode.ADD;
MODES[Opcode.ADDQ] = StoreMode.ADD;
MODES[Opcode.REPLACE] = StoreMode.REPLACE;
MODES[Opcode.REPLACEQ] = StoreMode.REPLACE;
MODES[Opcode.APPEND] = StoreMode.APPEND;
MODES[Opcode.APPENDQ] = StoreMode.APPEND;
MODES[Opcode.PREPEND] = StoreMode.PREPEND;
MODES[Opcode.PREPENDQ] = StoreMode.PREPEND;

export function isStorageOpcode(opcode: number): boolean {
  return MODES[opcode] !== undefined;
}

export function isAppendOpcode(opcode: number): boolean {
  return isAppending(MODES[opcode]);
}

/** Fills `request` and the context's key; OK, or the error that the command meets whatever its value is. */
export function prepareStore(context: MemcachedContext): Status {
  const { u8 } = context.input;
  const start = context.binaryWord(BinaryRecord.start);
  context.takeBinaryKey();
  request.reset(
    MODES[context.binaryWord(BinaryRecord.opcode)],
    context.binaryWord(BinaryRecord.valueOffset),
    context.binaryWord(BinaryRecord.valueLength),
  );
  request.wantsVersion = true;
  request.compareCas = readCas(u8, start);
  if (!isAppending(request.mode)) {
    request.clientFlags = readUint32(u8, start + BinaryHeader.BYTES);
    request.expiryMs = context.expiryMs(readUint32(u8, start + BinaryHeader.BYTES + 4));
  }
  if (!fitsItemSize(context, context.keyLength, request.valueBytes, request.clientFlags)) {
    context.counters[Counter.storeTooLarge]++;
    // The old value must not outlive a set that the client believes to have done.
    if (request.mode === StoreMode.SET) dropOld(context, context.hashKey());
    return Status.TOO_LARGE;
  }
  if (request.compareCas !== 0 && !isAppending(request.mode)) request.mode = StoreMode.CAS;
  return Status.OK;
}

export function storeBinary(context: MemcachedContext): void {
  const { binary } = context.reply;
  const status = prepareStore(context);
  if (status !== Status.OK) return binary.error(status);
  const result = store(context, request);
  if (result !== StoreResult.STORED) return binary.error(statusOf(result, request.mode));
  if (!context.isQuiet) binary.done(request.version);
}

function statusOf(result: StoreResult, mode: StoreMode): Status {
  switch (result) {
    case StoreResult.EXISTS:
      return Status.EXISTS;
    case StoreResult.NOT_FOUND:
      return Status.NOT_FOUND;
    case StoreResult.WRONG_TYPE:
      return Status.NOT_SUPPORTED;
    case StoreResult.NO_MEMORY:
      return Status.NO_MEMORY;
    case StoreResult.TOO_LARGE:
      return Status.TOO_LARGE;
    default:
      if (mode === StoreMode.ADD) return Status.EXISTS;
      return mode === StoreMode.REPLACE ? Status.NOT_FOUND : Status.NOT_STORED;
  }
}
