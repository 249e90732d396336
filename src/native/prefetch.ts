/**
 * Prefetch: starts loading ranges of cache lines without waiting for them.
 *
 * JavaScript has no prefetch instruction, and a loop of loads overlaps only as many misses as fit the CPU's reorder window;
 * prefetch instructions retire at once. Shares the thread's copy control block: add ranges, then start; nothing may copy in between.
 */
import { addon } from './addon.js';

const control = new Int32Array(addon.copyControl());
const { prefetch } = addon;
/** Words of a record: arena, byte offset, lines. */
const WORDS = 3;
let used = 1;

/** Adds `lineCount` cache lines from `offset` on. */
export function addPrefetch(arena: number, offset: number, lineCount: number): void {
  control[used] = arena;
  control[used + 1] = offset;
  control[used + 2] = lineCount;
  used += WORDS;
}

/** Starts loading what was added. */
export function startPrefetch(): void {
  control[0] = (used - 1) / WORDS;
  used = 1;
  prefetch();
}
