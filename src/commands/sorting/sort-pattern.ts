/**
 * The patterns of SORT's BY and GET: a key's name with `*` for the element, `->` and a field of the hash there, or `#` for the element.
 *
 * Owns: the name that is being looked up. Invariant: the store's gate is closed while keys are looked up, for nothing has locked them.
 */
import { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import { type Collection, HASHES } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { MAX_KEY_BYTES } from '../executor.js';
import { isLive, replyFieldValue } from '../hashes/hash-fields.js';

const STAR = 0x2a;
const SHARP = 0x23;
const MINUS = 0x2d;
const GREATER = 0x3e;
/** Of the collections that a command may have open: number 0 is the sorted one. */
const HASH_INDEX = 1;

/** A pattern of the running command: byte ranges of its input. */
export interface Pattern {
  /** `#`: the element itself. */
  readonly isElement: boolean;
  /** Behind the start of the pattern, -1 = there is none: then no key is meant. */
  readonly star: number;
  readonly offset: number;
  /** Where the key's name ends, and the field's name begins; a field of no bytes is none. */
  readonly nameLength: number;
  readonly fieldOffset: number;
  readonly fieldLength: number;
}

export const enum Found {
  NOTHING = 0,
  STRING = 1,
  FIELD = 2,
}

/** What `lookUp` has found: bytes that are valid until the next change or look-up. */
export const value = { bytes: Bytes.allocate(0), offset: 0, length: 0 };

let name = Bytes.allocate(256);

export function readPattern(context: Context, i: number): Pattern {
  const { u8 } = context.input;
  const offset = context.argOffset(i);
  const length = context.argLength(i);
  const star = u8.subarray(offset, offset + length).indexOf(STAR);
  const isElement = length === 1 && u8[offset] === SHARP;
  let nameLength = length;
  for (let at = star + 1; star >= 0 && at + 2 < length; at++) {
    if (u8[offset + at] !== MINUS || u8[offset + at + 1] !== GREATER) continue;
    nameLength = at;
    break;
  }
  const fieldOffset = offset + nameLength + 2;
  const fieldLength = Math.max(0, length - nameLength - 2);
  return { isElement, star, offset, nameLength, fieldOffset, fieldLength };
}

/** Looks up the key or the field that the pattern means for an element, which it has a `*` for. Counts a hit or a miss. */
export function lookUp(context: Context, pattern: Pattern, element: Bytes, offset: number, length: number): Found {
  const { keyspace, db } = context;
  const { star, nameLength } = pattern;
  const nameBytes = nameLength - 1 + length;
  if (nameBytes > MAX_KEY_BYTES) return Found.NOTHING;
  if (name.length < nameBytes) name = Bytes.allocate(Math.min(nameBytes * 2, MAX_KEY_BYTES));
  copyBytes(name, 0, context.input, pattern.offset, star);
  copyBytes(name, star, element, offset, length);
  copyBytes(name, star + length, context.input, pattern.offset + star + 1, nameLength - star - 1);
  const hash = keyspace.hash(db, name, 0, nameBytes);
  if (!keyspace.find(hash, db, name, 0, nameBytes)) {
    context.miss();
    return Found.NOTHING;
  }
  context.hit();
  if (pattern.fieldLength > 0) return lookUpField(context, pattern);
  if (keyspace.type !== ItemType.STRING) return Found.NOTHING;
  keep(keyspace.value, keyspace.valueOffset, keyspace.valueLength);
  return Found.STRING;
}

function lookUpField(context: Context, pattern: Pattern): Found {
  const { keyspace, input } = context;
  if (keyspace.type !== ItemType.HASH) return Found.NOTHING;
  const fields = keyspace.collections[HASH_INDEX];
  fields.openFound(HASHES);
  if (!fields.seekKey(input, pattern.fieldOffset, pattern.fieldLength)) return Found.NOTHING;
  fields.load();
  if (!isLive(context, fields)) return Found.NOTHING;
  keep(fields.value, fields.valueOffset, fields.valueLength);
  return Found.FIELD;
}

function keep(bytes: Bytes, offset: number, length: number): void {
  value.bytes = bytes;
  value.offset = offset;
  value.length = length;
}

/** Replies what the pattern means for an element. */
export function replyMeant(context: Context, pattern: Pattern, element: Bytes, offset: number, length: number): void {
  const { reply, keyspace } = context;
  if (pattern.isElement) return reply.bulk(element, offset, length);
  if (pattern.star < 0) return reply.nil();
  const found = lookUp(context, pattern, element, offset, length);
  if (found === Found.STRING) context.replyValue();
  else if (found === Found.FIELD) replyFieldValue(context, keyspace.collections[HASH_INDEX] as Collection);
  else reply.nil();
}
