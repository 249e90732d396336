import fc from 'fast-check';
import { describe, it } from 'vitest';
import { CollectionModel } from '../../../test/helpers/collection-model.js';
import { testStore } from '../../../test/helpers/store.js';
import { Order } from '../../layout/collection.js';
import { checkInvariants } from '../invariants.js';
import { HASHES, LISTS, SETS, type Shape, SORTED_SETS } from './collection.js';

/** More by ENTRESOL_HISTORIES, on a schedule or before a release. */
const RUNS = Number(process.env.ENTRESOL_HISTORIES ?? 10);
const SEED = process.env.ENTRESOL_SEED;

const STREAM_LIKE: Shape = { ...HASHES, order: Order.BYTES };
/** Kind of step, which element, two free numbers. */
type Step = readonly [kind: number, element: number, a: number, b: number];
const step: fc.Arbitrary<Step> = fc.tuple(fc.nat(15), fc.nat(1 << 20), fc.nat(1 << 20), fc.nat(1 << 20));

interface Setup {
  readonly name: string;
  readonly shape: Shape;
  readonly elements: number;
  /** Longest key and value. */
  readonly longest: number;
}

const SETUPS: readonly Setup[] = [
  { name: 'a small hash', shape: HASHES, elements: 60, longest: 60 },
  { name: 'a small set', shape: SETS, elements: 100, longest: 60 },
  { name: 'a small sorted set', shape: SORTED_SETS, elements: 100, longest: 60 },
  { name: 'a small stream', shape: STREAM_LIKE, elements: 60, longest: 60 },
  { name: 'a large hash', shape: HASHES, elements: 3000, longest: 90 },
  { name: 'a large set', shape: { ...SETS, packedEntriesMax: 8 }, elements: 3000, longest: 60 },
  { name: 'a large sorted set', shape: { ...SORTED_SETS, packedEntriesMax: 8 }, elements: 3000, longest: 60 },
  { name: 'a large stream', shape: { ...STREAM_LIKE, packedEntriesMax: 8 }, elements: 3000, longest: 60 },
  { name: 'a large list', shape: { ...LISTS, packedEntriesMax: 8 }, elements: 3000, longest: 60 },
  { name: 'a hash with long values', shape: HASHES, elements: 200, longest: 3000 },
  { name: 'a list with long elements', shape: LISTS, elements: 300, longest: 4000 },
  { name: 'a small list', shape: LISTS, elements: 60, longest: 60 },
];

function word(n: number, length: number): string {
  return `${n}:`.padEnd(length, String.fromCharCode(97 + (n % 26)));
}

function run(model: CollectionModel, setup: Setup, [kind, element, a, b]: Step): void {
  const name = word(element % setup.elements, (element % setup.elements) % setup.longest);
  const value = word(a, b % setup.longest);
  if (setup.shape.order === Order.POSITION) {
    const { length } = model.elements;
    if (kind < 4) model.insertAt(0, value);
    else if (kind < 8) model.insertAt(length, value);
    else if (kind < 11) model.insertAt(a % (length + 1), value);
    else if (kind < 13 && length > 0) model.replaceAt(a % length, value);
    else if (length > 0) model.removeAt(a % length, length > setup.elements ? length : 1 + (b % 3));
  } else if (kind < 10) {
    model.put(name, value, (a % 64) / 4 - 8, b % 3 === 0 ? 1_900_000_000_000 + a : 0);
  } else if (kind < 15 || model.elements.length === 0) {
    model.delete(name);
  } else {
    model.removeAt(a % model.elements.length, setup.shape.order === Order.HASH ? 0 : b % 8);
  }
}

describe.each(SETUPS)('$name', (setup) => {
  it('agrees with an array', () => {
    const keyspace = testStore();
    let runs = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 400, size: 'max' }), (steps) => {
        const model = new CollectionModel(keyspace, setup.shape, `${setup.name} ${runs++}`.slice(0, 4 + (runs % 20)));
        for (const each of steps) run(model, setup, each);
        model.compareAll();
        checkInvariants(keyspace);
        if (model.elements.length > 0)
          model.command((c) => {
            c.removeKey();
            model.elements = [];
          });
      }),
      { numRuns: RUNS, endOnFailure: true, ...(SEED === undefined ? {} : { seed: Number(SEED) }) },
    );
  });
});
