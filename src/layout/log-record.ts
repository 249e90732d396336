/**
 * What pages of the capacity log carry in a pool that survives a reboot (durability warm), so that a scan can trust what it finds.
 *
 *     page    | header (64 B) | record | record | ... | free | 136 lines of 64 B: which units are dead |
 *
 *     header   0 magic   4 epoch   8 generation   12 page number in the tier   16 check word   20 scanned   24 its check word   28 zero
 *     record   0 check   4 shape check   8 expiry, low   12 expiry, high   16 expiry check   20 zero   32 item (layout/item)
 *     line     480 bits, one for each unit at which a dead record's item begins, and their check word
 *
 * Every check word is seeded with the page's key: pool identity, epoch, generation and number. So what an earlier use of the page left
 * behind, another pool's page, and a page in another's place are none of this page's. The epoch is random, new each time the
 * DRAM tier is made; generations count the pages opened since. `scanned` is the last epoch whose rebuild has scanned the page to its end.
 *
 * A record's `check` (CRC-32C of the item) is written last, when an entry of the index points to it; 0 until then. The shape
 * check tells where the next record begins, whatever became of this one. Bits are only ever set, and a line's check word takes
 * one more XOR with each: no lock is needed, and a line that was written in part is known by it. Its records are then taken for dead.
 *
 * Example, key 0x1234, second line, no bit set: the words 0..14 are 0, the check word is mix(0x1234, 1) = 0xae6255e9.
 */
import { Page } from './location.js';

export const enum LogPage {
  MAGIC = 0x474f_4c45, // 'ELOG'
  MAGIC_WORD = 0,
  EPOCH_WORD = 1,
  GENERATION_WORD = 2,
  NUMBER_WORD = 3,
  CHECK_WORD = 4,
  SCANNED_WORD = 5,
  SCANNED_CHECK_WORD = 6,
  HEADER_WORDS = 16,
  HEADER_UNITS = 4,

  LINE_BITS = 480,
  LINE_WORDS = 16,
  LINE_CHECK_WORD = 15,
  LINES = 136,
  /** Records end below this unit, the lines begin at it. */
  END_UNIT = 64992,
}

export const enum LogRecord {
  CHECK_WORD = 0,
  SHAPE_CHECK_WORD = 1,
  EXPIRY_LOW_WORD = 2,
  EXPIRY_HIGH_WORD = 3,
  EXPIRY_CHECK_WORD = 4,
  /** In front of the item, in units and in words. */
  UNITS = 2,
  WORDS = 8,
}

if (LogPage.END_UNIT + LogPage.LINES * 4 !== Page.UNITS || LogPage.LINES * LogPage.LINE_BITS < LogPage.END_UNIT) {
  throw new Error('the lines of a log page do not cover its records');
}

/** Adds a word to a check word. Not for what an enemy chooses: it finds what broke. */
export function mix(check: number, word: number): number {
  let h = Math.imul(check ^ word, 0x9e37_79b1);
  h = Math.imul(h ^ (h >>> 15), 0x85eb_ca77);
  return h ^ (h >>> 13);
}

/** Key of a page: what all its check words are seeded with. `salt`: of the pool's identity. */
export function pageKey(salt: number, epoch: number, generation: number, number: number): number {
  return mix(mix(mix(salt, epoch), generation), number);
}

/** Of four words of identity. */
export function identitySalt(words: Int32Array, at: number): number {
  return mix(mix(mix(mix(LogPage.MAGIC, words[at]), words[at + 1]), words[at + 2]), words[at + 3]);
}

export function writePageHeader(words: Int32Array, base: number, key: number, epoch: number, generation: number): void {
  words[base + LogPage.EPOCH_WORD] = epoch;
  words[base + LogPage.GENERATION_WORD] = generation;
  words[base + LogPage.CHECK_WORD] = mix(key, LogPage.MAGIC);
  words[base + LogPage.MAGIC_WORD] = LogPage.MAGIC;
}

/** Key of the page whose header begins at `base`; 0 when that is none of this pool, or another page's. */
export function readPageKey(words: Int32Array, base: number, salt: number, number: number): number {
  if (words[base + LogPage.MAGIC_WORD] !== LogPage.MAGIC || words[base + LogPage.NUMBER_WORD] !== number) return 0;
  const key = pageKey(salt, words[base + LogPage.EPOCH_WORD], words[base + LogPage.GENERATION_WORD], number);
  return words[base + LogPage.CHECK_WORD] === mix(key, LogPage.MAGIC) ? key : 0;
}

/** The rebuild of that epoch has seen all of the page. */
export function markScanned(words: Int32Array, base: number, key: number, epoch: number): void {
  words[base + LogPage.SCANNED_WORD] = epoch;
  words[base + LogPage.SCANNED_CHECK_WORD] = mix(~key, epoch);
}

/** What has died in the page since that epoch began is marked in it: it was opened, or scanned, in it. */
export function isKeptSince(words: Int32Array, base: number, key: number, epoch: number): boolean {
  if (words[base + LogPage.EPOCH_WORD] === epoch) return true;
  return words[base + LogPage.SCANNED_WORD] === epoch && words[base + LogPage.SCANNED_CHECK_WORD] === mix(~key, epoch);
}

export function shapeCheck(key: number, unit: number, shape: number, valueLength: number): number {
  return mix(mix(mix(key, unit), shape), valueLength);
}

export function expiryCheck(key: number, unit: number, low: number, high: number): number {
  return mix(mix(mix(key, ~unit), low), high);
}

// ---- dead units

/** First word of the line that tells of a unit. `base`: first word of the page. */
export function lineOf(base: number, unit: number): number {
  return base + LogPage.END_UNIT * 4 + Math.floor(unit / LogPage.LINE_BITS) * LogPage.LINE_WORDS;
}

export function clearLines(words: Int32Array, base: number, key: number): void {
  const first = base + LogPage.END_UNIT * 4;
  words.fill(0, first, first + LogPage.LINES * LogPage.LINE_WORDS);
  for (let line = 0; line < LogPage.LINES; line++) {
    words[first + line * LogPage.LINE_WORDS + LogPage.LINE_CHECK_WORD] = mix(key, line);
  }
}

function bitCheck(key: number, unit: number): number {
  return mix(key, unit + LogPage.LINES);
}

/** The item at the unit is dead. Anybody may say so, at any time, and again. */
export function markDead(words: Int32Array, base: number, key: number, unit: number): void {
  const line = lineOf(base, unit);
  const bit = unit % LogPage.LINE_BITS;
  const mask = 1 << (bit & 31);
  if ((Atomics.or(words, line + (bit >>> 5), mask) & mask) !== 0) return;
  Atomics.xor(words, line + LogPage.LINE_CHECK_WORD, bitCheck(key, unit));
}

export function isDead(words: Int32Array, base: number, unit: number): boolean {
  const bit = unit % LogPage.LINE_BITS;
  return (words[lineOf(base, unit) + (bit >>> 5)] & (1 << (bit & 31))) !== 0;
}

/** True when the line's bits are those that its check word was made of. */
export function isLineSound(words: Int32Array, base: number, key: number, line: number): boolean {
  const at = base + LogPage.END_UNIT * 4 + line * LogPage.LINE_WORDS;
  let check = mix(key, line);
  for (let word = 0; word < LogPage.LINE_CHECK_WORD; word++) {
    for (let bits = words[at + word]; bits !== 0; bits &= bits - 1) {
      const bit = 31 - Math.clz32(bits & -bits);
      check ^= bitCheck(key, line * LogPage.LINE_BITS + word * 32 + bit);
    }
  }
  return check === words[at + LogPage.LINE_CHECK_WORD];
}
