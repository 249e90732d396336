/**
 * BITFIELD and BITFIELD_RO: integers of 1 to 64 bits at any bit offset of a string.
 *
 * The whole command is parsed before anything is changed. Invariant: a field of up to 32 bits with operands below 2^52 is
 * computed in doubles, which are exact there; everything else in bigints.
 */
import { Bytes as ByteRange, type Bytes } from '../../layout/bytes.js';
import { Encoding } from '../../layout/item.js';
import { Notify } from '../../store/change-feed.js';
import type { Keyspace } from '../../store/keyspace.js';
import { type ArgumentSpec, blockArg, integerArg, keyArg, oneOf, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { parseInteger } from '../numbers.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { BIT_OFFSET } from './bits.js';
import { beginChange, beginNew, changing, endChange } from './value-change.js';

const BAD_TYPE = 'ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.';
const BAD_OVERFLOW = 'ERR Invalid OVERFLOW type specified';
const READ_ONLY = 'ERR BITFIELD_RO only supports the GET subcommand';

const enum Action {
  GET = 0,
  SET = 1,
  INCRBY = 2,
}

const enum Overflow {
  WRAP = 0,
  SATURATE = 1,
  FAIL = 2,
}

interface Operation {
  readonly action: Action;
  readonly overflow: Overflow;
  readonly signed: boolean;
  readonly bits: number;
  /** Bit offset. */
  readonly at: number;
  readonly operand: bigint;
}

const FAST_BITS = 32;
const FAST_OPERAND_MAX = 2 ** 52;

/** All operations of the request, or null after an error reply. */
function parse(context: Context): Operation[] | null {
  const operations: Operation[] = [];
  let overflow = Overflow.WRAP;
  for (let i = 2; i < context.argc; ) {
    const left = context.argc - i - 1;
    let action: Action;
    if (context.argIs(i, 'GET') && left >= 2) action = Action.GET;
    else if (context.argIs(i, 'SET') && left >= 3) action = Action.SET;
    else if (context.argIs(i, 'INCRBY') && left >= 3) action = Action.INCRBY;
    else if (context.argIs(i, 'OVERFLOW') && left >= 1) {
      if (context.argIs(i + 1, 'WRAP')) overflow = Overflow.WRAP;
      else if (context.argIs(i + 1, 'SAT')) overflow = Overflow.SATURATE;
      else if (context.argIs(i + 1, 'FAIL')) overflow = Overflow.FAIL;
      else return fail(context, BAD_OVERFLOW);
      i += 2;
      continue;
    } else {
      return fail(context, SYNTAX);
    }
    const bits = typeArg(context, i + 1);
    if (bits === 0) return fail(context, BAD_TYPE);
    const at = fieldOffsetArg(context, i + 2, Math.abs(bits));
    if (at < 0) return fail(context, BIT_OFFSET);
    const operand = action === Action.GET ? 0n : context.argInteger64(i + 3);
    if (operand === null) return fail(context, NOT_INTEGER);
    operations.push({ action, overflow, signed: bits < 0, bits: Math.abs(bits), at, operand });
    i += action === Action.GET ? 3 : 4;
  }
  return operations;
}

function fail(context: Context, text: string): null {
  context.reply.error(text);
  return null;
}

/** Bits of a type: negative for a signed one; 0 = no type. */
function typeArg(context: Context, i: number): number {
  const offset = context.argOffset(i);
  const length = context.argLength(i);
  const letter = length === 0 ? 0 : context.input.u8[offset];
  const signed = letter === 0x69;
  if (!signed && letter !== 0x75) return 0;
  const bits = parseInteger(context.input, offset + 1, length - 1);
  if (!(bits >= 1) || bits > (signed ? 64 : 63)) return 0;
  return signed ? -bits : bits;
}

/** A bit offset, or '#n': the n-th field of this width. -1 = none. */
function fieldOffsetArg(context: Context, i: number, bits: number): number {
  const offset = context.argOffset(i);
  const length = context.argLength(i);
  const counted = length > 0 && context.input.u8[offset] === 0x23;
  const value = counted ? parseInteger(context.input, offset + 1, length - 1) * bits : context.argInteger(i);
  return value >= 0 && Math.floor(value / 8) < context.environment.settings.protoMaxBulkLen ? value : -1;
}

function bitField(context: Context): void {
  const operations = parse(context);
  if (operations === null) return;
  const { keyspace } = context;
  // The bytes that writes touch.
  let start = Number.POSITIVE_INFINITY;
  let end = 0;
  for (const { action, at, bits } of operations) {
    if (action === Action.GET) continue;
    start = Math.min(start, Math.floor(at / 8));
    end = Math.max(end, Math.ceil((at + bits) / 8));
  }
  if (end === 0) return readOnly(context, operations);
  if (context.findKey()) {
    if (!context.requireString()) return;
    context.use();
    const oldLength = keyspace.valueLength;
    if (end <= oldLength && keyspace.encoding === Encoding.RAW && changesNothing(keyspace, operations)) {
      // Watchers must not see a change either.
      const reads = operations.map((operation) => ({ ...operation, action: Action.GET }));
      return run(context, reads, keyspace.value, keyspace.valueOffset, oldLength);
    }
    if (!beginChange(context, start, end - start, Math.max(end, oldLength), Encoding.RAW)) return;
    if (end > oldLength) changing.bytes.u8.fill(0, changing.offset + oldLength, changing.offset + end);
  } else if (!beginNew(context, end, Encoding.RAW)) {
    return;
  }
  // The key's lock is held and the change is in the undo journal, so the fields may be written after the commit.
  if (!endChange(context)) return;
  context.notify(Notify.STRING, 'setbit', 1);
  run(context, operations, keyspace.value, keyspace.valueOffset, keyspace.valueLength);
}

/** True when every field has the value already that it is set to. An increment counts as a change whatever it comes to. */
function changesNothing({ value, valueOffset, valueLength }: Keyspace, operations: readonly Operation[]): boolean {
  if (operations.some(({ action }) => action !== Action.GET && action !== Action.SET)) return false;
  return operations.every(
    (operation) =>
      operation.action === Action.GET ||
      runExactly({ ...operation, action: Action.GET }, value, valueOffset, valueLength) === operation.operand,
  );
}

function bitFieldRo(context: Context): void {
  const operations = parse(context);
  if (operations === null) return;
  if (operations.some(({ action }) => action !== Action.GET)) return context.reply.error(READ_ONLY);
  readOnly(context, operations);
}

const EMPTY = ByteRange.allocate(0);

function readOnly(context: Context, operations: readonly Operation[]): void {
  const { keyspace } = context;
  if (!context.findKey()) {
    context.miss();
    return run(context, operations, EMPTY, 0, 0);
  }
  if (!context.requireString()) return;
  context.hit();
  run(context, operations, keyspace.value, keyspace.valueOffset, keyspace.valueLength);
}

/** Carries the operations out on `length` value bytes and replies their results. */
function run(context: Context, operations: readonly Operation[], bytes: Bytes, offset: number, length: number): void {
  const { reply } = context;
  reply.array(operations.length);
  for (const operation of operations) {
    const { bits, operand } = operation;
    if (bits <= FAST_BITS && operand <= FAST_OPERAND_MAX && operand >= -FAST_OPERAND_MAX) {
      const result = runFast(operation, Number(operand), bytes, offset, length);
      if (Number.isNaN(result)) reply.nil();
      else reply.integer(result);
    } else {
      const result = runExactly(operation, bytes, offset, length);
      if (result === null) reply.nil();
      else reply.integer64(result);
    }
  }
}

/** NaN when the field would overflow and must not. */
function runFast(operation: Operation, operand: number, bytes: Bytes, offset: number, length: number): number {
  const { action, overflow, signed, bits, at } = operation;
  const span = 2 ** bits;
  let old = readField(bytes, offset, length, at, bits);
  if (signed && old >= span / 2) old -= span;
  if (action === Action.GET) return old;
  const min = signed ? -span / 2 : 0;
  const max = min + span - 1;
  let value = action === Action.SET ? operand : old + operand;
  if (value > max || value < min) {
    if (overflow === Overflow.FAIL) return Number.NaN;
    // A negative operand of an unsigned SET is a very large one.
    const above = value > max || (!signed && action === Action.SET);
    if (overflow === Overflow.SATURATE) value = above ? max : min;
    else value = wrap(value, span, max);
  }
  writeField(bytes, offset, at, bits, value < 0 ? value + span : value);
  return action === Action.SET ? old : value;
}

function wrap(value: number, span: number, max: number): number {
  const rest = value % span;
  const positive = rest < 0 ? rest + span : rest;
  return positive > max ? positive - span : positive;
}

function runExactly(operation: Operation, bytes: Bytes, offset: number, length: number): bigint | null {
  const { action, overflow, signed, bits, at, operand } = operation;
  const highBits = bits - Math.min(bits, FAST_BITS);
  const high = highBits === 0 ? 0 : readField(bytes, offset, length, at, highBits);
  const low = readField(bytes, offset, length, at + highBits, bits - highBits);
  const raw = (BigInt(high) << BigInt(bits - highBits)) | BigInt(low);
  const old = signed ? BigInt.asIntN(bits, raw) : raw;
  if (action === Action.GET) return old;
  const min = signed ? -(1n << BigInt(bits - 1)) : 0n;
  const max = min + (1n << BigInt(bits)) - 1n;
  let value = action === Action.SET ? operand : old + operand;
  if (value > max || value < min) {
    if (overflow === Overflow.FAIL) return null;
    const above = value > max || (!signed && action === Action.SET);
    if (overflow === Overflow.SATURATE) value = above ? max : min;
    else value = signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
  }
  const stored = BigInt.asUintN(bits, value);
  if (highBits > 0) writeField(bytes, offset, at, highBits, Number(stored >> BigInt(bits - highBits)));
  writeField(bytes, offset, at + highBits, bits - highBits, Number(BigInt.asUintN(bits - highBits, stored)));
  return action === Action.SET ? old : value;
}

/** `bits` <= 32 bits at bit `at`, unsigned; beyond the end there are zeros. */
function readField(bytes: Bytes, offset: number, length: number, at: number, bits: number): number {
  const first = Math.floor(at / 8);
  const last = Math.floor((at + bits - 1) / 8);
  let value = 0;
  for (let i = first; i <= last; i++) value = value * 256 + (i < length ? bytes.u8[offset + i] : 0);
  const behind = (last + 1) * 8 - at - bits;
  return Math.floor(value / 2 ** behind) % 2 ** bits;
}

/** The bytes are there. */
function writeField(bytes: Bytes, offset: number, at: number, bits: number, value: number): void {
  const { u8 } = bytes;
  for (let bit = bits - 1; bit >= 0; bit--) {
    const position = at + bit;
    const mask = 0x80 >>> (position % 8);
    const index = offset + Math.floor(position / 8);
    if (value % 2 === 1) u8[index] |= mask;
    else u8[index] &= ~mask;
    value = Math.floor(value / 2);
  }
}

/** GETs alone only read. A request that is wrong counts as writing. */
function keyUseOf(context: Context): number {
  for (let i = 2; i < context.argc; ) {
    const rest = context.argc - i - 1;
    if (context.argIs(i, 'GET') && rest >= 2) i += 3;
    else if (context.argIs(i, 'OVERFLOW') && rest >= 1) i += 2;
    else return KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE;
  }
  return KeyUse.RO | KeyUse.ACCESS;
}

const GET_BLOCK: readonly ArgumentSpec[] = [stringArg('encoding'), integerArg('offset')];
const WRITE_BLOCK = (operand: string): readonly ArgumentSpec[] => [...GET_BLOCK, integerArg(operand)];
const OVERFLOW_ARG = oneOf('overflow-block', [tokenArg('WRAP'), tokenArg('SAT'), tokenArg('FAIL')], {
  token: 'OVERFLOW',
  optional: true,
});

export const bitFields: readonly CommandSpec[] = [
  {
    name: 'bitfield',
    arity: -2,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.BITMAP,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE | KeyUse.VARIABLE_FLAGS)],
    variableUse: keyUseOf,
    since: '3.2.0',
    group: 'bitmap',
    summary: 'Reads, sets and increments integers of any width inside a string.',
    complexity: 'O(1) for each operation',
    args: [
      keyArg('key'),
      oneOf(
        'operation',
        [
          blockArg('get-block', GET_BLOCK, { token: 'GET' }),
          blockArg('write', [
            OVERFLOW_ARG,
            oneOf('write-operation', [
              blockArg('set-block', WRITE_BLOCK('value'), { token: 'SET' }),
              blockArg('incrby-block', WRITE_BLOCK('increment'), { token: 'INCRBY' }),
            ]),
          ]),
        ],
        { optional: true, multiple: true },
      ),
    ],
    repeatable: true,
    run: bitField,
  },
  {
    name: 'bitfield_ro',
    arity: -2,
    flags: Flag.READONLY | Flag.FAST,
    categories: Category.BITMAP,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '6.0.0',
    group: 'bitmap',
    summary: 'Reads integers of any width inside a string.',
    complexity: 'O(1) for each operation',
    args: [
      keyArg('key'),
      blockArg('get-block', GET_BLOCK, { token: 'GET', optional: true, multiple: true, multipleToken: true }),
    ],
    run: bitFieldRo,
  },
];
