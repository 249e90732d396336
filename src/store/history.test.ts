/**
 * Random histories of operations against a plain Map, on tiny pools: everything that moves items happens within one of them
 * (eviction, demotion, reclaim, page moves, bucket splits, overflow chains, large runs). The invariants are walked on the way.
 */
import fc from 'fast-check';
import { describe, it } from 'vitest';
import { Mirror } from '../../test/helpers/model.js';
import { openTestStore } from '../../test/helpers/store.js';
import { checkInvariants } from './invariants.js';
import type { PolicyName } from './policy.js';

const MIB = 1024 * 1024;
/** More by ENTRESOL_HISTORIES, on a schedule or before a release. */
const RUNS = Number(process.env.ENTRESOL_HISTORIES ?? 2);

/** Repeats a failure that fast-check has reported. */
const SEED = process.env.ENTRESOL_SEED;

interface Setup {
  readonly name: string;
  readonly policy: PolicyName;
  readonly capacityBytes: number;
  readonly mayLose: boolean;
  readonly mayRefuse: boolean;
  readonly largest: number;
  readonly keys: number;
}

const SETUPS: readonly Setup[] = [
  {
    name: 'noeviction with room loses and refuses nothing',
    policy: 'noeviction',
    capacityBytes: 0,
    mayLose: false,
    mayRefuse: false,
    largest: 2000,
    keys: 2000,
  },
  {
    name: 'noeviction without room refuses and loses nothing',
    policy: 'noeviction',
    capacityBytes: 0,
    mayLose: false,
    mayRefuse: true,
    largest: 3 * MIB,
    keys: 400,
  },
  {
    name: 'noeviction over two tiers loses nothing',
    policy: 'noeviction',
    capacityBytes: 24 * MIB,
    mayLose: false,
    mayRefuse: true,
    largest: 1.5 * MIB,
    keys: 600,
  },
  {
    name: 'allkeys-lru in DRAM alone',
    policy: 'allkeys-lru',
    capacityBytes: 0,
    mayLose: true,
    mayRefuse: true,
    largest: 2 * MIB,
    keys: 3000,
  },
  {
    name: 'allkeys-lru over two tiers',
    policy: 'allkeys-lru',
    capacityBytes: 24 * MIB,
    mayLose: true,
    mayRefuse: true,
    largest: 2 * MIB,
    keys: 3000,
  },
  {
    name: 'allkeys-lfu over two tiers',
    policy: 'allkeys-lfu',
    capacityBytes: 24 * MIB,
    mayLose: true,
    mayRefuse: true,
    largest: 300_000,
    keys: 3000,
  },
  {
    name: 'allkeys-random',
    policy: 'allkeys-random',
    capacityBytes: 0,
    mayLose: true,
    mayRefuse: true,
    largest: 300_000,
    keys: 3000,
  },
  {
    name: 'volatile-ttl over two tiers',
    policy: 'volatile-ttl',
    capacityBytes: 24 * MIB,
    mayLose: true,
    mayRefuse: true,
    largest: 300_000,
    keys: 2000,
  },
];

/** One step: what, which key, and two free numbers. A burst repeats a write over consecutive keys. */
type Step = readonly [kind: number, key: number, a: number, b: number];

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.integer({ min: 0, max: 31 }),
  fc.nat(1 << 20),
  fc.nat(1 << 20),
  fc.nat(1 << 20),
);

/** Sizes: mostly small, sometimes of each order of magnitude up to `largest`. */
function sizeOf(a: number, largest: number): number {
  const scale = a % 16;
  const within = a >>> 4;
  if (scale < 8) return within % Math.min(largest, 400);
  if (scale < 12) return within % Math.min(largest, 4000);
  if (scale < 14) return within % Math.min(largest, 40_000);
  if (scale < 15) return within % Math.min(largest, 300_000);
  return (within * 64) % largest;
}

function run(mirror: Mirror, setup: Setup, [kind, k, a, b]: Step): void {
  const key = `key:${k % setup.keys}`;
  const db = kind === 31 ? 0 : b % 64 === 0 ? 1 : 0;
  const size = sizeOf(a, setup.largest);
  if (kind < 8) mirror.set(db, key, size, b % 3, b % 4 === 0 ? 1 + (b % 100_000) : 0, b % 2 === 0);
  else if (kind < 12) mirror.get(db, key);
  else if (kind < 15) mirror.delete(db, key);
  else if (kind < 17) mirror.append(db, key, a % 300);
  else if (kind < 18) mirror.edit(db, key, a % 500, b % 500);
  else if (kind < 19) mirror.truncate(db, key, a % 1000);
  else if (kind < 20) mirror.setExpiry(db, key, b % 3 === 0 ? 0 : 1 + (b % 50_000));
  else if (kind < 21) mirror.advance(a % 20_000);
  else if (kind < 22) mirror.background();
  else if (kind < 23) mirror.park(db, key, size);
  else if (kind < 24) mirror.unpark(b % 3 !== 0);
  else if (kind < 25) mirror.pin(db, key);
  else if (kind < 26) mirror.unpin(a);
  else if (kind < 27) {
    let writes = 0;
    mirror.scan(db, () => {
      if (writes++ % 16 === 0) mirror.set(db, `scan:${(k + writes) % setup.keys}`, b % 200);
    });
  } else if (kind < 28) mirror.swap(b % 4, a % 4);
  else if (kind < 29 && b % 16 === 0) mirror.flush(b % 3);
  else if (kind < 30) {
    const keys = Array.from({ length: 1 + (b % 20) }, (_, i) => `key:${(k + i * 7) % setup.keys}`);
    mirror.setMany(db, [...new Set(keys)], Math.min(size, 2000));
  } else {
    // A burst: the same size for many keys, so that classes fill and shift.
    for (let i = 0; i < 50 + (b % 150); i++) {
      const burst = Math.min(size, 20_000);
      mirror.set(db, `key:${(k + i) % setup.keys}`, burst, 0, b % 2 === 0 ? 60_000 : 0);
    }
  }
}

describe.each(SETUPS)('history: $name', (setup) => {
  const keyspace = openTestStore({
    dramBytes: 16 * MIB + (setup.mayRefuse ? 0 : 32 * MIB),
    capacityBytes: setup.capacityBytes,
    policy: setup.policy,
  });

  it('agrees with a Map', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 300, size: 'max' }), (steps) => {
        const mirror = new Mirror(keyspace, setup.mayLose, setup.mayRefuse);
        let ok = false;
        try {
          let count = 0;
          for (const each of steps) {
            run(mirror, setup, each);
            if (++count % 40 === 0) checkInvariants(keyspace);
          }
          mirror.compareAll();
          checkInvariants(keyspace);
          ok = true;
        } finally {
          if (ok) mirror.close();
        }
        checkInvariants(keyspace);
      }),
      { numRuns: RUNS, endOnFailure: true, ...(SEED === undefined ? {} : { seed: Number(SEED) }) },
    );
  });
});
