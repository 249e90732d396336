import { describe, expect, it } from 'vitest';
import { addon } from '../../native/addon.js';
import { DeviceCharge } from './charge.js';
import { PRESETS } from './presets.js';

describe('charges', () => {
  it('are what the presets differ by from DRAM', () => {
    const charge = new DeviceCharge(PRESETS.optane);
    expect(charge.readNs(0)).toBeCloseTo(305 - 101.5, 5);
    expect(charge.readNs(512 * 1024) - charge.readNs(0)).toBeCloseTo(512 * 1024 * (1 / 2.88 - 1 / 7.38), 3);
    expect(charge.writeNs(100)).toBeCloseTo(62.3 - 57.3 + 100 * (1 / 4.13 - 1 / 4.31), 5);
    expect(new DeviceCharge(PRESETS.dram).readNs(1000)).toBe(0);
  });

  it('pass as time, no less', () => {
    const charge = new DeviceCharge(PRESETS.optane);
    const began = addon.monotonicMs();
    for (let i = 0; i < 100; i++) charge.read(100_000);
    const passedNs = (addon.monotonicMs() - began) * 1e6;
    // The call is measured at its fastest, so that what is taken off for it is never too much by more than noise.
    expect(passedNs).toBeGreaterThan(charge.chargedNs * 0.9);
    expect(charge.chargedNs).toBeCloseTo(100 * charge.readNs(100_000), 0);
  });
});
