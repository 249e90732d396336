/**
 * The first words of error replies that are counted without a look at their text's name (INFO errorstats); others are counted by name.
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
  'NOSCRIPT',
  'NOGROUP',
];

/** The blank behind the code is looked for in so many bytes; without it the code is ERR, as in Redis. */
const CODE_END_MAX = 31;

export function errorCode(text: string): string {
  const space = text.indexOf(' ');
  return space > 0 && space < CODE_END_MAX ? text.slice(0, space) : ERROR_CODES[0];
}
