/**
 * What an access to an emulated device takes longer than one to DRAM, and the passing of that time.
 *
 *     read    random latency above DRAM's, and each byte at one thread's bandwidth instead of DRAM's
 *     write   latency of store, write-back and fence above DRAM's, and each byte likewise
 *
 * Not charged: one thread waiting for the bandwidth that another uses, and the overlap of several reads under way (so batches come out
 * slower than they would on the device). Invariant: the time of calling the addon is part of the charge, not on top of it.
 */
import { addon } from '../../native/addon.js';
import { type DevicePreset, PRESETS } from './presets.js';

const CALIBRATION_CALLS = 20_000;

/** Nanoseconds that a call of spin takes for nothing: the least of a few runs, the others met an interruption. */
function measureCall(): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 5; run++) {
    const began = addon.monotonicMs();
    for (let i = 0; i < CALIBRATION_CALLS; i++) addon.spin(0);
    least = Math.min(least, ((addon.monotonicMs() - began) * 1e6) / CALIBRATION_CALLS);
  }
  return least;
}

export class DeviceCharge {
  /** Nanoseconds charged so far in this thread. */
  chargedNs = 0;
  readonly #spin = addon.spin;
  readonly #callNs = measureCall();
  readonly #readNs: number;
  readonly #readByteNs: number;
  readonly #writeNs: number;
  readonly #writeByteNs: number;

  constructor(device: DevicePreset) {
    const { dram } = PRESETS;
    this.#readNs = device.randomReadNs - dram.randomReadNs;
    this.#readByteNs = 1 / device.threadReadBandwidth - 1 / dram.threadReadBandwidth;
    this.#writeNs = device.writeNs - dram.writeNs;
    this.#writeByteNs = 1 / device.threadWriteBandwidth - 1 / dram.threadWriteBandwidth;
  }

  readNs(bytes: number): number {
    return this.#readNs + bytes * this.#readByteNs;
  }

  writeNs(bytes: number): number {
    return this.#writeNs + bytes * this.#writeByteNs;
  }

  read(bytes: number): void {
    this.#pass(this.readNs(bytes));
  }

  write(bytes: number): void {
    this.#pass(this.writeNs(bytes));
  }

  #pass(ns: number): void {
    this.chargedNs += ns;
    if (ns > this.#callNs) this.#spin(ns - this.#callNs);
  }
}
