/**
 * The error for a request that is no command: of a container's subcommand when there is such a container.
 *
 * Invariant: only so many arguments are shown as Redis shows.
 */
import type { Context } from './context.js';
import { unknownCommand, unknownSubcommand } from './errors.js';
import type { CommandTable } from './table.js';

const ARGUMENTS_MAX = 130;

export function unknownRequest(context: Context, table: CommandTable): string {
  const word = context.argString(0);
  const container = table.find(context.input, context.argOffset(0), context.argLength(0));
  if (container !== null) return unknownSubcommand(context.argString(1), word);
  const args: string[] = [];
  for (let i = 1; i < context.argc && i < ARGUMENTS_MAX; i++) args.push(context.argString(i));
  return unknownCommand(word, args);
}
