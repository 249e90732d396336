/**
 * COPY of collections: a packed one is copied as an item, a tree element by element into a draft.
 *
 * The locks of both keys are held. Invariant: what the other key had stays until the copy is whole.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import { ItemType } from '../../layout/item.js';
import type { Keyspace } from '../keyspace.js';
import { copyStream } from '../streams/copy.js';
import type { Collection } from './collection.js';
import { publish } from './draft.js';
import { isPacked } from './forms.js';
import { copyItem, noteExpiry } from './rekey.js';
import { Change, HASHES, LISTS, SETS, type Shape, SORTED_SETS, STREAMS } from './shapes.js';

export function shapeOf(type: number): Shape {
  switch (type) {
    case ItemType.HASH:
      return HASHES;
    case ItemType.LIST:
      return LISTS;
    case ItemType.SET:
      return SETS;
    case ItemType.ZSET:
      return SORTED_SETS;
    case ItemType.STREAM:
      return STREAMS;
    default:
      throw new Error(`items of type ${type} are no collections`);
  }
}

/** Copies the found collection, its expiry included, to another key, in place of whatever that had. False = no memory, nothing has changed. */
export function copyCollection(
  keyspace: Keyspace,
  hash: number,
  db: number,
  key: Bytes,
  offset: number,
  length: number,
): boolean {
  noteExpiry(keyspace, hash);
  if (isPacked(keyspace)) return copyItem(keyspace, hash, db, key, offset, length);
  const shape = shapeOf(keyspace.type);
  const { expiryMs } = keyspace;
  const from = keyspace.collections[keyspace.collections.length - 1];
  const to = keyspace.collections[keyspace.collections.length - 2];
  from.openFound(shape);
  to.openDraft(shape, hash, key, offset, length);
  // A tree at once, also of what would fit an item.
  to.packedEntriesMax = 0;
  if (shape.type === ItemType.STREAM ? copyStream(from, to) : copyElements(from, to) && copyMarks(from, to)) {
    to.standOnItem();
    if (expiryMs !== 0) keyspace.setExpiry(expiryMs);
    return publish(keyspace, to, hash, db, key, offset, length);
  }
  if (to.exists) to.removeKey();
  return false;
}

function copyElements(from: Collection, to: Collection): boolean {
  for (let more = from.first(); more; more = from.next()) {
    from.load();
    const { key, keyOffset, keyLength, value, valueOffset, valueLength, expiryMs } = from;
    let change: Change;
    if (from.order === Order.SCORE) {
      change = to.insertScored(from.score, key, keyOffset, keyLength);
    } else {
      // In the order of the tree: each goes to the end.
      to.toEnd();
      change = from.valued
        ? to.insertPair(key, keyOffset, keyLength, value, valueOffset, valueLength, expiryMs)
        : to.insert(key, keyOffset, keyLength);
    }
    if (change !== Change.DONE) return false;
  }
  return true;
}

function copyMarks(from: Collection, to: Collection): boolean {
  return from.marks === 0 || to.setMarks(from.marks) === Change.DONE;
}
