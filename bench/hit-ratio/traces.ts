/**
 * The traces: sequences of key numbers, repeatable, the same for every cache. A request reads its key and stores it when that misses.
 *
 * The sizes of values follow from the keys. Figures count from the request `warm` on, when all caches are full.
 */
import { Random, ZipfRanks } from '../store/batches.js';

export interface Trace {
  readonly name: string;
  readonly keys: Int32Array;
  readonly warm: number;
}

export const KEY_BYTES = 16;
const VALUE_MIN_BYTES = 3900;
const VALUE_SPREAD_BYTES = 64;

/** 3900 to 3963 bytes: one slab class, so that a small store has enough pages for it, as a large one has for many. */
export function valueBytes(key: number): number {
  return VALUE_MIN_BYTES + ((Math.imul(key, 0x9e3779b1) >>> 8) % VALUE_SPREAD_BYTES);
}

/** Key numbers from here on are used by no distribution: scans and one-hit wonders. */
const COLD_KEYS = 1 << 28;
const SEED = 20_261;

export function makeTraces(requests: number, keyCount: number): readonly Trace[] {
  const warm = requests >> 1;
  const zipf = (exponent: number): (() => number) => {
    const random = new Random(SEED);
    const ranks = new ZipfRanks(keyCount, exponent, () => random.next());
    return () => ranks.next();
  };
  const fill = (name: string, next: (i: number) => number): Trace => ({
    name,
    keys: Int32Array.from({ length: requests }, (_, i) => next(i)),
    warm,
  });
  return [
    ...[0.7, 0.9, 1.1].map((exponent) => fill(`zipf${exponent}`, zipf(exponent))),
    scans(fill, zipf(0.9), requests, keyCount),
    shifts(fill, zipf(0.9), requests, keyCount),
    wonders(fill, zipf(0.9), 0.3),
    wonders(fill, zipf(0.9), 0.6),
  ];
}

type Fill = (name: string, next: (i: number) => number) => Trace;

/** Every tenth of the trace begins with a scan that is a fifth of it, over keys that nothing else asks for; scans repeat after the third. */
function scans(fill: Fill, next: () => number, requests: number, keyCount: number): Trace {
  const period = Math.floor(requests / 10);
  let scanned = 0;
  return fill('scans', (i) => (i % period < period / 5 ? COLD_KEYS + (scanned++ % keyCount) : next()));
}

/** What is popular moves on by a twentieth of all keys at each eighth of the trace. */
function shifts(fill: Fill, next: () => number, requests: number, keyCount: number): Trace {
  const period = Math.floor(requests / 8);
  const step = Math.floor(keyCount / 20);
  return fill('shifts', (i) => (next() + Math.floor(i / period) * step) % keyCount);
}

/** So many of the requests ask for a key that is never asked for again. */
function wonders(fill: Fill, next: () => number, share: number): Trace {
  const random = new Random(SEED + 1);
  let fresh = 0;
  return fill(`wonders${Math.round(share * 100)}`, () => (random.next() < share ? COLD_KEYS + fresh++ : next()));
}
