/** Errors of the embedded library. `code` is stable; the message is for people. */
export type CacheErrorCode =
  | 'ERR_ENTRESOL_CLOSED'
  | 'ERR_ENTRESOL_OUT_OF_MEMORY'
  | 'ERR_ENTRESOL_KEY'
  | 'ERR_ENTRESOL_VALUE'
  | 'ERR_ENTRESOL_WRONG_TYPE'
  | 'ERR_ENTRESOL_NOT_AN_INTEGER'
  | 'ERR_ENTRESOL_COMPUTE_TIMEOUT'
  | 'ERR_ENTRESOL_OPTION';

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
