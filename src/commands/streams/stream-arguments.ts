/**
 * What all stream commands share: opening a stream, ids among the arguments, ids and entries in replies.
 *
 * Owns: the one Stream of this thread. Invariant: a handler opens it before it uses it; nothing of it outlives the handler.
 */
import { Bytes } from '../../layout/bytes.js';
import { type Collection, STREAMS } from '../../store/collections/collection.js';
import { Stream } from '../../store/streams/stream.js';
import { hasSequence, ID_TEXT_MAX, StreamId } from '../../store/streams/stream-id.js';
import type { Context } from '../context.js';

export const INVALID_ID = 'ERR Invalid stream ID specified as stream command argument';
const INVALID_START = 'ERR invalid start ID for the interval';
const INVALID_END = 'ERR invalid end ID for the interval';

const MINUS = 0x2d;
const PLUS = 0x2b;
const STAR = 0x2a;
const PARENTHESIS = 0x28;

export const stream = new Stream();

/** The stream of argument `i`, whose key's hash is `h`; false after a WRONGTYPE reply. `stream.collection.exists` tells whether there is one. */
export function openStream(context: Context, h: number, i: number): boolean {
  const collection = context.open(0, STREAMS, h, i);
  if (collection === null) return false;
  stream.open(collection);
  return true;
}

/** The stream of the key, argument 1, for reading: counts a hit or a miss. */
export function openStreamToRead(context: Context): Collection | null {
  if (!openStream(context, context.keyHash, 1)) return null;
  const { collection } = stream;
  if (collection.exists) context.hit();
  else context.miss();
  return collection;
}

/** The same for a command that changes what is there. */
export function openStreamToChange(context: Context): Collection | null {
  if (!openStream(context, context.keyHash, 1)) return null;
  const { collection } = stream;
  if (collection.exists) context.use();
  return collection;
}

// ---- ids among the arguments

/** True when argument `i` is this one character. */
export function argIsCharacter(context: Context, i: number, code: number): boolean {
  return context.argLength(i) === 1 && context.input.u8[context.argOffset(i)] === code;
}

export function argIsStar(context: Context, i: number): boolean {
  return argIsCharacter(context, i, STAR);
}

/** Reads `ms-seq` or `ms` from argument `i`; without a sequence it is 0. False = it is none; nothing is replied. */
export function parseIdArg(context: Context, i: number, id: StreamId): boolean {
  return id.parse(context.input, context.argOffset(i), context.argLength(i));
}

/** The same; false after an error reply. */
export function idArg(context: Context, i: number, id: StreamId): boolean {
  if (parseIdArg(context, i, id)) return true;
  context.reply.error(INVALID_ID);
  return false;
}

/** As idArg, with `-` and `+` for the smallest and the largest id. */
export function looseIdArg(context: Context, i: number, id: StreamId): boolean {
  if (argIsCharacter(context, i, MINUS)) id.setZero();
  else if (argIsCharacter(context, i, PLUS)) id.setMax();
  else return idArg(context, i, id);
  return true;
}

/** As idArg, for `ms-*`: then the sequence is 0 and `hasNoSequence` true. */
export function addedIdArg(context: Context, i: number, id: StreamId): boolean {
  const { u8 } = context.input;
  const length = context.argLength(i);
  const end = context.argOffset(i) + length;
  hasNoSequence = length > 2 && u8[end - 1] === STAR && u8[end - 2] === MINUS;
  if (!hasNoSequence) return idArg(context, i, id);
  if (id.parse(context.input, context.argOffset(i), length - 2) && !hasSequence) return true;
  context.reply.error(INVALID_ID);
  return false;
}

/** What addedIdArg has found. */
export let hasNoSequence = false;

/** The first id of a range in argument `i`: `-`, an id, or `(` and an id. False after an error reply. */
export function rangeStartArg(context: Context, i: number, id: StreamId): boolean {
  const isOpen = boundArg(context, i, id, false);
  if (isOpen === null) return false;
  if (!isOpen || id.increment()) return true;
  context.reply.error(INVALID_START);
  return false;
}

/** The last id of a range. */
export function rangeEndArg(context: Context, i: number, id: StreamId): boolean {
  const isOpen = boundArg(context, i, id, true);
  if (isOpen === null) return false;
  if (!isOpen || id.decrement()) return true;
  context.reply.error(INVALID_END);
  return false;
}

/** True when the bound is open; null after an error reply. */
function boundArg(context: Context, i: number, id: StreamId, isEnd: boolean): boolean | null {
  const offset = context.argOffset(i);
  const length = context.argLength(i);
  const isOpen = length > 1 && context.input.u8[offset] === PARENTHESIS;
  if (!isOpen && argIsCharacter(context, i, MINUS)) {
    id.setZero();
    return false;
  }
  if (!isOpen && argIsCharacter(context, i, PLUS)) {
    id.setMax();
    return false;
  }
  const skipped = isOpen ? 1 : 0;
  if (!id.parse(context.input, offset + skipped, length - skipped)) {
    context.reply.error(INVALID_ID);
    return null;
  }
  if (isEnd && !hasSequence) id.setSequenceMax();
  return isOpen;
}

/** All arguments from `first` on as ids, before anything is done: false after an error reply. They are read again one by one. */
export function areIds(context: Context, first: number): boolean {
  for (let i = first; i < context.argc; i++) if (!idArg(context, i, checked)) return false;
  return true;
}

const checked = new StreamId();

// ---- replies

const text = Bytes.allocate(ID_TEXT_MAX);

export function replyId(context: Context, id: StreamId): void {
  context.reply.bulk(text, 0, id.writeText(text.u8, 0));
}

/** Replies the entry at the position: its id, then names and values. */
export function replyEntry(context: Context): void {
  const { reply } = context;
  const { entry } = stream;
  stream.load();
  reply.array(2);
  replyId(context, stream.id);
  reply.array(entry.pairs * 2);
  for (let i = entry.pairs; i > 0; i--) {
    entry.next();
    reply.bulk(entry.nameBytes, entry.nameOffset, entry.nameLength);
    reply.bulk(entry.fieldBytes, entry.fieldOffset, entry.fieldLength);
  }
}
