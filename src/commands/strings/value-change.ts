/**
 * Changing the bytes of a string that is there: in place where the item allows it, else on a staged copy.
 *
 *   if (!beginChange(context, from, length, newLength, Encoding.RAW)) return;   // an error has been replied
 *   changing.bytes.u8[changing.offset + from] = ...
 *   if (!endChange(context)) return;
 *
 * Invariant: between begin and end the handler writes only [from, from + length); bytes between the old end and `from` are
 * zero. Client flags and expiry stay, the encoding bits become the given ones.
 */
import type { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';

/** Above this, a value that grows gets room to grow on: its pages would be copied for each further page otherwise. */
const ROOM_FROM_BYTES = 256 * 1024;
const ROOM_MAX_BYTES = 16 * 1024 * 1024;

/** Where the value of the change in hand lies; a worker runs one command at a time. */
export const changing = {
  bytes: null as unknown as Bytes,
  offset: 0,
  staged: false,
  encoding: 0,
  clientFlags: 0,
  expiryMs: 0,
};

/** Opens the found item of argument 1 for a change of `length` bytes at `from`, after which it is `newLength` bytes long. */
export function beginChange(
  context: Context,
  from: number,
  length: number,
  newLength: number,
  encoding: number,
): boolean {
  const keyspace = context.keyspace;
  const oldLength = keyspace.valueLength;
  const overlap = Math.min(oldLength, from + length) - from;
  if (
    (overlap <= 0 || keyspace.edit(from, overlap)) &&
    (newLength === oldLength || keyspace.resize(newLength)) &&
    (keyspace.encoding === encoding || keyspace.setEncoding(encoding))
  ) {
    changing.bytes = keyspace.value;
    changing.offset = keyspace.valueOffset;
    changing.staged = false;
  } else {
    changing.clientFlags = keyspace.clientFlags;
    changing.expiryMs = keyspace.expiryMs;
    if (!stageGrowing(context, newLength, newLength > oldLength)) return false;
    copyBytes(
      keyspace.staged,
      keyspace.stagedOffset,
      keyspace.value,
      keyspace.valueOffset,
      Math.min(oldLength, newLength),
    );
    openStaged(context, encoding);
  }
  if (from > oldLength) changing.bytes.u8.fill(0, changing.offset + oldLength, changing.offset + from);
  return true;
}

/** The same for a key that does not exist: `length` zero bytes. */
export function beginNew(context: Context, length: number, encoding: number): boolean {
  changing.clientFlags = 0;
  changing.expiryMs = 0;
  if (!stageGrowing(context, length, false)) return false;
  openStaged(context, encoding);
  changing.bytes.u8.fill(0, changing.offset, changing.offset + length);
  return true;
}

/** Makes the change stand; false = an error has been replied. */
export function endChange(context: Context): boolean {
  if (!changing.staged) return true;
  changing.staged = false;
  if (context.keyspace.commit(ItemType.STRING, changing.encoding, changing.clientFlags, changing.expiryMs)) return true;
  context.reply.error(NO_MEMORY);
  return false;
}

function openStaged(context: Context, encoding: number): void {
  changing.bytes = context.keyspace.staged;
  changing.offset = context.keyspace.stagedOffset;
  changing.staged = true;
  changing.encoding = encoding;
}

function stageGrowing(context: Context, length: number, grows: boolean): boolean {
  if (grows && length > ROOM_FROM_BYTES) {
    const room = Math.min(length >>> 2, ROOM_MAX_BYTES);
    if (context.stage(context.keyHash, 1, length + room)) {
      context.keyspace.shrinkStaged(length);
      return true;
    }
  }
  if (context.stage(context.keyHash, 1, length)) return true;
  context.reply.error(NO_MEMORY);
  return false;
}
