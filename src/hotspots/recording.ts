/**
 * The traced flavour of writers: every write to the pool's memory, by address, before it is made.
 *
 * Element stores go through proxies, DataView's through a subclass, native copies are read off their control block, and Atomics is
 * replaced for the whole thread, which therefore is none that serves anybody. A hundred times slower than the plain flavour.
 * Invariant: what a write changes lies in a range that was told of (a test compares memory with a copy that got those ranges only).
 */
import type { Flavour, Views } from '../layout/flavour.js';

/** `bytes` from `offset` of an arena are about to be written. `isZero`: with zeros, as a lock word that is released. */
export type WriteListener = (arena: number, offset: number, bytes: number, isZero: boolean) => void;

type WordArray = Uint8Array | Int32Array | Float64Array;

/** Where a traced array says what it stands for. */
interface Origin {
  readonly raw: WordArray;
  readonly arena: number;
  readonly byteOffset: number;
}

const ORIGIN = Symbol('origin');
const DIGIT_0 = 48;
const DIGIT_9 = 57;

const COPY_WORDS = 5;

function originOf(array: object): Origin | undefined {
  return (array as { [ORIGIN]?: Origin })[ORIGIN];
}

function isIndex(property: string | symbol): property is string {
  if (typeof property !== 'string') return false;
  const first = property.charCodeAt(0);
  return first >= DIGIT_0 && first <= DIGIT_9;
}

/** A range of elements as TypedArray methods count them: from the end when negative, within the array. */
function clamp(index: number | undefined, length: number, fallback: number): number {
  if (index === undefined) return fallback;
  return index < 0 ? Math.max(0, length + index) : Math.min(index, length);
}

export class Recording implements Flavour {
  readonly #listener: WriteListener;

  constructor(listener: WriteListener) {
    this.#listener = listener;
    replaceAtomics(listener);
  }

  views(buffer: ArrayBufferLike, arena: number): Views {
    return {
      u8: this.#traced(new Uint8Array(buffer), arena, 0),
      view: this.#tracedView(buffer, arena),
      i32: this.#traced(new Int32Array(buffer, 0, buffer.byteLength >>> 2), arena, 0),
    };
  }

  doubles(buffer: ArrayBufferLike, arena: number, byteOffset: number, count: number): Float64Array {
    return this.#traced(new Float64Array(buffer, byteOffset, count), arena, byteOffset);
  }

  copier(copy: () => void, control: Int32Array): () => void {
    const listener = this.#listener;
    return () => {
      for (let i = 0; i < control[0]; i++) {
        const record = 1 + i * COPY_WORDS;
        listener(control[record], control[record + 1], control[record + 4], false);
      }
      copy();
    };
  }

  #traced<T extends WordArray>(raw: T, arena: number, byteOffset: number): T {
    const listener = this.#listener;
    const bytesEach = raw.BYTES_PER_ELEMENT;
    const tell = (first: number, count: number, isZero: boolean): void => {
      if (count > 0) listener(arena, byteOffset + first * bytesEach, count * bytesEach, isZero);
    };
    const methods: Readonly<Record<string, unknown>> = {
      fill(value: number, start?: number, end?: number) {
        const from = clamp(start, raw.length, 0);
        tell(from, clamp(end, raw.length, raw.length) - from, value === 0);
        raw.fill(value, start, end);
        return proxy;
      },
      set(source: ArrayLike<number>, at = 0) {
        tell(at, source.length, false);
        raw.set(source, at);
      },
      copyWithin(target: number, start: number, end?: number) {
        const from = clamp(start, raw.length, 0);
        const to = clamp(target, raw.length, 0);
        const count = clamp(end, raw.length, raw.length) - from;
        tell(to, Math.min(count, raw.length - to), false);
        raw.copyWithin(target, start, end);
        return proxy;
      },
    };
    const origin: Origin = { raw, arena, byteOffset };
    const proxy: T = new Proxy(raw, {
      get(target, property) {
        if (isIndex(property)) return target[Number(property)];
        if (property === ORIGIN) return origin;
        if (typeof property === 'string' && property in methods) return methods[property];
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
      set(target, property, value: number) {
        if (!isIndex(property)) return Reflect.set(target, property, value, target);
        const index = Number(property);
        if (index < target.length) tell(index, 1, value === 0);
        target[index] = value;
        return true;
      },
    });
    return proxy;
  }

  #tracedView(buffer: ArrayBufferLike, arena: number): DataView {
    const view = new DataView(buffer);
    const listener = this.#listener;
    for (const [kind, bytes] of Object.entries(VIEW_SETTERS)) {
      const name = `set${kind}` as 'setInt32';
      const set = view[name];
      Object.defineProperty(view, name, {
        value: (offset: number, value: number, isLittle?: boolean) => {
          listener(arena, offset, bytes, Number(value) === 0);
          set.call(view, offset, value, isLittle);
        },
      });
    }
    return view;
  }
}

const VIEW_SETTERS = {
  Int8: 1,
  Uint8: 1,
  Int16: 2,
  Uint16: 2,
  Int32: 4,
  Uint32: 4,
  Float32: 4,
  Float64: 8,
  BigInt64: 8,
  BigUint64: 8,
};

type Operation = (array: Int32Array, index: number, ...values: number[]) => number;

/** Atomics refuses proxies: these take what a traced array stands for, and tell of what they write. */
function replaceAtomics(listener: WriteListener): void {
  const real = globalThis.Atomics;
  const traced = Object.create(real) as Record<string, unknown>;
  const replace = (name: string, writes: (old: number, values: readonly number[]) => boolean): void => {
    const operation = (real as unknown as Record<string, Operation>)[name].bind(real) as Operation;
    traced[name] = (array: Int32Array, index: number, ...values: number[]): number => {
      const origin = originOf(array);
      if (origin === undefined) return operation(array, index, ...values);
      const raw = origin.raw as Int32Array;
      const old = raw[index];
      if (writes(old, values)) listener(origin.arena, origin.byteOffset + index * 4, 4, values.at(-1) === 0);
      return operation(raw, index, ...values);
    };
  };
  replace('load', () => false);
  for (const name of ['store', 'exchange', 'add', 'sub', 'and', 'or', 'xor']) replace(name, () => true);
  replace('compareExchange', (old, [expected]) => old === expected);
  globalThis.Atomics = traced as unknown as typeof Atomics;
}
