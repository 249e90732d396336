/**
 * The opcode table of the binary protocol: what a request must look like, whether it writes, whether success is silent, and
 * its handler. A request that looks otherwise is answered with an error and its connection closed, as memcached does: after
 * a wrong length nobody knows where the next request begins.
 */
import { Counter } from '../../../layout/counters.js';
import { Closing } from '../../../protocol/driver.js';
import { BinaryRecord } from '../../../protocol/memcached/binary.js';
import { BinaryHeader, Opcode, Status } from '../../../protocol/memcached/binary-codes.js';
import { MAX_KEY_BYTES } from '../../../protocol/memcached/request.js';
import type { MemcachedContext } from '../context.js';
import { flushAll, noop, quit, stat, verbosity, version } from './admin.js';
import { arithmetic, deleteKey } from './one-key.js';
import { get, getAndTouch, getAndTouchWithKey, getWithKey, touch } from './retrieval.js';
import { saslAuthenticate, saslList } from './sasl.js';
import { storeBinary } from './storage.js';

const enum Key {
  NONE = 0,
  REQUIRED = 1,
  OPTIONAL = 2,
}

interface Entry {
  readonly key: Key;
  readonly extras: number;
  /** Extras may be left out. */
  readonly mayLackExtras: boolean;
  readonly hasValue: boolean;
  readonly isWrite: boolean;
  /** May run before authentication. */
  readonly isOpen: boolean;
  readonly isQuiet: boolean;
  readonly run: (context: MemcachedContext) => void;
}

type Run = (context: MemcachedContext) => void;
type Shape = Pick<Entry, 'key' | 'extras' | 'isWrite'> & Partial<Entry>;

const TABLE: Entry[] = [];

function declare(opcode: Opcode, shape: Shape, run: Run): void {
  TABLE[opcode] = {
    key: shape.key,
    extras: shape.extras,
    mayLackExtras: shape.mayLackExtras ?? false,
    hasValue: shape.hasValue ?? false,
    isWrite: shape.isWrite,
    isOpen: shape.isOpen ?? false,
    isQuiet: shape.isQuiet ?? false,
    run,
  };
}

/** A command and its quiet form. */
function declarePair(loud: Opcode, quiet: Opcode, shape: Shape, run: Run): void {
  declare(loud, shape, run);
  declare(quiet, { ...shape, isQuiet: true }, run);
}

const READ: Shape = { key: Key.REQUIRED, extras: 0, isWrite: false };
const TOUCH: Shape = { key: Key.REQUIRED, extras: 4, isWrite: true };
const STORE: Shape = { key: Key.REQUIRED, extras: 8, isWrite: true, hasValue: true };
const JOIN: Shape = { key: Key.REQUIRED, extras: 0, isWrite: true, hasValue: true };
const NUMBER: Shape = { key: Key.REQUIRED, extras: 20, isWrite: true };
const BARE: Shape = { key: Key.NONE, extras: 0, isWrite: false };
const SASL: Shape = { key: Key.REQUIRED, extras: 0, isWrite: false, hasValue: true, isOpen: true };

declarePair(Opcode.GET, Opcode.GETQ, READ, get);
declarePair(Opcode.GETK, Opcode.GETKQ, READ, getWithKey);
declarePair(Opcode.GAT, Opcode.GATQ, TOUCH, getAndTouch);
declarePair(Opcode.GATK, Opcode.GATKQ, TOUCH, getAndTouchWithKey);
declare(Opcode.TOUCH, TOUCH, touch);
declarePair(Opcode.SET, Opcode.SETQ, STORE, storeBinary);
declarePair(Opcode.ADD, Opcode.ADDQ, STORE, storeBinary);
declarePair(Opcode.REPLACE, Opcode.REPLACEQ, STORE, storeBinary);
declarePair(Opcode.APPEND, Opcode.APPENDQ, JOIN, storeBinary);
declarePair(Opcode.PREPEND, Opcode.PREPENDQ, JOIN, storeBinary);
declarePair(Opcode.DELETE, Opcode.DELETEQ, { key: Key.REQUIRED, extras: 0, isWrite: true }, deleteKey);
declarePair(Opcode.INCREMENT, Opcode.INCREMENTQ, NUMBER, arithmetic);
declarePair(Opcode.DECREMENT, Opcode.DECREMENTQ, NUMBER, arithmetic);
declarePair(Opcode.QUIT, Opcode.QUITQ, BARE, quit);
declarePair(Opcode.FLUSH, Opcode.FLUSHQ, { key: Key.NONE, extras: 4, mayLackExtras: true, isWrite: true }, flushAll);
declare(Opcode.NOOP, BARE, noop);
declare(Opcode.VERSION, { ...BARE, isOpen: true }, version);
declare(Opcode.VERBOSITY, { key: Key.NONE, extras: 4, isWrite: false }, verbosity);
declare(Opcode.STAT, { key: Key.OPTIONAL, extras: 0, isWrite: false, hasValue: true }, stat);
declare(Opcode.SASL_LIST, { ...BARE, isOpen: true }, saslList);
declare(Opcode.SASL_AUTH, SASL, saslAuthenticate);
declare(Opcode.SASL_STEP, SASL, saslAuthenticate);

/** Executes the context's current binary request. */
export function execute(context: MemcachedContext): void {
  const { reply, client } = context;
  reply.binary.answerTo(context.input.u8, context.binaryWord(BinaryRecord.start));
  const status = refusalOf(context);
  if (status === Status.OK) {
    context.takeBinaryKey();
    const entry = TABLE[context.binaryWord(BinaryRecord.opcode)];
    context.isQuiet = entry.isQuiet;
    if (entry.isWrite && context.isLogRefused) return reply.binary.error(Status.TEMPORARY_FAILURE);
    return entry.run(context);
  }
  reply.binary.error(status);
  if (isUnknown(context)) return;
  if (status !== Status.AUTH_ERROR) context.counters[Counter.protocolErrors]++;
  client.closing = Closing.AFTER_REPLY;
}

/** OK, or why the request is not executed. */
export function refusalOf(context: MemcachedContext): Status {
  const keyLength = context.binaryWord(BinaryRecord.keyLength);
  const valueLength = context.binaryWord(BinaryRecord.valueLength);
  if (valueLength < 0) return Status.UNKNOWN_COMMAND;
  const entry = TABLE[context.binaryWord(BinaryRecord.opcode)];
  if (!context.client.isAuthenticated && entry?.isOpen !== true) return Status.AUTH_ERROR;
  if (keyLength > MAX_KEY_BYTES) return Status.INVALID;
  if (entry === undefined) return Status.UNKNOWN_COMMAND;
  if (entry.key !== Key.OPTIONAL && (entry.key === Key.REQUIRED) !== keyLength > 0) return Status.INVALID;
  if (valueLength > 0 && !entry.hasValue) return Status.INVALID;
  const extras = context.input.u8[context.binaryWord(BinaryRecord.start) + BinaryHeader.EXTRAS_LENGTH];
  return extras === entry.extras || (extras === 0 && entry.mayLackExtras) ? Status.OK : Status.INVALID;
}

/** An opcode that nobody knows, in a request that is whole: the connection goes on. */
function isUnknown(context: MemcachedContext): boolean {
  const { client } = context;
  if (!client.isAuthenticated || context.binaryWord(BinaryRecord.valueLength) < 0) return false;
  if (context.binaryWord(BinaryRecord.keyLength) > MAX_KEY_BYTES) return false;
  return TABLE[context.binaryWord(BinaryRecord.opcode)] === undefined;
}

/** True for commands that wait while writes are paused. */
export function isWrite(opcode: number): boolean {
  return TABLE[opcode]?.isWrite === true;
}
