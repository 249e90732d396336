/**
 * COPY of a stream: entries as they are, groups and what is pending in them made anew, under numbers of their own.
 *
 * Invariant: what a death in the middle leaves is a stream: what an entry or a pending one refers to is there before it.
 */
import { SideKey, StreamMeta } from '../../layout/stream.js';
import { Change, type Collection } from '../collections/collection.js';
import { StreamGroups } from './groups.js';
import { PendingEntries } from './pending.js';
import { Stream } from './stream.js';
import { StreamId } from './stream-id.js';

const FIRST = new StreamId();

/** `to` is open and does not exist yet. False = no memory; a part of it is there. */
export function copyStream(from: Collection, to: Collection): boolean {
  if (to.create() !== Change.DONE) return false;
  const meta = new Int32Array(StreamMeta.WORDS);
  for (let i = 0; i < meta.length; i++) meta[i] = from.meta(i);
  meta[StreamMeta.NEXT_GROUP_WORD] = 0;
  meta[StreamMeta.SCHEMAS_WORD] = 0;
  meta[StreamMeta.SCHEMA_WORD] = 0;
  if (to.setMetas(meta) !== Change.DONE) return false;
  return copySchemas(from, to, meta) && copyEntries(from, to) && copyGroups(from, to);
}

function copySchemas(from: Collection, to: Collection, meta: Int32Array): boolean {
  const { side } = from;
  for (let more = side.first(); more; more = side.next()) {
    side.load();
    const { key, keyOffset, keyLength, value, valueOffset, valueLength } = side;
    if (key.u8[keyOffset] !== SideKey.SCHEMA) return true;
    to.beginSteps(2);
    if (to.insertSide(key, keyOffset, keyLength, value, valueOffset, valueLength) !== Change.DONE) return false;
    meta[StreamMeta.SCHEMAS_WORD]++;
    if (to.setMetas(meta) !== Change.DONE) return false;
  }
  return true;
}

function copyEntries(from: Collection, to: Collection): boolean {
  for (let more = from.first(); more; more = from.next()) {
    from.load();
    const { key, keyOffset, keyLength, value, valueOffset, valueLength } = from;
    to.toEnd();
    const change = to.insertPair(key, keyOffset, keyLength, value, valueOffset, valueLength, 0);
    if (change !== Change.DONE) return false;
  }
  return true;
}

function copyGroups(from: Collection, to: Collection): boolean {
  const [source, target] = [new Stream(), new Stream()];
  source.open(from);
  target.open(to);
  const [theirs, ours] = [new StreamGroups(source), new StreamGroups(target)];
  const [pending, copied] = [new PendingEntries(source, theirs), new PendingEntries(target, ours)];
  const { count } = theirs;
  for (let i = 0; i < count; i++) {
    theirs.loadGroup(i);
    ours.find(theirs.nameBytes, theirs.nameOffset, theirs.nameLength);
    if (ours.create(theirs.lastId, theirs.entriesRead) !== Change.DONE) return false;
    const numbers = copyConsumers(theirs, ours);
    if (numbers === null) return false;
    for (let more = pending.seek(FIRST); more; more = pending.next()) {
      const consumer = numbers.get(pending.consumer)!;
      if (copied.add(pending.id, consumer, pending.deliveredMs, pending.deliveries) !== Change.DONE) return false;
    }
  }
  return true;
}

/** Consumers' numbers in the copy, by those that they have; null = no memory. */
function copyConsumers(theirs: StreamGroups, ours: StreamGroups): Map<number, number> | null {
  const numbers = new Map<number, number>();
  const { consumerCount } = theirs;
  for (let i = 0; i < consumerCount; i++) {
    theirs.loadConsumer(i);
    ours.findConsumer(theirs.nameBytes, theirs.nameOffset, theirs.nameLength);
    if (ours.createConsumer(theirs.seenMs, theirs.activeMs) !== Change.DONE) return null;
    numbers.set(theirs.consumer, ours.consumer);
  }
  return numbers;
}
