/**
 * A request's arguments as SLOWLOG keeps them: the first few, long ones cut.
 */
import type { Context } from '../context.js';

const ARGUMENTS_MAX = 32;
const ARGUMENT_BYTES_MAX = 128;

/** Copies of the bound request's arguments, at most 32, each of at most 128 bytes and a note of how much was left out. */
export function shownArguments(context: Context): Uint8Array[] {
  const argv: Uint8Array[] = [];
  const shown = Math.min(context.argc, ARGUMENTS_MAX);
  for (let i = 0; i < shown; i++) {
    const hidden = context.argc - ARGUMENTS_MAX + 1;
    const isRest = i === ARGUMENTS_MAX - 1 && hidden > 1;
    argv.push(isRest ? Buffer.from(`... (${hidden} more arguments)`) : shownArgument(context, i));
  }
  return argv;
}

function shownArgument(context: Context, i: number): Uint8Array {
  const length = context.argLength(i);
  // A large value that went straight into the store is not in the input.
  if (context.largeStaged && i === context.command.largeArgument) return Buffer.from(`... (${length} bytes)`);
  if (length <= ARGUMENT_BYTES_MAX) return context.argBytes(i);
  const offset = context.argOffset(i);
  const more = Buffer.from(`... (${length - ARGUMENT_BYTES_MAX} more bytes)`);
  return Buffer.concat([context.input.u8.subarray(offset, offset + ARGUMENT_BYTES_MAX), more]);
}
