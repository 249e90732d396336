/**
 * Expiry of keys: the EXPIRE family, the TTL family, PERSIST.
 */
import { Notify } from '../../store/change-feed.js';
import { integerArg, keyArg, oneOf, tokenArg, unixTimeArg } from '../arguments.js';
import type { Context } from '../context.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { anyExpiryArg } from './expiry-options.js';

const enum Condition {
  NONE = 0,
  NX = 1,
  XX = 2,
  GT = 4,
  LT = 8,
}

const INCOMPATIBLE = 'ERR NX and XX, GT or LT options at the same time are not compatible';
const INCOMPATIBLE_ORDER = 'ERR GT and LT options at the same time are not compatible';

/** Condition bits; -1 after an error reply. */
function parseConditions(context: Context): number {
  let conditions = Condition.NONE;
  for (let i = 3; i < context.argc; i++) {
    if (context.argIs(i, 'NX')) conditions |= Condition.NX;
    else if (context.argIs(i, 'XX')) conditions |= Condition.XX;
    else if (context.argIs(i, 'GT')) conditions |= Condition.GT;
    else if (context.argIs(i, 'LT')) conditions |= Condition.LT;
    else return fail(context, `ERR Unsupported option ${context.argString(i)}`);
  }
  if ((conditions & Condition.NX) !== 0 && conditions !== Condition.NX) return fail(context, INCOMPATIBLE);
  if ((conditions & Condition.GT) !== 0 && (conditions & Condition.LT) !== 0) return fail(context, INCOMPATIBLE_ORDER);
  return conditions;
}

function fail(context: Context, text: string): -1 {
  context.reply.error(text);
  return -1;
}

/** A key without expiry counts as one that expires last of all. */
function allows(conditions: number, currentMs: number, atMs: number): boolean {
  if ((conditions & Condition.NX) !== 0 && currentMs !== 0) return false;
  if ((conditions & Condition.XX) !== 0 && currentMs === 0) return false;
  if ((conditions & Condition.GT) !== 0 && (currentMs === 0 || atMs <= currentMs)) return false;
  return (conditions & Condition.LT) === 0 || currentMs === 0 || atMs < currentMs;
}

function expireAt(context: Context, inSeconds: boolean, isRelative: boolean): void {
  const { keyspace, reply } = context;
  const conditions = context.argc > 3 ? parseConditions(context) : Condition.NONE;
  if (conditions < 0) return;
  const atMs = anyExpiryArg(context, 2, inSeconds, isRelative);
  if (Number.isNaN(atMs)) return;
  if (!context.findKey()) return reply.integer(0);
  context.touch();
  if (conditions !== Condition.NONE && !allows(conditions, keyspace.expiryMs, atMs)) return reply.integer(0);
  if (atMs <= context.nowMs) {
    keyspace.remove();
    context.notify(Notify.GENERIC, 'del', 1);
  } else {
    keyspace.setExpiry(atMs);
    context.notify(Notify.GENERIC, 'expire', 1);
  }
  reply.integer(1);
}

function expire(context: Context): void {
  expireAt(context, true, true);
}

function pexpire(context: Context): void {
  expireAt(context, false, true);
}

function expireAtSeconds(context: Context): void {
  expireAt(context, true, false);
}

function expireAtMs(context: Context): void {
  expireAt(context, false, false);
}

/** Expiry of the key in ms; when there is none, replies -2 (no key) or -1 and returns 0. */
function expiryOf(context: Context): number {
  if (!context.findKey()) {
    context.miss();
    context.reply.integer(-2);
    return 0;
  }
  context.seen();
  const { expiryMs } = context.keyspace;
  if (expiryMs === 0) context.reply.integer(-1);
  return expiryMs;
}

function roundSeconds(ms: number): number {
  return Math.floor((ms + 500) / 1000);
}

function ttl(context: Context): void {
  const expiryMs = expiryOf(context);
  if (expiryMs !== 0) context.reply.integer(roundSeconds(expiryMs - context.nowMs));
}

function pttl(context: Context): void {
  const expiryMs = expiryOf(context);
  if (expiryMs !== 0) context.reply.integer(expiryMs - context.nowMs);
}

function expireTime(context: Context): void {
  const expiryMs = expiryOf(context);
  if (expiryMs !== 0) context.reply.integer(roundSeconds(expiryMs));
}

function pexpireTime(context: Context): void {
  const expiryMs = expiryOf(context);
  if (expiryMs !== 0) context.reply.integer(expiryMs);
}

function persist(context: Context): void {
  const { keyspace, reply } = context;
  if (!context.findKey()) return reply.integer(0);
  context.touch();
  if (keyspace.expiryMs === 0) return reply.integer(0);
  keyspace.setExpiry(0);
  context.notify(Notify.GENERIC, 'persist', 1);
  reply.integer(1);
}

const SETS = {
  flags: Flag.WRITE | Flag.FAST,
  categories: Category.KEYSPACE,
  keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
  group: 'generic',
  complexity: 'O(1)',
} as const;
const READS = {
  arity: 2,
  flags: Flag.READONLY | Flag.FAST,
  categories: Category.KEYSPACE,
  keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
  group: 'generic',
  complexity: 'O(1)',
} as const;
const CONDITION = oneOf('condition', [tokenArg('NX'), tokenArg('XX'), tokenArg('GT'), tokenArg('LT')], {
  optional: true,
  since: '7.0.0',
});
const HISTORY = [['7.0.0', 'NX, XX, GT and LT.']] as const;

export const expiries: readonly CommandSpec[] = [
  {
    ...SETS,
    name: 'expire',
    arity: -3,
    since: '1.0.0',
    summary: 'Lets a key expire after a number of seconds.',
    history: HISTORY,
    args: [keyArg('key'), integerArg('seconds'), CONDITION],
    run: expire,
  },
  {
    ...SETS,
    name: 'pexpire',
    arity: -3,
    since: '2.6.0',
    summary: 'Lets a key expire after a number of milliseconds.',
    history: HISTORY,
    args: [keyArg('key'), integerArg('milliseconds'), CONDITION],
    run: pexpire,
  },
  {
    ...SETS,
    name: 'expireat',
    arity: -3,
    since: '1.2.0',
    summary: 'Lets a key expire at a Unix time in seconds.',
    history: HISTORY,
    args: [keyArg('key'), unixTimeArg('unix-time-seconds'), CONDITION],
    run: expireAtSeconds,
  },
  {
    ...SETS,
    name: 'pexpireat',
    arity: -3,
    since: '2.6.0',
    summary: 'Lets a key expire at a Unix time in milliseconds.',
    history: HISTORY,
    args: [keyArg('key'), unixTimeArg('unix-time-milliseconds'), CONDITION],
    run: expireAtMs,
  },
  {
    ...READS,
    name: 'ttl',
    since: '1.0.0',
    summary: 'Returns how many seconds a key has left: -1 without an expiry, -2 without the key.',
    tips: ['nondeterministic_output'],
    args: [keyArg('key')],
    run: ttl,
  },
  {
    ...READS,
    name: 'pttl',
    since: '2.6.0',
    summary: 'Returns how many milliseconds a key has left: -1 without an expiry, -2 without the key.',
    tips: ['nondeterministic_output'],
    args: [keyArg('key')],
    run: pttl,
  },
  {
    ...READS,
    name: 'expiretime',
    since: '7.0.0',
    summary: 'Returns the Unix time in seconds at which a key expires.',
    args: [keyArg('key')],
    run: expireTime,
  },
  {
    ...READS,
    name: 'pexpiretime',
    since: '7.0.0',
    summary: 'Returns the Unix time in milliseconds at which a key expires.',
    args: [keyArg('key')],
    run: pexpireTime,
  },
  {
    ...SETS,
    name: 'persist',
    arity: 2,
    since: '2.2.0',
    summary: 'Removes the expiry of a key.',
    args: [keyArg('key')],
    run: persist,
  },
];
