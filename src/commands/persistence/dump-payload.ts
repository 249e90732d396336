/**
 * What DUMP replies of a key and MIGRATE sends: its value as RDB, with version and checksum behind it.
 *
 * Owns the one writer of this thread; what takes several turns has its own. Invariant: what `payloadOf` returns is valid until it is called again.
 */
import type { Settings } from '../../config/index.js';
import { Crc64 } from '../../rdb/crc64.js';
import { RdbType, TRAILER_BYTES, Version } from '../../rdb/format.js';
import { sealPayload } from '../../rdb/payload.js';
import { type Pauses, ValueWriter } from '../../rdb/value-writer.js';
import { RdbWriter } from '../../rdb/writer.js';
import type { Context } from '../context.js';
import { isSliceOver, type Steps } from '../long-work.js';

/** Bytes of a checksum between two looks at the clock. */
const CHECKED_A_LOOK = 256 * 1024;

const writer = new RdbWriter();
const values = new ValueWriter(writer);

/** Of the key in argument `i`, whose hash is `hash` and which has just been found: its bytes are those of the writer. Null: nothing of it is left. */
export function payloadOf(context: Context, hash: number, i: number): RdbWriter | null {
  const { keyspace, environment } = context;
  const { rdbVersion } = environment.settings;
  writer.clear();
  configure(environment.settings, writer, values);
  // Fields with an expiry have a place in 12 only: nobody shall restore them without.
  let type = values.plan(keyspace, Version.REDIS_7_4);
  let version: number = Version.REDIS_7_4;
  if (!hasExpiries(type) && context.find(hash, i)) {
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

function configure(settings: Readonly<Settings>, to: RdbWriter, by: ValueWriter): void {
  to.compresses = settings.rdbcompression;
  by.listSize = settings.listMaxListpackSize;
  by.streams.nodeBytesMax = settings.streamNodeMaxBytes;
  by.streams.nodeEntriesMax = settings.streamNodeMaxEntries;
}

function hasExpiries(type: number): boolean {
  return type === RdbType.HASH_METADATA || type === RdbType.HASH_LISTPACK_EX;
}

/** The same of the command's key, a large collection, in steps: of so many bytes, about. */
export function* payloadInSteps(context: Context, expectedBytes: number): Steps<RdbWriter | null> {
  const { keyspace, environment } = context;
  const own = new RdbWriter();
  own.reserve(expectedBytes);
  const stepped = new ValueWriter(own);
  stepped.isStepped = true;
  configure(environment.settings, own, stepped);
  let version: number = Version.REDIS_7_4;
  let type = yield* inSlices(context, stepped.planInSteps(keyspace, version));
  if (!hasExpiries(type)) {
    version = environment.settings.rdbVersion;
    context.findKey();
    type = yield* inSlices(context, stepped.planInSteps(keyspace, version));
  }
  if (type < 0) return null;
  own.byte(type);
  yield* inSlices(context, stepped.writeInSteps());
  own.reserve(TRAILER_BYTES);
  const end = own.length;
  own.bytes.view.setUint16(end, version, true);
  const crc = new Crc64();
  for (let at = 0; at < end + 2; at += CHECKED_A_LOOK) {
    crc.update(own.bytes.u8, at, Math.min(at + CHECKED_A_LOOK, end + 2));
    if (isSliceOver()) yield;
  }
  crc.writeTo(own.bytes.view, end + 2);
  own.length += TRAILER_BYTES;
  return own;
}

/** The key is there, as it was: it is held, and looked at before each turn. */
function* inSlices<Result>(context: Context, steps: Pauses<Result>): Steps<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (isSliceOver()) yield;
    context.findKey();
  }
}
