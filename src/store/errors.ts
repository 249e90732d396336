/** Errors of opening and using a pool: a code for programs, a sentence for people, the file it is about. */
export type PoolErrorCode =
  | 'POOL_FOREIGN'
  | 'POOL_VERSION'
  | 'POOL_CORRUPT'
  | 'POOL_BUSY'
  | 'POOL_FULL'
  | 'POOL_SIZE'
  | 'POOL_IO';

export class PoolError extends Error {
  override readonly name = 'PoolError';

  constructor(
    readonly code: PoolErrorCode,
    readonly path: string,
    what: string,
    options?: ErrorOptions,
  ) {
    super(path === '' ? what : `${path}: ${what}`, options);
  }

  /** Wraps a system call's failure. */
  static from(error: unknown, path: string, what: string): PoolError {
    const reason = error instanceof Error ? error.message : String(error);
    return new PoolError('POOL_IO', path, `${what}: ${reason}`, { cause: error });
  }
}
