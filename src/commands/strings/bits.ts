/**
 * Strings as arrays of bits: SETBIT, GETBIT, BITCOUNT, BITPOS.
 */
import { Encoding } from '../../layout/item.js';
import { Notify } from '../../store/change-feed.js';
import { blockArg, integerArg, keyArg, oneOf, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { takeSteps } from '../long-steps.js';
import { isSliceOver, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { countBits, findBit } from './bit-search.js';
import { beginChange, beginNew, changing, endChange } from './value-change.js';

export const BIT_OFFSET = 'ERR bit offset is not an integer or out of range';
const BIT_VALUE = 'ERR bit is not an integer or out of range';
/** Looked at between two looks at the clock: about 50 microseconds. */
const STEP_BITS = 8 * 128 * 1024;
const BIT_ARGUMENT = 'ERR The bit argument must be 1 or 0.';

/** A bit offset below the largest string's end; -1 after an error reply. */
function bitOffsetArg(context: Context, i: number): number {
  const offset = context.argInteger(i);
  if (offset >= 0 && Math.floor(offset / 8) < context.environment.settings.protoMaxBulkLen) return offset;
  context.reply.error(BIT_OFFSET);
  return -1;
}

function setBit(context: Context): void {
  const { keyspace, reply } = context;
  const bit = bitOffsetArg(context, 2);
  if (bit < 0) return;
  const on = context.argInteger(3);
  if (on !== 0 && on !== 1) return reply.error(BIT_VALUE);
  const at = Math.floor(bit / 8);
  const mask = 0x80 >>> (bit % 8);
  let old = 0;
  if (context.findKey()) {
    if (!context.requireString()) return;
    const length = keyspace.valueLength;
    if (at < length) old = keyspace.value.u8[keyspace.valueOffset + at] & mask;
    context.use();
    // Nothing changes: watchers must not see a change either.
    if (at < length && (old !== 0) === (on === 1) && keyspace.encoding === Encoding.RAW) return reply.integer(on);
    if (!beginChange(context, at, 1, Math.max(length, at + 1), Encoding.RAW)) return;
    if (at >= length) changing.bytes.u8[changing.offset + at] = 0;
  } else if (!beginNew(context, at + 1, Encoding.RAW)) {
    return;
  }
  if (on === 1) changing.bytes.u8[changing.offset + at] |= mask;
  else changing.bytes.u8[changing.offset + at] &= ~mask;
  if (!endChange(context)) return;
  context.notify(Notify.STRING, 'setbit', 1);
  reply.integer(old === 0 ? 0 : 1);
}

function getBit(context: Context): void {
  const { keyspace, reply } = context;
  const bit = bitOffsetArg(context, 2);
  if (bit < 0) return;
  if (!context.findKey()) {
    context.miss();
    return reply.integer(0);
  }
  if (!context.requireString()) return;
  context.hit();
  const at = Math.floor(bit / 8);
  if (at >= keyspace.valueLength) return reply.integer(0);
  reply.integer((keyspace.value.u8[keyspace.valueOffset + at] >>> (7 - (bit % 8))) & 1);
}

/** The range arguments of the command in hand. */
const range = { start: 0, end: -1, inBits: false, hasEnd: false };

/** Reads [start [end [BYTE | BIT]]] from argument `first` on; false = an error has been replied. */
function parseRange(context: Context, first: number): boolean {
  range.start = 0;
  range.end = -1;
  range.inBits = false;
  range.hasEnd = context.argc > first + 1;
  if (context.argc > first) range.start = context.argInteger(first);
  if (Number.isNaN(range.start)) return fail(context, NOT_INTEGER);
  if (context.argc === first + 3) {
    range.inBits = context.argIs(first + 2, 'BIT');
    if (!range.inBits && !context.argIs(first + 2, 'BYTE')) return fail(context, SYNTAX);
  }
  if (range.hasEnd) range.end = context.argInteger(first + 1);
  if (Number.isNaN(range.end)) return fail(context, NOT_INTEGER);
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/** Makes the range one of bits within a value of `length` bytes; false = it is empty. */
function clampRange(length: number): boolean {
  let { start, end } = range;
  const total = range.inBits ? length * 8 : length;
  if (start < 0) start = Math.max(0, start + total);
  if (end < 0) end = Math.max(0, end + total);
  if (end >= total) end = total - 1;
  if (start > end) return false;
  range.start = range.inBits ? start : start * 8;
  range.end = range.inBits ? end : end * 8 + 7;
  return true;
}

function bitCount(context: Context): void {
  const { keyspace, reply } = context;
  if (context.argc === 3 || context.argc > 5) return reply.error(SYNTAX);
  if (!parseRange(context, 2)) return;
  if (!context.findKey()) {
    context.miss();
    return reply.integer(0);
  }
  if (!context.requireString()) return;
  context.hit();
  // BITPOS has no such rule: before the beginning, both ends count as the first unit there.
  if (range.start < 0 && range.end < 0 && range.start > range.end) return reply.integer(0);
  if (!clampRange(keyspace.valueLength)) return reply.integer(0);
  const { start, end } = range;
  if (end - start > STEP_BITS) return takeSteps(context, 0, 1, () => countInSteps(context, start, end));
  reply.integer(countBits(keyspace.value, keyspace.valueOffset, start, end));
}

/** Behind the last bit of the step that begins with this one: on the boundary of a word. */
function stepEnd(bit: number, end: number): number {
  return Math.min(end + 1, bit - (bit % STEP_BITS) + STEP_BITS);
}

function* countInSteps(context: Context, start: number, end: number): Steps {
  const { keyspace } = context;
  let count = 0;
  for (let bit = start; bit <= end; ) {
    const behind = stepEnd(bit, end);
    context.findKey();
    count += countBits(keyspace.value, keyspace.valueOffset, bit, behind - 1);
    bit = behind;
    if (isSliceOver()) yield;
  }
  context.reply.integer(count);
}

function bitPos(context: Context): void {
  const { keyspace, reply } = context;
  const wanted = context.argInteger(2);
  if (Number.isNaN(wanted)) return reply.error(NOT_INTEGER);
  if (wanted !== 0 && wanted !== 1) return reply.error(BIT_ARGUMENT);
  if (context.argc > 6) return reply.error(SYNTAX);
  if (!parseRange(context, 3)) return;
  if (!context.findKey()) {
    context.miss();
    return reply.integer(wanted === 1 ? -1 : 0);
  }
  if (!context.requireString()) return;
  context.hit();
  if (!clampRange(keyspace.valueLength)) return reply.integer(-1);
  const { start, end } = range;
  // Without an end the string goes on in zeros.
  const otherwise = wanted === 0 && !range.hasEnd ? end + 1 : -1;
  if (end - start > STEP_BITS) {
    return takeSteps(context, 0, 1, () => findInSteps(context, start, end, wanted, otherwise));
  }
  const found = findBit(keyspace.value, keyspace.valueOffset, start, end, wanted);
  reply.integer(found < 0 ? otherwise : found);
}

function* findInSteps(context: Context, start: number, end: number, wanted: number, otherwise: number): Steps {
  const { keyspace } = context;
  for (let bit = start; bit <= end; ) {
    const behind = stepEnd(bit, end);
    context.findKey();
    const found = findBit(keyspace.value, keyspace.valueOffset, bit, behind - 1, wanted);
    if (found >= 0) return context.reply.integer(found);
    bit = behind;
    if (isSliceOver()) yield;
  }
  context.reply.integer(otherwise);
}

const UNIT = oneOf('unit', [tokenArg('BYTE'), tokenArg('BIT')], { optional: true, since: '7.0.0' });

export const bits: readonly CommandSpec[] = [
  {
    name: 'setbit',
    arity: 4,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.BITMAP,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE)],
    since: '2.2.0',
    group: 'bitmap',
    summary: 'Sets or clears one bit of a string, which grows with zeros as far as needed; returns what the bit was.',
    complexity: 'O(1)',
    args: [keyArg('key'), integerArg('offset'), integerArg('value')],
    timed: false,
    repeatable: true,
    run: setBit,
  },
  {
    name: 'getbit',
    arity: 3,
    flags: Flag.READONLY | Flag.FAST,
    categories: Category.BITMAP,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.2.0',
    group: 'bitmap',
    summary: 'Returns one bit of a string.',
    complexity: 'O(1)',
    args: [keyArg('key'), integerArg('offset')],
    run: getBit,
  },
  {
    name: 'bitcount',
    arity: -2,
    flags: Flag.READONLY,
    categories: Category.BITMAP,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.6.0',
    group: 'bitmap',
    summary: 'Counts the set bits of a string or of a part of it.',
    complexity: 'O(N)',
    history: [['7.0.0', 'BYTE and BIT.']],
    args: [keyArg('key'), blockArg('range', [integerArg('start'), integerArg('end'), UNIT], { optional: true })],
    run: bitCount,
  },
  {
    name: 'bitpos',
    arity: -3,
    flags: Flag.READONLY,
    categories: Category.BITMAP,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.8.7',
    group: 'bitmap',
    summary: 'Finds the first set or clear bit of a string.',
    complexity: 'O(N)',
    history: [['7.0.0', 'BYTE and BIT.']],
    args: [
      keyArg('key'),
      integerArg('bit'),
      blockArg(
        'range',
        [integerArg('start'), blockArg('end-unit-block', [integerArg('end'), UNIT], { optional: true })],
        {
          optional: true,
        },
      ),
    ],
    run: bitPos,
  },
];
