/**
 * What DUMP replies of a key and MIGRATE sends: its value as RDB, with version and checksum behind it.
 *
 * Owns the one writer of this thread. Invariant: what `payloadOf` returns is valid until it is called again.
 */
import { RdbType, TRAILER_BYTES, Version } from '../../rdb/format.js';
import { sealPayload } from '../../rdb/payload.js';
import { ValueWriter } from '../../rdb/value-writer.js';
import { RdbWriter } from '../../rdb/writer.js';
import type { Context } from '../context.js';

const writer = new RdbWriter();
const values = new ValueWriter(writer);

/** Of the key in argument `i`, whose hash is `hash` and which has just been found: its bytes are those of the writer. Null: nothing of it is left. */
export function payloadOf(context: Context, hash: number, i: number): RdbWriter | null {
  const { keyspace, environment } = context;
  const { rdbVersion, rdbcompression, listMaxListpackSize, streamNodeMaxBytes, streamNodeMaxEntries } =
    environment.settings;
  writer.clear();
  writer.compresses = rdbcompression;
  values.listSize = listMaxListpackSize;
  values.streams.nodeBytesMax = streamNodeMaxBytes;
  values.streams.nodeEntriesMax = streamNodeMaxEntries;
  // Fields with an expiry have a place in 12 only: nobody shall restore them without.
  let type = values.plan(keyspace, Version.REDIS_7_4);
  let version: number = Version.REDIS_7_4;
  if (type !== RdbType.HASH_METADATA && type !== RdbType.HASH_LISTPACK_EX && context.find(hash, i)) {
    version = rdbVersion;
    type = values.plan(keyspace, version);
  }
  if (type < 0) return null;
  writer.byte(type);
  values.write();
  writer.reserve(TRAILER_BYTES);
  sealPayload(writer.bytes, 0, writer.length, version);
  writer.length += TRAILER_BYTES;
  return writer;
}
