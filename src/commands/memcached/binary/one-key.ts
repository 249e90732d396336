/** delete incr decr of the binary protocol, and their quiet forms. */
import { BinaryRecord, readCas, readUint32 } from '../../../protocol/memcached/binary.js';
import { BinaryHeader, Opcode, Status } from '../../../protocol/memcached/binary-codes.js';
import type { MemcachedContext } from '../context.js';
import { applyDelta, createNumber, DeltaResult } from '../delta.js';
import { RemoveResult, removeString } from '../effects.js';

const DELTA_AT = BinaryHeader.BYTES;
const INITIAL_AT = BinaryHeader.BYTES + 8;
const EXPIRY_AT = BinaryHeader.BYTES + 16;
/** An expiry that says: do not create. */
const NO_CREATE = 0xffffffff;

export function deleteKey(context: MemcachedContext): void {
  const { binary } = context.reply;
  switch (removeString(context, readCas(context.input.u8, context.binaryWord(BinaryRecord.start)))) {
    case RemoveResult.DONE:
      if (!context.isQuiet) binary.done(0);
      return;
    case RemoveResult.EXISTS:
      return binary.error(Status.EXISTS);
    case RemoveResult.WRONG_TYPE:
      return binary.error(Status.NOT_SUPPORTED);
    default:
      return binary.error(Status.NOT_FOUND);
  }
}

export function arithmetic(context: MemcachedContext): void {
  const { delta, number } = context;
  const { u8 } = context.input;
  const { binary } = context.reply;
  const start = context.binaryWord(BinaryRecord.start);
  const opcode = context.binaryWord(BinaryRecord.opcode);
  const isIncrement = opcode === Opcode.INCREMENT || opcode === Opcode.INCREMENTQ;
  const expiry = readUint32(u8, start + EXPIRY_AT);
  delta.readBinary(u8, start + DELTA_AT);
  const h = context.hashKey();
  context.lock(h);
  let result = applyDelta(context, h, isIncrement, readCas(u8, start));
  if (result === DeltaResult.NOT_FOUND && expiry !== NO_CREATE) {
    number.readBinary(u8, start + INITIAL_AT);
    result = createNumber(context, h, context.expiryMs(expiry)) ? DeltaResult.DONE : DeltaResult.NO_MEMORY;
  }
  const version = result === DeltaResult.DONE ? context.version : 0;
  context.unlock(h);
  switch (result) {
    case DeltaResult.DONE:
      if (!context.isQuiet) binary.number(number, version);
      return;
    case DeltaResult.NON_NUMERIC:
      return binary.error(Status.NON_NUMERIC);
    case DeltaResult.EXISTS:
      return binary.error(Status.EXISTS);
    case DeltaResult.WRONG_TYPE:
      return binary.error(Status.NOT_SUPPORTED);
    case DeltaResult.NO_MEMORY:
      return binary.error(Status.NO_MEMORY);
    default:
      return binary.error(Status.NOT_FOUND);
  }
}
