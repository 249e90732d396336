/**
 * checkInvariants for streams: what layout/stream says of entries, schemas, groups, consumers and what is pending, over elements as the walk of
 * a collection has read them. For tests and `pool check`.
 */
import { Bytes } from '../../layout/bytes.js';
import { ConsumerRecord, EntryLength, GroupRecord, PendingRecord, SideKey, StreamMeta } from '../../layout/stream.js';
import { orderedLow, readOrdered, StreamId } from './stream-id.js';

export interface StreamElement {
  readonly key: Buffer;
  readonly value: Buffer;
}

function ensure(condition: boolean, message: string): void {
  if (!condition) throw new Error(`stream: ${message}`);
}

/** `meta`: the meta words. */
export function checkStream(meta: Int32Array, entries: readonly StreamElement[], side: readonly StreamElement[]): void {
  const lastId = new StreamId();
  lastId.readWords(new DataView(meta.buffer, meta.byteOffset), StreamMeta.LAST_ID_WORD * 4);
  const schemas = meta[StreamMeta.SCHEMAS_WORD];
  const fields = checkSchemas(side, schemas);
  for (const { key, value } of entries) {
    const id = readId(key, 0);
    ensure(id.compare(lastId) <= 0, `entry ${id} is above the last id, ${lastId}`);
    checkEntry(id.toString(), value, fields);
  }
  checkGroups(meta[StreamMeta.NEXT_GROUP_WORD], side);
}

/** The id that a key ends with. */
function readId(key: Buffer, at: number): StreamId {
  const bytes = Bytes.from(key);
  const id = new StreamId();
  ensure(id.readKey(bytes, at) === key.length, 'a key does not end with an id');
  return id;
}

/** Number of fields by schema. */
function checkSchemas(side: readonly StreamElement[], count: number): number[] {
  const fields = [0];
  for (const { key, value } of side) {
    if (key[0] !== SideKey.SCHEMA) continue;
    ensure(key[1] === fields.length && key.length === 2, `schema ${key[1]} is number ${fields.length}`);
    const [pairs, from] = readLength(value, 4);
    let at = from;
    for (let i = 0; i < pairs; i++) at = skip(value, at);
    ensure(at === value.length, `schema ${key[1]} has ${value.length} bytes, of which ${at} are names`);
    fields.push(pairs);
  }
  ensure(fields.length - 1 === count, `${fields.length - 1} schemas, counted ${count}`);
  return fields;
}

function checkEntry(id: string, value: Buffer, fields: readonly number[]): void {
  const schema = value[0];
  ensure(schema < fields.length, `entry ${id} has schema ${schema}`);
  let [words, at] = schema === 0 ? readLength(value, 1) : [fields[schema], 1];
  if (schema === 0) words *= 2;
  for (; words > 0; words--) at = skip(value, at);
  ensure(at === value.length, `entry ${id} has ${value.length} bytes, of which ${at} are read`);
}

function readLength(from: Buffer, at: number): [length: number, next: number] {
  if (from[at] < EntryLength.TWO_BYTES) return [from[at], at + 1];
  if (from[at] === EntryLength.TWO_BYTES) return [from.readUInt16LE(at + 1), at + 3];
  return [from.readUInt32LE(at + 1), at + 5];
}

function skip(from: Buffer, at: number): number {
  const [length, start] = readLength(from, at);
  return start + length;
}

/** Names are compared as bytes: latin1 keeps them apart. */
function checkGroups(nextGroup: number, side: readonly StreamElement[]): void {
  const groups = new Map<number, number>();
  const names = new Map<string, string>();
  const consumers = new Set<string>();
  const pending = new Map<string, number>();
  let owned = 0;
  for (const { key, value } of side) {
    const kind = key[0];
    if (kind === SideKey.SCHEMA) continue;
    if (kind === SideKey.GROUP) {
      const number = value.readUInt32LE(GroupRecord.NUMBER);
      ensure(value.length === GroupRecord.BYTES, 'a group has a record of another length');
      ensure(number > 0 && number <= nextGroup && !groups.has(number), `group ${number} of ${nextGroup}`);
      groups.set(number, value.readUInt32LE(GroupRecord.NEXT_CONSUMER));
      continue;
    }
    const at = readOrdered(key, 1);
    const group = orderedLow;
    ensure(groups.has(group), `there is something of group ${group}, which there is not`);
    if (kind === SideKey.CONSUMER) {
      const number = value.readUInt32LE(ConsumerRecord.NUMBER);
      ensure(number > 0 && number <= groups.get(group)!, `consumer ${number} of group ${group}`);
      names.set(`${group} ${number}`, key.toString('latin1', at));
    } else if (kind === SideKey.PENDING) {
      pending.set(`${group} ${readId(key, at)}`, value.readUInt32LE(PendingRecord.CONSUMER));
    } else if (kind === SideKey.OWNED) {
      const idAt = readOrdered(key, at);
      const consumer = orderedLow;
      const id = readId(key, idAt);
      ensure(pending.get(`${group} ${id}`) === consumer, `${id} is pending for ${consumer}, or not, in group ${group}`);
      consumers.add(`${group} ${consumer}`);
      owned++;
    } else {
      ensure(kind === SideKey.CONSUMER_NAME, `an element of kind ${kind}`);
      readOrdered(key, at);
      const name = names.get(`${group} ${orderedLow}`);
      ensure(name === value.toString('latin1'), `consumer ${orderedLow} of group ${group} has another name`);
      names.delete(`${group} ${orderedLow}`);
      consumers.delete(`${group} ${orderedLow}`);
    }
  }
  ensure(owned === pending.size, `${pending.size} entries are pending, ${owned} for consumers`);
  ensure(names.size === 0, `consumers ${[...names.keys()].join(', ')} have no name`);
  ensure(consumers.size === 0, `entries are pending for ${[...consumers].join(', ')}, which there are not`);
}
