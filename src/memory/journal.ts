/**
 * Undo journals of one participant, in its own page of shared memory.
 *
 * Whoever changes words under a lock first saves what they held; a participant that dies leaves its journal, and whoever
 * repairs it writes the old words back, newest first. A dead process has executed all stores up to the one it died at,
 * so program order is all that is needed: no fence.
 *
 * Two journals: `undo` for a command's changes to index and items (open until its locks are released), `alloc` for the
 * allocator's (open while a class or the page lock is held): the latter must stand even when the former is rolled back.
 *
 *     undo record   n words of old content | arena | word | n         (walked backwards from UNDO_COUNT_WORD)
 *     alloc record  arena | word | old
 */
import { type Bytes, NO_ARENA } from '../layout/bytes.js';
import { ParticipantPage as P } from '../layout/superblock.js';
import { addCopy, copyBytes, runCopies } from '../native/copy.js';
import type { Memory } from './memory.js';

/** Words copied by a loop; above, by a native call of about 50 ns. */
const LOOP_WORDS = 64;

export class Journal {
  readonly #memory: Memory;
  readonly #words: Int32Array;
  readonly #undoBase: number;
  readonly #undoCount: number;
  readonly #undoNext: number;
  readonly #allocBase: number;
  readonly #allocCount: number;
  /** Copies of the two count words: saves reading shared memory. */
  #undo = 0;
  #alloc = 0;

  /** Makes room in a full journal: what was changed so far stands. The store adds what belongs to it. */
  settle: () => void = () => this.commit();

  /** `words` and `base` are the participant's page, its own or (for repair) a dead one's. */
  constructor(memory: Memory, words: Int32Array, base: number) {
    this.#memory = memory;
    this.#words = words;
    this.#undoBase = base + P.UNDO_WORD;
    this.#undoCount = base + P.UNDO_COUNT_WORD;
    this.#undoNext = base + P.UNDO_NEXT_WORD;
    this.#allocBase = base + P.ALLOC_WORD;
    this.#allocCount = base + P.ALLOC_COUNT_WORD;
    this.#undo = words[this.#undoCount];
    this.#alloc = words[this.#allocCount];
  }

  /** True when `wordCount` more words can be saved in one record. */
  hasRoom(wordCount: number): boolean {
    return this.#undo + wordCount + 3 <= P.UNDO_WORDS;
  }

  /** Saves one word of an arena before it is changed. */
  save(arena: number, source: Int32Array, word: number): void {
    // A command larger than the journal is rolled back only in its last part.
    if (this.#undo + 4 > P.UNDO_WORDS) this.settle();
    const words = this.#words;
    const at = this.#undoBase + this.#undo;
    words[at] = source[word];
    words[at + 1] = arena;
    words[at + 2] = word;
    words[at + 3] = 1;
    this.#undo += 4;
    words[this.#undoCount] = this.#undo;
  }

  saveRange(arena: number, source: Int32Array, word: number, wordCount: number): void {
    if (!this.hasRoom(wordCount)) this.settle();
    const words = this.#words;
    const at = this.#undoBase + this.#undo;
    if (wordCount > LOOP_WORDS) {
      const memory = this.#memory;
      copyBytes(memory.arenas[memory.ownArena], at << 2, memory.arenas[arena], word << 2, wordCount << 2);
    } else {
      for (let i = 0; i < wordCount; i++) words[at + i] = source[word + i];
    }
    words[at + wordCount] = arena;
    words[at + wordCount + 1] = word;
    words[at + wordCount + 2] = wordCount;
    this.#undo += wordCount + 3;
    words[this.#undoCount] = this.#undo;
  }

  /**
   * Saves a range of words of an arena and copies `length` bytes to `toOffset` within it. One native call for old bytes, the
   * journal's count and new bytes, in this order: so the record stands before the first byte changes.
   */
  saveAndCopy(
    arena: number,
    word: number,
    wordCount: number,
    toOffset: number,
    from: Bytes,
    fromOffset: number,
    length: number,
  ): void {
    const memory = this.#memory;
    const target = memory.arenas[arena];
    if (from.arena === NO_ARENA) {
      this.saveRange(arena, target.i32, word, wordCount);
      copyBytes(target, toOffset, from, fromOffset, length);
      return;
    }
    if (!this.hasRoom(wordCount)) this.settle();
    const words = this.#words;
    const at = this.#undoBase + this.#undo;
    words[at + wordCount] = arena;
    words[at + wordCount + 1] = word;
    words[at + wordCount + 2] = wordCount;
    this.#undo += wordCount + 3;
    words[this.#undoNext] = this.#undo;
    const own = memory.arenas[memory.ownArena].arena;
    addCopy(own, at << 2, target.arena, word << 2, wordCount << 2);
    addCopy(own, this.#undoCount << 2, own, this.#undoNext << 2, 4);
    addCopy(target.arena, toOffset, from.arena, fromOffset, length);
    runCopies();
  }

  /** The changes stand. */
  commit(): void {
    if (this.#undo !== 0) {
      this.#undo = 0;
      this.#words[this.#undoCount] = 0;
    }
  }

  saveAlloc(arena: number, source: Int32Array, word: number): void {
    const words = this.#words;
    if (this.#alloc >= P.ALLOC_SLOTS) throw new Error('allocator journal is full');
    const at = this.#allocBase + this.#alloc * 3;
    words[at] = arena;
    words[at + 1] = word;
    words[at + 2] = source[word];
    this.#alloc++;
    words[this.#allocCount] = this.#alloc;
  }

  /** Saves a control word, then sets it. */
  setControl(word: number, value: number): void {
    this.saveAlloc(0, this.#memory.ctl, word);
    this.#memory.ctl[word] = value;
  }

  /** Clears a word of any arena as part of the allocator's step: a held slot whose chunk is handed over. Word -1 = none. */
  clearWord(arena: number, word: number): void {
    if (word < 0) return;
    const { i32 } = this.#memory.arenas[arena];
    this.saveAlloc(arena, i32, word);
    i32[word] = 0;
  }

  commitAlloc(): void {
    this.#alloc = 0;
    this.#words[this.#allocCount] = 0;
  }

  get isOpen(): boolean {
    return this.#undo !== 0 || this.#alloc !== 0;
  }

  /** Each of the undo records lies within memory, and the first begins where they begin: not so in a damaged pool. */
  get isSound(): boolean {
    const { arenas } = this.#memory;
    const words = this.#words;
    let used = this.#undo;
    if (used > P.UNDO_WORDS) return false;
    while (used > 0) {
      const end = this.#undoBase + used;
      const wordCount = words[end - 1];
      const word = words[end - 2];
      const target = arenas[words[end - 3]]?.i32.length ?? 0;
      if (wordCount < 0 || wordCount + 3 > used || word < 0 || word + wordCount > target) return false;
      used -= wordCount + 3;
    }
    return used === 0;
  }

  /** Writes back what the command had changed so far. */
  rollback(): void {
    const arenas: readonly Bytes[] = this.#memory.arenas;
    const words = this.#words;
    let used = this.#undo;
    if (!this.isSound) throw new Error('an undo journal is damaged');
    while (used > 0) {
      const end = this.#undoBase + used;
      const wordCount = words[end - 1];
      const word = words[end - 2];
      const target = arenas[words[end - 3]].i32;
      const from = end - 3 - wordCount;
      for (let i = 0; i < wordCount; i++) target[word + i] = words[from + i];
      used -= wordCount + 3;
    }
    this.commit();
  }

  rollbackAlloc(): void {
    const arenas: readonly Bytes[] = this.#memory.arenas;
    const words = this.#words;
    for (let i = this.#alloc - 1; i >= 0; i--) {
      const at = this.#allocBase + i * 3;
      arenas[words[at]].i32[words[at + 1]] = words[at + 2];
    }
    this.commitAlloc();
  }
}
