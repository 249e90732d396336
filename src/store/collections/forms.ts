/**
 * What can be told of a collection from its item alone, without opening it.
 *
 * Owns: nothing. Invariant: the cursor stands on an item that is no string, and its lock is held.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Form, Root, rootOffset } from '../../layout/collection.js';
import { Page } from '../../layout/location.js';

/** The item cursor, as far as it is needed here. */
interface Found {
  readonly value: Bytes;
  readonly valueOffset: number;
}

/** Marks of sets (Collection.setMarks). */
export const enum SetMark {
  /** All members are integers, in numerical order: Redis would keep an intset. */
  INTEGERS = 1,
}

/** Marks of hashes. */
export const enum HashMark {
  /** Fields have, or had, an expiry. */
  EXPIRES = 1,
}

/** Word 0 of the found collection. */
function head(found: Found): number {
  return found.value.i32[rootOffset(found.valueOffset) >>> 2];
}

export function isPacked(found: Found): boolean {
  return (head(found) & Root.FORM_MASK) === Form.PACKED;
}

export function marksOf(found: Found): number {
  return (head(found) >>> Root.MARKS_SHIFT) & Root.MARKS_MASK;
}

/** Bytes of the chunks that a tree has beside its item. */
export function nodeBytes(found: Found): number {
  if (isPacked(found)) return 0;
  const trees = (rootOffset(found.valueOffset) >>> 2) + 1 + ((head(found) >>> Root.META_SHIFT) & Root.META_MASK);
  return found.value.i32[trees + Root.UNITS_WORD] * Page.UNIT_BYTES;
}
