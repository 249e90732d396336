/**
 * Runs of elements that are cut out of trees, beside a plain array: at either end, in the middle, within a leaf, all of it; short elements and
 * those with chunks of their own. What has been cut out goes to the graveyard whole.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openTestStore } from '../../../test/helpers/store.js';
import { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import { checkInvariants } from '../invariants.js';
import { Change, type Collection, HASHES, LISTS, type Shape } from './collection.js';

const RUNS = Number(process.env.ENTRESOL_HISTORIES ?? 4);
const MIB = 1024 * 1024;
const PATIENCE = { timeout: 120_000 };
const STREAM_LIKE: Shape = { ...HASHES, order: Order.BYTES, keepsEmpty: true };

/** Where a run begins and how long it is, as parts of what there is; elements appended behind it. */
type Step = readonly [from: number, size: number, appended: number];
const PART = 1000;
const place = fc.oneof(fc.noBias(fc.nat(PART)), fc.constant(0));
const size = fc.oneof(fc.noBias(fc.integer({ min: 1, max: PART / 2 })), fc.constant(PART));
const step: fc.Arbitrary<Step> = fc.tuple(place, size, fc.nat(400));
/** Each history begins with one in the middle. */
const MIDDLE: Step = [300, 400, 50];

describe.each([
  { name: 'a list', shape: LISTS, elements: 10_000, longest: 20 },
  { name: 'a list with long elements', shape: LISTS, elements: 3000, longest: 2500 },
  { name: 'a stream', shape: STREAM_LIKE, elements: 8000, longest: 30 },
])('$name', ({ shape, elements, longest }) => {
  const keyspace = openTestStore({ dramBytes: 64 * MIB });
  const key = Bytes.from('key');
  const hash = keyspace.hash(0, key, 0, key.length);

  function command(work: (collection: Collection) => void): void {
    const [collection] = keyspace.collections;
    keyspace.enterBatch();
    keyspace.lock(hash);
    collection.open(shape, hash, 0, key, 0, key.length);
    work(collection);
    keyspace.unlock(hash);
    keyspace.leaveBatch();
  }

  /** In the order of their bytes, too. */
  function word(i: number): string {
    return String(i)
      .padStart(8, '0')
      .padEnd(8 + ((i * 7919) % longest), 'x');
  }

  function append(model: string[], first: number, count: number): void {
    command((c) => {
      for (let i = first; i < first + count; i++) {
        const bytes = Bytes.from(word(i));
        c.toEnd();
        const change = shape.valued
          ? c.insertPair(bytes, 0, bytes.length, bytes, 0, 8, 0)
          : c.insert(bytes, 0, bytes.length);
        if (change !== Change.DONE) throw new Error('no memory');
        model.push(word(i));
      }
    });
  }

  function compare(model: readonly string[]): void {
    checkInvariants(keyspace);
    command((c) => {
      const found: string[] = [];
      for (let more = c.first(); more; more = c.next()) {
        c.load();
        found.push(Buffer.from(c.key.u8.subarray(c.keyOffset, c.keyOffset + c.keyLength)).toString());
      }
      expect(found).toEqual(model);
    });
  }

  it('agrees with an array', PATIENCE, () => {
    let cuts = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
        const model: string[] = [];
        let next = 0;
        const grow = (count: number): void => {
          append(model, next, count);
          next += count;
        };
        grow(elements);
        for (const [from, part, appended] of [MIDDLE, ...steps]) {
          const first = Math.floor((from / PART) * model.length);
          const count = Math.min(model.length - first, Math.ceil((part / PART) * model.length));
          const graves = keyspace.graveyard.count;
          if (count > 0) command((c) => expect(c.removeRange(first, first + count)).toBe(Change.DONE));
          if (keyspace.graveyard.count > graves) cuts++;
          model.splice(first, count);
          compare(model);
          grow(appended);
        }
        compare(model);
        command((c) => {
          if (c.exists) c.removeKey();
        });
        keyspace.enterBatch();
        while (keyspace.graveyard.step(1000) > 0);
        keyspace.leaveBatch();
        expect(keyspace.graveyard.count).toBe(0);
        checkInvariants(keyspace);
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
    expect(cuts).toBeGreaterThan(0);
  });
});
