/** Errors of opening and using a pool: a code for programs, a sentence for people, the file it is about. */

/** Every code with what it means; the documentation's table is made of it. */
export const POOL_ERRORS = {
  POOL_FOREIGN: 'The file is not one of a pool. Nothing was changed: move it away, or choose another pool.',
  POOL_VERSION:
    'The pool was made by another version of the layout. Nothing was changed: `entresol pool upgrade` takes it from the version before to this one; else run that version, or choose another pool.',
  POOL_CORRUPT: 'The pool is damaged, or its capacity file is missing or belongs to another pool. Nothing was changed.',
  POOL_BUSY: 'Another process uses the pool with other sizes, or is preparing it.',
  POOL_MISSING: 'No pool is there, or its DRAM tier is gone: a reboot empties a volatile pool.',
  POOL_FULL: 'All seats of the pool are taken, or its memory is too small for what it must hold.',
  POOL_SIZE:
    'What the pool holds does not fit the sizes that were asked for. Ask for those that it has, or remove the pool.',
  POOL_IO: 'A system call failed; `cause` is its error.',
} as const;

export type PoolErrorCode = keyof typeof POOL_ERRORS;

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
