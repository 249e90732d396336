/** Errors of the embedded library. `code` is stable; the message is for people. */

/** Every code with what it means; the documentation's table is made of it. */
export const CACHE_ERRORS = {
  ERR_ENTRESOL_CLOSED: 'The cache was closed.',
  ERR_ENTRESOL_OUT_OF_MEMORY: 'The store is full and its policy lets nothing be evicted. The old value stays.',
  ERR_ENTRESOL_KEY:
    'The key is longer than 65,535 bytes, or neither a string nor a Uint8Array (for getOrCompute: no string).',
  ERR_ENTRESOL_VALUE:
    'The value is longer than 512 MiB, or neither a string nor a Uint8Array; get: it is too long for a string.',
  ERR_ENTRESOL_WRONG_TYPE: 'The key holds a value that is not a string.',
  ERR_ENTRESOL_NOT_AN_INTEGER: 'incr: the value or the sum is not an integer below 2^53. The value stays.',
  ERR_ENTRESOL_COMPUTE_TIMEOUT: 'getOrCompute: another caller has been computing for longer than waitTimeout.',
  ERR_ENTRESOL_LOG:
    'The pool is durable, and its effect log cannot be written: the disk is full, for example. Nothing has changed.',
  ERR_ENTRESOL_OPTION: 'An option has a value that cannot be used.',
} as const;

export type CacheErrorCode = keyof typeof CACHE_ERRORS;

export class CacheError extends Error {
  override readonly name = 'CacheError';

  constructor(
    readonly code: CacheErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
