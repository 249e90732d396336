/**
 * A failed start, in words: what is wrong, where, and what to do.
 *
 * Errors of our own (code ERR_...) already say so; operating-system errors get their advice here, by errno.
 */
import { approximateSize, type Settings } from '../config/index.js';

/** Codes of our own errors (the pool's, the configuration's, the addon's); other ERR_ codes are Node.js's, for mistakes in code. */
const OWN_CODE = /^(POOL_|ERR_CONFIG$|ERR_LOAD$|ERR_ADDON_MISSING$)/;

interface SystemError extends Error {
  readonly code: string;
  readonly path?: string;
  readonly address?: string;
  readonly port?: number;
  readonly syscall?: string;
}

function isCoded(error: unknown): error is SystemError {
  return error instanceof Error && typeof (error as Partial<SystemError>).code === 'string';
}

function place(error: SystemError): string {
  if (error.path !== undefined && error.path !== '') return `${error.path}: `;
  if (error.address !== undefined && error.port !== undefined) return `${error.address}:${error.port}: `;
  return '';
}

/** What to do about an errno, or undefined where there is nothing to add to the message. */
function advice(code: string, settings: Settings): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return `another program listens there already. Stop it, or choose other ports: --port N --memcached-port N (0 = off); now ${settings.port} and ${settings.memcachedPort}.`;
    case 'EADDRNOTAVAIL':
      return `this machine has no such address (--bind ${settings.bind.join(',')}${settings.memcachedBind.length === 0 ? '' : ` --memcached-bind ${settings.memcachedBind.join(',')}`}).`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `no space left: the pool needs ${approximateSize(settings.capacity)} in ${settings.pool} and ${approximateSize(settings.dram)} of shared memory. Free some, or lower --capacity or --dram, or choose another --pool.`;
    case 'ENOMEM':
      return `not enough memory for ${approximateSize(settings.dram)}: lower --dram.`;
    case 'EACCES':
    case 'EPERM':
      return 'no permission. Choose another --pool or --unix path or a port above 1023, or run as a user who may.';
    case 'EROFS':
      return 'the file system is read-only: choose another --pool.';
    case 'ENOENT':
    case 'ENOTDIR':
    case 'EEXIST':
      return `a folder is needed there: make it, or choose another --pool (now ${settings.pool}) or --unix path.`;
    case 'EMFILE':
    case 'ENFILE':
      return 'too many open files: raise the limit (ulimit -n) or lower --maxclients.';
    case 'EOPNOTSUPP':
      return 'the file system or the device cannot do that: choose another --tier or --pool.';
    case 'EIO':
      return 'the device reports an input/output error: check it, or choose another --pool.';
    default:
      return undefined;
  }
}

function ownAdvice(code: string, settings: Settings): string | undefined {
  switch (code) {
    case 'POOL_FOREIGN':
    case 'POOL_CORRUPT':
      return `Nothing was changed. Move the file away to begin with an empty pool, or choose another --pool (now ${settings.pool}).`;
    case 'POOL_VERSION':
      return `Nothing was changed. 'entresol pool upgrade ${settings.pool}' brings a pool of the version before to this one; else run the version of Entresol that made it, or choose another --pool.`;
    case 'ERR_LOAD':
      return `The pool is empty, and the next start tries again. Repair the file (redis-check-rdb or redis-check-aof say more), or put it out of the way (then start without --load).`;
    case 'POOL_BUSY':
      return `stop the other process, or choose another --pool (now ${settings.pool}).`;
    default:
      return undefined;
  }
}

/** One message without a stack trace, or undefined when the error is not one that a start is expected to meet. */
export function describeStartupError(error: unknown, settings: Settings): string | undefined {
  if (!isCoded(error)) return undefined;
  const where = place(error);
  const message = where === '' || error.message.includes(where.slice(0, -2)) ? error.message : where + error.message;
  if (OWN_CODE.test(error.code)) {
    const causeHint = isCoded(error.cause) ? advice(error.cause.code, settings) : undefined;
    const hint = causeHint ?? ownAdvice(error.code, settings);
    return hint === undefined ? message : `${message}\n  ${hint}`;
  }
  const hint = advice(error.code, settings);
  if (hint !== undefined) return `${message}\n  ${hint}`;
  return error.syscall === undefined ? undefined : message;
}
