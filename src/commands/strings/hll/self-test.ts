/**
 * PFSELFTEST: registers keep their values, sparse and dense agree, and estimates lie near the truth.
 */
import { Bytes } from '../../../layout/bytes.js';
import { countSketch } from './count.js';
import { place, placed } from './hash.js';
import { getRegister, REGISTER_MAX, REGISTERS, setRegister } from './layout.js';
import { Sketch } from './sparse.js';

const REGISTER_CYCLES = 100;
const ELEMENTS = 1_000_000;
/** Six standard errors of 16,384 registers. */
const RELATIVE_ERROR_MAX = (6 * 1.04) / Math.sqrt(REGISTERS);

/** What failed, or null. */
export function selfTest(sparseBytesMax: number): string | null {
  return testRegisters() ?? testEstimates(sparseBytesMax);
}

function testRegisters(): string | null {
  const sketch = new Sketch();
  const values = new Uint8Array(REGISTERS);
  for (let cycle = 0; cycle < REGISTER_CYCLES; cycle++) {
    for (let r = 0; r < REGISTERS; r++) {
      values[r] = Math.floor(Math.random() * (REGISTER_MAX + 1));
      setRegister(sketch.u8, 0, r, values[r]);
    }
    for (let r = 0; r < REGISTERS; r++) {
      const value = getRegister(sketch.u8, 0, r);
      if (value !== values[r]) return `Register ${r} should be ${values[r]} but is ${value}`;
    }
  }
  return null;
}

function testEstimates(sparseBytesMax: number): string | null {
  const dense = new Sketch();
  dense.reset();
  dense.makeDense();
  const growing = new Sketch();
  growing.reset();
  const element = Bytes.allocate(8);
  const seed = Math.floor(Math.random() * 2 ** 32);
  let checkpoint = 1;
  for (let n = 1; n <= ELEMENTS; n++) {
    element.view.setUint32(0, n ^ seed, true);
    place(element, 0, 8);
    dense.raise(placed.register, placed.value, sparseBytesMax);
    growing.raise(placed.register, placed.value, sparseBytesMax);
    if (n !== checkpoint) continue;
    checkpoint *= 10;
    if (n < sparseBytesMax / 2 && growing.isDense) return 'sparse encoding not used';
    const estimate = countSketch(dense.u8, 0, dense.length);
    if (countSketch(growing.u8, 0, growing.length) !== estimate) return 'dense/sparse disagree';
    // Ten elements may collide now and then.
    const errorMax = n === 10 ? 1 : Math.ceil(RELATIVE_ERROR_MAX * n);
    const error = Math.abs(n - estimate);
    if (error > errorMax) return `Too big error. card:${n} abserr:${error}`;
  }
  return null;
}
