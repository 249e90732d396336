/**
 * Memory sizes as text, as Redis writes them and with the IEC units beside.
 *
 * Owns the unit table. A bare number is bytes; k, m, g, t are powers of 1000; kb, mb, gb, tb and KiB, MiB, GiB, TiB are
 * powers of 1024; case does not matter. Invariant: parseSize(formatSize(n)) === n for every safe non-negative integer.
 */

const UNIT_BYTES: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['b', 1],
  ['k', 1000],
  ['kb', 1024],
  ['kib', 1024],
  ['m', 1000 ** 2],
  ['mb', 1024 ** 2],
  ['mib', 1024 ** 2],
  ['g', 1000 ** 3],
  ['gb', 1024 ** 3],
  ['gib', 1024 ** 3],
  ['t', 1000 ** 4],
  ['tb', 1024 ** 4],
  ['tib', 1024 ** 4],
]);

const READABLE: readonly (readonly [string, number])[] = [
  ['TiB', 1024 ** 4],
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
];

/** Bytes, or undefined when the text is not a size (or is above 2^53 - 1). */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+)\s*([a-z]*)$/i.exec(text.trim());
  if (match === null) return undefined;
  const unitBytes = UNIT_BYTES.get(match[2].toLowerCase());
  if (unitBytes === undefined) return undefined;
  const bytes = Number(match[1]) * unitBytes;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The shortest exact form: '128MiB', '1500' (bytes). */
export function formatSize(bytes: number): string {
  for (const [unit, unitBytes] of READABLE) {
    if (bytes >= unitBytes && bytes % unitBytes === 0) return `${bytes / unitBytes}${unit}`;
  }
  return String(bytes);
}

/** For messages to people, where a rounded number reads better than an exact one: '1.4 GiB'. */
export function approximateSize(bytes: number): string {
  for (const [unit, unitBytes] of READABLE) {
    if (bytes >= unitBytes) {
      const count = bytes / unitBytes;
      return `${Number.isInteger(count) ? count : count.toFixed(1)} ${unit}`;
    }
  }
  return `${bytes} bytes`;
}
