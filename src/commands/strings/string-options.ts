/**
 * The options of SET and GETEX: NX XX GET KEEPTTL PERSIST and the four ways to say an expiry.
 *
 * As in Redis, the words are checked first and the expiry's value after them. Invariant: `expiryAt` is the index of the
 * expiry argument when one of the four flags is set.
 */
import { integerArg, tokenArg, unixTimeArg } from '../arguments.js';
import type { Context } from '../context.js';
import { SYNTAX } from '../errors.js';

export const enum StringOption {
  NX = 1,
  XX = 2,
  GET = 4,
  KEEPTTL = 8,
  PERSIST = 16,
  EX = 32,
  PX = 64,
  EXAT = 128,
  PXAT = 256,
  ANY_EXPIRY = EX | PX | EXAT | PXAT,
  IN_SECONDS = EX | EXAT,
  RELATIVE = EX | PX,
  /** At most one of these. */
  ONE_OF = ANY_EXPIRY | KEEPTTL | PERSIST,
}

/** Options of the command in hand. */
export const stringOptions = { flags: 0, expiryAt: 0 };

/** Reads options from argument `first` on; `allowed` = words the command knows. False = a syntax error has been replied. */
export function parseStringOptions(context: Context, first: number, allowed: number): boolean {
  let flags = 0;
  for (let i = first; i < context.argc; i++) {
    const option = optionAt(context, i) & allowed;
    const excluded =
      (option & StringOption.ONE_OF) !== 0
        ? StringOption.ONE_OF & ~option
        : option === StringOption.NX
          ? StringOption.XX
          : option === StringOption.XX
            ? StringOption.NX
            : 0;
    const takesValue = (option & StringOption.ANY_EXPIRY) !== 0;
    if (option === 0 || (flags & excluded) !== 0 || (takesValue && i + 1 === context.argc)) {
      context.reply.error(SYNTAX);
      return false;
    }
    flags |= option;
    if (takesValue) stringOptions.expiryAt = ++i;
  }
  stringOptions.flags = flags;
  return true;
}

function optionAt(context: Context, i: number): number {
  switch (context.argLength(i)) {
    case 2:
      if (context.argIs(i, 'EX')) return StringOption.EX;
      if (context.argIs(i, 'PX')) return StringOption.PX;
      if (context.argIs(i, 'NX')) return StringOption.NX;
      if (context.argIs(i, 'XX')) return StringOption.XX;
      return 0;
    case 3:
      return context.argIs(i, 'GET') ? StringOption.GET : 0;
    case 4:
      if (context.argIs(i, 'EXAT')) return StringOption.EXAT;
      return context.argIs(i, 'PXAT') ? StringOption.PXAT : 0;
    case 7:
      if (context.argIs(i, 'KEEPTTL')) return StringOption.KEEPTTL;
      return context.argIs(i, 'PERSIST') ? StringOption.PERSIST : 0;
    default:
      return 0;
  }
}

/** The expiry options as COMMAND DOCS lists them; `since` of EX and PX, which differs by command. */
export const expiryArgs = (since?: string) => [
  integerArg('seconds', { token: 'EX', ...(since === undefined ? {} : { since }) }),
  integerArg('milliseconds', { token: 'PX', ...(since === undefined ? {} : { since }) }),
  unixTimeArg('unix-time-seconds', { token: 'EXAT', ...(since === undefined ? {} : { since: '6.2.0' }) }),
  unixTimeArg('unix-time-milliseconds', { token: 'PXAT', ...(since === undefined ? {} : { since: '6.2.0' }) }),
];
export const conditionArgs = [tokenArg('NX', { since: '2.6.12' }), tokenArg('XX', { since: '2.6.12' })];
