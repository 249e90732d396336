/**
 * Version 3 of the layout: what it differs in from the present one, and nothing else of it.
 *
 *     superblock      words 4 and 5   pages of the tiers, which could not change: now, what the tiers can become
 *                     word 42         0: now the table of how often pages were written, where there is one
 *                     words 496-503   0: now the sizes of the tiers, which can change
 *     capacity file   its trailer says 3
 *
 * So a superblock of version 3 becomes one of the present version by a few of its words, and nothing that it leads to has to move. Such a
 * pool has no room to grow: its tables were made for the size that it has.
 */
import { Super } from '../layout/superblock.js';
import { checkWord } from './format.js';

export const OLD_VERSION = 3;
const DRAM_PAGES_WORD = 4;
const CAPACITY_PAGES_WORD = 5;

/** True for a superblock as version 3 has written it. */
export function isWholeOld(words: Int32Array): boolean {
  return words[Super.BYTE_ORDER_WORD] === Super.BYTE_ORDER && words[Super.CHECK_WORD] === checkWord(words);
}

/** The same pool's superblock, as the present version has it. */
export function upgradedSuperblock(old: Int32Array): Int32Array {
  const words = old.slice();
  words[Super.VERSION_WORD] = Super.VERSION;
  words[Super.DRAM_ROOM_WORD] = old[DRAM_PAGES_WORD];
  words[Super.CAPACITY_ROOM_WORD] = old[CAPACITY_PAGES_WORD];
  words[Super.WEAR_TABLE_WORD] = 0;
  words[Super.DRAM_EXTENT_WORD] = old[DRAM_PAGES_WORD];
  words[Super.CAPACITY_EXTENT_WORD] = old[CAPACITY_PAGES_WORD];
  words[Super.DRAM_ABSENT_WORD] = 0;
  words[Super.CAPACITY_ABSENT_WORD] = 0;
  words[Super.DRAM_TARGET_WORD] = old[DRAM_PAGES_WORD];
  words[Super.CAPACITY_TARGET_WORD] = old[CAPACITY_PAGES_WORD];
  words[Super.RESIZE_ERRNO_WORD] = 0;
  words[Super.ORPHANS_WORD] = 0;
  words[Super.CHECK_WORD] = checkWord(words);
  return words;
}
