/**
 * Commands that walk the key space: KEYS, SCAN, RANDOMKEY.
 *
 * KEYS runs under the store gate, so that its answer is one moment's; SCAN and RANDOMKEY lock one bucket at a time.
 */
import { ReplyType } from '../../protocol/resp/reply.js';
import type { Keyspace } from '../../store/keyspace.js';
import { integerArg, patternArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { globMatches, isLiteral } from '../glob.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { typeName } from './generic.js';

const INVALID_CURSOR = 'ERR invalid cursor';
/** SCAN without COUNT. */
const COUNT_DEFAULT = 10;
/** SCAN looks into at most so many buckets for each key asked for: in a sparse index an answer may be short. One costs about 100 ns. */
const BUCKETS_PER_KEY = 64;

/** What the walk in hand looks for; the filter is one function for all walks. */
const wanted = {
  context: null as unknown as Context,
  /** Argument of the pattern, 0 = every key. */
  pattern: 0,
  type: '',
  /** Keys replied, keys looked at. */
  found: 0,
  visited: 0,
};

function visit(keyspace: Keyspace): void {
  const { context, pattern, type } = wanted;
  wanted.visited++;
  const { keyBytes, keyOffset, keyLength } = keyspace;
  if (pattern !== 0) {
    const { input } = context;
    const at = context.argOffset(pattern);
    if (!globMatches(input, at, context.argLength(pattern), keyBytes, keyOffset, keyLength, false)) return;
  }
  if (type !== '' && typeName(keyspace.type) !== type) return;
  context.reply.bulk(keyBytes, keyOffset, keyLength);
  wanted.found++;
}

function beginWalk(context: Context, pattern: number, type: string): void {
  wanted.context = context;
  wanted.pattern = pattern;
  wanted.type = type;
  wanted.found = 0;
  wanted.visited = 0;
  context.reply.deferred();
}

function isEveryKey(context: Context, pattern: number): boolean {
  return context.argLength(pattern) === 1 && context.input.u8[context.argOffset(pattern)] === 0x2a;
}

function keys(context: Context): void {
  const { keyspace, reply } = context;
  if (isLiteral(context.input, context.argOffset(1), context.argLength(1))) {
    const exists = context.find(context.hashOf(1), 1);
    reply.array(exists ? 1 : 0);
    if (exists) reply.bulk(context.input, context.argOffset(1), context.argLength(1));
    return;
  }
  beginWalk(context, isEveryKey(context, 1) ? 0 : 1, '');
  let cursor = 0;
  do cursor = keyspace.scan(context.db, cursor, visit);
  while (cursor !== 0);
  reply.endDeferred(ReplyType.ARRAY, wanted.found);
}

function scan(context: Context): void {
  const { keyspace, reply } = context;
  let cursor = context.argInteger(1);
  if (!(cursor >= 0)) return reply.error(INVALID_CURSOR);
  let count = COUNT_DEFAULT;
  let pattern = 0;
  let type = '';
  for (let i = 2; i < context.argc; i += 2) {
    if (i + 1 === context.argc) return reply.error(SYNTAX);
    if (context.argIs(i, 'COUNT')) {
      count = context.argInteger(i + 1);
      if (Number.isNaN(count)) return reply.error(NOT_INTEGER);
      if (count < 1) return reply.error(SYNTAX);
    } else if (context.argIs(i, 'MATCH')) {
      pattern = isEveryKey(context, i + 1) ? 0 : i + 1;
    } else if (context.argIs(i, 'TYPE')) {
      type = context.argString(i + 1).toLowerCase();
    } else {
      return reply.error(SYNTAX);
    }
  }
  beginWalk(context, pattern, type);
  let buckets = count * BUCKETS_PER_KEY;
  do cursor = keyspace.scan(context.db, cursor, visit);
  while (cursor !== 0 && wanted.visited < count && --buckets > 0);
  const next = cursor.toString();
  // The cursor comes before the keys, and is known after them.
  reply.output.release(`*2\r\n$${next.length}\r\n${next}\r\n*${wanted.found}\r\n`);
}

function randomKey(context: Context): void {
  const key = context.keyspace.randomKey(context.db);
  if (key === null) context.reply.nil();
  else context.reply.bulkArray(key);
}

export const keyIteration: readonly CommandSpec[] = [
  {
    name: 'keys',
    arity: 2,
    flags: Flag.READONLY,
    categories: Category.KEYSPACE | Category.DANGEROUS,
    since: '1.0.0',
    group: 'generic',
    summary: 'Returns all keys whose names match a pattern.',
    complexity: 'O(N) for N keys in the database; every other client waits',
    tips: ['request_policy:all_shards', 'nondeterministic_output_order'],
    args: [patternArg('pattern')],
    exclusive: true,
    run: keys,
  },
  {
    name: 'scan',
    arity: -2,
    flags: Flag.READONLY | Flag.SCANS,
    categories: Category.KEYSPACE,
    since: '2.8.0',
    group: 'generic',
    summary: 'Walks the keys of the database, some at each call.',
    complexity: 'O(1) for each call; O(N) for a whole walk over N keys',
    history: [['6.0.0', 'TYPE.']],
    tips: ['nondeterministic_output', 'request_policy:special', 'response_policy:special'],
    args: [
      integerArg('cursor'),
      patternArg('pattern', { token: 'MATCH', optional: true }),
      integerArg('count', { token: 'COUNT', optional: true }),
      stringArg('type', { token: 'TYPE', optional: true, since: '6.0.0' }),
    ],
    run: scan,
  },
  {
    name: 'randomkey',
    arity: 1,
    flags: Flag.READONLY | Flag.SCANS,
    categories: Category.KEYSPACE,
    since: '1.0.0',
    group: 'generic',
    summary: 'Returns the name of a random key.',
    complexity: 'O(1) in a well-filled database',
    tips: ['request_policy:all_shards', 'response_policy:special', 'nondeterministic_output'],
    run: randomKey,
  },
];
