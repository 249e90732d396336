/**
 * String commands on one whole value: GET, SET and their relatives.
 *
 * Invariant: what `stage` allocated is committed by `run`, or given back by the executor.
 */
import { Notify } from '../../store/change-feed.js';
import { integerArg, keyArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { expiryArg } from '../keyspace/expiry-options.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { conditionArgs, expiryArgs, parseStringOptions, StringOption, stringOptions } from './string-options.js';

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

function strlen(context: Context): void {
  if (!context.findKey()) {
    context.miss();
    context.reply.integer(0);
    return;
  }
  if (!context.requireString()) return;
  context.hit();
  context.reply.integer(context.keyspace.valueLength);
}

function getDel(context: Context): void {
  if (!context.findKey()) {
    context.miss();
    context.reply.nil();
    return;
  }
  if (!context.requireString()) return;
  context.hit();
  context.replyValue();
  context.keyspace.remove();
  context.notify(Notify.GENERIC, 'del', 1);
}

const GETEX_OPTIONS = StringOption.ANY_EXPIRY | StringOption.PERSIST;

function getEx(context: Context): void {
  const keyspace = context.keyspace;
  if (!parseStringOptions(context, 2, GETEX_OPTIONS)) return;
  const { flags, expiryAt } = stringOptions;
  if (!context.findKey()) {
    context.miss();
    context.reply.nil();
    return;
  }
  if (!context.requireString()) return;
  let expiryMs = 0;
  if ((flags & StringOption.ANY_EXPIRY) !== 0) {
    expiryMs = expiryOption(context, flags, expiryAt);
    if (expiryMs === 0) return;
  }
  context.hit();
  context.replyValue();
  if (expiryMs !== 0 && expiryMs <= context.nowMs) {
    keyspace.remove();
    context.notify(Notify.GENERIC, 'del', 1);
  } else if (flags !== 0) {
    const oldMs = keyspace.expiryMs;
    if (oldMs !== expiryMs) keyspace.setExpiry(expiryMs);
    if (expiryMs !== 0) context.notify(Notify.GENERIC, 'expire', 1);
    else if (oldMs !== 0) context.notify(Notify.GENERIC, 'persist', 1);
  }
}

function expiryOption(context: Context, flags: number, argument: number): number {
  return expiryArg(context, argument, (flags & StringOption.IN_SECONDS) !== 0, (flags & StringOption.RELATIVE) !== 0);
}

/** Stages argument `i` as the value of key argument 1, unless `run` had better do it. */
function stageValue(context: Context, i: number): boolean {
  return context.keyspace.prefersOverwrite(context.argLength(1), context.argLength(i)) || context.stageArgument(i);
}

// ---- SET

const SET_OPTIONS =
  StringOption.NX | StringOption.XX | StringOption.GET | StringOption.KEEPTTL | StringOption.ANY_EXPIRY;
/** Expiry of the SET in hand, 0 = none; its flags are in stringOptions. */
let setExpiryMs = 0;

function parseSet(context: Context): boolean {
  setExpiryMs = 0;
  if (context.argc === 3) {
    stringOptions.flags = 0;
    return true;
  }
  if (!parseStringOptions(context, 3, SET_OPTIONS)) return false;
  const { flags, expiryAt } = stringOptions;
  if ((flags & StringOption.ANY_EXPIRY) === 0) return true;
  setExpiryMs = expiryOption(context, flags, expiryAt);
  return setExpiryMs !== 0;
}

function stageSet(context: Context): boolean {
  return parseSet(context) && stageValue(context, 2);
}

function set(context: Context): void {
  if (context.largeStaged && !parseSet(context)) return;
  const flags = stringOptions.flags;
  if (flags === 0) {
    const isOver = context.findKey();
    if (isOver && context.keyspace.isLfu) context.touch();
    if (!context.storeArgument(2, isOver, 0)) return;
    context.notify(Notify.STRING, 'set', 1);
    context.reply.ok();
    return;
  }
  const keyspace = context.keyspace;
  const exists = context.findKey();
  const wantsOld = (flags & StringOption.GET) !== 0;
  if (wantsOld && exists && !context.requireString()) return;
  let expiryMs = setExpiryMs;
  if (exists && (flags & StringOption.KEEPTTL) !== 0) expiryMs = keyspace.expiryMs;
  const blocked = exists ? (flags & StringOption.NX) !== 0 : (flags & StringOption.XX) !== 0;
  if (exists) context.touch();
  if (wantsOld && exists) {
    context.hit();
    context.replyValue();
  } else {
    if (wantsOld) context.miss();
    if (blocked) context.reply.nil();
  }
  if (blocked) return;
  if (expiryMs !== 0 && expiryMs <= context.nowMs) {
    // A moment in the past: the key is gone at once, as if it had been set and had expired.
    if (exists) {
      keyspace.remove();
      context.notify(Notify.GENERIC, 'del', 1);
    }
  } else if (!context.storeArgument(2, exists, expiryMs)) {
    // Only a new key can find no room, so no old value has been replied.
    return;
  } else {
    context.notify(Notify.STRING, 'set', 1);
    if (setExpiryMs !== 0) context.notify(Notify.GENERIC, 'expire', 1);
  }
  if (!wantsOld) context.reply.ok();
  else if (!exists) context.reply.nil();
}

// ---- older spellings of SET

function stageSecond(context: Context): boolean {
  return stageValue(context, 2);
}

function setNx(context: Context): void {
  if (context.findKey()) {
    context.touch();
    context.reply.integer(0);
  } else if (context.storeArgument(2, false, 0)) {
    context.notify(Notify.STRING, 'set', 1);
    context.reply.integer(1);
  }
}

function getSet(context: Context): void {
  if (!context.findKey()) {
    context.miss();
    if (!context.storeArgument(2, false, 0)) return;
    context.notify(Notify.STRING, 'set', 1);
    context.reply.nil();
    return;
  }
  if (!context.requireString()) return;
  context.hit();
  context.touch();
  context.replyValue();
  if (context.storeArgument(2, true, 0)) context.notify(Notify.STRING, 'set', 1);
}

function parseSetEx(context: Context): boolean {
  setExpiryMs = expiryArg(context, 2, context.command.spec.name === 'setex', true);
  return setExpiryMs !== 0;
}

function stageSetEx(context: Context): boolean {
  return parseSetEx(context) && stageValue(context, 3);
}

function setEx(context: Context): void {
  if (context.largeStaged && !parseSetEx(context)) return;
  const isOver = context.findKey();
  if (isOver && context.keyspace.isLfu) context.touch();
  if (!context.storeArgument(3, isOver, setExpiryMs)) return;
  context.notify(Notify.STRING, 'set', 1);
  context.notify(Notify.GENERIC, 'expire', 1);
  context.reply.ok();
}

const READ = [keyAt(1, KeyUse.RO | KeyUse.ACCESS)];
const OVERWRITE = [keyAt(1, KeyUse.OW | KeyUse.UPDATE)];

export const strings: readonly CommandSpec[] = [
  {
    name: 'get',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    categories: Category.STRING,
    keys: READ,
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
    history: [
      ['2.6.12', 'EX, PX, NX and XX.'],
      ['6.0.0', 'KEEPTTL.'],
      ['6.2.0', 'GET, EXAT and PXAT.'],
      ['7.0.0', 'NX and GET together.'],
    ],
    args: [
      keyArg('key'),
      stringArg('value'),
      oneOf('condition', conditionArgs, { optional: true }),
      optional(tokenArg('GET', { since: '6.2.0' })),
      oneOf('expiration', [...expiryArgs('2.6.12'), tokenArg('KEEPTTL', { since: '6.0.0' })], { optional: true }),
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
  {
    name: 'setnx',
    arity: 3,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.OW | KeyUse.INSERT)],
    since: '1.0.0',
    group: 'string',
    summary: 'Stores a string under a key that does not exist yet.',
    complexity: 'O(1)',
    deprecated: { since: '2.6.12', replacedBy: '`SET` with the `NX` argument' },
    args: [keyArg('key'), stringArg('value')],
    largeArgument: 2,
    stage: stageSecond,
    run: setNx,
  },
  {
    name: 'setex',
    arity: 4,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.STRING,
    keys: OVERWRITE,
    since: '2.0.0',
    group: 'string',
    summary: 'Stores a string that expires after a number of seconds.',
    complexity: 'O(1)',
    deprecated: { since: '2.6.12', replacedBy: '`SET` with the `EX` argument' },
    args: [keyArg('key'), integerArg('seconds'), stringArg('value')],
    largeArgument: 3,
    timed: false,
    stage: stageSetEx,
    run: setEx,
  },
  {
    name: 'psetex',
    arity: 4,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.STRING,
    keys: OVERWRITE,
    since: '2.6.0',
    group: 'string',
    summary: 'Stores a string that expires after a number of milliseconds.',
    complexity: 'O(1)',
    deprecated: { since: '2.6.12', replacedBy: '`SET` with the `PX` argument' },
    args: [keyArg('key'), integerArg('milliseconds'), stringArg('value')],
    largeArgument: 3,
    timed: false,
    stage: stageSetEx,
    run: setEx,
  },
  {
    name: 'getset',
    arity: 3,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE)],
    since: '1.0.0',
    group: 'string',
    summary: 'Stores a string and returns the one that was there before.',
    complexity: 'O(1)',
    deprecated: { since: '6.2.0', replacedBy: '`SET` with the `GET` argument' },
    args: [keyArg('key'), stringArg('value')],
    largeArgument: 2,
    stage: stageSecond,
    run: getSet,
  },
  {
    name: 'getdel',
    arity: 2,
    flags: Flag.WRITE | Flag.FAST,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE)],
    since: '6.2.0',
    group: 'string',
    summary: 'Returns the value of a string key and deletes the key.',
    complexity: 'O(1)',
    args: [keyArg('key')],
    run: getDel,
  },
  {
    name: 'getex',
    arity: -2,
    flags: Flag.WRITE | Flag.FAST,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE)],
    since: '6.2.0',
    group: 'string',
    summary: 'Returns the value of a string key and sets or removes its expiry.',
    complexity: 'O(1)',
    args: [keyArg('key'), oneOf('expiration', [...expiryArgs(), tokenArg('PERSIST')], { optional: true })],
    run: getEx,
  },
  {
    name: 'strlen',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    categories: Category.STRING,
    keys: [keyAt(1, KeyUse.RO)],
    since: '2.2.0',
    group: 'string',
    summary: 'Returns the length of a string in bytes, 0 when there is none.',
    complexity: 'O(1)',
    args: [keyArg('key')],
    run: strlen,
  },
];
