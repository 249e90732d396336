/** Entries of streams against an array, in a real store whose invariants are checked. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { testStore } from '../../../test/helpers/store.js';
import { Bytes } from '../../layout/bytes.js';
import { Change, STREAMS } from '../collections/collection.js';
import { checkInvariants } from '../invariants.js';
import type { Keyspace } from '../keyspace.js';
import { Stream } from './stream.js';
import { StreamId } from './stream-id.js';
import { Trim, TrimBy } from './trim.js';

interface Entry {
  readonly id: string;
  readonly words: readonly string[];
}

const stream = new Stream();

function idOf(text: string): StreamId {
  const id = new StreamId();
  const bytes = Bytes.from(text);
  id.parse(bytes, 0, bytes.length);
  return id;
}

/** Runs `work` with the stream open under its lock. */
function withStream<T>(keyspace: Keyspace, name: string, work: () => T): T {
  const key = Bytes.from(name);
  const hash = keyspace.hash(0, key, 0, key.length);
  keyspace.enterBatch();
  keyspace.lock(hash);
  const collection = keyspace.collections[0];
  collection.open({ ...STREAMS, packedEntriesMax: 20 }, hash, 0, key, 0, key.length);
  stream.open(collection);
  const result = work();
  keyspace.unlock(hash);
  keyspace.leaveBatch();
  return result;
}

function append(entry: Entry): void {
  const input = Bytes.from(entry.words.join(''));
  const args = new Int32Array(entry.words.length * 2);
  let at = 0;
  entry.words.forEach((word, i) => {
    args[i * 2] = at;
    args[i * 2 + 1] = word.length;
    at += word.length;
  });
  expect(stream.append(idOf(entry.id), input, args, 0, entry.words.length / 2)).toBe(Change.DONE);
}

function current(): Entry {
  stream.load();
  const { entry } = stream;
  const words: string[] = [];
  for (let i = entry.pairs; i > 0; i--) {
    entry.next();
    words.push(text(entry.nameBytes, entry.nameOffset, entry.nameLength));
    words.push(text(entry.fieldBytes, entry.fieldOffset, entry.fieldLength));
  }
  return { id: stream.id.toString(), words };
}

function text(bytes: Bytes, offset: number, length: number): string {
  return Buffer.from(bytes.u8.subarray(offset, offset + length)).toString('latin1');
}

function readAll(): Entry[] {
  const found: Entry[] = [];
  for (let more = stream.first(); more; more = stream.next()) found.push(current());
  return found;
}

const NAMES = [['a'], ['temperature', 'humidity'], ['', 'b'], ['a', 'a', 'a'], ['n'.repeat(300)], ['x'.repeat(600)]];
const step = fc.tuple(
  fc.integer({ min: 0, max: 19 }),
  fc.constantFrom(0, 1, 1, 1, 2, 3, 4, 5, 6, 7),
  fc.integer({ min: 0, max: 400 }),
  fc.constantFrom(0, 3, 20, 20, 70, 253, 254, 300, 1200),
);

it('agrees with an array', () => {
  const keyspace = testStore();
  let runs = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 100, maxLength: 500, size: 'max' }), (steps) => {
      const name = `stream ${runs++}`;
      let entries: Entry[] = [];
      let next = 1;
      let added = 0;
      for (const [kind, names, at, length] of steps) {
        withStream(keyspace, name, () => {
          expect(stream.length).toBe(entries.length);
          expect(stream.entriesAdded).toBe(added);
          if (kind < 14) {
            next += 1 + (at % 3);
            const fields = NAMES[names] ?? [`name${at}`];
            const words = fields.flatMap((field, i) => [field, `${at}`.repeat(length).slice(0, length + i)]);
            const entry = { id: `${next >> 3}-${next & 7}`, words };
            append(entry);
            entries.push(entry);
            added++;
          } else if (kind < 17 && entries.length > 0) {
            const entry = entries[at % entries.length];
            expect(stream.delete(idOf(entry.id))).toBe(true);
            expect(stream.delete(idOf(entry.id))).toBe(false);
            stream.save();
            entries = entries.filter((each) => each !== entry);
          } else if (kind === 17 && entries.length > 0) {
            const trim = new Trim();
            trim.by = at % 2 === 0 ? TrimBy.LENGTH : TrimBy.ID;
            trim.lengthMax = Math.max(0, entries.length - (at % 20));
            const from = entries[Math.min(at % 20, entries.length - 1)];
            trim.idMin.set(idOf(from.id));
            const kept = trim.by === TrimBy.LENGTH ? entries.slice(at % 20) : entries.slice(entries.indexOf(from));
            expect(trim.run(stream)).toBe(entries.length - kept.length);
            entries = kept;
          } else if (entries.length > 0) {
            const from = at % entries.length;
            expect(stream.find(idOf(entries[from].id))).toBe(true);
            expect(stream.collection.rank).toBe(from);
            expect(current()).toEqual(entries[from]);
            expect(stream.previous()).toBe(from > 0);
          }
        });
      }
      withStream(keyspace, name, () => {
        expect(readAll()).toEqual(entries);
        expect(stream.lastId.toString()).toBe(next === 1 ? '0-0' : `${next >> 3}-${next & 7}`);
      });
      checkInvariants(keyspace);
    }),
    { numRuns: Number(process.env.ENTRESOL_STREAM_RUNS ?? 25), endOnFailure: true },
  );
});
