/**
 * A memory device in simulated time: how long reads and writes take, which module they keep busy, and what they wear.
 *
 *     address -> module (by chunks of interleaveBytes, in turn) -> line of the medium (lineBytes)
 *
 *     read    a cache line in a line of the medium that was just read comes out of the module's buffer, others from the medium, which is
 *             then busy for a line. Of one call, CACHE_LINES_AT_ONCE cache lines are under way together: a core has no more.
 *     write   is accepted into the module's buffer, where stores to one line are combined; the line that was not written for longest leaves
 *             for the medium and keeps it busy. Accepted means durable. Who writes faster than the medium waits.
 *
 * What is left out: the medium's own address translation and wear levelling (so tail latencies of 50 us now and then), the power budget,
 * contention of several writers within a module ([Y] figure 4: 2.2 GB/s with one thread, 1.0 with thirteen), remote sockets.
 *
 * Owns: the state of all modules. Times are nanoseconds; calls come in any order of time. Invariant: what a module's medium has written
 * is a whole number of lines, and busy time is what reads and writes of the medium cost, no more.
 */
import type { DevicePreset } from './presets.js';

const CACHE_LINE_BYTES = 64;
/** Line fill buffers of the cores that the presets were measured on. */
const CACHE_LINES_AT_ONCE = 10;
/** Wear is counted by regions of this size: the store's pages. */
const WEAR_REGION_BYTES = 2 ** 20;

export interface ModuleFacts {
  /** Bytes that the processor asked for and stored. */
  readonly readBytes: number;
  readonly writtenBytes: number;
  /** Bytes that the medium moved for that. */
  readonly mediaReadBytes: number;
  readonly mediaWrittenBytes: number;
  readonly busyNs: number;
}

class Module {
  readBytes = 0;
  writtenBytes = 0;
  mediaReadBytes = 0;
  mediaWrittenBytes = 0;
  busyNs = 0;
  /** When the medium has done all that it was given. */
  freeAtNs = 0;
  lineRead = -1;
  /** Lines in the write buffer, the one written longest ago first. */
  readonly buffer = new Set<number>();
}

export class DeviceModel {
  readonly preset: DevicePreset;
  readonly #modules: Module[];
  /** Writes of the medium by region of WEAR_REGION_BYTES. */
  readonly #wear: Float64Array;
  readonly #bufferReadNs: number;
  readonly #mediaReadNs: number;
  readonly #mediaWriteNs: number;
  /** How far the medium may be behind before a store has to wait. */
  readonly #backlogNs: number;

  constructor(preset: DevicePreset, deviceBytes: number) {
    this.preset = preset;
    this.#modules = Array.from({ length: preset.moduleCount }, () => new Module());
    this.#wear = new Float64Array(Math.ceil(deviceBytes / WEAR_REGION_BYTES));
    const perLine = preset.lineBytes / CACHE_LINE_BYTES;
    // Sequential loads are one from the medium and the others of its line from the buffer: what these take follows.
    this.#bufferReadNs = (perLine * preset.sequentialReadNs - preset.randomReadNs) / Math.max(1, perLine - 1);
    if (perLine === 1) this.#bufferReadNs = preset.sequentialReadNs;
    this.#mediaReadNs = preset.lineBytes / preset.readBandwidth;
    this.#mediaWriteNs = preset.lineBytes / preset.writeBandwidth;
    this.#backlogNs = Math.max(1, preset.bufferLines) * this.#mediaWriteNs;
  }

  moduleOf(address: number): number {
    return Math.floor(address / this.preset.interleaveBytes) % this.preset.moduleCount;
  }

  /** Loads a range; returns when its last byte is there. */
  read(address: number, bytes: number, nowNs: number): number {
    const ends: number[] = [];
    let doneNs = nowNs;
    const last = address + bytes;
    for (let at = address - (address % CACHE_LINE_BYTES), i = 0; at < last; at += CACHE_LINE_BYTES, i++) {
      const issuedNs = i < CACHE_LINES_AT_ONCE ? nowNs : ends[i - CACHE_LINES_AT_ONCE];
      const endNs = this.#readCacheLine(at, issuedNs);
      ends.push(endNs);
      if (endNs > doneNs) doneNs = endNs;
    }
    return doneNs;
  }

  #readCacheLine(address: number, nowNs: number): number {
    const module = this.#modules[this.moduleOf(address)];
    const line = Math.floor(address / this.preset.lineBytes);
    module.readBytes += CACHE_LINE_BYTES;
    if (module.lineRead === line || module.buffer.has(line)) return nowNs + this.#bufferReadNs;
    module.lineRead = line;
    module.mediaReadBytes += this.preset.lineBytes;
    const startNs = this.#occupy(module, nowNs, this.#mediaReadNs);
    return startNs + this.preset.randomReadNs;
  }

  /** The medium does one thing after the other; returns when this one begins. */
  #occupy(module: Module, nowNs: number, costNs: number): number {
    const startNs = Math.max(nowNs, module.freeAtNs);
    module.freeAtNs = startNs + costNs;
    module.busyNs += costNs;
    return startNs;
  }

  /** Stores a range and makes it durable; returns when it is. */
  write(address: number, bytes: number, nowNs: number): number {
    let acceptedNs = nowNs;
    const last = address + bytes;
    for (let at = address - (address % CACHE_LINE_BYTES); at < last; at += CACHE_LINE_BYTES) {
      acceptedNs = Math.max(acceptedNs, this.#writeCacheLine(at, nowNs));
    }
    return acceptedNs + this.preset.writeNs;
  }

  #writeCacheLine(address: number, nowNs: number): number {
    const module = this.#modules[this.moduleOf(address)];
    const line = Math.floor(address / this.preset.lineBytes);
    const { buffer } = module;
    module.writtenBytes += CACHE_LINE_BYTES;
    if (buffer.delete(line)) {
      buffer.add(line);
      return nowNs;
    }
    buffer.add(line);
    if (buffer.size <= this.preset.bufferLines) return nowNs;
    const [oldest] = buffer;
    buffer.delete(oldest);
    const waitNs = Math.max(0, module.freeAtNs - nowNs - this.#backlogNs);
    this.#writeMedium(module, oldest, nowNs + waitNs);
    return nowNs + waitNs;
  }

  #writeMedium(module: Module, line: number, nowNs: number): void {
    module.mediaWrittenBytes += this.preset.lineBytes;
    this.#wear[Math.floor((line * this.preset.lineBytes) / WEAR_REGION_BYTES)]++;
    this.#occupy(module, nowNs, this.#mediaWriteNs);
  }

  /** Lets what is in the buffers go to the medium, as it would in the end; returns when that is done. */
  drain(nowNs: number): number {
    let doneNs = nowNs;
    for (const module of this.#modules) {
      for (const line of module.buffer) this.#writeMedium(module, line, nowNs);
      module.buffer.clear();
      doneNs = Math.max(doneNs, module.freeAtNs);
    }
    return doneNs;
  }

  modules(): readonly ModuleFacts[] {
    return this.#modules.map(({ readBytes, writtenBytes, mediaReadBytes, mediaWrittenBytes, busyNs }) => {
      return { readBytes, writtenBytes, mediaReadBytes, mediaWrittenBytes, busyNs };
    });
  }

  /** Bytes that the medium has written for each byte stored; 0 before anything is stored. */
  get writeAmplification(): number {
    let stored = 0;
    let media = 0;
    for (const { writtenBytes, mediaWrittenBytes } of this.#modules) {
      stored += writtenBytes;
      media += mediaWrittenBytes;
    }
    return stored === 0 ? 0 : media / stored;
  }

  /** How much the busiest module writes beyond the mean of all: 1 = all alike. */
  get writeImbalance(): number {
    const written = this.#modules.map(({ mediaWrittenBytes }) => mediaWrittenBytes);
    const total = written.reduce((sum, bytes) => sum + bytes, 0);
    return total === 0 ? 1 : (Math.max(...written) * written.length) / total;
  }

  /** Writes of the medium in the region of 1 MiB that has had most, and in the mean of those that had any. */
  get wear(): { readonly most: number; readonly mean: number } {
    let most = 0;
    let total = 0;
    let regions = 0;
    for (const writes of this.#wear) {
      if (writes === 0) continue;
      most = Math.max(most, writes);
      total += writes;
      regions++;
    }
    return { most, mean: regions === 0 ? 0 : total / regions };
  }
}
