/**
 * Commands that walk the key space: KEYS, SCAN, RANDOMKEY.
 *
 * They lock one bucket at a time, and are worked on over several turns when they take long (long-work): a key that is there from the
 * beginning to the end of KEYS is in its answer, once. In EXEC and scripts, which run alone, the answer is one moment's.
 */
import { ReplyType } from '../../protocol/resp/reply.js';
import type { Keyspace } from '../../store/keyspace.js';
import { integerArg, patternArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { globMatches, isLiteral } from '../glob.js';
import { finishWork, isSliceOver, type LongWork, resumeWork, yieldWork } from '../long-work.js';
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

/** Buckets between two looks at the clock: some 10 microseconds. */
const BUCKETS_A_LOOK = 64;

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
}

/**
 * Visits keys from `cursor` on, or from where the request's work has come to, until `count` have been looked at or so many buckets have.
 * Returns the work, which is done, and the next cursor in its position; null when it goes on in the next turn.
 */
function walk(context: Context, cursor: number, count: number, buckets: number): LongWork | null {
  const { keyspace } = context;
  const work = resumeWork(context, keyspace.physical(context.db));
  if (work.looks === 0) work.position = cursor;
  wanted.found = work.found;
  wanted.visited = work.visited;
  let isDone = false;
  do {
    work.looks++;
    for (let left = BUCKETS_A_LOOK; left > 0 && !isDone; left--) {
      work.position = keyspace.scan(context.db, work.position, visit);
      isDone = work.position === 0 || wanted.visited >= count;
    }
    isDone ||= work.looks * BUCKETS_A_LOOK >= buckets;
  } while (!isDone && !isSliceOver());
  work.found = wanted.found;
  work.visited = wanted.visited;
  if (isDone) return work;
  yieldWork(context, work);
  return null;
}

function isEveryKey(context: Context, pattern: number): boolean {
  return context.argLength(pattern) === 1 && context.input.u8[context.argOffset(pattern)] === 0x2a;
}

function keys(context: Context): void {
  const { reply } = context;
  if (isLiteral(context.input, context.argOffset(1), context.argLength(1))) {
    const exists = hasKey(context, 1);
    reply.array(exists ? 1 : 0);
    if (exists) reply.bulk(context.input, context.argOffset(1), context.argLength(1));
    return;
  }
  beginWalk(context, isEveryKey(context, 1) ? 0 : 1, '');
  const work = walk(context, 0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  if (work !== null) finishWork(context, work, reply.deferredHeader(ReplyType.ARRAY, work.found));
}

/** Looks for the key in argument `i`, which nobody has locked. */
function hasKey(context: Context, i: number): boolean {
  const { keyspace } = context;
  const hash = context.hashOf(i);
  if (keyspace.gate.isExclusive) return context.find(hash, i);
  keyspace.lock(hash);
  const exists = context.find(hash, i);
  keyspace.unlock(hash);
  return exists;
}

function scan(context: Context): void {
  const { reply } = context;
  const cursor = context.argInteger(1);
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
  const work = walk(context, cursor, count, count * BUCKETS_PER_KEY);
  if (work === null) return;
  const next = work.position.toString();
  // The cursor comes before the keys, and is known after them.
  finishWork(context, work, `*2\r\n$${next.length}\r\n${next}\r\n*${work.found}\r\n`);
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
    flags: Flag.READONLY | Flag.SCANS,
    categories: Category.KEYSPACE | Category.DANGEROUS,
    since: '1.0.0',
    group: 'generic',
    summary: 'Returns all keys whose names match a pattern.',
    complexity: 'O(N) for N keys in the database',
    tips: ['request_policy:all_shards', 'nondeterministic_output_order'],
    args: [patternArg('pattern')],
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
