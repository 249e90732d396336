/**
 * All command families, and the one table that server, embedded library and tests build from them.
 *
 * Invariant: every participant of a process builds the table from this list, so that command indices agree among workers.
 */
import { aclCommands } from './acl.js';
import { clientCommands } from './client-commands.js';
import { configCommands } from './config-commands.js';
import { connection } from './connection.js';
import { debugCommands } from './debug.js';
import { introspection } from './introspection.js';
import { memoryCommands } from './memory-commands.js';
import { observation } from './observation.js';
import { serverCommands } from './server-commands.js';
import type { CommandSpec } from './spec.js';
import { strings } from './string.js';
import { CommandTable } from './table.js';
import { transactions } from './transactions.js';

export const families: readonly (readonly CommandSpec[])[] = [
  connection,
  clientCommands,
  transactions,
  introspection,
  serverCommands,
  configCommands,
  memoryCommands,
  observation,
  aclCommands,
  debugCommands,
  strings,
];

export function createCommandTable(): CommandTable {
  return new CommandTable(families);
}
