/**
 * Putting many elements in order, in steps: by any comparison, and by hash.
 *
 * Owns: nothing. Orders are arrays of the elements' numbers. Invariant: a sort is stable, so the result does not depend on how it was cut.
 */
import { isSliceOver, type Steps } from '../long-work.js';

/** Sorted at once, in about half a millisecond. */
const RUN = 512;
const STEP = 256;
/** Numbers that take some 50 microseconds in a pass by digits. */
const BLOCK = 8192;
const DIGIT_BITS = 16;
const DIGITS = 1 << DIGIT_BITS;

/** Sorts by merging; returns the sorted array, which may be another one. */
export function* sortInSteps(order: Uint32Array, compare: (a: number, b: number) => number): Steps<Uint32Array> {
  const { length } = order;
  for (let at = 0; at < length; at += RUN) {
    order.subarray(at, at + RUN).sort(compare);
    if (isSliceOver()) yield;
  }
  let from: Uint32Array = order;
  let to: Uint32Array = new Uint32Array(length <= RUN ? 0 : length);
  for (let width = RUN; width < length; width *= 2) {
    for (let left = 0; left < length; left += 2 * width) {
      const middle = Math.min(left + width, length);
      yield* merge(from, to, left, middle, Math.min(middle + width, length), compare);
    }
    [from, to] = [to, from];
  }
  return from;
}

function* merge(
  from: Uint32Array,
  to: Uint32Array,
  left: number,
  middle: number,
  right: number,
  compare: (a: number, b: number) => number,
): Steps {
  if (middle === right || compare(from[middle - 1], from[middle]) <= 0) {
    to.set(from.subarray(left, right), left);
    if (isSliceOver()) yield;
    return;
  }
  let a = left;
  let b = middle;
  for (let at = left; at < right; at++) {
    const takesLeft = b === right || (a < middle && compare(from[a], from[b]) <= 0);
    to[at] = takesLeft ? from[a++] : from[b++];
    if (at % STEP === 0 && isSliceOver()) yield;
  }
}

/** Sorts by the elements' hashes, without a sign, and those of equal hash by `compare`. */
export function* orderByHash(
  order: Uint32Array,
  hashes: Int32Array,
  compare: (a: number, b: number) => number,
): Steps<Uint32Array> {
  let from: Uint32Array = order;
  let to: Uint32Array = new Uint32Array(order.length);
  for (const shift of [0, DIGIT_BITS]) {
    yield* passByDigit(from, to, hashes, shift);
    [from, to] = [to, from];
  }
  for (let first = 0; first < from.length; ) {
    let end = first + 1;
    while (end < from.length && hashes[from[end]] === hashes[from[first]]) end++;
    if (end - first > 1) from.subarray(first, end).sort(compare);
    const isBlockOver = Math.floor(end / BLOCK) !== Math.floor(first / BLOCK);
    first = end;
    if (isBlockOver && isSliceOver()) yield;
  }
  return from;
}

function* passByDigit(from: Uint32Array, to: Uint32Array, hashes: Int32Array, shift: number): Steps {
  const places = new Uint32Array(DIGITS);
  for (let i = 0; i < from.length; i++) {
    places[(hashes[from[i]] >>> shift) & (DIGITS - 1)]++;
    if (i % BLOCK === 0 && isSliceOver()) yield;
  }
  let next = 0;
  for (let digit = 0; digit < DIGITS; digit++) {
    const count = places[digit];
    places[digit] = next;
    next += count;
  }
  for (let i = 0; i < from.length; i++) {
    to[places[(hashes[from[i]] >>> shift) & (DIGITS - 1)]++] = from[i];
    if (i % BLOCK === 0 && isSliceOver()) yield;
  }
}
