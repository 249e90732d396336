/**
 * All command families, and the one table that server, embedded library and tests build from them.
 *
 * Invariant: every participant of a process builds the table from this list, so that command indices agree among workers.
 */

import { aclCommands } from './acl/acl.js';
import { clientCommands } from './clients/client-commands.js';
import { connection } from './clients/connection.js';
import { geo } from './geo/geo.js';
import { geoSearches } from './geo/geo-search.js';
import { hashes } from './hashes/hash.js';
import { hashExpiries } from './hashes/hash-expire.js';
import { hashIteration } from './hashes/hash-iteration.js';
import { hashNumbers } from './hashes/hash-numbers.js';
import { expiries } from './keyspace/expire.js';
import { generics } from './keyspace/generic.js';
import { keyIteration } from './keyspace/key-iteration.js';
import { objects } from './keyspace/object.js';
import { lists } from './lists/list.js';
import { blockingLists } from './lists/list-block.js';
import { listMoves } from './lists/list-move.js';
import { listSearches } from './lists/list-search.js';
import { monitorCommands } from './messaging/monitor.js';
import { pubsub } from './messaging/pubsub.js';
import { waits } from './messaging/wait.js';
import { dumps } from './persistence/dump.js';
import { migrations } from './persistence/migrate.js';
import { saves } from './persistence/save.js';
import { evals } from './scripting/eval.js';
import { fcalls } from './scripting/fcall.js';
import { functionCommands } from './scripting/function-commands.js';
import { scriptCommands } from './scripting/script-commands.js';
import { absentParts } from './server/absent.js';
import { configCommands } from './server/config-commands.js';
import { debugCommands } from './server/debug.js';
import { introspection } from './server/introspection.js';
import { memoryCommands } from './server/memory-commands.js';
import { observation } from './server/observation.js';
import { serverCommands } from './server/server-commands.js';
import { sets } from './sets/set.js';
import { setAlgebra } from './sets/set-algebra.js';
import { setIteration } from './sets/set-iteration.js';
import { sortedSets } from './sorted-sets/sorted-set.js';
import { sortedSetAlgebra } from './sorted-sets/sorted-set-algebra.js';
import { blockingSortedSets } from './sorted-sets/sorted-set-block.js';
import { sortedSetPops } from './sorted-sets/sorted-set-pop.js';
import { sortedSetRanges } from './sorted-sets/sorted-set-range.js';
import { sortedSetScan } from './sorted-sets/sorted-set-scan.js';
import { sorting } from './sorting/sort.js';
import type { CommandSpec } from './spec.js';
import { streams } from './streams/stream.js';
import { streamGroupReads } from './streams/stream-group-read.js';
import { streamGroups } from './streams/stream-groups.js';
import { streamInfos } from './streams/stream-info.js';
import { streamPending } from './streams/stream-pending.js';
import { streamReads } from './streams/stream-read.js';
import { bitOperations } from './strings/bit-operations.js';
import { bitFields } from './strings/bitfield.js';
import { bits } from './strings/bits.js';
import { hyperLogLogs } from './strings/hyperloglog.js';
import { strings } from './strings/string.js';
import { stringLcs } from './strings/string-lcs.js';
import { manyStrings } from './strings/string-many.js';
import { stringNumbers } from './strings/string-numbers.js';
import { stringRanges } from './strings/string-ranges.js';
import { CommandTable } from './table.js';
import { transactions } from './transactions/transactions.js';

export const families: readonly (readonly CommandSpec[])[] = [
  connection,
  clientCommands,
  transactions,
  pubsub,
  monitorCommands,
  introspection,
  serverCommands,
  saves,
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
  dumps,
  migrations,
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
  geo,
  geoSearches,
  streams,
  streamReads,
  streamGroups,
  streamGroupReads,
  streamPending,
  streamInfos,
  sorting,
];

export function createCommandTable(): CommandTable {
  return new CommandTable(families);
}
