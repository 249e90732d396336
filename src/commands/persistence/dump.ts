/**
 * DUMP and RESTORE: one value as bytes that every Redis of the version reads.
 *
 * Invariant: RESTORE has read and checked its payload to the end before the store is touched; what is wrong with it changes nothing, and
 * neither does a want of memory: what the key had stays until the new value is there whole.
 */
import { ItemType } from '../../layout/item.js';
import { RdbError } from '../../rdb/format.js';
import { payloadBytes } from '../../rdb/payload.js';
import { RdbReader } from '../../rdb/reader.js';
import { ValueReader } from '../../rdb/value-reader.js';
import { Notify } from '../../store/change-feed.js';
import type { Collection } from '../../store/collections/collection.js';
import { publish } from '../../store/collections/draft.js';
import { restoreUse } from '../../store/restored-use.js';
import { integerArg, keyArg, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import type { Environment } from '../environment.js';
import { NO_MEMORY, NOT_INTEGER, SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { payloadOf } from './dump-payload.js';
import { ElementStore, HASHES, LISTS, SETS, SORTED_SETS, Stored } from './element-store.js';
import { GatheredValue } from './gathered-value.js';
import { StreamStore } from './stream-store.js';

const BUSY_KEY = 'BUSYKEY Target key name already exists.';
const BAD_FRAME = 'ERR DUMP payload version or checksum are wrong';
const BAD_DATA = 'ERR Bad data format';

// ---- DUMP

function dump(context: Context): void {
  const { reply } = context;
  if (!context.findKey()) {
    context.miss();
    return reply.nil();
  }
  context.hit();
  const payload = payloadOf(context, context.keyHash, 1);
  if (payload === null) return reply.nil();
  reply.bulk(payload.bytes, 0, payload.length);
  payload.clear();
}

// ---- RESTORE

const reader = new RdbReader();
const payloads = new ValueReader(reader);
/** What RESTORE needs of one server: a thread has one, tests have several. */
interface Tools {
  readonly gathered: GatheredValue;
  readonly elements: ElementStore;
  readonly streams: StreamStore;
}

const tools = new WeakMap<Environment, Tools>();

function toolsOf(context: Context): Tools {
  const { environment, keyspace } = context;
  let own = tools.get(environment);
  if (own === undefined) {
    own = {
      gathered: new GatheredValue(keyspace),
      elements: new ElementStore(context),
      streams: new StreamStore(keyspace),
    };
    tools.set(environment, own);
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
  const { gathered } = toolsOf(context);
  if (!gather(context, gathered, length)) return reply.error(BAD_DATA);

  const expiryMs = ttlMs === 0 || options.isAbsolute ? ttlMs : ttlMs + context.wallMs;
  const isPast = expiryMs !== 0 && expiryMs <= context.nowMs;
  if (isPast || gathered.count === 0) {
    if (exists && context.findKey()) {
      keyspace.remove();
      context.notify(Notify.GENERIC, 'del', 1);
    }
    reply.ok();
  } else if (!store(context, gathered, length, expiryMs)) {
    reply.error(NO_MEMORY);
  } else {
    context.notify(Notify.GENERIC, 'restore', 1);
    reply.ok();
  }
  gathered.clear();
}

/** Reads the payload whole; false = something is wrong with it. */
function gather(context: Context, into: GatheredValue, length: number): boolean {
  reader.openMemory(context.input, context.argOffset(3), length);
  try {
    payloads.read(reader.byte(), into);
    if (reader.left === 0) return true;
  } catch (error) {
    if (!(error instanceof RdbError)) throw error;
  }
  into.clear();
  return false;
}

/** `length`: of the payload, without its end. */
function store(context: Context, value: GatheredValue, length: number, expiryMs: number): boolean {
  const { keyspace } = context;
  if (value.type === ItemType.STRING) {
    const { bytes, lengths } = value.keys;
    if (!context.stage(context.keyHash, 1, lengths[0])) return false;
    keyspace.staged.u8.set(bytes.u8.subarray(0, lengths[0]), keyspace.stagedOffset);
    if (!keyspace.commit(ItemType.STRING, 0, 0, expiryMs)) return false;
  } else {
    if (!(value.type === ItemType.STREAM ? storeStream(context, length) : storeCollection(context, value)))
      return false;
    if (!context.findKey()) return false;
    if (expiryMs !== 0) keyspace.setExpiry(expiryMs);
  }
  restoreUse(keyspace, options.idleS, options.frequency);
  return true;
}

function shapeOf(type: ItemType): typeof LISTS {
  if (type === ItemType.LIST) return LISTS;
  if (type === ItemType.SET) return SETS;
  return type === ItemType.ZSET ? SORTED_SETS : HASHES;
}

function storeCollection(context: Context, value: GatheredValue): boolean {
  const into = toolsOf(context).elements;
  const { input, keyHash } = context;
  const { count } = value;
  into.openDraft(shapeOf(value.type), keyHash, input, context.argOffset(1), context.argLength(1), count);
  for (let i = 0; i < count; i++) {
    if (storeElement(into, value, i) === Stored.DONE) continue;
    into.undo();
    return false;
  }
  return replaceBy(context, into.collection);
}

/** Gives the key to the draft; false = no memory: the draft is gone. */
function replaceBy(context: Context, draft: Collection): boolean {
  const { keyspace, keyHash, db, input } = context;
  return publish(keyspace, draft, keyHash, db, input, context.argOffset(1), context.argLength(1));
}

/** Reads the payload once more. */
function storeStream(context: Context, length: number): boolean {
  const { input, keyHash } = context;
  const { streams } = toolsOf(context);
  streams.openDraft(keyHash, input, context.argOffset(1), context.argLength(1));
  reader.openMemory(input, context.argOffset(3), length);
  try {
    payloads.read(reader.byte(), streams);
    return replaceBy(context, streams.collection);
  } catch (error) {
    if (!(error instanceof RdbError)) throw error;
    streams.undo();
    return false;
  }
}

function storeElement(
  into: ElementStore,
  { type, keys, values: fieldValues, numbers }: GatheredValue,
  i: number,
): Stored {
  const { bytes } = keys;
  const offset = keys.offsets[i];
  const length = keys.lengths[i];
  switch (type) {
    case ItemType.LIST:
      return into.push(bytes, offset, length);
    case ItemType.SET:
      return into.addMember(bytes, offset, length);
    case ItemType.ZSET:
      return into.addScored(numbers[i], bytes, offset, length);
    default: {
      const at = fieldValues.offsets[i];
      return into.addPair(bytes, offset, length, fieldValues.bytes, at, fieldValues.lengths[i], numbers[i]);
    }
  }
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
