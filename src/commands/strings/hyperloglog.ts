/**
 * HyperLogLog: PFADD PFCOUNT PFMERGE, and PFDEBUG and PFSELFTEST for tests.
 *
 * A HyperLogLog is a string in Redis's own layout (hll/layout.ts), so GET and SET move it between servers. Dense registers are
 * changed in place, sparse ones in `sketch` and written back from the first byte that differs. Invariant: a string that
 * is no valid HyperLogLog gets an error and is left as it is.
 */
import { Encoding } from '../../layout/item.js';
import { keyArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysFrom } from '../spec.js';
import { countRegisters, countSketch } from './hll/count.js';
import { place, placed } from './hll/hash.js';
import {
  CARDINALITY_BYTE,
  DENSE_BYTES,
  ENCODING_BYTE,
  getRegister,
  HEADER_BYTES,
  HllEncoding,
  isHyperLogLog,
  REGISTERS,
  registerByte,
  registerBytes,
  STALE_BIT,
  STALE_BYTE,
  setRegister,
} from './hll/layout.js';
import { selfTest } from './hll/self-test.js';
import { areRunsValid, isLongZero, isValue, runLength, runValue, Sketch } from './hll/sparse.js';
import { beginChange, beginNew, changing, endChange } from './value-change.js';

const NOT_HYPERLOGLOG = 'WRONGTYPE Key is not a valid HyperLogLog string value.';
const CORRUPTED = 'INVALIDOBJ Corrupted HLL object detected';

/** Above, a number does not hold the cardinality exactly. */
const CARDINALITY_HIGH_MAX = 0x1f_ffff;

const sketch = new Sketch();
const merged = new Uint8Array(REGISTERS);

/** True when the found item is a HyperLogLog whose registers can be read; else an error has been replied. */
function requireHyperLogLog(context: Context): boolean {
  const { keyspace, reply } = context;
  if (!context.requireString()) return false;
  const { u8 } = keyspace.value;
  const at = keyspace.valueOffset;
  const length = keyspace.valueLength;
  if (!isHyperLogLog(u8, at, length)) {
    reply.error(NOT_HYPERLOGLOG);
    return false;
  }
  if (isFoundDense(context) || areRunsValid(u8, at + HEADER_BYTES, at + length)) return true;
  reply.error(CORRUPTED);
  return false;
}

function isFoundDense({ keyspace }: Context): boolean {
  return keyspace.value.u8[keyspace.valueOffset + ENCODING_BYTE] === HllEncoding.DENSE;
}

function pfAdd(context: Context): void {
  const { reply } = context;
  const sparseBytesMax = context.environment.settings.hllSparseMaxBytes;
  if (!context.findKey()) {
    sketch.reset();
    raiseAll(context, sparseBytesMax);
    sketch.u8[STALE_BYTE] |= STALE_BIT;
    if (writeNew(context)) reply.integer(1);
    return;
  }
  if (!requireHyperLogLog(context)) return;
  context.use();
  if (isFoundDense(context)) return addToDense(context);
  const { keyspace } = context;
  sketch.load(keyspace.value.u8, keyspace.valueOffset, keyspace.valueLength);
  if (!raiseAll(context, sparseBytesMax)) return reply.integer(0);
  sketch.u8[STALE_BYTE] |= STALE_BIT;
  if (writeBack(context)) reply.integer(1);
}

/** Puts all elements of PFADD into the sketch; true when a register has changed. */
function raiseAll(context: Context, sparseBytesMax: number): boolean {
  let isChanged = false;
  for (let i = 2; i < context.argc; i++) {
    place(context.input, context.argOffset(i), context.argLength(i));
    if (sketch.raise(placed.register, placed.value, sparseBytesMax)) isChanged = true;
  }
  return isChanged;
}

/** Registers in place, each with its own few bytes of undo; a value that cannot be changed in place is copied first. */
function addToDense(context: Context): void {
  const { keyspace, reply } = context;
  changing.staged = false;
  changing.bytes = keyspace.value;
  changing.offset = keyspace.valueOffset;
  let isChanged = false;
  for (let i = 2; i < context.argc; i++) {
    place(context.input, context.argOffset(i), context.argLength(i));
    const { register, value } = placed;
    if (getRegister(changing.bytes.u8, changing.offset, register) >= value) continue;
    if (!openBytes(context, registerByte(register), registerBytes(register))) return;
    setRegister(changing.bytes.u8, changing.offset, register, value);
    isChanged = true;
  }
  if (!isChanged) return reply.integer(0);
  if ((changing.bytes.u8[changing.offset + STALE_BYTE] & STALE_BIT) === 0) {
    if (!openBytes(context, STALE_BYTE, 1)) return;
    changing.bytes.u8[changing.offset + STALE_BYTE] |= STALE_BIT;
  }
  if (endChange(context)) reply.integer(1);
}

function openBytes(context: Context, from: number, length: number): boolean {
  return changing.staged || beginChange(context, from, length, DENSE_BYTES, Encoding.RAW);
}

/** Stores the sketch under key argument 1, which does not exist. */
function writeNew(context: Context): boolean {
  if (!beginNew(context, sketch.length, Encoding.RAW)) return false;
  copySketch(0);
  return endChange(context);
}

/** Makes the found item of key argument 1 what the sketch is. */
function writeBack(context: Context): boolean {
  const { keyspace } = context;
  const { u8 } = keyspace.value;
  const at = keyspace.valueOffset;
  const common = Math.min(keyspace.valueLength, sketch.length);
  let from = 0;
  while (from < common && u8[at + from] === sketch.u8[from]) from++;
  if (!beginChange(context, from, sketch.length - from, sketch.length, Encoding.RAW)) return false;
  copySketch(from);
  return endChange(context);
}

function copySketch(from: number): void {
  const { u8 } = changing.bytes;
  for (let i = from; i < sketch.length; i++) u8[changing.offset + i] = sketch.u8[i];
}

function pfCount(context: Context): void {
  if (context.argc > 2) return countUnion(context);
  const { keyspace, reply } = context;
  if (!context.find(context.keyHashes[0], 1)) {
    context.miss();
    return reply.integer(0);
  }
  if (!requireHyperLogLog(context)) return;
  context.hit();
  const { u8, view } = keyspace.value;
  const at = keyspace.valueOffset;
  if ((u8[at + STALE_BYTE] & STALE_BIT) === 0) {
    const high = view.getUint32(at + CARDINALITY_BYTE + 4, true);
    // Only a string that somebody made by hand says so much.
    if (high > CARDINALITY_HIGH_MAX) return reply.integer64(view.getBigInt64(at + CARDINALITY_BYTE, true));
    return reply.integer(high * 0x1_0000_0000 + view.getUint32(at + CARDINALITY_BYTE, true));
  }
  const count = countSketch(u8, at, keyspace.valueLength);
  // Kept for the next time where the item lies in DRAM; a read writes nothing to the capacity tier.
  if (keyspace.edit(CARDINALITY_BYTE, 8)) {
    view.setUint32(at + CARDINALITY_BYTE, count % 0x1_0000_0000, true);
    view.setUint32(at + CARDINALITY_BYTE + 4, Math.floor(count / 0x1_0000_0000), true);
  }
  reply.integer(count);
}

function countUnion(context: Context): void {
  merged.fill(0);
  for (let k = 0; k < context.keyCount; k++) {
    if (!context.find(context.keyHashes[k], context.keyArguments[k])) {
      context.miss();
      continue;
    }
    if (!requireHyperLogLog(context)) return;
    context.hit();
    mergeFound(context);
  }
  context.reply.integer(countRegisters(merged));
}

/** Raises `merged` to the registers of the found item. */
function mergeFound(context: Context): void {
  const { keyspace } = context;
  const { u8 } = keyspace.value;
  const at = keyspace.valueOffset;
  let register = 0;
  if (isFoundDense(context)) {
    for (; register < REGISTERS; register++) {
      const value = getRegister(u8, at, register);
      if (value > merged[register]) merged[register] = value;
    }
    return;
  }
  const end = at + keyspace.valueLength;
  for (let p = at + HEADER_BYTES; p < end; p += isLongZero(u8[p]) ? 2 : 1) {
    const value = runValue(u8[p]);
    const next = register + runLength(u8, p);
    for (; value > 0 && register < next; register++) if (value > merged[register]) merged[register] = value;
    register = next;
  }
}

function pfMerge(context: Context): void {
  const { keyspace, reply } = context;
  const sparseBytesMax = context.environment.settings.hllSparseMaxBytes;
  merged.fill(0);
  let isDense = false;
  for (let k = 0; k < context.keyCount; k++) {
    if (!context.find(context.keyHashes[k], context.keyArguments[k])) continue;
    if (!requireHyperLogLog(context)) return;
    if (isFoundDense(context)) isDense = true;
    mergeFound(context);
  }
  const exists = context.find(context.keyHashes[0], 1);
  if (exists) sketch.load(keyspace.value.u8, keyspace.valueOffset, keyspace.valueLength);
  else sketch.reset();
  if (isDense && !sketch.isDense) sketch.makeDense();
  for (let register = 0; register < REGISTERS; register++) {
    if (merged[register] > 0) sketch.raise(register, merged[register], sparseBytesMax);
  }
  sketch.u8[STALE_BYTE] |= STALE_BIT;
  if (exists ? writeBack(context) : writeNew(context)) reply.ok();
}

// ---- for tests

function pfDebug(context: Context): void {
  const { keyspace, reply } = context;
  // The key becomes argument 1, as everywhere else.
  context.shift(1);
  if (!context.findKey()) return reply.error('ERR The specified key does not exist');
  if (!requireHyperLogLog(context)) return;
  const wasDense = isFoundDense(context);
  if (context.argIs(0, 'ENCODING')) return reply.simple(wasDense ? 'dense' : 'sparse');
  if (context.argIs(0, 'DECODE')) {
    if (wasDense) return reply.error('ERR HLL encoding is not sparse');
    return reply.bulkString(decode(keyspace.value.u8, keyspace.valueOffset, keyspace.valueLength));
  }
  const isRegisters = context.argIs(0, 'GETREG');
  if (!isRegisters && !context.argIs(0, 'TODENSE')) {
    return reply.error(`ERR Unknown PFDEBUG subcommand '${context.argString(0)}'`);
  }
  if (!wasDense) {
    sketch.load(keyspace.value.u8, keyspace.valueOffset, keyspace.valueLength);
    sketch.makeDense();
    if (!writeBack(context) || !context.findKey()) return;
  }
  if (!isRegisters) return reply.integer(wasDense ? 0 : 1);
  reply.array(REGISTERS);
  for (let r = 0; r < REGISTERS; r++) {
    reply.integer(getRegister(keyspace.value.u8, keyspace.valueOffset, r));
  }
}

/** The runs as text: z and Z for zeros, v for a value and how often. */
function decode(u8: Uint8Array, at: number, length: number): string {
  const runs: string[] = [];
  for (let p = at + HEADER_BYTES; p < at + length; p += isLongZero(u8[p]) ? 2 : 1) {
    if (isValue(u8[p])) runs.push(`v:${runValue(u8[p])},${runLength(u8, p)}`);
    else runs.push(`${isLongZero(u8[p]) ? 'Z' : 'z'}:${runLength(u8, p)}`);
  }
  return runs.join(' ');
}

function pfSelfTest(context: Context): void {
  const failure = selfTest(context.environment.settings.hllSparseMaxBytes);
  if (failure === null) context.reply.ok();
  else context.reply.error(`ERR TESTFAILED ${failure}`);
}

export const hyperLogLogs: readonly CommandSpec[] = [
  {
    name: 'pfadd',
    arity: -2,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.FAST,
    categories: Category.HYPERLOGLOG,
    keys: [keyAt(1, KeyUse.RW | KeyUse.INSERT)],
    since: '2.8.9',
    group: 'hyperloglog',
    summary:
      'Adds elements to a HyperLogLog, which is made when it is not there; returns 1 if its estimate may have changed.',
    complexity: 'O(1) for each element',
    args: [keyArg('key'), stringArg('element', { optional: true, multiple: true })],
    repeatable: true,
    run: pfAdd,
  },
  {
    name: 'pfcount',
    arity: -2,
    flags: Flag.READONLY | Flag.MAY_REPLICATE,
    categories: Category.HYPERLOGLOG,
    keys: [keysFrom(1, KeyUse.RW | KeyUse.ACCESS)],
    since: '2.8.9',
    group: 'hyperloglog',
    summary: 'Estimates how many different elements the HyperLogLogs have seen together.',
    complexity: 'O(1) for one key that has not changed since, else O(N) for N keys',
    args: [keyArg('key', { multiple: true })],
    run: pfCount,
  },
  {
    name: 'pfmerge',
    arity: -2,
    flags: Flag.WRITE | Flag.DENYOOM,
    categories: Category.HYPERLOGLOG,
    keys: [keyAt(1, KeyUse.RW | KeyUse.ACCESS | KeyUse.INSERT), keysFrom(2, KeyUse.RO | KeyUse.ACCESS)],
    since: '2.8.9',
    group: 'hyperloglog',
    summary: 'Merges HyperLogLogs into the first of them.',
    complexity: 'O(N) for N keys',
    args: [keyArg('destkey'), keyArg('sourcekey', { keySpec: 1, optional: true, multiple: true })],
    run: pfMerge,
  },
  {
    name: 'pfdebug',
    arity: 3,
    flags: Flag.WRITE | Flag.DENYOOM | Flag.ADMIN,
    categories: Category.HYPERLOGLOG,
    keys: [keyAt(2, KeyUse.RW | KeyUse.ACCESS)],
    since: '2.8.9',
    group: 'hyperloglog',
    summary: 'Shows how a HyperLogLog is stored, for tests: ENCODING, DECODE, GETREG; TODENSE changes it.',
    complexity: 'O(N), N being the number of registers',
    args: [stringArg('subcommand'), keyArg('key')],
    run: pfDebug,
  },
  {
    name: 'pfselftest',
    arity: 1,
    flags: Flag.ADMIN,
    categories: Category.HYPERLOGLOG,
    since: '2.8.9',
    group: 'hyperloglog',
    summary: 'Tests the HyperLogLog code itself.',
    complexity: 'O(1)',
    run: pfSelfTest,
  },
];
