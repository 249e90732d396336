/**
 * What all list commands share: opening a list, its two ends, and elements on their way out of it.
 *
 * Invariant: an element that is removed is copied first, so that it can be replied, or pushed elsewhere, once it is gone.
 */
import { bytesEqual } from '../../layout/bytes.js';
import { Notify } from '../../store/change-feed.js';
import { Change, type Collection, LISTS } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { SYNTAX } from '../errors.js';
import { members } from '../sets/member-table.js';

export const enum End {
  LEFT = 0,
  RIGHT = 1,
  NONE = 2,
}

/** The list of argument `i`, whose key's hash is `h`, as number `index` of those that are open; null after a WRONGTYPE reply. */
export function openList(context: Context, index: number, h: number, i: number): Collection | null {
  const list = context.open(index, LISTS, h, i);
  if (list !== null) setLimit(context, list);
  return list;
}

/** A draft for the key in argument `i`: see Context.openDraft. */
export function openListDraft(context: Context, index: number, h: number, i: number): Collection {
  const list = context.openDraft(index, LISTS, h, i);
  setLimit(context, list);
  return list;
}

function setLimit(context: Context, list: Collection): void {
  const size = context.environment.settings.listMaxListpackSize;
  if (size >= 0) list.packedEntriesMax = Math.max(1, size);
}

/** The list of the key, argument 1, for reading: counts a hit or a miss. */
export function openListToRead(context: Context): Collection | null {
  const list = openList(context, 0, context.keyHash, 1);
  if (list === null) return null;
  if (list.exists) context.hit();
  else context.miss();
  return list;
}

/** The same for a command that changes what is there. */
export function openListToChange(context: Context): Collection | null {
  const list = openList(context, 0, context.keyHash, 1);
  if (list?.exists) context.use();
  return list;
}

/** LEFT or RIGHT in argument `i`; End.NONE after an error reply. */
export function readEnd(context: Context, i: number): End {
  if (context.argIs(i, 'LEFT')) return End.LEFT;
  if (context.argIs(i, 'RIGHT')) return End.RIGHT;
  context.reply.error(SYNTAX);
  return End.NONE;
}

/** Positions on the element at an end of a list that has some. */
export function seekEnd(list: Collection, end: End): void {
  if (end === End.LEFT) list.first();
  else list.last();
}

/** Adds bytes, which are none of a collection's, at an end. */
export function push(list: Collection, end: End, bytes: Collection['key'], offset: number, length: number): Change {
  if (end === End.LEFT) list.first();
  else list.toEnd();
  return list.insert(bytes, offset, length);
}

/** Moves `count` elements, which are there, from an end to `members`. False = no memory: nothing has been removed. */
export function take(list: Collection, end: End, count: number): boolean {
  members.clear();
  for (let i = 0; i < count; i++) {
    seekEnd(list, end);
    list.load();
    members.push(list.key, list.keyOffset, list.keyLength);
    // The first removal alone can fail: it brings the list to where it can be changed.
    if (list.remove() !== Change.DONE) return false;
  }
  return true;
}

/** Tells who listens that elements of the list in argument `i` have been popped. */
export function notifyPopped(context: Context, list: Collection, end: End, i: number): void {
  context.notify(Notify.LIST, end === End.LEFT ? 'lpop' : 'rpop', i);
  if (!list.exists) context.notify(Notify.GENERIC, 'del', i);
}

export function notifyPushed(context: Context, end: End, i: number): void {
  context.notify(Notify.LIST, end === End.LEFT ? 'lpush' : 'rpush', i);
}

/** Replies the elements that have been taken, in the order in which they were. */
export function replyTaken(context: Context): void {
  const { reply } = context;
  reply.array(members.count);
  for (let i = 0; i < members.count; i++) reply.bulk(members.bytes, members.offsets[i], members.lengths[i]);
  members.clear();
}

export function replyElement(context: Context, list: Collection): void {
  list.load();
  context.reply.bulk(list.key, list.keyOffset, list.keyLength);
}

/** True when the element at the position is argument `i`. Loads it. */
export function isElement(context: Context, list: Collection, i: number): boolean {
  list.load();
  const length = context.argLength(i);
  return list.keyLength === length && bytesEqual(list.key, list.keyOffset, context.input, context.argOffset(i), length);
}
