/**
 * String commands.
 *
 * Invariant: what `stage` allocated is committed by `run`, or given back by the executor.
 */
import { ItemType } from '../layout/item.js';
import { copyBytes } from '../native/copy.js';
import { integerArg, keyArg, oneOf, optional, stringArg, tokenArg, unixTimeArg } from './arguments.js';
import type { Context } from './context.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX } from './errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from './spec.js';

function get(context: Context): void {
  if (!context.findKey()) {
    context.miss();
    context.reply.nil();
    return;
  }
  if (!context.requireString()) return;
  context.hit();
  context.replyValue();
}

// ---- SET

const enum SetFlag {
  NX = 1,
  XX = 2,
  GET = 4,
  KEEP_TTL = 8,
  EXPIRY = 16,
}

/** Parsed options of the SET in hand; a worker runs one command at a time. */
const setOptions = { flags: 0, expiryMs: 0 };

/** Fills setOptions from the arguments behind the value; false = an error has been replied. */
function parseSetOptions(context: Context): boolean {
  let flags = 0;
  setOptions.expiryMs = 0;
  for (let i = 3; i < context.argc; i++) {
    if (context.argIs(i, 'NX') && (flags & SetFlag.XX) === 0) flags |= SetFlag.NX;
    else if (context.argIs(i, 'XX') && (flags & SetFlag.NX) === 0) flags |= SetFlag.XX;
    else if (context.argIs(i, 'GET')) flags |= SetFlag.GET;
    else if (context.argIs(i, 'KEEPTTL') && (flags & SetFlag.EXPIRY) === 0) flags |= SetFlag.KEEP_TTL;
    else {
      const seconds = context.argIs(i, 'EX') || context.argIs(i, 'EXAT');
      if (!seconds && !context.argIs(i, 'PX') && !context.argIs(i, 'PXAT')) return fail(context, SYNTAX);
      if (i + 1 === context.argc || (flags & (SetFlag.EXPIRY | SetFlag.KEEP_TTL)) !== 0) return fail(context, SYNTAX);
      const relative = context.argLength(i) === 2;
      const value = context.argInteger(i + 1);
      if (Number.isNaN(value)) return fail(context, NOT_INTEGER);
      const ms = (seconds ? value * 1000 : value) + (relative ? context.nowMs : 0);
      if (value <= 0 || ms > Number.MAX_SAFE_INTEGER) return fail(context, "ERR invalid expire time in 'set' command");
      flags |= SetFlag.EXPIRY;
      setOptions.expiryMs = ms;
      i++;
    }
  }
  setOptions.flags = flags;
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

function stageSet(context: Context): boolean {
  if (context.argc === 3) setOptions.flags = 0;
  else if (!parseSetOptions(context)) return false;
  const length = context.argLength(2);
  if (!context.stage(context.keyHash, 1, length)) return fail(context, NO_MEMORY);
  const keyspace = context.keyspace;
  copyBytes(keyspace.staged, keyspace.stagedOffset, context.input, context.argOffset(2), length);
  return true;
}

function set(context: Context): void {
  const keyspace = context.keyspace;
  if (context.largeStaged) {
    if (context.argc === 3) setOptions.flags = 0;
    else if (!parseSetOptions(context)) return;
  }
  const flags = setOptions.flags;
  if (flags === 0) {
    if (context.commitString(0, 0)) context.reply.ok();
    return;
  }
  const exists = context.findKey();
  const wantsOld = (flags & SetFlag.GET) !== 0;
  if (wantsOld && exists && !context.requireString()) return;
  let expiryMs = (flags & SetFlag.EXPIRY) !== 0 ? setOptions.expiryMs : 0;
  if (exists && (flags & SetFlag.KEEP_TTL) !== 0) expiryMs = keyspace.expiryMs;
  const blocked = exists ? (flags & SetFlag.NX) !== 0 : (flags & SetFlag.XX) !== 0;
  if (wantsOld && exists) {
    context.hit();
    context.replyValue();
  } else if (blocked) {
    context.reply.nil();
  }
  if (blocked) return;
  if (expiryMs !== 0 && expiryMs <= context.nowMs) {
    // A moment in the past: the key is gone at once, as if it had been set and had expired.
    if (exists) keyspace.remove();
  } else if (!keyspace.commit(ItemType.STRING, 0, 0, expiryMs)) {
    // Only a new key can find the index full, so no old value has been replied.
    return context.reply.error(NO_MEMORY);
  }
  if (!wantsOld) context.reply.ok();
  else if (!exists) context.reply.nil();
}

export const strings: readonly CommandSpec[] = [
  {
    name: 'get',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '1.0.0',
    group: 'string',
    summary: 'Returns the value of a string key.',
    complexity: 'O(1)',
    args: [keyArg('key')],
    run: get,
  },
  {
    name: 'set',
    arity: -3,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE | KeyUse.VARIABLE_FLAGS)],
    since: '1.0.0',
    group: 'string',
    summary: 'Stores a string under a key, replacing what was there, whatever its type.',
    complexity: 'O(1)',
    args: [
      keyArg('key'),
      stringArg('value'),
      oneOf('condition', [tokenArg('NX', { since: '2.6.12' }), tokenArg('XX', { since: '2.6.12' })], {
        optional: true,
      }),
      optional(tokenArg('GET', { since: '6.2.0' })),
      oneOf(
        'expiration',
        [
          integerArg('seconds', { token: 'EX', since: '2.6.12' }),
          integerArg('milliseconds', { token: 'PX', since: '2.6.12' }),
          unixTimeArg('unix-time-seconds', { token: 'EXAT', since: '6.2.0' }),
          unixTimeArg('unix-time-milliseconds', { token: 'PXAT', since: '6.2.0' }),
          tokenArg('KEEPTTL', { since: '6.0.0' }),
        ],
        { optional: true },
      ),
    ],
    variableUse: (context) => {
      for (let i = 3; i < context.argc; i++) {
        if (context.argIs(i, 'GET')) return KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE;
      }
      return KeyUse.OW | KeyUse.UPDATE;
    },
    largeArgument: 2,
    timed: false,
    stage: stageSet,
    run: set,
  },
];
