/**
 * Locations: where an item lies, the same everywhere in the program.
 *
 *     page  (32 bits)  number of a 1 MiB page; DRAM pages from 0, capacity pages from the superblock's capacityBase
 *     unit  (16 bits)  16-byte unit within the page
 *
 * Memory is mapped in arenas of 1024 pages (one ArrayBuffer holds at most 4 GiB on Node 20), so a page's arena is
 * `page >>> ARENA_SHIFT` and a byte offset within an arena stays below 2^30: a small integer.
 * Page 0 holds the superblock and never an item, so page 0 means "no location".
 */
export const enum Page {
  BYTES = 0x100000,
  SHIFT = 20,
  /** log2 of the pages in an arena. */
  ARENA_SHIFT = 10,
  ARENA_PAGES = 1024,
  ARENA_MASK = 1023,
  UNIT_BYTES = 16,
  UNIT_SHIFT = 4,
  UNITS = 65536,
}

/** Byte offset of a page within its arena. */
export function pageOffset(page: number): number {
  return (page & Page.ARENA_MASK) << Page.SHIFT;
}

/** Byte offset of a location within its arena. */
export function locationOffset(page: number, unit: number): number {
  return ((page & Page.ARENA_MASK) << Page.SHIFT) + (unit << Page.UNIT_SHIFT);
}

/** 16-byte units that `bytes` take. */
export function unitsOf(bytes: number): number {
  return (bytes + Page.UNIT_BYTES - 1) >>> Page.UNIT_SHIFT;
}
