/**
 * Commands on keys whatever they hold: DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX COPY MOVE.
 */
import { ItemType } from '../../layout/item.js';
import { copyBytes } from '../../native/copy.js';
import { Notify } from '../../store/change-feed.js';
import { copyCollection, shapeOf } from '../../store/collections/copy-collection.js';
import { isPacked } from '../../store/collections/forms.js';
import { moveCollection, noteExpiry } from '../../store/collections/rekey.js';
import { integerArg, keyArg, optional, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { DB_OUT_OF_RANGE, NO_MEMORY, NO_SUCH_KEY, NOT_INTEGER, SYNTAX } from '../errors.js';
import { takeSteps } from '../long-steps.js';
import { isLong } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysFrom } from '../spec.js';
import { copyInTurns } from './copy-in-turns.js';

const SAME_OBJECT = 'ERR source and destination objects are the same';

/** The name of a type as TYPE and SCAN have it. */
export function typeName(type: number): string {
  switch (type) {
    case ItemType.STRING:
      return 'string';
    case ItemType.LIST:
      return 'list';
    case ItemType.SET:
      return 'set';
    case ItemType.ZSET:
      return 'zset';
    case ItemType.HASH:
      return 'hash';
    case ItemType.STREAM:
      return 'stream';
    default:
      throw new Error(`an item of unknown type ${type}`);
  }
}

function del(context: Context): void {
  let count = 0;
  for (let i = 1; i < context.argc; i++) {
    if (!context.find(context.keyHashes[i - 1], i)) continue;
    context.keyspace.remove();
    context.notify(Notify.GENERIC, 'del', i);
    count++;
  }
  context.reply.integer(count);
}

function exists(context: Context): void {
  let count = 0;
  for (let i = 1; i < context.argc; i++) {
    if (context.find(context.keyHashes[i - 1], i)) {
      context.seen();
      count++;
    } else {
      context.miss();
    }
  }
  context.reply.integer(count);
}

function touch(context: Context): void {
  let count = 0;
  for (let i = 1; i < context.argc; i++) {
    if (context.find(context.keyHashes[i - 1], i)) {
      // Also for a client that has switched off touching by reading.
      context.seen();
      context.keyspace.access();
      count++;
    } else {
      context.miss();
    }
  }
  context.reply.integer(count);
}

function type(context: Context): void {
  if (!context.findKey()) {
    context.miss();
    context.reply.simple('none');
    return;
  }
  context.seen();
  context.reply.simple(typeName(context.keyspace.type));
}

/** True when arguments `i` and `k` are the same key. */
export function isSameKey(context: Context, i: number, k: number): boolean {
  const length = context.argLength(i);
  if (length !== context.argLength(k)) return false;
  const { u8 } = context.input;
  const a = context.argOffset(i);
  const b = context.argOffset(k);
  for (let p = 0; p < length; p++) if (u8[a + p] !== u8[b + p]) return false;
  return true;
}

/**
 * Stores a copy of the found item, with its type, flags and expiry, under key argument `to` of database `db`.
 * False = no memory; an error has been replied.
 */
function copyFound(context: Context, hash: number, db: number, to: number): boolean {
  const { keyspace, input } = context;
  if (keyspace.type !== ItemType.STRING) {
    if (copyCollection(keyspace, hash, db, input, context.argOffset(to), context.argLength(to))) return true;
    context.reply.error(NO_MEMORY);
    return false;
  }
  const { value, valueOffset, valueLength, type: itemType, encoding, clientFlags, expiryMs } = keyspace;
  if (!keyspace.stage(hash, db, input, context.argOffset(to), context.argLength(to), valueLength)) {
    context.reply.error(NO_MEMORY);
    return false;
  }
  copyBytes(keyspace.staged, keyspace.stagedOffset, value, valueOffset, valueLength);
  if (keyspace.commit(itemType, encoding, clientFlags, expiryMs)) return true;
  context.reply.error(NO_MEMORY);
  return false;
}

/**
 * Gives the found item, of key argument 1, the key of argument `to` in database `db`. False = no memory; an error has been replied.
 */
function moveFound(context: Context, hash: number, db: number, to: number): boolean {
  const { keyspace, input } = context;
  if (keyspace.type === ItemType.STRING) {
    const { accessWord } = keyspace;
    if (!copyFound(context, hash, db, to)) return false;
    keyspace.accessWord = accessWord;
    if (context.find(context.keyHashes[0], 1)) keyspace.remove();
    return true;
  }
  if (moveCollection(keyspace, hash, db, input, context.argOffset(to), context.argLength(to))) return true;
  context.reply.error(NO_MEMORY);
  return false;
}

/** The key in argument `i` has taken another one's place: to Redis, which deletes that one first, it is new. */
function notifyAnew(context: Context, db: number, i: number): void {
  context.notifyIn(db, Notify.NEW, 'new', i);
}

function rename(context: Context): void {
  renameKey(context, false);
}

function renameNx(context: Context): void {
  renameKey(context, true);
}

function renameKey(context: Context, ifAbsent: boolean): void {
  const { reply, keyHashes } = context;
  if (!context.find(keyHashes[0], 1)) return reply.error(NO_SUCH_KEY);
  context.touch();
  const isOther = !isSameKey(context, 1, 2);
  const existed = context.find(keyHashes[1], 2);
  if (ifAbsent && existed) {
    if (isOther) context.touch();
    return reply.integer(0);
  }
  // Once more: the look at the target has moved the cursor.
  if (isOther && context.find(keyHashes[0], 1)) {
    if (!moveFound(context, keyHashes[1], context.db, 2)) return;
    if (existed) notifyAnew(context, context.db, 2);
    context.notify(Notify.GENERIC, 'rename_from', 1);
    context.notify(Notify.GENERIC, 'rename_to', 2);
  }
  if (ifAbsent) reply.integer(1);
  else reply.ok();
}

/** A database number; -1 after an error reply. */
function databaseArg(context: Context, i: number): number {
  const db = context.argInteger(i);
  if (Number.isNaN(db)) context.reply.error(NOT_INTEGER);
  else if (db < 0 || db >= context.environment.settings.databases) context.reply.error(DB_OUT_OF_RANGE);
  else return db;
  return -1;
}

/** True when argument `i` is the number of a database: for locks that are taken before the handler says what is wrong. */
function isDatabase(context: Context, i: number): boolean {
  const db = context.argInteger(i);
  return db >= 0 && db < context.environment.settings.databases;
}

/** Hash of key argument `i` in another database. */
function hashIn(context: Context, db: number, i: number): number {
  return context.keyspace.hash(db, context.input, context.argOffset(i), context.argLength(i));
}

function lockMoveTarget(context: Context): void {
  if (isDatabase(context, 2)) context.keyspace.lockSet.add(hashIn(context, context.argInteger(2), 1));
}

function move(context: Context): void {
  const { keyspace, reply, input } = context;
  const db = databaseArg(context, 2);
  if (db < 0) return;
  if (db === context.db) return reply.error(SAME_OBJECT);
  const hash = hashIn(context, db, 1);
  if (!context.find(context.keyHashes[0], 1)) return reply.integer(0);
  context.touch();
  if (keyspace.find(hash, db, input, context.argOffset(1), context.argLength(1))) {
    context.touch();
    return reply.integer(0);
  }
  context.find(context.keyHashes[0], 1);
  if (!moveFound(context, hash, db, 1)) return;
  context.notify(Notify.GENERIC, 'move_from', 1);
  context.notifyIn(db, Notify.GENERIC, 'move_to', 1);
  reply.integer(1);
}

function lockCopyTarget(context: Context): void {
  for (let i = 3; i + 1 < context.argc; i++) {
    if (context.argIs(i, 'DB') && isDatabase(context, i + 1)) {
      context.keyspace.lockSet.add(hashIn(context, context.argInteger(i + 1), 2));
    }
  }
}

function copy(context: Context): void {
  const { keyspace, reply, input } = context;
  let db = context.db;
  let replaces = false;
  for (let i = 3; i < context.argc; i++) {
    if (context.argIs(i, 'REPLACE')) {
      replaces = true;
    } else if (context.argIs(i, 'DB') && i + 1 < context.argc) {
      db = databaseArg(context, ++i);
      if (db < 0) return;
    } else {
      return reply.error(SYNTAX);
    }
  }
  if (db === context.db && isSameKey(context, 1, 2)) return reply.error(SAME_OBJECT);
  const hash = hashIn(context, db, 2);
  if (!context.find(context.keyHashes[0], 1)) return reply.integer(0);
  context.touch();
  const existed = keyspace.find(hash, db, input, context.argOffset(2), context.argLength(2));
  if (!replaces && existed) {
    context.touch();
    return reply.integer(0);
  }
  if (!context.find(context.keyHashes[0], 1)) return;
  const end = (): void => {
    if (existed) notifyAnew(context, db, 2);
    context.notifyIn(db, Notify.GENERIC, 'copy_to', 2);
    reply.integer(1);
  };
  const isTree = keyspace.type !== ItemType.STRING && keyspace.type !== ItemType.STREAM && !isPacked(keyspace);
  const [from] = keyspace.collections;
  if (isTree) {
    const shape = shapeOf(keyspace.type);
    noteExpiry(keyspace, hash);
    from.openFound(shape);
    if (isLong(from.count)) return takeSteps(context, 0, 1, (work) => copyInTurns(context, work, shape, db, end));
  }
  if (copyFound(context, hash, db, 2)) end();
}

const MANY = [keyArg('key', { multiple: true })];
const MULTI_SHARD = ['request_policy:multi_shard', 'response_policy:agg_sum'];
const COMMON = { categories: Category.KEYSPACE, group: 'generic' } as const;
const RENAME_KEYS = [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE), keyAt(2, KeyUse.OW | KeyUse.UPDATE)];
const RENAMENX_KEYS = [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE), keyAt(2, KeyUse.OW | KeyUse.INSERT)];

export const generics: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'del',
    arity: -2,
    flags: Flag.WRITE,
    keys: [keysFrom(1, KeyUse.RM | KeyUse.DELETE)],
    since: '1.0.0',
    summary: 'Deletes keys; returns how many of them existed.',
    complexity: 'O(N) for N keys',
    tips: MULTI_SHARD,
    args: MANY,
    timed: false,
    run: del,
  },
  {
    ...COMMON,
    name: 'unlink',
    arity: -2,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keysFrom(1, KeyUse.RM | KeyUse.DELETE)],
    since: '4.0.0',
    summary: 'Deletes keys; their memory may come back later.',
    complexity: 'O(1) for each key',
    tips: MULTI_SHARD,
    args: MANY,
    run: del,
  },
  {
    ...COMMON,
    name: 'exists',
    arity: -2,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keysFrom(1, KeyUse.RO)],
    since: '1.0.0',
    summary: 'Returns how many of the keys exist; one that is named twice counts twice.',
    complexity: 'O(N) for N keys',
    history: [['3.0.3', 'Several keys.']],
    tips: MULTI_SHARD,
    args: MANY,
    run: exists,
  },
  {
    ...COMMON,
    name: 'touch',
    arity: -2,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keysFrom(1, KeyUse.RO)],
    since: '3.2.1',
    summary: 'Marks keys as used just now; returns how many of them exist.',
    complexity: 'O(N) for N keys',
    tips: MULTI_SHARD,
    args: MANY,
    run: touch,
  },
  {
    ...COMMON,
    name: 'type',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    since: '1.0.0',
    summary: 'Returns the type of what a key holds.',
    complexity: 'O(1)',
    args: [keyArg('key')],
    run: type,
  },
  {
    ...COMMON,
    name: 'rename',
    arity: 3,
    flags: Flag.WRITE,
    keys: RENAME_KEYS,
    since: '1.0.0',
    summary: 'Renames a key, replacing what the new name had.',
    complexity: 'O(N) for a value of N bytes, which moves',
    args: [keyArg('key'), keyArg('newkey', { keySpec: 1 })],
    run: rename,
  },
  {
    ...COMMON,
    name: 'renamenx',
    arity: 3,
    flags: Flag.WRITE | Flag.FAST,
    keys: RENAMENX_KEYS,
    since: '1.0.0',
    summary: 'Renames a key unless the new name exists.',
    complexity: 'O(N) for a value of N bytes, which moves',
    args: [keyArg('key'), keyArg('newkey', { keySpec: 1 })],
    run: renameNx,
  },
  {
    ...COMMON,
    name: 'copy',
    arity: -3,
    flags: Flag.WRITE | Flag.DENYOOM,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS), keyAt(2, KeyUse.OW | KeyUse.UPDATE)],
    since: '6.2.0',
    summary: 'Copies what a key holds, its expiry included, to another key.',
    complexity: 'O(N) for a value of N bytes',
    args: [
      keyArg('source'),
      keyArg('destination', { keySpec: 1 }),
      integerArg('destination-db', { token: 'DB', optional: true }),
      optional(tokenArg('REPLACE')),
    ],
    extraLocks: lockCopyTarget,
    run: copy,
  },
  {
    ...COMMON,
    name: 'move',
    arity: 3,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE)],
    since: '1.0.0',
    summary: 'Moves a key to another database, unless it exists there.',
    complexity: 'O(N) for a value of N bytes, which moves',
    args: [keyArg('key'), integerArg('db')],
    extraLocks: lockMoveTarget,
    run: move,
  },
];
