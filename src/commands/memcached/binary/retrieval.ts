/** get getk gat gatk touch of the binary protocol, and their quiet forms, which say nothing of a miss. */
import { BinaryRecord, readUint32 } from '../../../protocol/memcached/binary.js';
import { BinaryHeader, Status } from '../../../protocol/memcached/binary-codes.js';
import type { MemcachedContext } from '../context.js';
import { countRetrieval, findString, Lookup } from '../effects.js';
import { writeValue } from '../value.js';

export function get(context: MemcachedContext): void {
  retrieve(context, false, false, true);
}

export function getWithKey(context: MemcachedContext): void {
  retrieve(context, true, false, true);
}

export function getAndTouch(context: MemcachedContext): void {
  retrieve(context, false, true, true);
}

export function getAndTouchWithKey(context: MemcachedContext): void {
  retrieve(context, true, true, true);
}

export function touch(context: MemcachedContext): void {
  retrieve(context, false, true, false);
}

function retrieve(context: MemcachedContext, withKey: boolean, isTouching: boolean, withValue: boolean): void {
  const { keyspace, key, keyOffset, keyLength } = context;
  const { binary } = context.reply;
  // Room for the head is made before the lock: a full buffer is a system call.
  binary.reserveHead();
  const h = context.hashKey();
  context.lock(h);
  if (findString(context, h) !== Lookup.HIT) {
    context.unlock(h);
    countRetrieval(context, isTouching, false);
    if (context.isQuiet) return;
    if (withKey) binary.missOf(key, keyOffset, keyLength);
    else binary.error(Status.NOT_FOUND);
    return;
  }
  const valueBytes = withValue ? keyspace.valueLength : 0;
  binary.hit(keyspace.clientFlags, key, keyOffset, withKey ? keyLength : 0, valueBytes, context.version);
  keyspace.access();
  if (withValue) writeValue(context);
  if (isTouching) {
    const extras = context.binaryWord(BinaryRecord.start) + BinaryHeader.BYTES;
    keyspace.setExpiry(context.expiryMs(readUint32(context.input.u8, extras)));
  }
  context.unlock(h);
  countRetrieval(context, isTouching, true);
}
