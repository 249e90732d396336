/**
 * Names of error codes that nobody has declared (a script's 'MY_CODE text'), in the counters' block: all workers count them under one number.
 *
 *   slot i: | hash, 0 = free | 1 = the name is written | length | name, 32 bytes |
 *
 * Invariant: a slot that is taken keeps its name; slots fill from the first on. Who finds them all taken counts under no name.
 */
export const ERROR_NAMES_MAX = 48;
/** Longer ones are no codes, as in Redis, which looks for the blank behind it in the first 32 bytes. */
export const ERROR_NAME_BYTES_MAX = 30;

const SLOT_WORDS = 11;
const NAME_OFFSET = 12;
export const ERROR_NAMES_BYTES = ERROR_NAMES_MAX * SLOT_WORDS * 4;

export class ErrorNames {
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #known = new Map<string, number>();

  constructor(block: SharedArrayBuffer, offset: number) {
    this.#words = new Int32Array(block, offset, ERROR_NAMES_MAX * SLOT_WORDS);
    this.#bytes = new Uint8Array(block, offset, ERROR_NAMES_BYTES);
  }

  /** Number of a name, which gets one if it has none; -1 = all are taken. */
  numberOf(name: string): number {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const hash = hashOf(name);
    for (let slot = 0; slot < ERROR_NAMES_MAX; slot++) {
      const word = slot * SLOT_WORDS;
      const owner = Atomics.compareExchange(this.#words, word, 0, hash);
      if (owner !== 0 && owner !== hash) continue;
      if (owner === 0) this.#write(word, name);
      this.#known.set(name, slot);
      return slot;
    }
    return -1;
  }

  /** Null = no code has that number yet. */
  nameOf(slot: number): string | null {
    const word = slot * SLOT_WORDS;
    if (Atomics.load(this.#words, word + 1) === 0) return null;
    const at = word * 4 + NAME_OFFSET;
    return String.fromCharCode(...this.#bytes.subarray(at, at + this.#words[word + 2]));
  }

  #write(word: number, name: string): void {
    const length = Math.min(name.length, ERROR_NAME_BYTES_MAX);
    for (let i = 0; i < length; i++) this.#bytes[word * 4 + NAME_OFFSET + i] = name.charCodeAt(i);
    this.#words[word + 2] = length;
    Atomics.store(this.#words, word + 1, 1);
  }
}

/** FNV-1a, never 0. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash | 1;
}
