/**
 * DEBUG DIGEST and DIGEST-VALUE: do two keys, or two data sets, hold the same?
 *
 * The digest of a value depends on what it holds and when it expires, not on how it is kept: elements without an order are
 * combined by XOR. Invariant: nothing is changed.
 */
import { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { crypto } from '../../native/crypto.js';
import {
  type Collection,
  HASHES,
  LISTS,
  SETS,
  type Shape,
  SORTED_SETS,
  STREAMS,
} from '../../store/collections/collection.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { Context } from '../context.js';
import { typeName } from '../keyspace/generic.js';

const DIGEST_BYTES = 20;
const SHAPES: ReadonlyMap<ItemType, Shape> = new Map(
  [HASHES, LISTS, SETS, SORTED_SETS, STREAMS].map((shape) => [shape.type, shape]),
);

/** DEBUG DIGEST: all keys of all databases. */
export function digestAll(context: Context): void {
  const { keyspace, reply } = context;
  if (context.inTransaction) return reply.error('ERR DEBUG DIGEST is not possible in a transaction or script');
  const all = new Uint8Array(DIGEST_BYTES);
  keyspace.closeGate();
  for (let db = 0; db < context.environment.settings.databases; db++) {
    for (const key of keysOf(keyspace, db)) {
      const bytes = Bytes.from(key);
      if (!keyspace.find(keyspace.hash(db, bytes, 0, bytes.length), db, bytes, 0, bytes.length)) continue;
      xorInto(all, sha1(`${db}`, key, digestFound(keyspace)));
    }
  }
  keyspace.openGate();
  reply.simple(Buffer.from(all).toString('hex'));
}

/** DEBUG DIGEST-VALUE: of each key that is named from argument 2 on; zeroes for one that is not there. */
export function digestValues(context: Context): void {
  const { keyspace, reply } = context;
  reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) {
    const exists = context.find(context.keyHashes[i - 2], i);
    reply.simple(Buffer.from(exists ? digestFound(keyspace) : new Uint8Array(DIGEST_BYTES)).toString('hex'));
  }
}

function keysOf(keyspace: Keyspace, db: number): Uint8Array[] {
  const keys: Uint8Array[] = [];
  const visit = (at: Keyspace): void => {
    keys.push(at.keyBytes.u8.slice(at.keyOffset, at.keyOffset + at.keyLength));
  };
  let cursor = 0;
  do cursor = keyspace.scan(db, cursor, visit);
  while (cursor !== 0);
  return keys;
}

/** Of the item that the cursor stands on. */
function digestFound(keyspace: Keyspace): Uint8Array {
  const expires = keyspace.expiryMs === 0 ? '' : 'expires';
  const type = typeName(keyspace.type);
  if (keyspace.type === ItemType.STRING) {
    const { value, valueOffset, valueLength } = keyspace;
    return sha1(type, expires, value.u8.subarray(valueOffset, valueOffset + valueLength));
  }
  const shape = SHAPES.get(keyspace.type)!;
  const [collection] = keyspace.collections;
  collection.openFound(shape);
  return sha1(type, expires, digestElements(collection, shape));
}

function digestElements(collection: Collection, shape: Shape): Uint8Array {
  let digest: Uint8Array = new Uint8Array(DIGEST_BYTES);
  const isOrdered = shape.type === ItemType.LIST || shape.type === ItemType.STREAM;
  for (let more = collection.first(); more; more = collection.next()) {
    const element = digestElement(collection, shape);
    if (isOrdered) digest = sha1(digest, element);
    else xorInto(digest, element);
  }
  return digest;
}

function digestElement(collection: Collection, shape: Shape): Uint8Array {
  collection.load();
  const { key, keyOffset, keyLength, value, valueOffset, valueLength } = collection;
  const words: (string | Uint8Array)[] = [key.u8.subarray(keyOffset, keyOffset + keyLength)];
  if (shape.valued) words.push(value.u8.subarray(valueOffset, valueOffset + valueLength));
  if (shape.type === ItemType.ZSET) words.push(`${collection.score}`);
  if (shape.type === ItemType.HASH && collection.expiryMs !== 0) words.push('expires');
  return sha1(...words);
}

/** Each word with its length in front: 'ab', 'c' is not 'a', 'bc'. */
function sha1(...words: readonly (string | Uint8Array)[]): Uint8Array {
  const hash = crypto().createHash('sha1');
  for (const word of words) hash.update(`${word.length}:`).update(word);
  return hash.digest();
}

function xorInto(target: Uint8Array, other: Uint8Array): void {
  for (let i = 0; i < target.length; i++) target[i] ^= other[i];
}
