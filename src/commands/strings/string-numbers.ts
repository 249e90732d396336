/**
 * Strings as numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
 *
 * Invariant: results are exact 64-bit integers: doubles while both operands and the result are below 2^53, bigints beyond.
 */
import { Encoding } from '../../layout/item.js';
import { writeInteger } from '../../protocol/resp/reply.js';
import { Notify } from '../../store/change-feed.js';
import { doubleArg, integerArg, keyArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_FLOAT, NOT_INTEGER } from '../errors.js';
import { addLongDoubles, formatLongDouble, parseLongDouble } from '../long-double.js';
import { byteString, integerLength, parseInteger, parseInteger64, writeText } from '../numbers.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { beginChange, beginNew, changing, endChange } from './value-change.js';

const OVERFLOW = 'ERR increment or decrement would overflow';
const DECREMENT_OVERFLOW = 'ERR decrement would overflow';
const NOT_FINITE = 'ERR increment would produce NaN or Infinity';
const INT64_MIN = -0x8000000000000000n;
const INT64_MAX = 0x7fffffffffffffffn;

function incr(context: Context): void {
  add(context, 1);
}

function decr(context: Context): void {
  add(context, -1);
}

function incrBy(context: Context): void {
  const increment = context.argInteger(2);
  if (Number.isNaN(increment)) return context.reply.error(NOT_INTEGER);
  if (Number.isSafeInteger(increment)) add(context, increment);
  else addExactly(context, context.argInteger64(2) as bigint);
}

function decrBy(context: Context): void {
  const decrement = context.argInteger(2);
  if (Number.isNaN(decrement)) return context.reply.error(NOT_INTEGER);
  if (Number.isSafeInteger(decrement)) return add(context, -decrement);
  const exact = context.argInteger64(2) as bigint;
  if (exact === INT64_MIN) return context.reply.error(DECREMENT_OVERFLOW);
  addExactly(context, -exact);
}

function add(context: Context, increment: number): void {
  const { keyspace, reply } = context;
  let value = 0;
  const exists = context.findKey();
  if (exists) {
    if (!context.requireString()) return;
    value = parseInteger(keyspace.value, keyspace.valueOffset, keyspace.valueLength);
    if (Number.isNaN(value)) return reply.error(NOT_INTEGER);
    context.use();
  }
  const sum = value + increment;
  // A value beyond 2^53 may have been rounded, but not into the safe range.
  if (!Number.isSafeInteger(value) || !Number.isSafeInteger(sum)) return addExactly(context, BigInt(increment));
  const length = integerLength(sum);
  if (exists ? !beginChange(context, 0, length, length, 0) : !beginNew(context, length, 0)) return;
  // -0 would be written with its sign.
  writeInteger(changing.bytes.u8, changing.offset, sum + 0);
  if (!endChange(context)) return;
  context.notify(Notify.STRING, 'incrby', 1);
  reply.integer(sum + 0);
}

function addExactly(context: Context, increment: bigint): void {
  const { keyspace, reply } = context;
  let value: bigint | null = 0n;
  const exists = context.findKey();
  if (exists) {
    if (!context.requireString()) return;
    value = parseInteger64(keyspace.value, keyspace.valueOffset, keyspace.valueLength);
    if (value === null) return reply.error(NOT_INTEGER);
    context.use();
  }
  const sum = value + increment;
  if (sum > INT64_MAX || sum < INT64_MIN) return reply.error(OVERFLOW);
  if (!storeText(context, exists, sum.toString(), 0)) return;
  context.notify(Notify.STRING, 'incrby', 1);
  reply.integer64(sum);
}

function incrByFloat(context: Context): void {
  const { keyspace, reply } = context;
  const exists = context.findKey();
  if (exists && !context.requireString()) return;
  const text = exists ? byteString(keyspace.value, keyspace.valueOffset, keyspace.valueLength) : '0';
  const value = parseLongDouble(text);
  const increment = value === null ? null : parseLongDouble(context.argString(2));
  if (value === null || increment === null) return reply.error(NOT_FLOAT);
  const sum = value === 'infinite' || increment === 'infinite' ? null : addLongDoubles(value, increment);
  if (sum === null) return reply.error(NOT_FINITE);
  if (exists) context.use();
  const shown = formatLongDouble(sum);
  if (!storeText(context, exists, shown, Encoding.TEXT)) return;
  context.notify(Notify.STRING, 'incrbyfloat', 1);
  reply.bulkString(shown);
}

/** Stores ASCII text as the value of argument 1. */
function storeText(context: Context, exists: boolean, text: string, encoding: number): boolean {
  const length = text.length;
  if (exists ? !beginChange(context, 0, length, length, encoding) : !beginNew(context, length, encoding)) return false;
  writeText(changing.bytes, changing.offset, text);
  return endChange(context);
}

const FLAGS = Flag.WRITE | Flag.DENYOOM | Flag.FAST;
const KEYS = [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE)];

export const stringNumbers: readonly CommandSpec[] = [
  {
    name: 'incr',
    arity: 2,
    flags: FLAGS,
    categories: Category.STRING,
    keys: KEYS,
    since: '1.0.0',
    group: 'string',
    summary: 'Adds one to the integer that a string holds; a missing key counts as 0.',
    complexity: 'O(1)',
    args: [keyArg('key')],
    run: incr,
  },
  {
    name: 'decr',
    arity: 2,
    flags: FLAGS,
    categories: Category.STRING,
    keys: KEYS,
    since: '1.0.0',
    group: 'string',
    summary: 'Takes one from the integer that a string holds; a missing key counts as 0.',
    complexity: 'O(1)',
    args: [keyArg('key')],
    run: decr,
  },
  {
    name: 'incrby',
    arity: 3,
    flags: FLAGS,
    categories: Category.STRING,
    keys: KEYS,
    since: '1.0.0',
    group: 'string',
    summary: 'Adds to the integer that a string holds; a missing key counts as 0.',
    complexity: 'O(1)',
    args: [keyArg('key'), integerArg('increment')],
    run: incrBy,
  },
  {
    name: 'decrby',
    arity: 3,
    flags: FLAGS,
    categories: Category.STRING,
    keys: KEYS,
    since: '1.0.0',
    group: 'string',
    summary: 'Takes from the integer that a string holds; a missing key counts as 0.',
    complexity: 'O(1)',
    args: [keyArg('key'), integerArg('decrement')],
    run: decrBy,
  },
  {
    name: 'incrbyfloat',
    arity: 3,
    flags: FLAGS,
    categories: Category.STRING,
    keys: KEYS,
    since: '2.6.0',
    group: 'string',
    summary: 'Adds to the floating-point number that a string holds; a missing key counts as 0.',
    complexity: 'O(1)',
    args: [keyArg('key'), doubleArg('increment')],
    run: incrByFloat,
  },
];
