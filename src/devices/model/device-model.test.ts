/** The model's arithmetic, and the experiments behind the presets done over: what was published must come out again. */
import { describe, expect, it } from 'vitest';
import { DeviceModel } from './device-model.js';
import { PRESET_NAMES, PRESETS } from './presets.js';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** A fixed sequence of numbers below `limit`, as good as random. */
function numbers(limit: number): () => number {
  let state = 12345;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** GB/s of `threads` threads that each do one access after the other. */
function throughput(threads: number, bytes: number, count: number, access: (nowNs: number) => number): number {
  const freeAt = new Float64Array(threads);
  for (let i = 0; i < count; i++) {
    const thread = freeAt.indexOf(Math.min(...freeAt));
    freeAt[thread] = access(freeAt[thread]);
  }
  return (count * bytes) / Math.max(...freeAt);
}

describe('addresses', () => {
  it('go to the modules by chunks of 4 KiB in turn', () => {
    const model = new DeviceModel(PRESETS.optane, MIB);
    expect([0, 4095, 4096, 5 * 4096, 6 * 4096, 25 * 4096].map((at) => model.moduleOf(at))).toEqual([0, 0, 1, 5, 0, 1]);
  });

  it('of one hot structure of 4 KiB keep one module busy, of a large one all alike', () => {
    const hot = new DeviceModel(PRESETS['optane-4'], 64 * MIB);
    const spread = new DeviceModel(PRESETS['optane-4'], 64 * MIB);
    const next = numbers(64 * MIB - 64);
    for (let i = 0; i < 20_000; i++) {
      const at = next();
      spread.write(at, 64, i);
      // Half of the writes go to counters in one chunk, as page metadata does.
      hot.write(i % 2 === 0 ? at : 8192 + (at % 4032), 64, i);
    }
    expect(spread.writeImbalance).toBeLessThan(1.1);
    // Four modules: an eighth of all writes each, and one half more; less what the buffer combines.
    const [, , third, fourth] = hot.modules();
    expect(third.writtenBytes / fourth.writtenBytes).toBeGreaterThan(4);
  });
});

describe('a single access', () => {
  it.each(PRESET_NAMES)('%s: takes the published latencies', (name) => {
    const preset = PRESETS[name];
    const model = new DeviceModel(preset, GIB);
    expect(model.read(640 * 1024, 64, 1000) - 1000).toBeCloseTo(preset.randomReadNs, 5);
    let now = 1e6;
    const began = now;
    for (let at = 0; at < 4096; at += 64) now = model.read(at, 64, now);
    const perLoad = (now - began) / 64;
    if (preset.lineBytes > 64) expect(perLoad).toBeCloseTo(preset.sequentialReadNs, 1);
    expect(model.write(0, 64, 2e6) - 2e6).toBeCloseTo(preset.writeNs, 5);
  });

  it('of 100 bytes across lines reads both', () => {
    const model = new DeviceModel(PRESETS.optane, GIB);
    model.read(200, 100, 0);
    expect(model.modules()[0]).toMatchObject({ readBytes: 128, mediaReadBytes: 512 });
  });
});

describe('bandwidth', () => {
  const random = (preset: (typeof PRESETS)['optane' | 'optane-1'], bytes: number, kind: 'read' | 'write') => {
    const model = new DeviceModel(preset, GIB);
    const next = numbers(GIB / 256);
    return throughput(kind === 'read' ? 24 : 8, bytes, 40_000, (now) => model[kind](next() * 256, bytes, now));
  };

  it('of one module is 6.5 GB/s read and 2.2 written in lines of 256 bytes, a quarter of that in 64', () => {
    expect(random(PRESETS['optane-1'], 256, 'read')).toBeCloseTo(6.5, 1);
    expect(random(PRESETS['optane-1'], 256, 'write')).toBeCloseTo(2.2, 1);
    // Measured: 1.68 and 0.55.
    expect(random(PRESETS['optane-1'], 64, 'read')).toBeCloseTo(6.5 / 4, 1);
    expect(random(PRESETS['optane-1'], 64, 'write')).toBeCloseTo(2.2 / 4, 1);
  });

  it('of six is near six times that', () => {
    // Published maxima: 39.4 and 13.9.
    expect(random(PRESETS.optane, 1024, 'write')).toBeGreaterThan(12);
    expect(random(PRESETS.optane, 1024, 'write')).toBeLessThan(13.9);
    expect(random(PRESETS.optane, 1024, 'read')).toBeLessThan(39.4);
    expect(random(PRESETS.optane, 1024, 'read')).toBeGreaterThan(25);
  });

  it('of one reading thread is what a core can have under way (measured: 2.9 GB/s; 7.4 of DRAM)', () => {
    const stream = (name: 'optane' | 'dram'): number => {
      const model = new DeviceModel(PRESETS[name], GIB);
      return (16 * MIB) / model.read(0, 16 * MIB, 0);
    };
    expect(stream('optane')).toBeGreaterThan(2.5);
    expect(stream('optane')).toBeLessThan(4.5);
    expect(stream('dram')).toBeGreaterThan(5.5);
    expect(stream('dram')).toBeLessThan(8.5);
  });
});

describe('the write buffer', () => {
  /** The published experiment: the first halves of all lines of a region, then the second halves, over and over. */
  function amplification(regionBytes: number): number {
    const model = new DeviceModel(PRESETS['optane-1'], MIB);
    for (let round = 0; round < 50; round++) {
      for (const half of [0, 128]) for (let at = 0; at < regionBytes; at += 256) model.write(at + half, 128, 0);
    }
    model.drain(0);
    return model.writeAmplification;
  }

  it('combines within 16 KiB and not beyond (measured: 1.04 up to 18 KiB, 2.07 above 64)', () => {
    expect(amplification(16 * 1024)).toBeLessThan(1.05);
    expect(amplification(64 * 1024)).toBeCloseTo(2, 2);
  });

  it('makes sequential stores cost one write a line, scattered ones of 64 bytes four', () => {
    const sequential = new DeviceModel(PRESETS.optane, 16 * MIB);
    for (let at = 0; at < 16 * MIB; at += 64) sequential.write(at, 64, 0);
    sequential.drain(0);
    expect(sequential.writeAmplification).toBe(1);
    const scattered = new DeviceModel(PRESETS.optane, GIB);
    for (let line = 0; line < 20_000; line++) scattered.write(line * 4096 * 7, 64, 0);
    scattered.drain(0);
    expect(scattered.writeAmplification).toBe(4);
  });

  it('holds a writer up once the medium is behind, and readers behind it', () => {
    const model = new DeviceModel(PRESETS['optane-1'], GIB);
    let slowest = 0;
    for (let i = 0; i < 1000; i++) slowest = Math.max(slowest, model.write(i * 256, 256, 0));
    const drainedNs = (1000 * 256) / 2.2;
    expect(slowest).toBeGreaterThan(drainedNs * 0.8);
    expect(model.read(512 * MIB, 64, 0)).toBeGreaterThan(drainedNs * 0.8);
    expect(model.drain(0)).toBeCloseTo(drainedNs + 256 / 6.5, 3);
  });
});

describe('wear', () => {
  it('is counted by regions: a log wears all alike, an update in place one', () => {
    const log = new DeviceModel(PRESETS.optane, 8 * MIB);
    const inPlace = new DeviceModel(PRESETS.optane, 8 * MIB);
    const next = numbers(1024);
    // Three times round the log.
    for (let i = 0; i < 3 * 32_768; i++) {
      log.write((i * 256) % (8 * MIB), 256, 0);
      inPlace.write(next() * 256, 256, 0);
    }
    log.drain(0);
    inPlace.drain(0);
    expect(log.wear.most / log.wear.mean).toBeLessThan(1.1);
    expect(inPlace.wear.most).toBeGreaterThan(5 * log.wear.most);
    expect(new DeviceModel(PRESETS.dram, MIB).wear).toEqual({ most: 0, mean: 0 });
  });
});
