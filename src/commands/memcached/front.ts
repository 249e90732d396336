/**
 * What the two protocols' sides of a connection have in common: the parts they work with, a batch's hashes, and the bounds of a turn.
 *
 * Invariant: a front never does more in one turn than MAX_REPLY_BYTES_PER_TURN and the setting of requests allow.
 */
import { Counter } from '../../layout/counters.js';
import { MAX_REPLY_BYTES_PER_TURN } from '../../protocol/driver.js';
import { BATCH_REQUESTS } from '../../protocol/memcached/request.js';
import type { Output } from '../../protocol/output.js';
import { BatchHashes } from '../batch-hashes.js';
import type { Environment } from '../environment.js';
import type { MemcachedClient } from './client.js';
import type { MemcachedContext } from './context.js';
import type { PendingValues } from './pending-values.js';

export abstract class Front {
  protected readonly environment: Environment;
  protected readonly output: Output;
  protected readonly context: MemcachedContext;
  protected readonly pending: PendingValues;
  protected readonly counters: Float64Array;
  protected readonly hashes: BatchHashes;
  protected repliesStart = 0;

  constructor(environment: Environment, output: Output, context: MemcachedContext, pending: PendingValues) {
    this.environment = environment;
    this.output = output;
    this.context = context;
    this.pending = pending;
    this.counters = environment.counters.values;
    this.hashes = new BatchHashes(environment.keyspace, BATCH_REQUESTS);
  }

  protected count(client: MemcachedClient, command: number): void {
    this.counters[Counter.commands]++;
    client.commands++;
    client.lastCommand = command;
  }

  /** The rest is for the next turn. */
  protected yieldAt(client: MemcachedClient, offset: number): number {
    client.again = true;
    this.counters[Counter.connectionYields]++;
    return offset;
  }

  protected get hasRepliedEnough(): boolean {
    return this.output.written - this.repliesStart > MAX_REPLY_BYTES_PER_TURN;
  }
}
