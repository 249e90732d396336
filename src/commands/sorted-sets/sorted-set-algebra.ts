/**
 * ZUNION ZUNIONSTORE ZINTER ZINTERSTORE ZINTERCARD ZDIFF ZDIFFSTORE: over sorted sets, and over sets, whose members count as 1.
 *
 * The result is gathered beside the store, one open source at a time, so that the destination may be one of the sources. Invariant: all
 * sources are looked at before anything is gathered, and all is gathered before the destination changes.
 */
import { Order } from '../../layout/collection.js';
import { type Collection, Opened, SETS, SORTED_SETS } from '../../store/collections/collection.js';
import { doubleArg, integerArg, keyArg, oneOf, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX, WRONG_TYPE } from '../errors.js';
import { members } from '../sets/member-table.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted } from '../spec.js';
import { beginElements } from './sorted-set-members.js';
import { clearResult, keepScore, replyMember, scores, sortedResult, storeResult } from './sorted-set-result.js';

const NOT_WEIGHT = 'ERR weight value is not a float';
const NEGATIVE_LIMIT = "ERR LIMIT can't be negative";

const enum Operation {
  UNION = 0,
  INTERSECTION = 1,
  DIFFERENCE = 2,
}

const enum Aggregate {
  SUM = 0,
  MIN = 1,
  MAX = 2,
}

const enum Result {
  REPLY = 0,
  STORE = 1,
  COUNT = 2,
}

/** Per source, in the order of the command's keys; they grow with the longest command. */
let sizes = new Float64Array(64);
let weights = new Float64Array(64);
/** The sources, the smallest first. */
let order = new Int32Array(64);
/** What the running command asks for. */
const asked = { keys: 0, first: 0, aggregate: Aggregate.SUM, withScores: false, limit: 0 };

/** Opens source `n`; null = it is neither a sorted set nor a set. */
function openSource(context: Context, n: number): Collection | null {
  const { keyspace, keyHashes, keyArguments, input, db } = context;
  const [collection] = keyspace.collections;
  const h = keyHashes[asked.first + n];
  const i = keyArguments[asked.first + n];
  const offset = context.argOffset(i);
  const length = context.argLength(i);
  if (collection.open(SORTED_SETS, h, db, input, offset, length) !== Opened.WRONG_TYPE) return collection;
  return collection.open(SETS, h, db, input, offset, length) === Opened.WRONG_TYPE ? null : collection;
}

/** Reads the request from numkeys, argument `at`, on, and the sizes of the sources; false after an error reply. */
function readRequest(context: Context, at: number, operation: Operation, result: Result): boolean {
  const { argc } = context;
  const keys = context.argInteger(at);
  if (Number.isNaN(keys)) return fail(context, NOT_INTEGER);
  if (keys < 1) return fail(context, `ERR at least 1 input key is needed for '${context.command.fullName}' command`);
  if (keys > argc - at - 1) return fail(context, SYNTAX);
  asked.keys = keys;
  asked.first = result === Result.STORE ? 1 : 0;
  asked.aggregate = Aggregate.SUM;
  asked.withScores = false;
  asked.limit = 0;
  if (!measure(context)) return fail(context, WRONG_TYPE);
  const combines = operation !== Operation.DIFFERENCE && result !== Result.COUNT;
  for (let i = at + 1 + keys; i < argc; i++) {
    const left = argc - i;
    if (combines && left > keys && context.argIs(i, 'WEIGHTS')) {
      for (let n = 0; n < keys; n++) {
        weights[n] = context.argDouble(++i);
        if (Number.isNaN(weights[n])) return fail(context, NOT_WEIGHT);
      }
    } else if (combines && left > 1 && context.argIs(i, 'AGGREGATE')) {
      i++;
      if (context.argIs(i, 'SUM')) asked.aggregate = Aggregate.SUM;
      else if (context.argIs(i, 'MIN')) asked.aggregate = Aggregate.MIN;
      else if (context.argIs(i, 'MAX')) asked.aggregate = Aggregate.MAX;
      else return fail(context, SYNTAX);
    } else if (result === Result.REPLY && context.argIs(i, 'WITHSCORES')) {
      asked.withScores = true;
    } else if (result === Result.COUNT && left > 1 && context.argIs(i, 'LIMIT')) {
      asked.limit = context.argInteger(++i);
      if (!(asked.limit >= 0)) return fail(context, NEGATIVE_LIMIT);
    } else {
      return fail(context, SYNTAX);
    }
  }
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

function measure(context: Context): boolean {
  const { keys } = asked;
  if (sizes.length < keys) {
    sizes = new Float64Array(keys * 2);
    weights = new Float64Array(keys * 2);
    order = new Int32Array(keys * 2);
  }
  weights.fill(1, 0, keys);
  for (let n = 0; n < keys; n++) {
    const source = openSource(context, n);
    if (source === null) return false;
    if (source.exists) context.hit();
    else context.miss();
    sizes[n] = source.count;
    order[n] = n;
  }
  return true;
}

function compareSizes(a: number, b: number): number {
  return sizes[a] - sizes[b];
}

/** The score of the loaded element. */
function scoreOf(source: Collection): number {
  return source.order === Order.SCORE ? source.score : 1;
}

function combine(before: number, score: number): number {
  if (asked.aggregate === Aggregate.SUM) {
    // inf - inf
    const sum = before + score;
    return Number.isNaN(sum) ? 0 : sum;
  }
  // 0 * inf is neither less nor greater, and changes nothing: no Math.min here.
  const isBetter = asked.aggregate === Aggregate.MIN ? score < before : score > before;
  return isBetter ? score : before;
}

/** Gathers all members of source `n`; those that are there already are combined. */
function gather(context: Context, n: number): void {
  const { keyspace } = context;
  const source = openSource(context, n) as Collection;
  const weight = weights[n];
  for (let more = source.first(); more; more = source.next()) {
    source.load();
    const { key, keyOffset, keyLength } = source;
    const hash = keyspace.hash(0, key, keyOffset, keyLength);
    // 0 * inf
    const weighted = scoreOf(source) * weight;
    const score = Number.isNaN(weighted) ? 0 : weighted;
    if (members.add(hash, key, keyOffset, keyLength)) {
      keepScore(score);
    } else {
      const member = members.indexOf(hash, key, keyOffset, keyLength);
      scores[member] = combine(scores[member], score);
    }
  }
}

/** Keeps what source `n` has (`isKept`) or has not, until `limit` that stay have been seen. */
function sift(context: Context, n: number, isKept: boolean, limit: number): void {
  const source = openSource(context, n) as Collection;
  let kept = 0;
  for (let i = 0; i < members.count && kept < limit; i++) {
    if (!members.has(i)) continue;
    const found = source.seekKey(members.bytes, members.offsets[i], members.lengths[i]);
    if (found !== isKept) {
      members.drop(i);
      continue;
    }
    kept++;
    if (!found) continue;
    source.load();
    scores[i] = combine(scores[i], scoreOf(source) * weights[n]);
  }
}

/** Computes what has been asked for. */
function compute(context: Context, operation: Operation): void {
  const { keys } = asked;
  const limit = asked.limit === 0 ? Number.POSITIVE_INFINITY : asked.limit;
  clearResult();
  if (operation === Operation.DIFFERENCE) {
    gather(context, 0);
    for (let n = 1; n < keys && members.size > 0; n++) sift(context, n, false, limit);
    return;
  }
  order.subarray(0, keys).sort(compareSizes);
  if (operation === Operation.UNION) {
    for (let n = 0; n < keys; n++) gather(context, order[n]);
    return;
  }
  gather(context, order[0]);
  for (let n = 1; n < keys && members.size > 0; n++) {
    // Of the last source no more is asked than the limit.
    sift(context, order[n], true, n === keys - 1 ? limit : Number.POSITIVE_INFINITY);
  }
}

function replyResult(context: Context, operation: Operation): void {
  if (!readRequest(context, 1, operation, Result.REPLY)) return;
  compute(context, operation);
  const { withScores } = asked;
  const isPair = withScores && context.reply.protocol > 2;
  beginElements(context, members.size, withScores);
  const sorted = sortedResult();
  for (let i = 0; i < sorted.length; i++) replyMember(context, sorted[i], withScores, isPair);
  clearResult();
}

function store(context: Context, operation: Operation, event: string): void {
  if (!readRequest(context, 2, operation, Result.STORE)) return;
  compute(context, operation);
  storeResult(context, event);
}

function zunion(context: Context): void {
  replyResult(context, Operation.UNION);
}

function zinter(context: Context): void {
  replyResult(context, Operation.INTERSECTION);
}

function zdiff(context: Context): void {
  replyResult(context, Operation.DIFFERENCE);
}

function zunionStore(context: Context): void {
  store(context, Operation.UNION, 'zunionstore');
}

function zinterStore(context: Context): void {
  store(context, Operation.INTERSECTION, 'zinterstore');
}

function zdiffStore(context: Context): void {
  store(context, Operation.DIFFERENCE, 'zdiffstore');
}

function zinterCard(context: Context): void {
  if (!readRequest(context, 1, Operation.INTERSECTION, Result.COUNT)) return;
  compute(context, Operation.INTERSECTION);
  const { size } = members;
  clearResult();
  context.reply.integer(asked.limit === 0 ? size : Math.min(size, asked.limit));
}

const NUMKEYS = integerArg('numkeys');
const KEYS = keyArg('key', { multiple: true });
const WITHSCORES = tokenArg('WITHSCORES', { optional: true });
const COMBINATION = [
  doubleArg('weight', { token: 'WEIGHTS', optional: true, multiple: true }),
  oneOf('aggregate', [tokenArg('SUM'), tokenArg('MIN'), tokenArg('MAX')], { token: 'AGGREGATE', optional: true }),
];
const COMMON = { categories: Category.SORTEDSET, group: 'sorted-set' } as const;
const READ = {
  ...COMMON,
  arity: -3,
  flags: Flag.READONLY | Flag.MOVABLE_KEYS,
  keys: [keysCounted(1, KeyUse.RO | KeyUse.ACCESS)],
  since: '6.2.0',
} as const;
const STORE = {
  ...COMMON,
  arity: -4,
  flags: Flag.WRITE | Flag.DENYOOM | Flag.MOVABLE_KEYS,
  keys: [keyAt(1, KeyUse.OW | KeyUse.UPDATE), keysCounted(2, KeyUse.RO | KeyUse.ACCESS)],
} as const;
const STORE_ARGS = [keyArg('destination'), NUMKEYS, keyArg('key', { multiple: true, keySpec: 1 })];
const OF_UNION = 'O(N)+O(M*log(M)) for N members of all sources and M of the result';
const OF_INTERSECTION = 'O(N*K)+O(M*log(M)) for N members of the smallest of K sources and M of the result';
const OF_DIFFERENCE = 'O(N*K)+O(M*log(M)) for N members of the first of K sources and M of the result';

export const sortedSetAlgebra: readonly CommandSpec[] = [
  {
    ...READ,
    name: 'zunion',
    summary: 'Returns what any of the sorted sets has.',
    complexity: OF_UNION,
    args: [NUMKEYS, KEYS, ...COMBINATION, WITHSCORES],
    run: zunion,
  },
  {
    ...READ,
    name: 'zinter',
    summary: 'Returns what all sorted sets have.',
    complexity: OF_INTERSECTION,
    args: [NUMKEYS, KEYS, ...COMBINATION, WITHSCORES],
    run: zinter,
  },
  {
    ...READ,
    name: 'zintercard',
    since: '7.0.0',
    summary: 'Returns how many members all sorted sets have in common, up to a limit.',
    complexity: 'O(N*K) for N members of the smallest of K sources',
    args: [NUMKEYS, KEYS, integerArg('limit', { token: 'LIMIT', optional: true })],
    run: zinterCard,
  },
  {
    ...READ,
    name: 'zdiff',
    summary: 'Returns what the first sorted set has and none of the others.',
    complexity: OF_DIFFERENCE,
    args: [NUMKEYS, KEYS, WITHSCORES],
    run: zdiff,
  },
  {
    ...STORE,
    name: 'zunionstore',
    since: '2.0.0',
    summary: 'Stores what any of the sorted sets has as a sorted set.',
    complexity: OF_UNION,
    args: [...STORE_ARGS, ...COMBINATION],
    run: zunionStore,
  },
  {
    ...STORE,
    name: 'zinterstore',
    since: '2.0.0',
    summary: 'Stores what all sorted sets have as a sorted set.',
    complexity: OF_INTERSECTION,
    args: [...STORE_ARGS, ...COMBINATION],
    run: zinterStore,
  },
  {
    ...STORE,
    name: 'zdiffstore',
    since: '6.2.0',
    summary: 'Stores what the first sorted set has and none of the others as a sorted set.',
    complexity: OF_DIFFERENCE,
    args: STORE_ARGS,
    run: zdiffStore,
  },
];
