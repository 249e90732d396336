/**
 * Trimming a stream from its front: to a length or a smallest id, exactly or about.
 *
 * About (`~`) means in Redis: whole nodes of its radix tree only, of so many entries and bytes. Here a node is as many entries as would fill
 * one if all were as long as the first, so that what stays is what Redis would keep of a stream of such entries.
 */
import type { Stream } from './stream.js';
import { StreamId } from './stream-id.js';

export const enum TrimBy {
  NOTHING = 0,
  LENGTH = 1,
  ID = 2,
}

export class Trim {
  by: TrimBy = TrimBy.NOTHING;
  isAbout = false;
  /** Most entries that may go, 0 = any number; of exact trims always 0. */
  limit = 0;
  lengthMax = 0;
  readonly idMin = new StreamId();
  /** Redis's stream-node-max-entries and -bytes; 0 = no limit. */
  nodeEntriesMax = 0;
  nodeBytesMax = 0;

  /** Returns how many entries have gone. */
  run(stream: Stream): number {
    if (this.by === TrimBy.NOTHING || stream.length === 0) return 0;
    const excess = this.by === TrimBy.LENGTH ? stream.length - this.lengthMax : entriesBefore(stream, this.idMin);
    if (excess <= 0) return 0;
    const nodeBefore = stream.firstNode;
    const removed = this.isAbout ? this.#removeNodes(stream, excess) : this.#removeExactly(stream, excess);
    if (stream.firstNode !== nodeBefore) stream.save();
    return removed;
  }

  #removeExactly(stream: Stream, count: number): number {
    const first = this.#nodeEntries(stream);
    const whole = this.#wholeNode(stream, 0);
    const behind = count < first ? first - count : whole - ((count - first) % whole);
    stream.firstNode = behind === whole ? 0 : behind;
    return stream.removeFirst(count);
  }

  #removeNodes(stream: Stream, excess: number): number {
    let gone = 0;
    while (gone < excess) {
      const node = gone === 0 ? this.#nodeEntries(stream) : this.#wholeNode(stream, gone);
      const end = gone + Math.min(node, stream.length - gone);
      if (end > excess || (this.limit > 0 && end > this.limit)) break;
      gone = end;
    }
    if (gone === 0) return 0;
    stream.firstNode = 0;
    return stream.removeFirst(gone);
  }

  /** Entries of the node in front. */
  #nodeEntries(stream: Stream): number {
    return stream.firstNode > 0 ? stream.firstNode : this.#wholeNode(stream, 0);
  }

  /** Entries of a whole node that begins with the entry of this rank. */
  #wholeNode(stream: Stream, rank: number): number {
    const { collection } = stream;
    collection.seekRank(rank);
    collection.load();
    const most = this.nodeEntriesMax > 0 ? this.nodeEntriesMax : Number.POSITIVE_INFINITY;
    const bytes = this.nodeBytesMax > 0 ? this.nodeBytesMax : NODE_BYTES_MAX;
    return Math.max(1, Math.min(most, Math.floor(bytes / (collection.valueLength + ENTRY_BYTES))));
  }
}

function entriesBefore(stream: Stream, id: StreamId): number {
  stream.find(id);
  return stream.collection.rank;
}

/** Redis's largest node. */
const NODE_BYTES_MAX = 2 ** 30;
/** What an entry takes in Redis's node beside names and values: flags, id, count. */
const ENTRY_BYTES = 8;
