/**
 * The first words of error replies that are counted one by one (INFO errorstats). Others count as OTHER.
 *
 * Invariant: ERROR_CODES[i] is the code with index i; the counters of all workers agree on it.
 */

export const ERROR_CODES: readonly string[] = [
  'ERR',
  'WRONGTYPE',
  'OOM',
  'NOAUTH',
  'WRONGPASS',
  'NOPERM',
  'NOPROTO',
  'EXECABORT',
  'BUSY',
  'UNBLOCKED',
  'NOGROUP',
  'BUSYGROUP',
  'OTHER',
];

/** Index of an error text's code. */
export function errorCodeIndex(text: string): number {
  const space = text.indexOf(' ');
  const index = ERROR_CODES.indexOf(space > 0 ? text.slice(0, space) : text);
  return index < 0 ? ERROR_CODES.length - 1 : index;
}
