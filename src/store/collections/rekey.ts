/**
 * Carrying collections to other keys: RENAME and MOVE hand a tree over whole.
 *
 * The locks of both keys are held. Invariant: a tree belongs to one item at every moment; the item that has lost it says MOVED.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Root, rootOffset } from '../../layout/collection.js';
import { Item, ItemType } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import { copyBytes } from '../../native/copy.js';
import type { Keyspace } from '../keyspace.js';
import { HashMark, isPacked, marksOf } from './forms.js';

/** Stores the found item's bytes, its expiry included, under another key. False = no memory. */
export function copyItem(
  keyspace: Keyspace,
  hash: number,
  db: number,
  key: Bytes,
  offset: number,
  length: number,
): boolean {
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
export function noteExpiry(keyspace: Keyspace, hash: number): void {
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
