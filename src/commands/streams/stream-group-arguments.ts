/**
 * Groups and consumers among the arguments, for all commands about them.
 *
 * Owns: the groups of the one open stream of this thread, and what is pending in them. Invariant: as of the stream.
 */
import { Notify } from '../../store/change-feed.js';
import { Change } from '../../store/collections/collection.js';
import { StreamGroups } from '../../store/streams/groups.js';
import { PendingEntries } from '../../store/streams/pending.js';
import type { Context } from '../context.js';
import { stream } from './stream-arguments.js';

export const groups = new StreamGroups(stream);
export const pending = new PendingEntries(stream, groups);

/** Finds the group that argument `i` names in the open stream, which need not exist. */
export function findGroupArg(context: Context, i: number): boolean {
  return groups.find(context.input, context.argOffset(i), context.argLength(i));
}

/** Finds the consumer that argument `i` names in the group, or makes it in the stream of key argument `key`; false = no memory. */
export function findConsumerArg(context: Context, i: number, key: number): boolean {
  if (groups.findConsumer(context.input, context.argOffset(i), context.argLength(i))) return true;
  if (groups.createConsumer(context.wallMs) !== Change.DONE) return false;
  context.notify(Notify.STREAM, 'xgroup-createconsumer', key);
  return true;
}

/** Replies the name that the groups have come to. */
export function replyName(context: Context): void {
  context.reply.bulk(groups.nameBytes, groups.nameOffset, groups.nameLength);
}

/** NOGROUP, for the key in argument 1 and the group in argument 2. */
export function noKeyOrGroup(context: Context): string {
  return `NOGROUP No such key '${context.argString(1)}' or consumer group '${context.argString(2)}'`;
}

/** NOGROUP of the containers, which have key and group one argument further on. */
export function noGroupForKey(context: Context): string {
  return `NOGROUP No such consumer group '${context.argString(3)}' for key name '${context.argString(2)}'`;
}
