/**
 * Commands about the whole data set and the process: DBSIZE FLUSHDB FLUSHALL SWAPDB TIME ROLE SHUTDOWN INFO.
 *
 * Invariant: what touches every key runs exclusively, under the store gate.
 */
import { integerArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { DB_OUT_OF_RANGE, SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { info } from './info.js';

function dbSize(context: Context): void {
  context.reply.integer(context.keyspace.size(context.db));
}

/** SYNC and ASYNC are the same here: the keys are gone at once, their memory comes back in the background. */
function acceptsFlushOption(context: Context): boolean {
  if (context.argc === 1) return true;
  if (context.argc === 2 && (context.argIs(1, 'SYNC') || context.argIs(1, 'ASYNC'))) return true;
  context.reply.error(SYNTAX);
  return false;
}

function flushDb(context: Context): void {
  if (!acceptsFlushOption(context)) return;
  context.keyspace.flush(context.db);
  context.reply.ok();
}

function flushAll(context: Context): void {
  if (!acceptsFlushOption(context)) return;
  context.keyspace.flushAll();
  context.reply.ok();
}

function swapDb(context: Context): void {
  const { reply } = context;
  const { databases } = context.environment.settings;
  const first = context.argInteger(1);
  if (Number.isNaN(first)) return reply.error('ERR invalid first DB index');
  const second = context.argInteger(2);
  if (Number.isNaN(second)) return reply.error('ERR invalid second DB index');
  const isValid = (db: number): boolean => db >= 0 && db < databases;
  if (!isValid(first) || !isValid(second)) return reply.error(DB_OUT_OF_RANGE);
  if (first !== second) context.keyspace.swapDatabases(first, second);
  reply.ok();
}

function time(context: Context): void {
  // Time stands still in a transaction and in a script.
  const nowMs = context.inTransaction ? context.nowMs : performance.timeOrigin + performance.now();
  const microseconds = Math.floor(nowMs * 1000);
  context.reply.array(2);
  context.reply.bulkInteger(Math.floor(microseconds / 1_000_000));
  context.reply.bulkInteger(microseconds % 1_000_000);
}

function role(context: Context): void {
  context.reply.array(3);
  context.reply.bulkString('master');
  context.reply.integer(0);
  context.reply.array(0);
}

function shutdown(context: Context): void {
  const { reply } = context;
  let saves = 0;
  let others = 0;
  let abort = false;
  let isForced = false;
  let savesFirst: boolean | null = null;
  for (let i = 1; i < context.argc; i++) {
    if (context.argIs(i, 'NOSAVE') || context.argIs(i, 'SAVE')) {
      saves++;
      savesFirst = context.argIs(i, 'SAVE');
    } else if (context.argIs(i, 'NOW') || context.argIs(i, 'FORCE')) {
      others++;
      isForced ||= context.argIs(i, 'FORCE');
    } else if (context.argIs(i, 'ABORT')) abort = true;
    else return reply.error(SYNTAX);
  }
  if (saves > 1 || (abort && saves + others > 0)) return reply.error(SYNTAX);
  context.askMain('shutdown', { abort, saves: savesFirst, isForced }, (error) => {
    if (error === null) reply.ok();
    else reply.error(error);
  });
}

const FLUSH_TYPE = optional(
  oneOf('flush-type', [tokenArg('ASYNC', { since: '4.0.0' }), tokenArg('SYNC', { since: '6.2.0' })]),
);
const ALL_SHARDS = ['request_policy:all_shards', 'response_policy:all_succeeded'];

export const serverCommands: readonly CommandSpec[] = [
  {
    name: 'dbsize',
    arity: 1,
    flags: Flag.READONLY | Flag.FAST,
    categories: Category.KEYSPACE,
    since: '1.0.0',
    group: 'server',
    summary: 'Returns the number of keys in the database.',
    complexity: 'O(1)',
    tips: ['request_policy:all_shards', 'response_policy:agg_sum'],
    run: dbSize,
  },
  {
    name: 'flushdb',
    arity: -1,
    flags: Flag.WRITE,
    categories: Category.KEYSPACE | Category.DANGEROUS,
    since: '1.0.0',
    group: 'server',
    summary: 'Removes all keys of the database.',
    complexity: 'O(1); the memory of N keys comes back in the background',
    args: [FLUSH_TYPE],
    tips: ALL_SHARDS,
    exclusive: true,
    run: flushDb,
  },
  {
    name: 'flushall',
    arity: -1,
    flags: Flag.WRITE,
    categories: Category.KEYSPACE | Category.DANGEROUS,
    since: '1.0.0',
    group: 'server',
    summary: 'Removes all keys of all databases.',
    complexity: 'O(1); the memory of N keys comes back in the background',
    args: [FLUSH_TYPE],
    tips: ALL_SHARDS,
    exclusive: true,
    run: flushAll,
  },
  {
    name: 'swapdb',
    arity: 3,
    flags: Flag.WRITE | Flag.FAST | Flag.CHANGES_DB,
    categories: Category.KEYSPACE | Category.DANGEROUS,
    since: '4.0.0',
    group: 'server',
    summary: 'Exchanges two databases.',
    complexity: 'O(1)',
    args: [integerArg('index1'), integerArg('index2')],
    exclusive: true,
    run: swapDb,
  },
  {
    name: 'time',
    arity: 1,
    flags: Flag.LOADING | Flag.STALE | Flag.FAST,
    categories: Category.NONE,
    since: '2.6.0',
    group: 'server',
    summary: 'Returns the time of the server: Unix seconds and microseconds.',
    complexity: 'O(1)',
    tips: ['nondeterministic_output'],
    run: time,
  },
  {
    name: 'role',
    arity: 1,
    flags: Flag.NOSCRIPT | Flag.LOADING | Flag.STALE | Flag.FAST,
    categories: Category.ADMIN | Category.DANGEROUS,
    since: '2.8.12',
    group: 'server',
    summary: 'Returns the part that this server plays in replication.',
    complexity: 'O(1)',
    run: role,
  },
  {
    name: 'shutdown',
    arity: -1,
    flags: Flag.ADMIN | Flag.NOSCRIPT | Flag.LOADING | Flag.STALE | Flag.NO_MULTI | Flag.ALLOW_BUSY,
    categories: Category.NONE,
    since: '1.0.0',
    group: 'server',
    summary:
      'Ends the server, after writing an RDB file if told so or if there is a schedule of saves. Connections close without a reply.',
    complexity: 'O(1)',
    args: [
      optional(oneOf('save-selector', [tokenArg('NOSAVE'), tokenArg('SAVE')])),
      optional(tokenArg('NOW', { since: '7.0.0' })),
      optional(tokenArg('FORCE', { since: '7.0.0' })),
      optional(tokenArg('ABORT', { since: '7.0.0' })),
    ],
    run: shutdown,
  },
  {
    name: 'info',
    arity: -1,
    flags: Flag.LOADING | Flag.STALE,
    categories: Category.DANGEROUS,
    since: '1.0.0',
    group: 'server',
    summary: 'Describes the server and its statistics, in sections.',
    complexity: 'O(1)',
    args: [optional(stringArg('section', { multiple: true }))],
    history: [['7.0.0', 'Several sections may be asked for at once.']],
    tips: ['nondeterministic_output', 'request_policy:all_shards', 'response_policy:special'],
    run: info,
  },
];
