/**
 * The sparse form of a HyperLogLog: changing one register by splitting and joining runs, step for step as Redis does, so that
 * the same elements give the same bytes.
 *
 * Works in a buffer of its own (`Sketch`), which becomes dense when the runs grow too long. Invariant: after `load` returned
 * true the runs cover exactly all registers, and every later step keeps it so.
 */
import {
  DENSE_BYTES,
  ENCODING_BYTE,
  getRegister,
  HEADER_BYTES,
  HllEncoding,
  REGISTERS,
  SPARSE_BYTES_MAX,
  setRegister,
  writeHeader,
} from './layout.js';

const ZERO_MAX = 64;
const VALUE_MAX = 32;
const VALUE_RUN_MAX = 4;
/** How many runs are looked at for neighbours to join, from the one before the change on. */
const JOIN_RUNS = 5;

export function isValue(byte: number): boolean {
  return (byte & 0x80) !== 0;
}

export function isLongZero(byte: number): boolean {
  return (byte & 0xc0) === 0x40;
}

/** Registers of the run at `p`. */
export function runLength(u8: Uint8Array, p: number): number {
  const byte = u8[p];
  if (isValue(byte)) return (byte & 3) + 1;
  return isLongZero(byte) ? (((byte & 0x3f) << 8) | u8[p + 1]) + 1 : (byte & 0x3f) + 1;
}

export function runValue(byte: number): number {
  return isValue(byte) ? ((byte >>> 2) & 31) + 1 : 0;
}

function valueRun(value: number, length: number): number {
  return 0x80 | ((value - 1) << 2) | (length - 1);
}

/** True when the runs in [p, end) cover exactly all registers. */
export function areRunsValid(u8: Uint8Array, p: number, end: number): boolean {
  let registers = 0;
  while (p < end) {
    const isLong = isLongZero(u8[p]);
    if (isLong && p + 1 >= end) return false;
    registers += runLength(u8, p);
    p += isLong ? 2 : 1;
  }
  return registers === REGISTERS;
}

/** One HyperLogLog taken out of the store to be changed: sparse or dense. */
export class Sketch {
  /** Room for the longest sparse one, a split run, and a zero behind the end. */
  readonly u8 = new Uint8Array(Math.max(DENSE_BYTES, SPARSE_BYTES_MAX) + 8);
  length = 0;
  private readonly sequence = new Uint8Array(5);

  get isDense(): boolean {
    return this.u8[ENCODING_BYTE] === HllEncoding.DENSE;
  }

  /** An empty one. */
  reset(): void {
    writeHeader(this.u8, 0, HllEncoding.SPARSE);
    this.u8[HEADER_BYTES] = 0x40 | ((REGISTERS - 1) >>> 8);
    this.u8[HEADER_BYTES + 1] = (REGISTERS - 1) & 0xff;
    this.length = HEADER_BYTES + 2;
  }

  /** Copies one whose header has been checked; false = its runs are no good. */
  load(from: Uint8Array, at: number, length: number): boolean {
    if (length > SPARSE_BYTES_MAX) return false;
    for (let i = 0; i < length; i++) this.u8[i] = from[at + i];
    this.length = length;
    return this.isDense || areRunsValid(this.u8, HEADER_BYTES, length);
  }

  /** Raises a register to `value`; false = it is that high already. */
  raise(register: number, value: number, sparseBytesMax: number): boolean {
    if (this.isDense) {
      if (getRegister(this.u8, 0, register) >= value) return false;
      setRegister(this.u8, 0, register, value);
      return true;
    }
    return this.raiseSparse(register, value, sparseBytesMax);
  }

  /** Makes a sparse one dense. */
  makeDense(): void {
    const runs = this.u8.slice(HEADER_BYTES, this.length);
    this.u8.fill(0, HEADER_BYTES, DENSE_BYTES);
    this.u8[ENCODING_BYTE] = HllEncoding.DENSE;
    this.length = DENSE_BYTES;
    let register = 0;
    for (let p = 0; p < runs.length; p += isLongZero(runs[p]) ? 2 : 1) {
      const end = register + runLength(runs, p);
      const value = runValue(runs[p]);
      if (value > 0) for (let r = register; r < end; r++) setRegister(this.u8, 0, r, value);
      register = end;
    }
  }

  private raiseSparse(register: number, value: number, sparseBytesMax: number): boolean {
    const { u8 } = this;
    // The run with our register, and the one before it.
    let p = HEADER_BYTES;
    let previous = HEADER_BYTES;
    let first = 0;
    for (;;) {
      const span = runLength(u8, p);
      if (register < first + span) break;
      previous = p;
      p += isLongZero(u8[p]) ? 2 : 1;
      first += span;
    }
    const old = runValue(u8[p]);
    if (old >= value) return false;
    if (value > VALUE_MAX) return this.raiseDense(register, value);
    const oldBytes = isLongZero(u8[p]) ? 2 : 1;
    if (oldBytes === 1 && runLength(u8, p) === 1) u8[p] = valueRun(value, 1);
    else if (!this.split(p, oldBytes, register - first, value, sparseBytesMax)) return this.raiseDense(register, value);
    this.join(previous);
    return true;
  }

  private raiseDense(register: number, value: number): true {
    this.makeDense();
    setRegister(this.u8, 0, register, value);
    return true;
  }

  /** Cuts the run at `p` in up to three, the middle one being our register; false = too long, nothing changed. */
  private split(p: number, oldBytes: number, before: number, value: number, sparseBytesMax: number): boolean {
    const { u8, sequence } = this;
    const old = runValue(u8[p]);
    const after = runLength(u8, p) - before - 1;
    let n = this.putRun(0, old, before);
    sequence[n++] = valueRun(value, 1);
    n = this.putRun(n, old, after);
    const growth = n - oldBytes;
    if (growth > 0 && this.length + growth > sparseBytesMax) return false;
    u8.copyWithin(p + n, p + oldBytes, this.length);
    for (let i = 0; i < n; i++) u8[p + i] = sequence[i];
    this.length += growth;
    return true;
  }

  /** Appends a run to `sequence`; returns where the next one goes. */
  private putRun(n: number, value: number, length: number): number {
    const { sequence } = this;
    if (length === 0) return n;
    if (value > 0) {
      sequence[n] = valueRun(value, length);
      return n + 1;
    }
    if (length > ZERO_MAX) {
      sequence[n] = 0x40 | ((length - 1) >>> 8);
      sequence[n + 1] = (length - 1) & 0xff;
      return n + 2;
    }
    sequence[n] = length - 1;
    return n + 1;
  }

  /** Joins neighbouring runs of the same value, from `p` on. */
  private join(p: number): void {
    const { u8 } = this;
    for (let run = 0; run < JOIN_RUNS && p < this.length; run++) {
      const byte = u8[p];
      if (!isValue(byte)) {
        p += isLongZero(byte) ? 2 : 1;
        continue;
      }
      if (p + 1 < this.length && isValue(u8[p + 1]) && runValue(byte) === runValue(u8[p + 1])) {
        const length = runLength(u8, p) + runLength(u8, p + 1);
        if (length <= VALUE_RUN_MAX) {
          u8[p + 1] = valueRun(runValue(byte), length);
          u8.copyWithin(p, p + 1, this.length);
          this.length--;
          continue;
        }
      }
      p++;
    }
  }
}
