/**
 * The request generator of the workers benchmark: well-formed batches, and keys that follow the distribution asked for.
 */
import { describe, expect, it } from 'vitest';
import { keyDraws, makeBatches, makeFill, PIPELINE, requestFor, ZipfRanks } from '../../bench/store/batches.js';

describe('batches', () => {
  it('writes requests as clients do', () => {
    expect(requestFor(false, 42, 3)).toBe('*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000042\r\n');
    expect(requestFor(true, 1, 3)).toBe('*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$3\r\nvvv\r\n');
  });

  it('cuts them at the offsets', () => {
    const { bytes, offsets } = makeBatches(3, () => 7, 10);
    const text = Buffer.from(bytes).toString('latin1');
    for (let i = 0; i < 3; i++) {
      const batch = text.slice(offsets[i], offsets[i + 1]);
      expect(batch.startsWith('*')).toBe(true);
      expect(batch.match(/\*[23]\r\n/g)).toHaveLength(PIPELINE);
    }
    expect(offsets[3]).toBe(bytes.length);
    const fill = makeFill(0, PIPELINE + 1, 10);
    expect(fill.offsets).toHaveLength(3);
    expect(fill.offsets[2]).toBe(fill.bytes.length);
  });
});

describe('keys', () => {
  it('are uniform over the key space', () => {
    const draw = keyDraws('uniform', 10, 1);
    const counts = new Array<number>(10).fill(0);
    for (let i = 0; i < 20_000; i++) counts[draw()]++;
    for (const count of counts) expect(count).toBeGreaterThan(1700);
  });

  it('follow rank^-s', () => {
    const draw = keyDraws('uniform', 1 << 30, 5);
    const ranks = new ZipfRanks(1000, 1.1, () => draw() / (1 << 30));
    const counts = new Array<number>(1001).fill(0);
    const draws = 200_000;
    for (let i = 0; i < draws; i++) counts[ranks.next()]++;
    let norm = 0;
    for (let rank = 1; rank <= 1000; rank++) norm += rank ** -1.1;
    for (const rank of [1, 2, 10]) expect(counts[rank] / draws / (rank ** -1.1 / norm)).toBeCloseTo(1, 1);
    expect(counts[0]).toBe(0);
  });
});
