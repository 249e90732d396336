/**
 * The arithmetic of the benchmark reports: medians, paired ratios, verdicts on bars, and the reading of V8's trace.
 */
import { describe, expect, it } from 'vitest';
import { type Bar, bars, judge, OWN_FIGURE } from '../../bench/bars.js';
import { heapGrowthMiB, parseCollections } from '../../bench/e2e/stalls.js';
import { measured } from '../../bench/harness/measurement.js';
import { countLabel } from '../../bench/harness/profile.js';
import { formatFigure, verdictTable } from '../../bench/harness/report.js';
import { median, ratios, spread } from '../../bench/harness/statistics.js';

describe('statistics', () => {
  it('takes the middle of an odd count and the mean of the two middles of an even one', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(() => median([])).toThrow();
  });

  it('pairs runs by position, so a slow minute meets both sides', () => {
    expect(ratios([2, 30], [1, 10])).toEqual([2, 3]);
    const m = measured('x', 'us', 'less', { entresol: [1, 100, 3], redis: [2, 200, 3] });
    expect(m.ratios).toEqual({ redis: 0.5 });
    expect(m.figures).toEqual({ entresol: 3, redis: 3 });
  });

  it('has no spread among equal runs', () => {
    expect(spread([7, 7, 7])).toBe(0);
  });
});

describe('bars', () => {
  const atMost: Bar = { metric: 'cpu', against: 'redis', relation: 'atMost', limit: 0.95, about: '' };

  it('judges the paired ratio against a peer, and the figure itself where there is no peer', () => {
    const m = [measured('cpu', 'us', 'less', { entresol: [9], redis: [10] })];
    expect(judge(atMost, m)).toMatchObject({ outcome: 'holds', judged: 0.9, ours: 9, peer: 10 });
    expect(judge({ ...atMost, limit: 0.8 }, m).outcome).toBe('falls short');
    expect(judge({ ...atMost, relation: 'atLeast', limit: 1 }, m).outcome).toBe('falls short');
    expect(judge({ ...atMost, against: OWN_FIGURE, limit: 9 }, m).outcome).toBe('holds');
  });

  it('says so when a bar was not measured, or not against that peer', () => {
    expect(judge(atMost, []).outcome).toBe('not measured');
    expect(judge(atMost, [measured('cpu', 'us', 'less', { entresol: [1] })]).outcome).toBe('not measured');
  });

  it('names every pair of metric and peer once', () => {
    const names = bars.map((bar) => `${bar.metric} ${bar.against}`);
    expect(new Set(names).size).toBe(names.length);
  });

  it('prints a table with both figures', () => {
    const m = [measured('cpu', 'us', 'less', { entresol: [9], redis: [10] })];
    expect(verdictTable([judge({ ...atMost, about: 'CPU' }, m)])).toContain(
      'CPU  redis    9.00  10.0  0.90    <= 0.95  holds',
    );
  });
});

describe('readings', () => {
  it('finds heap sizes after collections, by isolate', () => {
    const trace = [
      '[77:0x5500]      31 ms: Scavenge 4.1 (5.8) -> 3.5 (6.8) MB, 0.52 / 0.00 ms  (average mu = 1.0) allocation failure; ',
      'ready',
      '[77:0x6600]     131 ms: Mark-Compact (reduce) 9.1 (12.8) -> 8.0 (11.0) MB, 2.5 / 0.0 ms',
      '[77:0x5500]     900 ms: Scavenge 5.0 (6.8) -> 4.5 (7.8) MB, 0.4 / 0.0 ms',
    ].join('\n');
    const collections = parseCollections(trace);
    expect(collections.map((c) => c.heapMiB)).toEqual([3.5, 8, 4.5]);
    expect(heapGrowthMiB(collections)).toBe(1);
    expect(heapGrowthMiB([])).toBe(0);
  });

  it('formats counts and figures', () => {
    expect([100_000, 10_000_000, 1500].map(countLabel)).toEqual(['100k', '10M', '1500']);
    expect([123456, 123.4, 12.34, 1.234, 0.01234].map(formatFigure)).toEqual([
      '123,456',
      '123',
      '12.3',
      '1.23',
      '0.012',
    ]);
  });
});
