import { describe, expect, it } from 'vitest';
import { Lfu, lfuCounter, lfuIdleMinutes, lfuUsed, lfuWord } from './lfu.js';

describe('the LFU word', () => {
  it('falls by one for each period, not below zero, across the wrap of the minutes', () => {
    const word = lfuWord(65_530, 12);
    expect(lfuCounter(word, 65_530, 1)).toBe(12);
    expect(lfuCounter(word, 65_533, 1)).toBe(9);
    expect(lfuCounter(word, 4, 1)).toBe(2);
    expect(lfuCounter(word, 4, 5)).toBe(10);
    expect(lfuCounter(word, 1000, 1)).toBe(0);
    expect(lfuCounter(word, 1000, 0)).toBe(12);
    expect(lfuIdleMinutes(word, 4)).toBe(10);
  });

  it('grows always up to just above the initial value, then with the stated probability, and stays at 255', () => {
    expect(lfuUsed(lfuWord(7, Lfu.INITIAL), 9, 0, 10, 0.999)).toBe(lfuWord(9, 6));
    expect(lfuUsed(lfuWord(7, 0), 7, 0, 10, 0.999)).toBe(lfuWord(7, 1));
    expect(lfuUsed(lfuWord(7, 15), 7, 0, 10, 1 / 102)).toBe(lfuWord(7, 16));
    expect(lfuUsed(lfuWord(7, 15), 7, 0, 10, 1 / 100)).toBe(lfuWord(7, 15));
    expect(lfuUsed(lfuWord(7, 255), 7, 0, 0, 0)).toBe(lfuWord(7, 255));
    // Decays before it grows.
    expect(lfuUsed(lfuWord(7, 100), 17, 1, 0, 0.5)).toBe(lfuWord(17, 91));
  });

  it('needs about as many uses for a value as Redis documents: 1000 uses make about 18 at factor 10', () => {
    let sum = 0;
    for (let run = 0; run < 200; run++) {
      let word = lfuWord(1, Lfu.INITIAL);
      for (let i = 0; i < 1000; i++) word = lfuUsed(word, 1, 1, 10, Math.random());
      sum += word & Lfu.COUNTER_MASK;
    }
    expect(sum / 200).toBeGreaterThan(16);
    expect(sum / 200).toBeLessThan(21);
  });
});
