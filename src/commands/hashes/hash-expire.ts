/**
 * Expiry of hash fields, as Redis 7.4 has it: HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HTTL HPTTL HEXPIRETIME HPEXPIRETIME HPERSIST.
 *
 * Facts (conditions, replies, limits, error texts): Redis 7.4's t_hash.c. Invariant: one integer for each field is replied, in order.
 */
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import { HashMark } from '../../store/collections/forms.js';
import {
  type ArgumentSpec,
  blockArg,
  integerArg,
  keyArg,
  oneOf,
  stringArg,
  tokenArg,
  unixTimeArg,
} from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NOT_INTEGER } from '../errors.js';
import { invalidExpiry } from '../keyspace/expiry-options.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { findField, notifyRemoved, openHash, openHashToRead, removeField } from './hash-fields.js';

const NO_FIELDS = 'ERR Mandatory argument FIELDS is missing or not at the right position';
const NOT_POSITIVE = 'ERR Number of fields must be a positive integer';
const NOT_GREATER = 'ERR Parameter `numFields` should be greater than 0';
const NO_MATCH = 'ERR The `numfields` parameter must match the number of arguments';
const NEGATIVE = 'ERR invalid expire time, must be >= 0';
/** The latest time that Redis takes. */
const EXPIRY_MAX_MS = 2 ** 46 - 1;

const enum Result {
  NO_FIELD = -2,
  NO_EXPIRY = -1,
  CONDITION = 0,
  DONE = 1,
  DELETED = 2,
}

const enum Condition {
  NONE = 0,
  NX = 1,
  XX = 2,
  GT = 3,
  LT = 4,
}

/** First field argument behind FIELDS at argument `at`; 0 after an error reply. */
function firstField(context: Context, at: number, wrongNumber: string): number {
  const { reply } = context;
  if (at + 1 >= context.argc || !context.argIs(at, 'FIELDS')) {
    reply.error(NO_FIELDS);
    return 0;
  }
  const count = context.argInteger(at + 1);
  if (!(count >= 1)) reply.error(wrongNumber);
  else if (count !== context.argc - at - 2) reply.error(NO_MATCH);
  else return at + 2;
  return 0;
}

/** The absolute time in argument 2; -1 after an error reply. */
function timeArg(context: Context, inSeconds: boolean, isRelative: boolean): number {
  const { reply } = context;
  const value = context.argInteger(2);
  if (Number.isNaN(value)) reply.error(NOT_INTEGER);
  else if (value < 0) reply.error(NEGATIVE);
  else {
    const ms = (inSeconds ? value * 1000 : value) + (isRelative ? context.wallMs : 0);
    if (ms <= EXPIRY_MAX_MS) return ms;
    reply.error(invalidExpiry(context));
  }
  return -1;
}

function conditionArg(context: Context): Condition {
  if (context.argIs(3, 'NX')) return Condition.NX;
  if (context.argIs(3, 'XX')) return Condition.XX;
  if (context.argIs(3, 'GT')) return Condition.GT;
  return context.argIs(3, 'LT') ? Condition.LT : Condition.NONE;
}

function allows(condition: Condition, currentMs: number, atMs: number): boolean {
  switch (condition) {
    case Condition.NX:
      return currentMs === 0;
    case Condition.XX:
      return currentMs !== 0;
    case Condition.GT:
      return currentMs !== 0 && atMs > currentMs;
    case Condition.LT:
      return currentMs === 0 || atMs < currentMs;
    default:
      return true;
  }
}

/** Gives the loaded field an expiry; 0 takes it away. */
function setExpiry(context: Context, hash: Collection, expiryMs: number): Change {
  context.keyspace.noteFieldExpiry(context.keyHash);
  if (expiryMs !== 0 && (hash.marks & HashMark.EXPIRES) === 0) {
    const change = hash.setMarks(hash.marks | HashMark.EXPIRES);
    if (change !== Change.DONE) return change;
    hash.load();
  }
  return hash.replaceValue(hash.value, hash.valueOffset, hash.valueLength, expiryMs);
}

function expireFields(context: Context, inSeconds: boolean, isRelative: boolean): void {
  const { reply } = context;
  const hash = openHash(context);
  if (hash === null) return;
  const atMs = timeArg(context, inSeconds, isRelative);
  if (atMs < 0) return;
  const condition = conditionArg(context);
  const first = firstField(context, condition === Condition.NONE ? 3 : 4, NOT_GREATER);
  if (first === 0) return;
  let deleted = 0;
  let updated = 0;
  reply.deferred();
  for (let i = first; i < context.argc; i++) {
    let result = Result.NO_FIELD;
    if (findField(context, hash, i)) {
      if (!allows(condition, hash.expiryMs, atMs)) result = Result.CONDITION;
      else {
        const isPast = atMs <= context.nowMs;
        result = isPast ? Result.DELETED : Result.DONE;
        if ((isPast ? removeField(hash) : setExpiry(context, hash, atMs)) !== Change.DONE) {
          notifyExpiries(context, hash, deleted, updated);
          reply.dropDeferred();
          return reply.error(NO_MEMORY);
        }
        if (isPast) deleted++;
        else updated++;
      }
    }
    reply.integer(result);
  }
  notifyExpiries(context, hash, deleted, updated);
  reply.output.release(`*${context.argc - first}\r\n`);
}

/** One event for all fields: those that a time in the past has deleted count for more. */
function notifyExpiries(context: Context, hash: Collection, deleted: number, updated: number): void {
  if (deleted > 0) notifyRemoved(context, hash, 'hdel');
  else if (updated > 0) context.notify(Notify.HASH, 'hexpire', 1);
}

function hexpire(context: Context): void {
  expireFields(context, true, true);
}

function hpexpire(context: Context): void {
  expireFields(context, false, true);
}

function hexpireAt(context: Context): void {
  expireFields(context, true, false);
}

function hpexpireAt(context: Context): void {
  expireFields(context, false, false);
}

/** Replies for each field the time that `show` makes of its expiry. */
function replyTimes(context: Context, inSeconds: boolean, isRelative: boolean): void {
  const { reply } = context;
  const hash = openHashToRead(context);
  if (hash === null) return;
  const first = firstField(context, 2, NOT_POSITIVE);
  if (first === 0) return;
  reply.array(context.argc - first);
  for (let i = first; i < context.argc; i++) {
    if (!findField(context, hash, i)) reply.integer(Result.NO_FIELD);
    else if (hash.expiryMs === 0) reply.integer(Result.NO_EXPIRY);
    else {
      const ms = hash.expiryMs - (isRelative ? context.nowMs : 0);
      reply.integer(inSeconds ? Math.floor((ms + 999) / 1000) : ms);
    }
  }
}

function httl(context: Context): void {
  replyTimes(context, true, true);
}

function hpttl(context: Context): void {
  replyTimes(context, false, true);
}

function hexpireTime(context: Context): void {
  replyTimes(context, true, false);
}

function hpexpireTime(context: Context): void {
  replyTimes(context, false, false);
}

function hpersist(context: Context): void {
  const { reply } = context;
  const hash = openHash(context);
  if (hash === null) return;
  const first = firstField(context, 2, NOT_POSITIVE);
  if (first === 0) return;
  let changed = 0;
  reply.deferred();
  for (let i = first; i < context.argc; i++) {
    let result = Result.NO_FIELD;
    if (findField(context, hash, i)) {
      result = hash.expiryMs === 0 ? Result.NO_EXPIRY : Result.DONE;
      if (result === Result.DONE && setExpiry(context, hash, 0) !== Change.DONE) {
        if (changed > 0) context.notify(Notify.HASH, 'hpersist', 1);
        reply.dropDeferred();
        return reply.error(NO_MEMORY);
      }
      if (result === Result.DONE) changed++;
    }
    reply.integer(result);
  }
  if (changed > 0) context.notify(Notify.HASH, 'hpersist', 1);
  reply.output.release(`*${context.argc - first}\r\n`);
}

const FIELDS = blockArg('fields', [integerArg('numfields'), stringArg('field', { multiple: true })], {
  token: 'FIELDS',
});
const CONDITION = oneOf('condition', [tokenArg('NX'), tokenArg('XX'), tokenArg('GT'), tokenArg('LT')], {
  optional: true,
});
const COMMON = { categories: Category.HASH, since: '7.4.0', group: 'hash', complexity: 'O(N) for N fields' } as const;

function expireSpec(name: string, summary: string, time: ArgumentSpec, run: (context: Context) => void): CommandSpec {
  return {
    ...COMMON,
    name,
    arity: -6,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary,
    args: [keyArg('key'), time, CONDITION, FIELDS],
    repeatable: true,
    run,
  };
}

function timeSpec(name: string, summary: string, run: (context: Context) => void): CommandSpec {
  return {
    ...COMMON,
    name,
    arity: -5,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    summary,
    tips: ['nondeterministic_output'],
    args: [keyArg('key'), FIELDS],
    run,
  };
}

export const hashExpiries: readonly CommandSpec[] = [
  expireSpec('hexpire', 'Lets fields of a hash expire after some seconds.', integerArg('seconds'), hexpire),
  expireSpec('hpexpire', 'Lets fields of a hash expire after some milliseconds.', integerArg('milliseconds'), hpexpire),
  expireSpec('hexpireat', 'Lets fields of a hash expire at a Unix time.', unixTimeArg('unix-time-seconds'), hexpireAt),
  expireSpec(
    'hpexpireat',
    'Lets fields of a hash expire at a Unix time in milliseconds.',
    unixTimeArg('unix-time-milliseconds'),
    hpexpireAt,
  ),
  timeSpec('httl', 'Returns the seconds that fields of a hash have left.', httl),
  timeSpec('hpttl', 'Returns the milliseconds that fields of a hash have left.', hpttl),
  timeSpec('hexpiretime', 'Returns the Unix times at which fields of a hash expire.', hexpireTime),
  timeSpec('hpexpiretime', 'Returns the Unix times at which fields of a hash expire, in milliseconds.', hpexpireTime),
  {
    ...COMMON,
    name: 'hpersist',
    arity: -5,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Takes the expiry of fields of a hash away.',
    args: [keyArg('key'), FIELDS],
    repeatable: true,
    run: hpersist,
  },
];
