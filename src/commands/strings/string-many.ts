/**
 * String commands on several keys: MGET, MSET, MSETNX.
 *
 * MSET and MSETNX stage every value before the locks are taken, so that memory running out changes nothing. Invariant:
 * `parked` slots [0, parkedCount) hold staged items only between `stage` and the end of `run`.
 */
import { ItemType } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import { Notify } from '../../store/change-feed.js';
import type { StageSlot } from '../../store/keyspace.js';
import { blockArg, keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, wrongArity } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keysFrom } from '../spec.js';

function mget(context: Context): void {
  const { reply, keyspace } = context;
  reply.array(context.argc - 1);
  for (let i = 1; i < context.argc; i++) {
    if (!context.find(context.keyHashes[i - 1], i)) {
      context.miss();
      reply.nil();
    } else if (keyspace.type !== ItemType.STRING) {
      reply.nil();
    } else {
      context.hit();
      context.replyValue();
    }
  }
}

// ---- MSET

const parked: StageSlot[] = [];
let parkedCount = 0;

function stageAll(context: Context): boolean {
  parkedCount = 0;
  if ((context.argc & 1) === 0) {
    context.reply.error(wrongArity(context.command.fullName));
    return false;
  }
  const { keyspace } = context;
  for (let i = 1; i < context.argc; i += 2) {
    const length = context.argLength(i + 1);
    if (!context.stage(context.keyHashes[(i - 1) >>> 1], i, length)) {
      dropParked(context);
      context.reply.error(NO_MEMORY);
      return false;
    }
    copyBytes(keyspace.staged, keyspace.stagedOffset, context.input, context.argOffset(i + 1), length);
    if (parkedCount === parked.length) parked.push({ held: 0, page: 0, unit: 0 });
    if (!keyspace.parkStaged(parked[parkedCount])) {
      // More pairs than can be held at once: the rest is staged one by one while the first ones are stored.
      keyspace.dropStaged();
      break;
    }
    parkedCount++;
  }
  // A transaction has done so for all of its commands.
  if (!context.inTransaction) keyspace.reserveIndex(parkedCount);
  return true;
}

function dropParked(context: Context): void {
  for (let k = 0; k < parkedCount; k++) context.keyspace.dropParked(parked[k]);
  parkedCount = 0;
}

/** Stores all pairs; false = memory ran out among the pairs that could not be staged beforehand. */
function storeAll(context: Context): boolean {
  const { keyspace } = context;
  const pairs = (context.argc - 1) >>> 1;
  const staged = parkedCount;
  parkedCount = 0;
  for (let k = 0; k < staged; k++) {
    keyspace.unparkStaged(parked[k], context.db);
    if (!context.commitString(0, 0)) {
      for (k++; k < staged; k++) keyspace.dropParked(parked[k]);
      return false;
    }
    context.notify(Notify.STRING, 'set', k * 2 + 1);
  }
  for (let k = staged; k < pairs; k++) {
    const value = k * 2 + 2;
    const length = context.argLength(value);
    if (!context.stage(context.keyHashes[k], value - 1, length)) {
      context.reply.error(NO_MEMORY);
      return false;
    }
    copyBytes(keyspace.staged, keyspace.stagedOffset, context.input, context.argOffset(value), length);
    if (!context.commitString(0, 0)) return false;
    context.notify(Notify.STRING, 'set', value - 1);
  }
  return true;
}

function mset(context: Context): void {
  if (storeAll(context)) context.reply.ok();
}

function msetNx(context: Context): void {
  for (let i = 1; i < context.argc; i += 2) {
    if (context.find(context.keyHashes[(i - 1) >>> 1], i)) {
      dropParked(context);
      context.touch();
      context.reply.integer(0);
      return;
    }
  }
  if (storeAll(context)) context.reply.integer(1);
}

const PAIRS = [blockArg('data', [keyArg('key'), stringArg('value')], { multiple: true })];

export const manyStrings: readonly CommandSpec[] = [
  {
    name: 'mget',
    arity: -2,
    flags: Flag.READONLY | Flag.FAST,
    categories: Category.STRING,
    keys: [keysFrom(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '1.0.0',
    group: 'string',
    summary: 'Returns the values of several keys, nothing for those that are absent or no strings.',
    complexity: 'O(N) for N keys',
    tips: ['request_policy:multi_shard'],
    args: [keyArg('key', { multiple: true })],
    run: mget,
  },
  {
    name: 'mset',
    arity: -3,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.STRING,
    keys: [keysFrom(1, KeyUse.OW | KeyUse.UPDATE, -1, 2)],
    since: '1.0.1',
    group: 'string',
    summary: 'Stores several strings in one step.',
    complexity: 'O(N) for N keys',
    tips: ['request_policy:multi_shard', 'response_policy:all_succeeded'],
    args: PAIRS,
    stage: stageAll,
    run: mset,
  },
  {
    name: 'msetnx',
    arity: -3,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.STRING,
    keys: [keysFrom(1, KeyUse.OW | KeyUse.INSERT, -1, 2)],
    since: '1.0.1',
    group: 'string',
    summary: 'Stores several strings in one step, unless one of the keys exists.',
    complexity: 'O(N) for N keys',
    args: PAIRS,
    stage: stageAll,
    run: msetNx,
  },
];
