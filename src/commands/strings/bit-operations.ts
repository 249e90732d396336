/**
 * BITOP: AND, OR, XOR and NOT of whole strings into a key.
 *
 * Shorter strings and missing keys count as padded with zeros. The result is built in the staged item, source after source.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Encoding } from '../../layout/item.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import { copyBytes } from '../../native/copy.js';
import { Notify } from '../../store/change-feed.js';
import type { StageSlot } from '../../store/staging.js';
import { keyArg, oneOf, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, SYNTAX } from '../errors.js';
import { takeSteps } from '../long-steps.js';
import { isSliceOver, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysFrom } from '../spec.js';

const enum Operation {
  NONE = 0,
  AND = 1,
  OR = 2,
  XOR = 3,
  NOT = 4,
}

const FIRST_SOURCE = 3;
/** Computed between two looks at the clock: some 100 microseconds. */
const STEP_BYTES = 64 * 1024;

function operationArg(context: Context): Operation {
  if (context.argIs(1, 'AND')) return Operation.AND;
  if (context.argIs(1, 'OR')) return Operation.OR;
  if (context.argIs(1, 'XOR')) return Operation.XOR;
  return context.argIs(1, 'NOT') ? Operation.NOT : Operation.NONE;
}

/** Longest of the sources; -1 after an error reply. */
function longest(context: Context): number {
  let length = 0;
  for (let i = FIRST_SOURCE; i < context.argc; i++) {
    if (!findSource(context, i)) {
      context.miss();
      continue;
    }
    if (!context.requireString()) return -1;
    context.touch();
    length = Math.max(length, context.keyspace.valueLength);
  }
  return length;
}

/** Key 0 is the destination. */
function findSource(context: Context, i: number): boolean {
  return context.find(context.keyHashes[i - FIRST_SOURCE + 1], i);
}

function bitOp(context: Context): void {
  const { keyspace, reply } = context;
  const operation = operationArg(context);
  if (operation === Operation.NONE) return reply.error(SYNTAX);
  if (operation === Operation.NOT && context.argc !== FIRST_SOURCE + 1) {
    return reply.error('ERR BITOP NOT must be called with a single source key.');
  }
  const length = longest(context);
  if (length < 0) return;
  if (length === 0) {
    if (context.find(context.keyHashes[0], 2)) {
      keyspace.remove();
      context.notify(Notify.GENERIC, 'del', 2);
    }
    return reply.integer(0);
  }
  if (length > STEP_BYTES)
    return takeSteps(context, 1, context.keyCount, () => operateInSteps(context, operation, length));
  if (!context.stage(context.keyHashes[0], 2, length)) return reply.error(NO_MEMORY);
  operate(context, operation, 0, length);
  store(context, length);
}

function store(context: Context, length: number): void {
  if (!context.commitString(Encoding.RAW, 0)) return;
  context.notify(Notify.STRING, 'set', 2);
  context.reply.integer(length);
}

/** The staged value is parked from turn to turn; where there is no place for it, the rest is done in one go. */
function* operateInSteps(context: Context, operation: Operation, length: number): Steps {
  const { keyspace } = context;
  if (!context.stage(context.keyHashes[0], 2, length)) return context.reply.error(NO_MEMORY);
  const parked: StageSlot = { held: 0, page: NO_PAGE, unit: 0 };
  try {
    for (let at = 0; at < length; at += STEP_BYTES) {
      operate(context, operation, at, Math.min(STEP_BYTES, length - at));
      if (!isSliceOver() || !keyspace.parkStaged(parked)) continue;
      yield;
      keyspace.unparkStaged(parked, context.db);
    }
    store(context, length);
  } finally {
    // The client has gone, or a source has changed.
    keyspace.dropParked(parked);
  }
}

/** Computes `length` bytes of the staged value from byte `at` on. */
function operate(context: Context, operation: Operation, at: number, length: number): void {
  const { keyspace } = context;
  const to = keyspace.staged;
  const start = keyspace.stagedOffset + at;
  for (let i = FIRST_SOURCE; i < context.argc; i++) {
    // Staging may have evicted a source that was found long before; then it counts as missing, as it now is.
    const from = findSource(context, i) ? Math.max(0, Math.min(length, keyspace.valueLength - at)) : 0;
    if (i === FIRST_SOURCE) {
      copyBytes(to, start, keyspace.value, keyspace.valueOffset + at, from);
      to.u8.fill(0, start + from, start + length);
    } else {
      combine(operation, to, start, keyspace.value, keyspace.valueOffset + at, from);
      if (operation === Operation.AND) to.u8.fill(0, start + from, start + length);
    }
  }
  if (operation === Operation.NOT) for (let p = start; p < start + length; p++) to.u8[p] ^= 0xff;
}

function combine(
  operation: Operation,
  to: Bytes,
  toOffset: number,
  from: Bytes,
  fromOffset: number,
  length: number,
): void {
  const toView = to.view;
  const fromView = from.view;
  const words = length - 3;
  let i = 0;
  if (operation === Operation.AND) {
    for (; i < words; i += 4) {
      toView.setInt32(
        toOffset + i,
        toView.getInt32(toOffset + i, true) & fromView.getInt32(fromOffset + i, true),
        true,
      );
    }
    for (; i < length; i++) to.u8[toOffset + i] &= from.u8[fromOffset + i];
  } else if (operation === Operation.OR) {
    for (; i < words; i += 4) {
      toView.setInt32(
        toOffset + i,
        toView.getInt32(toOffset + i, true) | fromView.getInt32(fromOffset + i, true),
        true,
      );
    }
    for (; i < length; i++) to.u8[toOffset + i] |= from.u8[fromOffset + i];
  } else {
    for (; i < words; i += 4) {
      toView.setInt32(
        toOffset + i,
        toView.getInt32(toOffset + i, true) ^ fromView.getInt32(fromOffset + i, true),
        true,
      );
    }
    for (; i < length; i++) to.u8[toOffset + i] ^= from.u8[fromOffset + i];
  }
}

export const bitOperations: readonly CommandSpec[] = [
  {
    name: 'bitop',
    arity: -4,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.BITMAP,
    keys: [keyAt(2, KeyUse.OW | KeyUse.UPDATE), keysFrom(3, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.6.0',
    group: 'bitmap',
    summary: 'Combines strings bit by bit and stores the result.',
    complexity: 'O(N)',
    args: [
      oneOf('operation', [tokenArg('AND'), tokenArg('OR'), tokenArg('XOR'), tokenArg('NOT')]),
      keyArg('destkey'),
      keyArg('key', { keySpec: 1, multiple: true }),
    ],
    run: bitOp,
  },
];
