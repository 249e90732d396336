/**
 * Carrying collections to other keys: RENAME and MOVE hand a tree over whole, COPY makes another one.
 *
 * The locks of both keys are held. Invariant: a tree belongs to one item at every moment; the item that has lost it says MOVED.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order, Root, rootOffset } from '../../layout/collection.js';
import { Item, ItemType } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import { copyBytes } from '../../native/copy.js';
import type { Keyspace } from '../keyspace.js';
import type { Collection } from './collection.js';
import { HashMark, isPacked, marksOf } from './forms.js';
import { Change, HASHES, LISTS, SETS, type Shape, SORTED_SETS, STREAMS } from './shapes.js';

function shapeOf(type: number): Shape {
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

/** Stores the found item's bytes, its expiry included, under another key. False = no memory. */
function copyItem(keyspace: Keyspace, hash: number, db: number, key: Bytes, offset: number, length: number): boolean {
  const { value, valueOffset, valueLength, type, encoding, expiryMs } = keyspace;
  const root = rootOffset(valueOffset);
  const bytes = valueOffset + valueLength - root;
  // The value begins on a word boundary behind the key, whose length may be another one.
  const pad = rootOffset(length) - length;
  if (!keyspace.stage(hash, db, key, offset, length, pad + bytes)) return false;
  copyBytes(keyspace.staged, keyspace.stagedOffset + pad, value, root, bytes);
  return keyspace.commit(type, encoding, 0, expiryMs);
}

/** A hash with expiring fields has come to the shard of `hash`. */
function noteExpiry(keyspace: Keyspace, hash: number): void {
  if (keyspace.type === ItemType.HASH && (marksOf(keyspace) & HashMark.EXPIRES) !== 0) keyspace.noteFieldExpiry(hash);
}

/** Gives the found collection another key, in place of whatever that had; its own is gone. False = no memory, nothing has changed. */
export function moveCollection(
  keyspace: Keyspace,
  hash: number,
  db: number,
  key: Bytes,
  offset: number,
  length: number,
): boolean {
  const { cursorHash, page, unit, accessWord } = keyspace;
  const packed = isPacked(keyspace);
  noteExpiry(keyspace, hash);
  if (!copyItem(keyspace, hash, db, key, offset, length)) return false;
  keyspace.accessWord = accessWord;
  if (!packed) {
    restamp(keyspace, hash);
    keyspace.eviction.ownership.markMoved(page, unit);
  }
  keyspace.standOn(cursorHash, page, unit);
  keyspace.remove();
  return true;
}

/** The top nodes of the found tree name its key's hash. */
function restamp(keyspace: Keyspace, hash: number): void {
  const { memory, journal, value, valueOffset } = keyspace;
  const root = rootOffset(valueOffset) >>> 2;
  const trees = root + 1 + ((value.i32[root] >>> Root.META_SHIFT) & Root.META_MASK);
  for (const word of [trees + Root.MAIN_WORD, trees + Root.SIDE_WORD]) {
    const page = value.i32[word];
    if (page === NO_PAGE) continue;
    const arena = page >>> Page.ARENA_SHIFT;
    const { i32 } = memory.arenas[arena];
    const at = (locationOffset(page, value.i32[word + Root.TOP_WORD] & 0xffff) >>> 2) + Item.HASH_WORD;
    journal.save(arena, i32, at);
    i32[at] = hash;
  }
}

/** Copies the found collection, its expiry included, to another key, in place of whatever that had. False = no memory: that key is gone then. */
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
  if (keyspace.find(hash, db, key, offset, length)) keyspace.remove();
  to.open(shape, hash, db, key, offset, length);
  // A tree at once, also of what would fit an item.
  to.packedEntriesMax = 0;
  if (shape.type === ItemType.STREAM ? copyStream(from, to) : copyElements(from, to) && copyMarks(from, to)) {
    if (expiryMs !== 0 && keyspace.find(hash, db, key, offset, length)) keyspace.setExpiry(expiryMs);
    return true;
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

/** A stream exists without entries, too. Its entries need what stands in the side tree. */
function copyStream(from: Collection, to: Collection): boolean {
  if (to.create() !== Change.DONE) return false;
  for (let i = 0; i < STREAMS.metaWords; i++) if (to.setMeta(i, from.meta(i)) !== Change.DONE) return false;
  return copySide(from, to) && copyElements(from, to);
}

function copySide(from: Collection, to: Collection): boolean {
  const { side } = from;
  for (let more = side.first(); more; more = side.next()) {
    side.load();
    const { key, keyOffset, keyLength, value, valueOffset, valueLength } = side;
    if (to.insertSide(key, keyOffset, keyLength, value, valueOffset, valueLength) !== Change.DONE) return false;
  }
  return true;
}
