/**
 * What a slab chunk of a warm pool keeps behind its item, in its last eight bytes: where in the capacity log a copy of the item lies.
 *
 *     chunk | item | ... | word 0: page of the copy, 0 = none | word 1: its unit; without a copy: low word of the version last seen |
 *
 * Chunks of nodes (layout/node) have none. Pools keep it whose superblock says so (CHUNK_TAIL_WORD): its length, 0 or 8.
 */
import { locationOffset, Page } from './location.js';

export const enum ChunkTail {
  BYTES = 8,
  PAGE_WORD = 0,
  UNIT_WORD = 1,
  SEEN_WORD = 1,
}

/** First word, within its arena, of the tail of a chunk of so many units. */
export function chunkTail(page: number, unit: number, chunkUnits: number): number {
  return (locationOffset(page, unit) + (chunkUnits << Page.UNIT_SHIFT) - ChunkTail.BYTES) >>> 2;
}
