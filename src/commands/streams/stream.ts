/**
 * Streams, entry by entry: XADD XLEN XRANGE XREVRANGE XDEL XTRIM XSETID.
 */
import { ReplyType } from '../../protocol/resp/reply.js';
import { Notify } from '../../store/change-feed.js';
import { Change } from '../../store/collections/collection.js';
import { StreamId } from '../../store/streams/stream-id.js';
import { TrimBy } from '../../store/streams/trim.js';
import { blockArg, integerArg, keyArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY, NO_SUCH_KEY, NOT_INTEGER, SYNTAX, wrongArity } from '../errors.js';
import { isLong, replyElements } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import {
  addedIdArg,
  areIds,
  argIsStar,
  hasNoSequence,
  idArg,
  openStreamToChange,
  openStreamToRead,
  parseIdArg,
  rangeEndArg,
  rangeStartArg,
  replyEntry,
  replyId,
  stream,
} from './stream-arguments.js';
import { beginTrim, endTrim, trim, trimOption } from './stream-trim.js';

const ZERO_ID = 'ERR The ID specified in XADD must be greater than 0-0';
const NO_MORE_IDS = 'ERR The stream has exhausted the last possible ID, unable to add more items';
const ID_TOO_SMALL = 'ERR The ID specified in XADD is equal or smaller than the target stream top item';
const TOO_LARGE = 'ERR Elements are too large to be stored';
const NO_WAY_TO_TRIM = 'ERR syntax error, XTRIM must be called with a trimming strategy';
const BEFORE_GIVEN_DELETED = 'ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id';
const BEFORE_DELETED = 'ERR The ID specified in XSETID is smaller than current max_deleted_entry_id';
const BEFORE_TOP = 'ERR The ID specified in XSETID is smaller than the target stream top item';
const ADDED_NEGATIVE = 'ERR entries_added must be positive';
const ADDED_BELOW_LENGTH = 'ERR The entries_added specified in XSETID is smaller than the target stream length';

const ENTRY_BYTES_MAX = 2 ** 30;

const id = new StreamId();
const end = new StreamId();

/** How the id of an added entry comes about. */
const enum AddedId {
  AUTOMATIC = 0,
  SEQUENCE_AUTOMATIC = 1,
  GIVEN = 2,
}

function xadd(context: Context): void {
  const { reply, argc } = context;
  beginTrim(context);
  let kind = AddedId.AUTOMATIC;
  let mayCreate = true;
  let at = 2;
  while (at < argc && !argIsStar(context, at)) {
    const next = trimOption(context, at);
    if (next < 0) return;
    if (next > at) {
      at = next;
    } else if (context.argIs(at, 'NOMKSTREAM')) {
      mayCreate = false;
      at++;
    } else {
      if (!addedIdArg(context, at, id)) return;
      kind = hasNoSequence ? AddedId.SEQUENCE_AUTOMATIC : AddedId.GIVEN;
      break;
    }
  }
  if (!endTrim(context)) return;
  const first = at + 1;
  const words = argc - first;
  if (words < 2 || words % 2 === 1) return reply.error(wrongArity('xadd'));
  if (kind === AddedId.GIVEN && id.isZero) return reply.error(ZERO_ID);
  const collection = openStreamToChange(context);
  if (collection === null) return;
  if (!collection.exists && !mayCreate) return reply.nil();
  if (stream.lastId.isMax) return reply.error(NO_MORE_IDS);
  if (!chooseId(context, kind)) return reply.error(ID_TOO_SMALL);
  let bytes = 0;
  for (let i = first; i < argc; i++) bytes += context.argLength(i);
  if (bytes > ENTRY_BYTES_MAX) return reply.error(TOO_LARGE);
  const { input, argPairs, argPairsFrom } = context;
  if (stream.append(id, input, argPairs, argPairsFrom + first * 2, words / 2) !== Change.DONE) {
    return reply.error(NO_MEMORY);
  }
  context.notify(Notify.STREAM, 'xadd', 1);
  if (trim.by !== TrimBy.NOTHING && trim.run(stream) > 0) context.notify(Notify.STREAM, 'xtrim', 1);
  replyId(context, id);
}

/** Completes the id of an entry to be added; false = it is not above the last one. */
function chooseId(context: Context, kind: AddedId): boolean {
  const { lastId } = stream;
  if (kind === AddedId.AUTOMATIC) id.setTime(context.wallMs);
  if (kind === AddedId.GIVEN || (kind === AddedId.SEQUENCE_AUTOMATIC && !id.hasTimeOf(lastId))) {
    return id.compare(lastId) > 0;
  }
  // A clock that has not moved on, or back: the last id plus one.
  if (kind === AddedId.AUTOMATIC && id.compare(lastId) > 0) return true;
  if (kind === AddedId.SEQUENCE_AUTOMATIC && lastId.isSequenceMax) return false;
  id.set(lastId);
  return id.increment();
}

function xlen(context: Context): void {
  const collection = openStreamToRead(context);
  if (collection !== null) context.reply.integer(collection.count);
}

function range(context: Context, isReversed: boolean): void {
  const { reply, argc } = context;
  if (!rangeStartArg(context, isReversed ? 3 : 2, id)) return;
  if (!rangeEndArg(context, isReversed ? 2 : 3, end)) return;
  let count = Number.POSITIVE_INFINITY;
  for (let i = 4; i < argc; i += 2) {
    if (i + 1 >= argc || !context.argIs(i, 'COUNT')) return reply.error(SYNTAX);
    count = context.argInteger(i + 1);
    if (Number.isNaN(count)) return reply.error(NOT_INTEGER);
  }
  const collection = openStreamToRead(context);
  if (collection === null) return;
  if (!collection.exists) return reply.array(0);
  if (count <= 0) return reply.nilArray();
  replyRange(context, isReversed, count);
}

/** Replies at most `count` entries from `id` to `end`. */
function replyRange(context: Context, isReversed: boolean, count: number): void {
  const { reply } = context;
  const { collection } = stream;
  const last = stream.find(end) ? collection.rank + 1 : collection.rank;
  stream.find(id);
  const first = collection.rank;
  const length = Math.min(count, last - first);
  if (length <= 0) return reply.array(0);
  if (isLong(length)) {
    const from = isReversed ? last - 1 : first;
    return replyElements(context, collection, from, length, isReversed, ReplyType.ARRAY, visitEntry);
  }
  reply.array(length);
  if (isReversed) collection.seekRank(last - 1);
  for (let i = length; i > 0; i--) {
    replyEntry(context);
    if (isReversed) stream.previous();
    else stream.next();
  }
}

function visitEntry(context: Context): number {
  replyEntry(context);
  return 1;
}

function xrange(context: Context): void {
  range(context, false);
}

function xrevRange(context: Context): void {
  range(context, true);
}

function xdel(context: Context): void {
  const { reply } = context;
  const collection = openStreamToChange(context);
  if (collection === null) return;
  if (!collection.exists) return reply.integer(0);
  if (!areIds(context, 2)) return;
  let deleted = 0;
  for (let i = 2; i < context.argc; i++) if (parseIdArg(context, i, id) && stream.delete(id)) deleted++;
  if (deleted > 0) {
    stream.save();
    context.notify(Notify.STREAM, 'xdel', 1);
  }
  reply.integer(deleted);
}

function xtrim(context: Context): void {
  const { reply } = context;
  beginTrim(context);
  for (let i = 2; i < context.argc; ) {
    const next = trimOption(context, i);
    if (next < 0) return;
    if (next === i) return reply.error(SYNTAX);
    i = next;
  }
  if (trim.by === TrimBy.NOTHING && trim.limit === 0) return reply.error(NO_WAY_TO_TRIM);
  if (!endTrim(context)) return;
  if (openStreamToChange(context) === null) return;
  const removed = trim.run(stream);
  if (removed > 0) context.notify(Notify.STREAM, 'xtrim', 1);
  reply.integer(removed);
}

const deletedId = new StreamId();

function xsetId(context: Context): void {
  const { reply, argc } = context;
  if (!idArg(context, 2, id)) return;
  let added = -1;
  deletedId.setZero();
  for (let i = 3; i < argc; i += 2) {
    if (i + 1 >= argc) return reply.error(SYNTAX);
    if (context.argIs(i, 'ENTRIESADDED')) {
      added = context.argInteger(i + 1);
      if (Number.isNaN(added)) return reply.error(NOT_INTEGER);
      if (added < 0) return reply.error(ADDED_NEGATIVE);
    } else if (context.argIs(i, 'MAXDELETEDID')) {
      if (!idArg(context, i + 1, deletedId)) return;
      if (id.compare(deletedId) < 0) return reply.error(BEFORE_GIVEN_DELETED);
    } else {
      return reply.error(SYNTAX);
    }
  }
  const collection = openStreamToChange(context);
  if (collection === null) return;
  if (!collection.exists) return reply.error(NO_SUCH_KEY);
  if (id.compare(stream.maxDeletedId) < 0) return reply.error(BEFORE_DELETED);
  if (stream.loadLastId()) {
    if (id.compare(stream.id) < 0) return reply.error(BEFORE_TOP);
    if (added !== -1 && stream.length > added) return reply.error(ADDED_BELOW_LENGTH);
  }
  stream.lastId.set(id);
  if (added !== -1) stream.entriesAdded = added;
  if (!deletedId.isZero) stream.maxDeletedId.set(deletedId);
  if (stream.save() !== Change.DONE) return reply.error(NO_MEMORY);
  context.notify(Notify.STREAM, 'xsetid', 1);
  reply.ok();
}

const KEY = keyArg('key');
const COMMON = { categories: Category.STREAM, group: 'stream', since: '5.0.0' } as const;
const READ = { ...COMMON, flags: Flag.READONLY, keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)] } as const;
const UNSURE = ['nondeterministic_output'] as const;
const RANGE = { ...READ, arity: -4, complexity: 'O(log(N)+M) for M of N entries' } as const;
const RANGE_HISTORY = [['6.2.0', 'Bounds that are not part of the range.']] as const;
const COUNT = integerArg('count', { token: 'COUNT', optional: true });
const TRIM = blockArg('trim', [
  oneOf('strategy', [tokenArg('MAXLEN'), tokenArg('MINID', { since: '6.2.0' })]),
  optional(
    oneOf('operator', [
      { ...tokenArg('='), name: 'equal' },
      { ...tokenArg('~'), name: 'approximately' },
    ]),
  ),
  stringArg('threshold'),
  integerArg('count', { token: 'LIMIT', optional: true, since: '6.2.0' }),
]);

/** About how long (`~`) a stream stays depends on nodes that no state tells. */
function isExact(context: Context): boolean {
  for (let i = 2; i < context.argc; i++) if (context.argIs(i, '~')) return false;
  return true;
}

export const streams: readonly CommandSpec[] = [
  {
    ...COMMON,
    name: 'xadd',
    arity: -5,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Appends an entry to a stream, and trims the stream when asked to.',
    complexity: 'O(log(N)) for N entries, O(M*log(N)) when it trims M of them',
    history: [
      ['6.2.0', 'The options NOMKSTREAM, MINID and LIMIT.'],
      ['7.0.0', 'Ids of the form ms-*.'],
    ],
    tips: UNSURE,
    args: [
      KEY,
      tokenArg('NOMKSTREAM', { optional: true, since: '6.2.0' }),
      optional(TRIM),
      oneOf('id-selector', [{ ...tokenArg('*'), name: 'auto-id' }, stringArg('id')]),
      blockArg('data', [stringArg('field'), stringArg('value')], { multiple: true }),
    ],
    repeatable: isExact,
    run: xadd,
  },
  {
    ...READ,
    name: 'xlen',
    arity: 2,
    flags: Flag.READONLY | Flag.FAST,
    keys: [keyAt(1, KeyUse.RO)],
    summary: 'Returns the number of entries of a stream.',
    complexity: 'O(1)',
    args: [KEY],
    run: xlen,
  },
  {
    ...RANGE,
    name: 'xrange',
    summary: 'Returns the entries between two ids.',
    history: RANGE_HISTORY,
    args: [KEY, stringArg('start'), stringArg('end'), COUNT],
    run: xrange,
  },
  {
    ...RANGE,
    name: 'xrevrange',
    summary: 'Returns the entries between two ids, the last one first.',
    history: RANGE_HISTORY,
    args: [KEY, stringArg('end'), stringArg('start'), COUNT],
    run: xrevRange,
  },
  {
    ...COMMON,
    name: 'xdel',
    arity: -3,
    flags: Flag.WRITE | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    summary: 'Deletes entries of a stream; returns how many there were.',
    complexity: 'O(M*log(N)) for M ids and N entries',
    args: [KEY, stringArg('id', { multiple: true })],
    repeatable: true,
    run: xdel,
  },
  {
    ...COMMON,
    name: 'xtrim',
    arity: -4,
    flags: Flag.WRITE,
    keys: [keyAt(1, KeyUse.RW | KeyUse.DELETE)],
    summary: 'Deletes entries from the front of a stream.',
    complexity: 'O(M*log(N)) for M entries deleted of N',
    history: [['6.2.0', 'The options MINID and LIMIT.']],
    tips: UNSURE,
    args: [KEY, TRIM],
    repeatable: isExact,
    run: xtrim,
  },
  {
    ...COMMON,
    name: 'xsetid',
    arity: -3,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    keys: [keyAt(1, KeyUse.RW | KeyUse.UPDATE)],
    summary: 'Sets the last id of a stream, and its counters.',
    complexity: 'O(log(N)) for N entries',
    history: [['7.0.0', 'The options ENTRIESADDED and MAXDELETEDID.']],
    args: [
      KEY,
      stringArg('last-id'),
      integerArg('entries-added', { token: 'ENTRIESADDED', optional: true, since: '7.0.0' }),
      stringArg('max-deleted-id', { token: 'MAXDELETEDID', optional: true, since: '7.0.0' }),
    ],
    repeatable: true,
    run: xsetId,
  },
];
