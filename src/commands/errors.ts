/**
 * The error replies that several families share, in Redis's exact words. Errors of one family stand in its file.
 */

export const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';
export const SYNTAX = 'ERR syntax error';
export const NOT_INTEGER = 'ERR value is not an integer or out of range';
export const NOT_POSITIVE = 'ERR value is out of range, must be positive';
/** The number that cannot be negated. */
export const BEYOND = 'ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807';
export const NO_NUMKEYS = 'ERR numkeys should be greater than 0';
export const NOT_FLOAT = 'ERR value is not a valid float';
export const NO_SUCH_KEY = 'ERR no such key';
export const OUT_OF_RANGE = 'ERR index out of range';
export const NO_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
/** While a script or function runs for longer than busy-reply-threshold. */
export const BUSY_SCRIPT = 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.';
export const BUSY_FUNCTION = 'BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.';
export const NO_AUTH = 'NOAUTH Authentication required.';
export const WRONG_PASSWORD = 'WRONGPASS invalid username-password pair or user is disabled.';
export const EXEC_ABORTED = 'EXECABORT Transaction discarded because of previous errors.';
export const STRING_TOO_LONG = 'ERR string exceeds maximum allowed size (proto-max-bulk-len)';
export const DB_OUT_OF_RANGE = 'ERR DB index is out of range';
export const KEY_TOO_LONG = 'ERR key is too long: at most 65535 bytes are allowed';

export function wrongArity(fullName: string): string {
  return `ERR wrong number of arguments for '${fullName}' command`;
}

/** `Try X HELP` of containers; `word` is the client's own subcommand. */
export function unknownSubcommand(word: string, container: string): string {
  return `ERR unknown subcommand '${word.slice(0, 128)}'. Try ${container.toUpperCase()} HELP.`;
}

export function unknownCommand(word: string, args: readonly string[]): string {
  let list = '';
  for (const arg of args) {
    if (list.length >= 128) break;
    list += `'${arg.slice(0, 128 - list.length)}' `;
  }
  return `ERR unknown command '${word.slice(0, 128)}', with args beginning with: ${list}`;
}
