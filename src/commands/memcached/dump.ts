/**
 * Dumps of keys: lru_crawler metadump and mgdump, stats cachedump. Bounded work in one turn; what a turn has no time for hangs on the
 * client (KeyDump) and the driver comes back to it.
 *
 * Invariant: a key that is there from beginning to end is shown once or more, whatever happens meanwhile.
 */
import { ItemType } from '../../layout/item.js';
import { MAX_REPLY_BYTES_PER_TURN } from '../../protocol/driver.js';
import { encodeBase64 } from '../../protocol/memcached/base64.js';
import { Replies } from '../../protocol/memcached/replies.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { KeyDump } from './client.js';
import { DB, type MemcachedContext } from './context.js';
import { encodeKey } from './watch.js';

/** Buckets of one turn: less than a millisecond's work in a sparse index. */
const BUCKETS_PER_TURN = 2048;
const META_END = new TextEncoder().encode('EN\r\n');

/** Begins a dump: the driver sees client.dump and calls goOnDumping, at once and until it is done. */
export function beginDump(
  context: MemcachedContext,
  format: KeyDump['format'],
  classes: readonly number[],
  limit: number,
): void {
  context.client.dump = { cursor: 0, classes, format, left: limit };
}

/** True when the dump is done, its end written. */
export function goOnDumping(context: MemcachedContext, dump: KeyDump): boolean {
  const { keyspace, reply } = context;
  const { output } = reply;
  const start = output.written;
  const visit = (at: Keyspace): void => {
    if (at.type !== ItemType.STRING || dump.left === 0) return;
    if (dump.classes.length > 0 && !dump.classes.includes(at.slabClass)) return;
    dump.left--;
    reply.text(lineOf(context, dump.format));
  };
  for (let buckets = 0; buckets < BUCKETS_PER_TURN; buckets++) {
    if (output.written - start > MAX_REPLY_BYTES_PER_TURN) return false;
    dump.cursor = keyspace.scan(DB, dump.cursor, visit);
    if (dump.cursor === 0 || dump.left === 0) {
      reply.line(dump.format === 'mgdump' ? META_END : Replies.END);
      return true;
    }
  }
  return false;
}

function lineOf(context: MemcachedContext, format: KeyDump['format']): string {
  const { keyspace } = context;
  const { u8 } = keyspace.keyBytes;
  const { keyOffset, keyLength, valueLength, expiryMs } = keyspace;
  const expiry = expiryMs === 0 ? -1 : Math.ceil(expiryMs / 1000);
  switch (format) {
    case 'metadump': {
      const key = encodeKey(u8, keyOffset, keyLength);
      const lastAccess = Math.floor(keyspace.nowMs / 1000) - keyspace.accessAgeS;
      const fetch = keyspace.isFetched ? 'yes' : 'no';
      return `key=${key} exp=${expiry} la=${lastAccess} cas=${context.version} fetch=${fetch} cls=${keyspace.slabClass} size=${keyspace.memoryUsage}\n`;
    }
    case 'mgdump':
      return `mg ${metaKey(u8, keyOffset, keyLength)}\r\n`;
    case 'cachedump':
      return `ITEM ${latin1(u8, keyOffset, keyLength)} [${valueLength} b; ${Math.max(0, expiry)} s]\r\n`;
  }
}

function latin1(u8: Uint8Array, offset: number, length: number): string {
  return Buffer.from(u8.slice(offset, offset + length)).toString('latin1');
}

/** A key as a meta command takes it: in base64, with the flag b, when it has bytes that a line cannot hold. */
function metaKey(u8: Uint8Array, offset: number, length: number): string {
  for (let i = offset; i < offset + length; i++) {
    if (u8[i] > 32 && u8[i] < 127) continue;
    const encoded = new Uint8Array(Math.ceil(length / 3) * 4);
    return `${latin1(encoded, 0, encodeBase64(encoded, 0, u8, offset, length))} b`;
  }
  return latin1(u8, offset, length);
}
