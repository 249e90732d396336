/**
 * DUMP and RESTORE: one value as bytes that every Redis of the version reads.
 *
 * Invariant: RESTORE has read and checked its payload to the end before the store is touched; what is wrong with it changes nothing, and
 * neither does a want of memory: what the key had stays until the new value is there whole.
 */
import { ItemType } from '../../layout/item.js';
import { ReplyType } from '../../protocol/resp/reply.js';
import { payloadBytes } from '../../rdb/payload.js';
import { Notify } from '../../store/change-feed.js';
import { shapeOf } from '../../store/collections/copy-collection.js';
import { isPacked } from '../../store/collections/forms.js';
import { restoreUse } from '../../store/restored-use.js';
import { integerArg, keyArg, optional, stringArg, tokenArg } from '../arguments.js';
import { storeInSteps } from '../collections/long-store.js';
import type { Context } from '../context.js';
import type { Environment } from '../environment.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX } from '../errors.js';
import { beginReply, takeSteps } from '../long-steps.js';
import { isLong, type LongWork, type Steps } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { payloadInSteps, payloadOf } from './dump-payload.js';
import type { GatheredValue } from './gathered-value.js';
import { isLarge, placeValue } from './large-value.js';
import { ValueStore } from './value-store.js';

const BUSY_KEY = 'BUSYKEY Target key name already exists.';
const BAD_FRAME = 'ERR DUMP payload version or checksum are wrong';
/** Bytes of a long reply. */
const SENT_A_TURN = 512 * 1024;
const BAD_DATA = 'ERR Bad data format';

// ---- DUMP

function dump(context: Context): void {
  const { reply } = context;
  if (!context.findKey()) {
    context.miss();
    return reply.nil();
  }
  context.hit();
  const { type } = context.keyspace;
  if (type !== ItemType.STRING && type !== ItemType.STREAM && !isPacked(context.keyspace)) {
    const [collection] = context.keyspace.collections;
    collection.openFound(shapeOf(type));
    const { count, chunkBytes } = collection;
    if (isLong(count)) return takeSteps(context, 0, 1, (work) => dumpInSteps(context, work, chunkBytes));
  }
  const payload = payloadOf(context, context.keyHash, 1);
  if (payload === null) return reply.nil();
  reply.bulk(payload.bytes, 0, payload.length);
  payload.clear();
}

function* dumpInSteps(context: Context, work: LongWork, expectedBytes: number): Steps {
  const { reply } = context;
  context.findKey();
  const payload = yield* payloadInSteps(context, expectedBytes);
  beginReply(context, work);
  if (payload === null) return reply.nil();
  const { bytes, length } = payload;
  reply.header(ReplyType.BULK, length);
  for (let at = 0; at < length; at += SENT_A_TURN) {
    reply.output.array(bytes.u8.subarray(at, Math.min(at + SENT_A_TURN, length)));
    if (work.isSending) yield;
  }
  reply.output.ascii('\r\n');
}

// ---- RESTORE

/** A thread has one server, tests have several. */
const stores = new WeakMap<Environment, ValueStore>();

function storeOf(context: Context): ValueStore {
  const { environment } = context;
  let own = stores.get(environment);
  if (own === undefined) {
    own = new ValueStore(context);
    stores.set(environment, own);
  }
  return own;
}

/** The options of the RESTORE in hand. */
const options = { replaces: false, isAbsolute: false, idleS: -1, frequency: -1 };

/** False after an error reply. */
function readOptions(context: Context): boolean {
  const { reply, argc } = context;
  options.replaces = false;
  options.isAbsolute = false;
  options.idleS = -1;
  options.frequency = -1;
  for (let i = 4; i < argc; i++) {
    const hasValue = i + 1 < argc;
    if (context.argIs(i, 'REPLACE')) options.replaces = true;
    else if (context.argIs(i, 'ABSTTL')) options.isAbsolute = true;
    else if (context.argIs(i, 'IDLETIME') && hasValue && options.frequency < 0) {
      options.idleS = context.argInteger(++i);
      if (Number.isNaN(options.idleS)) return refuse(context, NOT_INTEGER);
      if (options.idleS < 0) return refuse(context, 'ERR Invalid IDLETIME value, must be >= 0');
    } else if (context.argIs(i, 'FREQ') && hasValue && options.idleS < 0) {
      options.frequency = context.argInteger(++i);
      if (Number.isNaN(options.frequency)) return refuse(context, NOT_INTEGER);
      if (options.frequency < 0 || options.frequency > 255) {
        return refuse(context, 'ERR Invalid FREQ value, must be >= 0 and <= 255');
      }
    } else {
      reply.error(SYNTAX);
      return false;
    }
  }
  return true;
}

function refuse(context: Context, text: string): false {
  context.reply.error(text);
  return false;
}

function restore(context: Context): void {
  const { keyspace, reply } = context;
  if (!readOptions(context)) return;
  const exists = context.findKey();
  if (exists && !options.replaces) return reply.error(BUSY_KEY);
  const ttlMs = context.argInteger(2);
  if (Number.isNaN(ttlMs)) return reply.error(NOT_INTEGER);
  if (ttlMs < 0) return reply.error('ERR Invalid TTL value, must be >= 0');
  const length = payloadBytes(context.input, context.argOffset(3), context.argLength(3));
  if (length < 0) return reply.error(BAD_FRAME);
  const values = storeOf(context);
  const { gathered } = values;
  if (!values.gather(context.input, context.argOffset(3), length)) return reply.error(BAD_DATA);

  const expiryMs = ttlMs === 0 || options.isAbsolute ? ttlMs : ttlMs + context.wallMs;
  const isPast = expiryMs !== 0 && expiryMs <= context.nowMs;
  if (isPast || gathered.count === 0) {
    if (exists && context.findKey()) {
      keyspace.remove();
      context.notify(Notify.GENERIC, 'del', 1);
    }
    reply.ok();
  } else if (isLarge(context.environment.settings, gathered.type, gathered.count)) {
    const value = gathered.take();
    const { idleS, frequency } = options;
    return takeSteps(context, 0, 1, (work) => storeLong(context, work, value, expiryMs, idleS, frequency));
  } else if (!store(context, values, length, expiryMs)) {
    reply.error(NO_MEMORY);
  } else {
    context.notify(Notify.GENERIC, 'restore', 1);
    reply.ok();
  }
  gathered.clear();
}

function* storeLong(
  context: Context,
  work: LongWork,
  value: GatheredValue,
  expiryMs: number,
  idleS: number,
  frequency: number,
): Steps {
  const placed = yield* placeValue(context.keyspace, context.keyHash, value);
  if (!(yield* storeInSteps(context, work, 0, { ...placed, expiryMs }))) return;
  if (context.findKey()) restoreUse(context.keyspace, idleS, frequency);
  context.notify(Notify.GENERIC, 'restore', 1);
  context.reply.ok();
}

/** `length`: of the payload, without its end. */
function store(context: Context, values: ValueStore, length: number, expiryMs: number): boolean {
  const { keyspace, input } = context;
  const { gathered } = values;
  if (gathered.type === ItemType.STRING) {
    const { bytes, lengths } = gathered.keys;
    if (!context.stage(context.keyHash, 1, lengths[0])) return false;
    keyspace.staged.u8.set(bytes.u8.subarray(0, lengths[0]), keyspace.stagedOffset);
    if (!keyspace.commit(ItemType.STRING, 0, 0, expiryMs)) return false;
  } else {
    const { keyHash: hash, db } = context;
    const target = { hash, db, key: input, offset: context.argOffset(1), length: context.argLength(1) };
    if (!values.store(input, context.argOffset(3), length, target)) return false;
    if (!context.findKey()) return false;
    if (expiryMs !== 0) keyspace.setExpiry(expiryMs);
  }
  restoreUse(keyspace, options.idleS, options.frequency);
  return true;
}

export const dumps: readonly CommandSpec[] = [
  {
    name: 'dump',
    arity: 2,
    flags: Flag.READONLY,
    categories: Category.KEYSPACE,
    keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.6.0',
    group: 'generic',
    summary: 'Returns what a key holds as bytes that RESTORE takes, here and in Redis.',
    complexity: 'O(1) to find the key, O(N) for a value of N bytes',
    tips: ['nondeterministic_output'],
    args: [keyArg('key')],
    run: dump,
  },
  {
    name: 'restore',
    arity: -4,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.KEYSPACE | Category.DANGEROUS,
    keys: [keyAt(1, KeyUse.OW | KeyUse.UPDATE)],
    since: '2.6.0',
    group: 'generic',
    summary: 'Makes a key of what DUMP has returned.',
    complexity: 'O(1) to make the key, O(N) for N elements, times log N in sorted sets',
    history: [
      ['3.0.0', 'REPLACE.'],
      ['5.0.0', 'ABSTTL.'],
      ['5.0.0', 'IDLETIME and FREQ.'],
    ],
    args: [
      keyArg('key'),
      integerArg('ttl'),
      stringArg('serialized-value'),
      optional(tokenArg('REPLACE', { since: '3.0.0' })),
      optional(tokenArg('ABSTTL', { since: '5.0.0' })),
      integerArg('seconds', { token: 'IDLETIME', optional: true, since: '5.0.0' }),
      integerArg('frequency', { token: 'FREQ', optional: true, since: '5.0.0' }),
    ],
    run: restore,
  },
];
