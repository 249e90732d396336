/** Tair's four layouts, played with a short trace of the real store: the shape of the published table comes out. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { PutTrace } from '../../src/hotspots/put-trace.js';
import { TAIR_CASES, TAIR_THREADS, type TairRow, tairOptions, tairTable } from '../../src/hotspots/tair.js';
import { traceWrites } from '../../src/hotspots/traced.js';

const PUTS = 40;
const SLOW_MS = 120_000;
let trace: PutTrace;
let rows: TairRow[];

beforeAll(async () => {
  const listen = traceWrites();
  const { recordPuts } = await import('../../src/hotspots/record-puts.js');
  trace = recordPuts({ participants: TAIR_THREADS, puts: PUTS, valueBytes: 100 }, listen);
  rows = tairTable(trace, tairOptions(1, 2 * PUTS));
}, SLOW_MS);

describe('one lock, as Tair had it', () => {
  it('each step helps, and DRAM is about three times the first', () => {
    const rates = rows.map(({ outcome }) => outcome.perSecond);
    expect(rates).toEqual([...rates].sort((a, b) => a - b));
    expect(rates[3] / rates[0]).toBeGreaterThan(2);
    expect(rates[3] / rates[0]).toBeLessThan(4.5);
  });

  it('latency falls in the same order', () => {
    const latencies = rows.map(({ outcome }) => outcome.meanLatencyNs);
    expect(latencies).toEqual([...latencies].sort((a, b) => b - a));
  });

  it('metadata keeps one DIMM busy with about twice what the others get, items none', () => {
    const [first, second, third, dram] = rows;
    expect(first.hotDimmRatio).toBeGreaterThan(1.6);
    expect(first.hotDimmRatio).toBeLessThan(3);
    expect(second.hotDimmRatio).toBeLessThan(1.3);
    expect(third.hotDimmRatio).toBeLessThan(1.3);
    expect(dram.dimmBandwidth).toEqual([0, 0, 0, 0]);
  });
});

it('the cases differ in placement and lock scope only', () => {
  expect(TAIR_CASES.map(({ layout }) => [layout.inDevice.size > 0, layout.stagesUnderLock])).toEqual([
    [true, true],
    [true, true],
    [true, false],
    [false, false],
  ]);
});
