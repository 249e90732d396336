/**
 * The elements of a SORT, copied, with what they are sorted by, and the order that comes out.
 *
 * Owns: `elements`, their weights (numbers, or texts under ALPHA BY). Invariant: equal numbers are put in order by the elements' bytes, so the
 * result depends on nothing but the data; texts are compared byte by byte, as Redis does in the locale C.
 */
import type { Bytes } from '../../layout/bytes.js';
import type { Context } from '../context.js';
import { byteString, parseInteger } from '../numbers.js';
import { MemberTable } from '../sets/member-table.js';
import { Found, lookUp, type Pattern, value } from './sort-pattern.js';

const KEPT_WEIGHTS_MAX = 1 << 17;
/** The smallest double of full precision: what is smaller and not 0 is out of range to C's strtod. */
const NORMAL_MIN = 2 ** -1022;
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const HEXADECIMAL = /^([+-]?)0x([\da-f]*)\.?([\da-f]*)(?:p([+-]?\d+))?$/i;
const INFINITE = /^([+-]?)inf(inity)?$/i;

export const elements = new MemberTable();
/** Texts by which elements are sorted; a missing one is dropped from the table. */
const texts = new MemberTable();
let weights = new Float64Array(64);

export function clearElements(): void {
  elements.clear();
  texts.clear();
  if (weights.length > KEPT_WEIGHTS_MAX) weights = new Float64Array(64);
}

/** The elements' numbers in their own order. */
export function unsorted(): Uint32Array {
  const order = new Uint32Array(elements.count);
  for (let i = 0; i < order.length; i++) order[i] = i;
  return order;
}

/** The elements' numbers, sorted by numbers: their own, or those that `by` means; null when one is no number. */
export function sortedByNumber(context: Context, by: Pattern | null, isDescending: boolean): Uint32Array | null {
  const { count } = elements;
  if (weights.length < count) weights = new Float64Array(count);
  let allNumbers = true;
  if (by === null) {
    allNumbers = weigh(elements, weights, 0, count);
  } else {
    for (let i = 0; i < count; i++) {
      const weight = isThere(context, by, i) ? toNumber(value.bytes, value.offset, value.length) : 0;
      if (Number.isNaN(weight)) allNumbers = false;
      weights[i] = weight;
    }
  }
  return allNumbers ? unsorted().sort(byNumber(elements, weights, isDescending)) : null;
}

/** Reads elements `from` to `end` as numbers; false = one is none. */
export function weigh(table: MemberTable, into: Float64Array, from: number, end: number): boolean {
  const { bytes, offsets, lengths } = table;
  let allNumbers = true;
  for (let i = from; i < end; i++) {
    into[i] = toNumber(bytes, offsets[i], lengths[i]);
    if (Number.isNaN(into[i])) allNumbers = false;
  }
  return allNumbers;
}

/** The same, by bytes. Elements without a text come before those that have one. */
export function sortedByText(context: Context, by: Pattern | null, isDescending: boolean): Uint32Array {
  if (by === null) return unsorted().sort(byText(elements, isDescending));
  for (let i = 0; i < elements.count; i++) {
    if (isThere(context, by, i)) {
      texts.push(value.bytes, value.offset, value.length);
    } else {
      texts.push(elements.bytes, 0, 0);
      texts.drop(i);
    }
  }
  return unsorted().sort(isDescending ? laterTextFirst : earlierTextFirst);
}

export type Comparison = (a: number, b: number) => number;

/** Compares elements by their numbers, then by their bytes. */
export function byNumber(table: MemberTable, numbers: Float64Array, isDescending: boolean): Comparison {
  const sign = isDescending ? -1 : 1;
  return (a, b) => {
    if (numbers[a] !== numbers[b]) return numbers[a] < numbers[b] ? -sign : sign;
    return sign * compare(table, a, b);
  };
}

export function byText(table: MemberTable, isDescending: boolean): Comparison {
  return isDescending ? (a, b) => compare(table, b, a) : (a, b) => compare(table, a, b);
}

function isThere(context: Context, by: Pattern, i: number): boolean {
  return lookUp(context, by, elements.bytes, elements.offsets[i], elements.lengths[i]) !== Found.NOTHING;
}

function earlierTextFirst(a: number, b: number): number {
  const hasA = texts.has(a);
  const hasB = texts.has(b);
  if (hasA && hasB) return compare(texts, a, b);
  return (hasA ? 1 : 0) - (hasB ? 1 : 0);
}

function laterTextFirst(a: number, b: number): number {
  return earlierTextFirst(b, a);
}

function compare(table: MemberTable, a: number, b: number): number {
  const { offsets, lengths } = table;
  const { u8 } = table.bytes;
  const common = Math.min(lengths[a], lengths[b]);
  const atA = offsets[a];
  const atB = offsets[b];
  for (let i = 0; i < common; i++) {
    const difference = u8[atA + i] - u8[atB + i];
    if (difference !== 0) return difference;
  }
  return lengths[a] - lengths[b];
}

/** The number that C's strtod reads in all of the bytes, as far as a zero byte; NaN when it is none or out of range. */
function toNumber(bytes: Bytes, offset: number, length: number): number {
  const integer = parseInteger(bytes, offset, length);
  if (!Number.isNaN(integer)) return integer;
  const [read] = byteString(bytes, offset, length).split('\0', 1);
  if (read === '') return 0;
  const text = read.replace(/^[ \t\n\v\f\r]+/, '');
  const number = DECIMAL.test(text) ? Number(text) : readUnusual(text);
  if (Number.isFinite(number)) {
    const isTooSmall = number === 0 ? /^[^eExX]*[1-9]/.test(text) : Math.abs(number) < NORMAL_MIN;
    return isTooSmall ? Number.NaN : number;
  }
  return INFINITE.test(text) ? number : Number.NaN;
}

function readUnusual(text: string): number {
  const infinity = INFINITE.exec(text);
  if (infinity !== null) return infinity[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const hexadecimal = HEXADECIMAL.exec(text);
  if (hexadecimal === null || hexadecimal[2] + hexadecimal[3] === '') return Number.NaN;
  const [, sign, whole, fraction, exponent = '0'] = hexadecimal;
  const magnitude = Number(`0x${whole}${fraction}`) * 2 ** (Number(exponent) - 4 * fraction.length);
  return sign === '-' ? -magnitude : magnitude;
}
