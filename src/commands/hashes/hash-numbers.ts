/**
 * Hash fields as numbers: HINCRBY, HINCRBYFLOAT. A field keeps its expiry.
 *
 * Invariant: as for strings, results are exact 64-bit integers: doubles below 2^53, bigints beyond.
 */
import { Bytes } from '../../layout/bytes.js';
import { writeInteger } from '../../protocol/resp/reply.js';
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import { doubleArg, integerArg, keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_FLOAT, NOT_INTEGER } from '../errors.js';
import { addLongDoubles, formatLongDouble, parseLongDouble } from '../long-double.js';
import { byteString, parseInteger, parseInteger64, writeText } from '../numbers.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { findField, openHash, setField } from './hash-fields.js';

const VALUE_NOT_INTEGER = 'ERR hash value is not an integer';
const VALUE_NOT_FLOAT = 'ERR hash value is not a float';
const OVERFLOW = 'ERR increment or decrement would overflow';
const INFINITE = 'ERR value is NaN or Infinity';
const NOT_FINITE = 'ERR increment would produce NaN or Infinity';
const INT64_MIN = -0x8000000000000000n;
const INT64_MAX = 0x7fffffffffffffffn;

/** Where results are written before they go into the hash: a worker runs one command at a time. */
const scratch = Bytes.allocate(512);

/** Stores `length` bytes of the scratch as the field's value, by HINCRBY. False after an error reply. */
function store(context: Context, hash: Collection, found: boolean, length: number): boolean {
  const expiryMs = found ? hash.expiryMs : 0;
  if (setField(context, hash, found, 2, scratch, 0, length, expiryMs) !== Change.DONE) {
    context.reply.error(NO_MEMORY);
    return false;
  }
  context.notify(Notify.HASH, 'hincrby', 1);
  return true;
}

function hincrBy(context: Context): void {
  const { reply } = context;
  const increment = context.argInteger(3);
  if (Number.isNaN(increment)) return reply.error(NOT_INTEGER);
  const hash = openHash(context);
  if (hash === null) return;
  if (hash.exists) context.use();
  const found = findField(context, hash, 2);
  const value = found ? parseInteger(hash.value, hash.valueOffset, hash.valueLength) : 0;
  if (Number.isNaN(value)) return reply.error(VALUE_NOT_INTEGER);
  const sum = value + increment;
  if (Number.isSafeInteger(increment) && Number.isSafeInteger(value) && Number.isSafeInteger(sum)) {
    // -0 would be written with its sign.
    const length = writeInteger(scratch.u8, 0, sum + 0);
    if (store(context, hash, found, length)) reply.integer(sum + 0);
    return;
  }
  const old = found ? (parseInteger64(hash.value, hash.valueOffset, hash.valueLength) as bigint) : 0n;
  const exact = old + (context.argInteger64(3) as bigint);
  if (exact > INT64_MAX || exact < INT64_MIN) return reply.error(OVERFLOW);
  const text = exact.toString();
  writeText(scratch, 0, text);
  if (store(context, hash, found, text.length)) reply.integer64(exact);
}

function hincrByFloat(context: Context): void {
  const { reply } = context;
  const increment = parseLongDouble(context.argString(3));
  if (increment === null) return reply.error(NOT_FLOAT);
  if (increment === 'infinite') return reply.error(INFINITE);
  const hash = openHash(context);
  if (hash === null) return;
  if (hash.exists) context.use();
  const found = findField(context, hash, 2);
  const value = parseLongDouble(found ? byteString(hash.value, hash.valueOffset, hash.valueLength) : '0');
  if (value === null) return reply.error(VALUE_NOT_FLOAT);
  const sum = value === 'infinite' ? null : addLongDoubles(value, increment);
  if (sum === null) return reply.error(NOT_FINITE);
  const shown = formatLongDouble(sum);
  const text = shown.length <= scratch.length ? scratch : Bytes.from(shown);
  if (text === scratch) writeText(scratch, 0, shown);
  const expiryMs = found ? hash.expiryMs : 0;
  if (setField(context, hash, found, 2, text, 0, shown.length, expiryMs) !== Change.DONE) return reply.error(NO_MEMORY);
  context.notify(Notify.HASH, 'hincrbyfloat', 1);
  reply.bulkString(shown);
}

const COMMON = {
  arity: 4,
  flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
  categories: Category.HASH,
  keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE)],
  group: 'hash',
  complexity: 'O(1)',
} as const;

export const hashNumbers: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'hincrby',
    since: '2.0.0',
    summary: 'Adds to the integer in a field of a hash; a missing field counts as 0.',
    args: [keyArg('key'), stringArg('field'), integerArg('increment')],
    repeatable: true,
    run: hincrBy,
  },
  {
    ...COMMON,
    name: 'hincrbyfloat',
    since: '2.6.0',
    summary: 'Adds to the floating-point number in a field of a hash; a missing field counts as 0.',
    args: [keyArg('key'), stringArg('field'), doubleArg('increment')],
    repeatable: true,
    run: hincrByFloat,
  },
];
