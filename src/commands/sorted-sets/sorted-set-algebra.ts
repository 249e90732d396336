/**
 * ZUNION ZUNIONSTORE ZINTER ZINTERSTORE ZINTERCARD ZDIFF ZDIFFSTORE: over sorted sets, and over sets, whose members count as 1.
 *
 * The result is gathered beside the store, one open source at a time, so that the destination may be one of the sources; much of it in several
 * turns (long-steps). Invariant: all sources are looked at before anything is gathered, and all is gathered before the destination changes.
 */
import { doubleArg, integerArg, keyArg, oneOf, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX, WRONG_TYPE } from '../errors.js';
import { beginReply, replyInSteps, STEP_ELEMENTS, takeSteps } from '../long-steps.js';
import { isLong, isSliceOver, type LongWork, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysCounted } from '../spec.js';
import { Aggregate, Operation, SortedSetAlgebra } from './sorted-set-computation.js';
import { beginElements } from './sorted-set-members.js';
import { result, sortedInSteps, storeLong, storeResult } from './sorted-set-result.js';

const NOT_WEIGHT = 'ERR weight value is not a float';
const NEGATIVE_LIMIT = "ERR LIMIT can't be negative";

const enum Result {
  REPLY = 0,
  STORE = 1,
  COUNT = 2,
}

/** Of the commands that are done in one go. */
const usual = new SortedSetAlgebra(result);

/** Reads the request from numkeys, argument `at`, on, and the sizes of the sources; false after an error reply. */
function readRequest(context: Context, at: number, operation: Operation, into: Result): boolean {
  const { argc } = context;
  const keys = context.argInteger(at);
  if (Number.isNaN(keys)) return fail(context, NOT_INTEGER);
  if (keys < 1) return fail(context, `ERR at least 1 input key is needed for '${context.command.fullName}' command`);
  if (keys > argc - at - 1) return fail(context, SYNTAX);
  if (!usual.measure(context, operation, keys, into === Result.STORE ? 1 : 0)) return fail(context, WRONG_TYPE);
  const combines = operation !== Operation.DIFFERENCE && into !== Result.COUNT;
  for (let i = at + 1 + keys; i < argc; i++) {
    const left = argc - i;
    if (combines && left > keys && context.argIs(i, 'WEIGHTS')) {
      for (let n = 0; n < keys; n++) {
        usual.weights[n] = context.argDouble(++i);
        if (Number.isNaN(usual.weights[n])) return fail(context, NOT_WEIGHT);
      }
    } else if (combines && left > 1 && context.argIs(i, 'AGGREGATE')) {
      i++;
      if (context.argIs(i, 'SUM')) usual.aggregate = Aggregate.SUM;
      else if (context.argIs(i, 'MIN')) usual.aggregate = Aggregate.MIN;
      else if (context.argIs(i, 'MAX')) usual.aggregate = Aggregate.MAX;
      else return fail(context, SYNTAX);
    } else if (into === Result.REPLY && context.argIs(i, 'WITHSCORES')) {
      usual.withScores = true;
    } else if (into === Result.COUNT && left > 1 && context.argIs(i, 'LIMIT')) {
      usual.limit = context.argInteger(++i);
      if (!(usual.limit >= 0)) return fail(context, NEGATIVE_LIMIT);
    } else {
      return fail(context, SYNTAX);
    }
  }
  usual.begin();
  return true;
}

function fail(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

/** What a command makes of the result, in one go and in steps. */
interface Ending {
  readonly firstSource: number;
  now(context: Context): void;
  inSteps(context: Context, work: LongWork, own: SortedSetAlgebra): Steps;
}

/** Computes what has been asked for, and ends. */
function compute(context: Context, ending: Ending): void {
  if (!isLong(usual.cost)) {
    result.clear();
    usual.step(context, Number.POSITIVE_INFINITY);
    ending.now(context);
    return result.clear();
  }
  takeSteps(context, ending.firstSource, context.keyCount, (work) => inSteps(context, work, usual.copy(), ending));
}

function* inSteps(context: Context, work: LongWork, own: SortedSetAlgebra, ending: Ending): Steps {
  while (!own.step(context, STEP_ELEMENTS)) if (isSliceOver()) yield;
  yield* ending.inSteps(context, work, own);
}

const REPLY: Ending = {
  firstSource: 0,
  now: (context) => {
    const { withScores } = usual;
    const isPair = withScores && context.reply.protocol > 2;
    beginElements(context, result.table.size, withScores);
    const sorted = result.sorted();
    for (let i = 0; i < sorted.length; i++) result.reply(context, sorted[i], withScores, isPair);
  },
  *inSteps(context, work, { members, withScores }) {
    const isPair = withScores && context.reply.protocol > 2;
    const sorted = yield* sortedInSteps(members);
    beginReply(context, work);
    beginElements(context, sorted.length, withScores);
    yield* replyInSteps(sorted.length, (i) => members.reply(context, sorted[i], withScores, isPair));
  },
};

function storing(event: string): Ending {
  return {
    firstSource: 1,
    now: (context) => storeResult(context, event),
    *inSteps(context, work, { members }) {
      yield* storeLong(context, work, members, event, 0);
    },
  };
}

const COUNT: Ending = {
  firstSource: 0,
  now: (context) => replyCount(context, usual),
  // biome-ignore lint/correctness/useYield: nothing is left to be done but the reply.
  *inSteps(context, _, own) {
    replyCount(context, own);
  },
};

function replyCount(context: Context, { members, limit }: SortedSetAlgebra): void {
  const { size } = members.table;
  context.reply.integer(limit === 0 ? size : Math.min(size, limit));
}

const ZUNIONSTORE = storing('zunionstore');
const ZINTERSTORE = storing('zinterstore');
const ZDIFFSTORE = storing('zdiffstore');

function zunion(context: Context): void {
  if (readRequest(context, 1, Operation.UNION, Result.REPLY)) compute(context, REPLY);
}

function zinter(context: Context): void {
  if (readRequest(context, 1, Operation.INTERSECTION, Result.REPLY)) compute(context, REPLY);
}

function zdiff(context: Context): void {
  if (readRequest(context, 1, Operation.DIFFERENCE, Result.REPLY)) compute(context, REPLY);
}

function zunionStore(context: Context): void {
  if (readRequest(context, 2, Operation.UNION, Result.STORE)) compute(context, ZUNIONSTORE);
}

function zinterStore(context: Context): void {
  if (readRequest(context, 2, Operation.INTERSECTION, Result.STORE)) compute(context, ZINTERSTORE);
}

function zdiffStore(context: Context): void {
  if (readRequest(context, 2, Operation.DIFFERENCE, Result.STORE)) compute(context, ZDIFFSTORE);
}

function zinterCard(context: Context): void {
  if (readRequest(context, 1, Operation.INTERSECTION, Result.COUNT)) compute(context, COUNT);
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
