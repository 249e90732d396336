/**
 * How streams lie in RDB:
 *
 *     nodes | (id of the first entry, 16 bytes | listpack)* | entries | last id | [first id | largest deleted id | entries ever added]
 *     groups | (name | last id | [entries read] | pending | (id | delivered at, 8 | deliveries)*
 *              consumers | (name | seen, 8 | [active, 8] | pending | (id)*)*)*
 *
 *     listpack   entries | deleted ones | names | name ... | 0 |          then for each entry, ids as distances from the node's:
 *                flags | milliseconds | sequence | [pairs] | value ..., or name and value ... | elements of this entry
 *
 * Ids of nodes and of what is pending are 16 bytes, big-endian; all others two lengths. Versions 2 and 3 of the type have what stands in brackets.
 */
import type { Bytes } from '../layout/bytes.js';
import type { StreamId } from '../store/streams/stream-id.js';

export const enum EntryFlag {
  DELETED = 1,
  /** Its names are those in front of the node. */
  SAME_NAMES = 2,
}

/** Elements of an entry beside names and values: flags, milliseconds, sequence; and the number of pairs. */
export const enum EntryOverhead {
  SAME_NAMES = 3,
  OWN_NAMES = 4,
}

export const ID_BYTES = 16;

export function readId(bytes: Bytes, offset: number, id: StreamId): void {
  const { view } = bytes;
  id.msHigh = view.getUint32(offset, false);
  id.msLow = view.getUint32(offset + 4, false);
  id.seqHigh = view.getUint32(offset + 8, false);
  id.seqLow = view.getUint32(offset + 12, false);
}

export function writeId(bytes: Bytes, offset: number, id: StreamId): void {
  const { view } = bytes;
  view.setUint32(offset, id.msHigh, false);
  view.setUint32(offset + 4, id.msLow, false);
  view.setUint32(offset + 8, id.seqHigh, false);
  view.setUint32(offset + 12, id.seqLow, false);
}
