/**
 * Storing a stream as it is read, for RESTORE and the loading of files.
 *
 * The key's lock is held. What finds no memory throws an RdbError. Invariant: groups come behind the entries, consumers behind
 * their group, and what is pending behind its consumer, as they are read.
 */
import type { Bytes } from '../../layout/bytes.js';
import { RdbError } from '../../rdb/format.js';
import type { ValueSink } from '../../rdb/sink.js';
import { Change, type Collection, STREAMS } from '../../store/collections/collection.js';
import type { Keyspace } from '../../store/keyspace.js';
import { StreamGroups } from '../../store/streams/groups.js';
import { PendingEntries } from '../../store/streams/pending.js';
import { Stream } from '../../store/streams/stream.js';
import type { StreamId } from '../../store/streams/stream-id.js';

export const NO_MEMORY_LEFT = 'there is no memory left for it; give the pool more, or let a maxmemory-policy evict';

export class StreamStore implements ValueSink {
  readonly collection: Collection;

  readonly #stream = new Stream();
  readonly #groups = new StreamGroups(this.#stream);
  readonly #pending = new PendingEntries(this.#stream, this.#groups);

  constructor(keyspace: Keyspace) {
    this.collection = keyspace.collections[0];
  }

  /** Begins a stream that is to take the place of what a key has. */
  openDraft(hash: number, key: Bytes, offset: number, length: number): void {
    this.collection.openDraft(STREAMS, hash, key, offset, length);
    this.#stream.open(this.collection);
  }

  open(hash: number, db: number, key: Bytes, offset: number, length: number): void {
    this.collection.open(STREAMS, hash, db, key, offset, length);
    this.#stream.open(this.collection);
  }

  /** Deletes what there is of it. */
  undo(): void {
    if (this.collection.exists) this.collection.removeKey();
  }

  entry(id: StreamId, bytes: Bytes, args: Int32Array, pairs: number): void {
    check(this.#stream.append(id, bytes, args, 0, pairs));
  }

  state(lastId: StreamId, maxDeletedId: StreamId, entriesAdded: number): void {
    const stream = this.#stream;
    check(this.collection.create());
    stream.lastId.set(lastId);
    stream.maxDeletedId.set(maxDeletedId);
    stream.entriesAdded = entriesAdded;
    check(stream.save());
  }

  group(bytes: Bytes, offset: number, length: number, lastId: StreamId, entriesRead: number): void {
    const read = Number.isNaN(entriesRead) ? this.#stream.countUpTo(lastId) : entriesRead;
    this.#groups.find(bytes, offset, length);
    check(this.#groups.create(lastId, read));
  }

  consumer(bytes: Bytes, offset: number, length: number, seenMs: number, activeMs: number): void {
    this.#groups.findConsumer(bytes, offset, length);
    check(this.#groups.createConsumer(seenMs, activeMs));
  }

  pending(id: StreamId, deliveredMs: number, deliveries: number): void {
    check(this.#pending.add(id, this.#groups.consumer, deliveredMs, deliveries));
  }

  // ---- what no stream has

  begin(): void {}
  text(): void {}
  element(): void {}
  scored(): void {}
  pair(): void {}
}

function check(change: Change): void {
  if (change !== Change.DONE) throw new RdbError(NO_MEMORY_LEFT);
}
