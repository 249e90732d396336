/**
 * String commands on parts of a value: APPEND, SETRANGE, GETRANGE, SUBSTR.
 */
import { Encoding } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import { Notify } from '../../store/change-feed.js';
import { integerArg, keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, STRING_TOO_LONG } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { beginChange, beginNew, changing, endChange } from './value-change.js';

const OFFSET_OUT_OF_RANGE = 'ERR offset is out of range';

/** True when a value may become so long; else replies the error. */
export function allowsLength(context: Context, length: number): boolean {
  if (length <= context.environment.settings.protoMaxBulkLen) return true;
  context.reply.error(STRING_TOO_LONG);
  return false;
}

function append(context: Context): void {
  const { keyspace } = context;
  const added = context.argLength(2);
  let from = 0;
  if (context.findKey()) {
    if (!context.requireString()) return;
    from = keyspace.valueLength;
    if (!allowsLength(context, from + added)) return;
    context.use();
    if (!beginChange(context, from, added, from + added, Encoding.RAW)) return;
  } else if (!beginNew(context, added, 0)) {
    return;
  }
  copyBytes(changing.bytes, changing.offset + from, context.input, context.argOffset(2), added);
  if (!endChange(context)) return;
  context.notify(Notify.STRING, 'append', 1);
  context.reply.integer(from + added);
}

function setRange(context: Context): void {
  const { keyspace, reply } = context;
  const offset = context.argInteger(2);
  if (Number.isNaN(offset)) return reply.error(NOT_INTEGER);
  if (offset < 0) return reply.error(OFFSET_OUT_OF_RANGE);
  const added = context.argLength(3);
  const end = offset + added;
  let length = end;
  if (context.findKey()) {
    if (!context.requireString()) return;
    if (added === 0) return reply.integer(keyspace.valueLength);
    if (!allowsLength(context, end)) return;
    length = Math.max(end, keyspace.valueLength);
    context.use();
    if (!beginChange(context, offset, added, length, Encoding.RAW)) return;
  } else {
    if (added === 0) return reply.integer(0);
    if (!allowsLength(context, end) || !beginNew(context, length, Encoding.RAW)) return;
  }
  copyBytes(changing.bytes, changing.offset + offset, context.input, context.argOffset(3), added);
  if (!endChange(context)) return;
  context.notify(Notify.STRING, 'setrange', 1);
  reply.integer(length);
}

function getRange(context: Context): void {
  const { reply } = context;
  let start = context.argInteger(2);
  let end = context.argInteger(3);
  if (Number.isNaN(start) || Number.isNaN(end)) return reply.error(NOT_INTEGER);
  if (!context.findKey()) {
    context.miss();
    return reply.bulkString('');
  }
  if (!context.requireString()) return;
  context.hit();
  const length = context.keyspace.valueLength;
  if (start < 0 && end < 0 && start > end) return reply.bulkString('');
  if (start < 0) start = Math.max(0, start + length);
  if (end < 0) end = Math.max(0, end + length);
  if (end >= length) end = length - 1;
  if (start > end) return reply.bulkString('');
  context.replyValueRange(start, end - start + 1);
}

const RANGE_ARGS = [keyArg('key'), integerArg('start'), integerArg('end')];
const READ = [keyAt(1, KeyUse.RO | KeyUse.ACCESS)];

export const stringRanges: readonly CommandSpec[] = [
  {
    name: 'append',
    arity: 3,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RW | KeyUse.INSERT)],
    since: '2.0.0',
    group: 'string',
    summary: 'Adds bytes to the end of a string, which is made when it is not there.',
    complexity: 'O(1) amortized over many short additions',
    args: [keyArg('key'), stringArg('value')],
    repeatable: true,
    run: append,
  },
  {
    name: 'setrange',
    arity: 4,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    since: '2.2.0',
    group: 'string',
    summary: 'Overwrites part of a string from an offset on, filling a gap before it with zeros.',
    complexity: 'O(M) for a value of M bytes, where the string has room',
    args: [keyArg('key'), integerArg('offset'), stringArg('value')],
    repeatable: true,
    run: setRange,
  },
  {
    name: 'getrange',
    arity: 4,
    flags: Flag.READONLY,
    categories: Category.STRING,
    keys: READ,
    since: '2.4.0',
    group: 'string',
    summary: 'Returns the bytes of a string between two offsets; negative ones count from the end.',
    complexity: 'O(N) for N returned bytes',
    args: RANGE_ARGS,
    timed: false,
    run: getRange,
  },
  {
    name: 'substr',
    arity: 4,
    flags: Flag.READONLY,
    categories: Category.STRING,
    keys: READ,
    since: '1.0.0',
    group: 'string',
    summary: 'Returns the bytes of a string between two offsets.',
    complexity: 'O(N) for N returned bytes',
    deprecated: { since: '2.0.0', replacedBy: '`GETRANGE`' },
    args: RANGE_ARGS,
    run: getRange,
  },
];
