/**
 * Chunk sizes of the slab classes, in 16-byte units: every unit up to 512 bytes, then eight to a doubling up to
 * 16 KiB, then the sizes that divide a 1 MiB page without waste. Larger items own whole pages.
 *
 * Fixed for a layout version: the class number is stored in the page table.
 */
import { Page } from '../layout/location.js';
import { SlabClass } from '../layout/superblock.js';

const SMALLEST_UNITS = 2;
const FINE_UNITS = 32;
const GEOMETRIC_UNITS = 1024;
const STEPS_PER_DOUBLING = 8;
/** Chunks per page of the largest class: 256 KiB. */
const FEWEST_PER_PAGE = 4;

function chunkUnits(): number[] {
  const units: number[] = [];
  for (let u = SMALLEST_UNITS; u <= FINE_UNITS; u++) units.push(u);
  for (let base = FINE_UNITS; base < GEOMETRIC_UNITS; base *= 2) {
    for (let step = 1; step <= STEPS_PER_DOUBLING; step++) units.push(base + (base / STEPS_PER_DOUBLING) * step);
  }
  let perPage = Math.floor(Page.UNITS / GEOMETRIC_UNITS) - 1;
  for (; perPage >= FEWEST_PER_PAGE; ) {
    units.push(Math.floor(Page.UNITS / perPage));
    // Steps of about an eighth here too.
    perPage = Math.min(perPage - 1, Math.floor(perPage / 1.1));
  }
  return units;
}

/** Units of a chunk of each class. */
export const CLASS_UNITS = Int32Array.from(chunkUnits());
export const CLASS_COUNT = CLASS_UNITS.length;
/** Chunks in a page of each class. */
export const CLASS_CHUNKS = CLASS_UNITS.map((units) => Math.floor(Page.UNITS / units));
/** Largest item that lives in a slab chunk or a log page; larger ones own whole pages. */
export const MAX_CHUNK_UNITS = CLASS_UNITS[CLASS_COUNT - 1];

/** An item that must make way for a page move may land in a chunk this many times as large. */
export const RELOCATION_RATIO = 4;

/** Smallest class that holds so many units. */
export const CLASS_OF_UNITS = new Uint8Array(MAX_CHUNK_UNITS + 1);
for (let units = 0, slabClass = 0; units <= MAX_CHUNK_UNITS; units++) {
  if (units > CLASS_UNITS[slabClass]) slabClass++;
  CLASS_OF_UNITS[units] = slabClass;
}

if (CLASS_COUNT > SlabClass.MAX) throw new Error(`${CLASS_COUNT} slab classes do not fit the class table`);
