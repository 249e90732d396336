/**
 * Hashes: HSET HSETNX HMSET HGET HMGET HGETALL HKEYS HVALS HLEN HSTRLEN HEXISTS HDEL.
 */
import { ReplyType } from '../../protocol/resp/reply.js';
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection } from '../../store/collections/collection.js';
import { blockArg, keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, wrongArity } from '../errors.js';
import { isLong, replyElements } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import {
  Field,
  findField,
  hasExpiries,
  isLive,
  notifyRemoved,
  openHash,
  openHashToRead,
  removeField,
  replyFieldValue,
  seekField,
  setField,
} from './hash-fields.js';

/** Sets the pairs from argument 2 on; returns how many fields are new, -1 after an error reply. */
function setPairs(context: Context): number {
  if (context.argc % 2 === 1) {
    context.reply.error(wrongArity(context.command.fullName));
    return -1;
  }
  const hash = openHash(context);
  if (hash === null) return -1;
  if (hash.exists) context.use();
  let created = 0;
  for (let i = 2; i < context.argc; i += 2) {
    const found = findField(context, hash, i);
    const { input } = context;
    const at = context.argOffset(i + 1);
    if (setField(context, hash, found, i, input, at, context.argLength(i + 1), 0) !== Change.DONE) {
      if (i > 2) context.notify(Notify.HASH, 'hset', 1);
      context.reply.error(NO_MEMORY);
      return -1;
    }
    if (!found) created++;
  }
  context.notify(Notify.HASH, 'hset', 1);
  return created;
}

function hset(context: Context): void {
  const created = setPairs(context);
  if (created >= 0) context.reply.integer(created);
}

function hmset(context: Context): void {
  if (setPairs(context) >= 0) context.reply.ok();
}

function hsetNx(context: Context): void {
  const hash = openHash(context);
  if (hash === null) return;
  if (findField(context, hash, 2)) return context.reply.integer(0);
  const at = context.argOffset(3);
  const change = setField(context, hash, false, 2, context.input, at, context.argLength(3), 0);
  if (change !== Change.DONE) return context.reply.error(NO_MEMORY);
  context.notify(Notify.HASH, 'hset', 1);
  context.reply.integer(1);
}

function hget(context: Context): void {
  const hash = openHashToRead(context);
  if (hash === null) return;
  if (findField(context, hash, 2)) replyFieldValue(context, hash);
  else context.reply.nil();
}

function hmget(context: Context): void {
  const hash = openHashToRead(context);
  if (hash === null) return;
  let hasExpired = false;
  context.reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) {
    const field = seekField(context, hash, i);
    if (field === Field.EXPIRED) hasExpired = true;
    if (field === Field.THERE) replyFieldValue(context, hash);
    else context.reply.nil();
  }
  if (hasExpired) notifyRemoved(context, hash, 'hexpired');
}

const enum Parts {
  FIELDS = 1,
  VALUES = 2,
  BOTH = 3,
}

function replyParts(context: Context, hash: Collection, parts: Parts): void {
  hash.load();
  if ((parts & Parts.FIELDS) !== 0) context.reply.bulk(hash.key, hash.keyOffset, hash.keyLength);
  if ((parts & Parts.VALUES) !== 0) replyFieldValue(context, hash);
}

function visitField(context: Context, hash: Collection, parts: Parts): number {
  hash.load();
  if (!isLive(context, hash)) return 0;
  if ((parts & Parts.FIELDS) !== 0) context.reply.bulk(hash.key, hash.keyOffset, hash.keyLength);
  if ((parts & Parts.VALUES) !== 0) context.reply.bulk(hash.value, hash.valueOffset, hash.valueLength);
  return 1;
}

/** For long replies, by Parts. */
const VISITS = [
  () => 0,
  (context: Context, hash: Collection) => visitField(context, hash, Parts.FIELDS),
  (context: Context, hash: Collection) => visitField(context, hash, Parts.VALUES),
  (context: Context, hash: Collection) => visitField(context, hash, Parts.BOTH),
] as const;

function replyAll(context: Context, parts: Parts): void {
  const { reply } = context;
  const hash = openHashToRead(context);
  if (hash === null) return;
  if (isLong(hash.count)) {
    const type = parts === Parts.BOTH ? ReplyType.MAP : ReplyType.ARRAY;
    return replyElements(context, hash, 0, hash.count, false, type, VISITS[parts]);
  }
  if (!hasExpiries(hash)) {
    if (parts === Parts.BOTH) reply.map(hash.count);
    else reply.array(hash.count);
    for (let more = hash.first(); more; more = hash.next()) replyParts(context, hash, parts);
    return;
  }
  let live = 0;
  reply.deferred();
  for (let more = hash.first(); more; more = hash.next()) {
    hash.load();
    if (!isLive(context, hash)) continue;
    live++;
    // Copied: what is sent in place cannot stand in a reply whose length is still open.
    if ((parts & Parts.FIELDS) !== 0) reply.bulk(hash.key, hash.keyOffset, hash.keyLength);
    if ((parts & Parts.VALUES) !== 0) reply.bulk(hash.value, hash.valueOffset, hash.valueLength);
  }
  reply.endDeferred(parts === Parts.BOTH ? ReplyType.MAP : ReplyType.ARRAY, live);
}

function hgetAll(context: Context): void {
  replyAll(context, Parts.BOTH);
}

function hkeys(context: Context): void {
  replyAll(context, Parts.FIELDS);
}

function hvals(context: Context): void {
  replyAll(context, Parts.VALUES);
}

function hlen(context: Context): void {
  const hash = openHashToRead(context);
  if (hash !== null) context.reply.integer(hash.count);
}

function hstrlen(context: Context): void {
  const hash = openHashToRead(context);
  if (hash === null) return;
  context.reply.integer(findField(context, hash, 2) ? hash.valueLength : 0);
}

function hexists(context: Context): void {
  const hash = openHashToRead(context);
  if (hash === null) return;
  context.reply.integer(findField(context, hash, 2) ? 1 : 0);
}

function hdel(context: Context): void {
  const hash = openHash(context);
  if (hash === null) return;
  if (hash.exists) context.use();
  let deleted = 0;
  for (let i = 2; i < context.argc && hash.exists; i++) {
    // One whose time has come is deleted as any other, and counts, as in Redis: nobody looks at the clock for it.
    if (!hash.seekKey(context.input, context.argOffset(i), context.argLength(i))) continue;
    if (removeField(hash) !== Change.DONE) return context.reply.error(NO_MEMORY);
    deleted++;
  }
  if (deleted > 0) notifyRemoved(context, hash, 'hdel');
  context.reply.integer(deleted);
}

const PAIRS = [blockArg('data', [stringArg('field'), stringArg('value')], { multiple: true })];
const KEY = keyArg('key');
const FIELD = stringArg('field');
const UNORDERED = ['nondeterministic_output_order'];
const READ = { flags: Flag.READONLY | Flag.FAST, keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)] } as const;
const WRITE = Flag.WRITE | Flag.DENYOOM | Flag.FAST;
const COMMON = { categories: Category.HASH, group: 'hash', since: '2.0.0' } as const;

export const hashes: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'hset',
    arity: -4,
    flags: WRITE,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Sets fields of a hash; returns how many of them are new.',
    complexity: 'O(N) for N fields, times log of the size of a large hash',
    history: [['4.0.0', 'Several pairs of field and value.']],
    args: [KEY, ...PAIRS],
    repeatable: true,
    run: hset,
  },
  {
    ...COMMON,
    name: 'hsetnx',
    arity: 4,
    flags: WRITE,
    keys: [keyAt(1, KeyUse.RW | KeyUse.INSERT)],
    summary: 'Sets a field of a hash unless it exists.',
    complexity: 'O(1)',
    args: [KEY, FIELD, stringArg('value')],
    repeatable: true,
    run: hsetNx,
  },
  {
    ...COMMON,
    name: 'hmset',
    arity: -4,
    flags: WRITE,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Sets fields of a hash.',
    complexity: 'O(N) for N fields',
    deprecated: { since: '4.0.0', replacedBy: '`HSET` with multiple field-value pairs' },
    args: [KEY, ...PAIRS],
    repeatable: true,
    run: hmset,
  },
  {
    ...COMMON,
    ...READ,
    name: 'hget',
    arity: 3,
    summary: 'Returns the value of a field of a hash.',
    complexity: 'O(1)',
    args: [KEY, FIELD],
    run: hget,
  },
  {
    ...COMMON,
    ...READ,
    name: 'hmget',
    arity: -3,
    summary: 'Returns the values of fields of a hash.',
    complexity: 'O(N) for N fields',
    args: [KEY, stringArg('field', { multiple: true })],
    run: hmget,
  },
  {
    ...COMMON,
    ...READ,
    name: 'hgetall',
    arity: 2,
    flags: Flag.READONLY,
    summary: 'Returns all fields of a hash with their values.',
    complexity: 'O(N) for N fields',
    tips: UNORDERED,
    args: [KEY],
    run: hgetAll,
  },
  {
    ...COMMON,
    ...READ,
    name: 'hkeys',
    arity: 2,
    flags: Flag.READONLY,
    summary: 'Returns all fields of a hash.',
    complexity: 'O(N) for N fields',
    tips: UNORDERED,
    args: [KEY],
    run: hkeys,
  },
  {
    ...COMMON,
    ...READ,
    name: 'hvals',
    arity: 2,
    flags: Flag.READONLY,
    summary: 'Returns all values of a hash.',
    complexity: 'O(N) for N fields',
    tips: UNORDERED,
    args: [KEY],
    run: hvals,
  },
  {
    ...COMMON,
    name: 'hlen',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    summary: 'Returns the number of fields of a hash.',
    complexity: 'O(1)',
    args: [KEY],
    run: hlen,
  },
  {
    ...COMMON,
    name: 'hstrlen',
    arity: 3,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    since: '3.2.0',
    summary: 'Returns the length of the value of a field.',
    complexity: 'O(1)',
    args: [KEY, FIELD],
    run: hstrlen,
  },
  {
    ...COMMON,
    name: 'hexists',
    arity: 3,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    summary: 'Tells whether a hash has a field.',
    complexity: 'O(1)',
    args: [KEY, FIELD],
    run: hexists,
  },
  {
    ...COMMON,
    name: 'hdel',
    arity: -3,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    summary: 'Deletes fields of a hash; the hash goes with the last of them.',
    complexity: 'O(N) for N fields',
    history: [['2.4.0', 'Several fields.']],
    args: [KEY, stringArg('field', { multiple: true })],
    repeatable: true,
    run: hdel,
  },
];
