/**
 * RESP requests in memory: what a worker would find in its input buffer, made before the clock starts.
 *
 * A batch is PIPELINE requests back to back, one GET in SET_EVERY replaced by a SET; keys and values as the load generator
 * writes them. Zipf keys are scattered over the key space, so that hot keys are not neighbours.
 */

export type KeyDistribution = 'uniform' | 'zipf';

export const PIPELINE = 64;
const SET_EVERY = 10;
const ZIPF_EXPONENT = 1.1;
const SCATTER = 2_654_435_761n;

/** xorshift32, uniform in [0, 1). */
export class Random {
  constructor(private state: number) {}

  next(): number {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x;
    return (x >>> 0) / 2 ** 32;
  }
}

/** Ranks 1..count with probability proportional to rank^-s, by rejection-inversion (Hoermann and Derflinger, 1996). */
export class ZipfRanks {
  readonly #random: () => number;
  readonly #low: number;
  readonly #high: number;
  readonly #squeeze: number;

  constructor(
    readonly count: number,
    readonly exponent: number,
    random: () => number,
  ) {
    this.#random = random;
    this.#low = this.#integral(1.5) - 1;
    this.#high = this.#integral(count + 0.5);
    this.#squeeze = 2 - this.#inverse(this.#integral(2.5) - 2 ** -exponent);
  }

  next(): number {
    for (;;) {
      const u = this.#high + this.#random() * (this.#low - this.#high);
      const x = this.#inverse(u);
      const rank = Math.min(this.count, Math.max(1, Math.floor(x + 0.5)));
      if (rank - x <= this.#squeeze || u >= this.#integral(rank + 0.5) - rank ** -this.exponent) return rank;
    }
  }

  #integral(x: number): number {
    return (x ** (1 - this.exponent) - 1) / (1 - this.exponent);
  }

  #inverse(y: number): number {
    return (1 + y * (1 - this.exponent)) ** (1 / (1 - this.exponent));
  }
}

export function keyDraws(distribution: KeyDistribution, keyCount: number, seed: number): () => number {
  const random = new Random(seed);
  if (distribution === 'uniform') return () => Math.floor(random.next() * keyCount);
  const ranks = new ZipfRanks(keyCount, ZIPF_EXPONENT, () => random.next());
  return () => Number((BigInt(ranks.next()) * SCATTER) % BigInt(keyCount));
}

export function requestFor(isSet: boolean, key: number, valueBytes: number): string {
  const name = `key:${String(key).padStart(12, '0')}`;
  if (!isSet) return `*2\r\n$3\r\nGET\r\n$16\r\n${name}\r\n`;
  return `*3\r\n$3\r\nSET\r\n$16\r\n${name}\r\n$${valueBytes}\r\n${'v'.repeat(valueBytes)}\r\n`;
}

export interface Batches {
  readonly bytes: Uint8Array;
  /** Where batch i starts; one more than there are batches. */
  readonly offsets: Int32Array;
}

export function makeBatches(count: number, drawKey: () => number, valueBytes: number): Batches {
  const parts: string[] = [];
  const offsets = new Int32Array(count + 1);
  for (let batch = 0; batch < count; batch++) {
    let length = 0;
    for (let i = 0; i < PIPELINE; i++) {
      const request = requestFor((batch + i) % SET_EVERY === 0, drawKey(), valueBytes);
      parts.push(request);
      length += request.length;
    }
    offsets[batch + 1] = offsets[batch] + length;
  }
  return { bytes: Buffer.from(parts.join(''), 'latin1'), offsets };
}

/** One SET for each key of [from, to), in batches of PIPELINE. */
export function makeFill(from: number, to: number, valueBytes: number): Batches {
  const parts: string[] = [];
  const offsets: number[] = [0];
  let length = 0;
  for (let key = from; key < to; key++) {
    const request = requestFor(true, key, valueBytes);
    parts.push(request);
    length += request.length;
    if ((key - from) % PIPELINE === PIPELINE - 1 || key === to - 1) offsets.push(length);
  }
  return { bytes: Buffer.from(parts.join(''), 'latin1'), offsets: Int32Array.from(offsets) };
}
