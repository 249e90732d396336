/**
 * All command families, and the one table that server, embedded library and tests build from them.
 *
 * Invariant: every participant of a process builds the table from this list, so that command indices agree among workers.
 */

import { absentParts } from './absent.js';
import { aclCommands } from './acl.js';
import { bitOperations } from './bit-operations.js';
import { bitFields } from './bitfield.js';
import { bits } from './bits.js';
import { clientCommands } from './client-commands.js';
import { configCommands } from './config-commands.js';
import { connection } from './connection.js';
import { debugCommands } from './debug.js';
import { expiries } from './expire.js';
import { generics } from './generic.js';
import { hashes } from './hash.js';
import { hashExpiries } from './hash-expire.js';
import { hashIteration } from './hash-iteration.js';
import { hashNumbers } from './hash-numbers.js';
import { hyperLogLogs } from './hyperloglog.js';
import { introspection } from './introspection.js';
import { keyIteration } from './key-iteration.js';
import { lists } from './list.js';
import { blockingLists } from './list-block.js';
import { listMoves } from './list-move.js';
import { listSearches } from './list-search.js';
import { memoryCommands } from './memory-commands.js';
import { monitorCommands } from './monitor.js';
import { objects } from './object.js';
import { observation } from './observation.js';
import { pubsub } from './pubsub.js';
import { evals } from './scripting/eval.js';
import { fcalls } from './scripting/fcall.js';
import { functionCommands } from './scripting/function-commands.js';
import { scriptCommands } from './scripting/script-commands.js';
import { serverCommands } from './server-commands.js';
import { sets } from './set.js';
import { setAlgebra } from './set-algebra.js';
import { setIteration } from './set-iteration.js';
import { sortedSets } from './sorted-set.js';
import { sortedSetAlgebra } from './sorted-set-algebra.js';
import { blockingSortedSets } from './sorted-set-block.js';
import { sortedSetPops } from './sorted-set-pop.js';
import { sortedSetRanges } from './sorted-set-range.js';
import { sortedSetScan } from './sorted-set-scan.js';
import type { CommandSpec } from './spec.js';
import { strings } from './string.js';
import { stringLcs } from './string-lcs.js';
import { manyStrings } from './string-many.js';
import { stringNumbers } from './string-numbers.js';
import { stringRanges } from './string-ranges.js';
import { CommandTable } from './table.js';
import { transactions } from './transactions.js';
import { waits } from './wait.js';

export const families: readonly (readonly CommandSpec[])[] = [
  connection,
  clientCommands,
  transactions,
  pubsub,
  monitorCommands,
  introspection,
  serverCommands,
  configCommands,
  memoryCommands,
  observation,
  aclCommands,
  debugCommands,
  evals,
  scriptCommands,
  fcalls,
  functionCommands,
  generics,
  keyIteration,
  objects,
  expiries,
  strings,
  manyStrings,
  stringRanges,
  stringNumbers,
  stringLcs,
  bits,
  bitOperations,
  bitFields,
  hyperLogLogs,
  absentParts,
  waits,
  hashes,
  hashNumbers,
  hashIteration,
  hashExpiries,
  sets,
  setIteration,
  setAlgebra,
  sortedSets,
  sortedSetRanges,
  lists,
  listSearches,
  listMoves,
  sortedSetPops,
  sortedSetAlgebra,
  blockingSortedSets,
  sortedSetScan,
  blockingLists,
];

export function createCommandTable(): CommandTable {
  return new CommandTable(families);
}
