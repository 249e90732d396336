/**
 * Copying between byte ranges: words in JavaScript when short, one native memmove when longer.
 *
 * Measured (Node 20): a DataView word loop costs about 1 ns a byte, addon.copy() about 30 ns whatever the length, and
 * TypedArray.set with its subarray about 100 ns. Invariant: ranges may overlap only when they are the same Bytes and
 * `length` is above WORD_COPY_BYTES, or when `toOffset <= fromOffset` (short copies run upwards).
 */
import { type Bytes, NO_ARENA } from '../layout/bytes.js';
import { writers } from '../layout/flavour.js';
import { addon } from './addon.js';

/** Up to this length the word loop is cheaper than the native call. */
export const WORD_COPY_BYTES = 24;

const enum Copy {
  count = 0,
  toArena = 1,
  toOffset = 2,
  fromArena = 3,
  fromOffset = 4,
  length = 5,
}

const COPY_WORDS = 5;
/** Most copies that wait: their sources should still be in the nearest cache, where the look ahead has put them. */
const WAITING_MAX = 64;
const control = new Int32Array(addon.copyControl());
/** Called through a variable: the addon's object is a dictionary, and a property load from it costs as much as the call. */
const copy = writers().copier(addon.copy, control);

export function copyBytes(to: Bytes, toOffset: number, from: Bytes, fromOffset: number, length: number): void {
  if (length <= WORD_COPY_BYTES) {
    copyWords(to, toOffset, from, fromOffset, length);
  } else if (to.arena !== NO_ARENA && from.arena !== NO_ARENA) {
    addCopy(to.arena, toOffset, from.arena, fromOffset, length);
    runCopies();
  } else {
    to.u8.set(from.u8.subarray(fromOffset, fromOffset + length), toOffset);
  }
}

let addedCount = 0;

/** Adds one copy of several that runCopies makes in this order; numbers of arenas, byte offsets. */
export function addCopy(
  toArena: number,
  toOffset: number,
  fromArena: number,
  fromOffset: number,
  length: number,
): void {
  const record = addedCount * COPY_WORDS;
  control[record + Copy.toArena] = toArena;
  control[record + Copy.toOffset] = toOffset;
  control[record + Copy.fromArena] = fromArena;
  control[record + Copy.fromOffset] = fromOffset;
  control[record + Copy.length] = length;
  addedCount++;
}

/**
 * As copyBytes, but the bytes may come as late as `settleCopies` or the next copy that goes to the addon: one call for many. Until then
 * nobody changes what is to be copied, reads what it becomes, or uses the control block for something else.
 */
export function copyLater(to: Bytes, toOffset: number, from: Bytes, fromOffset: number, length: number): void {
  if (length <= WORD_COPY_BYTES || to.arena === NO_ARENA || from.arena === NO_ARENA) {
    copyBytes(to, toOffset, from, fromOffset, length);
    return;
  }
  addCopy(to.arena, toOffset, from.arena, fromOffset, length);
  if (addedCount >= WAITING_MAX) runCopies();
}

/** Makes the copies that wait. */
export function settleCopies(): void {
  if (addedCount !== 0) runCopies();
}

/** Makes the added copies, in one native call. */
export function runCopies(): void {
  control[Copy.count] = addedCount;
  addedCount = 0;
  copy();
}

function copyWords(to: Bytes, toOffset: number, from: Bytes, fromOffset: number, length: number): void {
  const toView = to.view;
  const fromView = from.view;
  let i = 0;
  for (const words = length - 3; i < words; i += 4) {
    toView.setInt32(toOffset + i, fromView.getInt32(fromOffset + i, true), true);
  }
  const toU8 = to.u8;
  const fromU8 = from.u8;
  for (; i < length; i++) toU8[toOffset + i] = fromU8[fromOffset + i];
}
