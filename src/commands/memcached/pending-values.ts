/**
 * Values that are still on their way when their command is there, of both protocols.
 *
 * A front end either waits until the value has come whole, or refuses the command and throws the value away as it comes
 * (skip), or, when it is large, stages the item and has the rest received straight into it (stage). Invariant:
 * client.large.isParked exactly while the slot holds an item; drop() gives it back.
 */
import { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { Page } from '../../layout/location.js';
import { copyBytes } from '../../native/copy.js';
import { INLINE_VALUE_BYTES, type StageSlot } from '../../store/keyspace.js';
import { setParked } from '../clients/client-memory.js';
import { LargeValue, type MemcachedClient } from './client.js';
import type { MemcachedContext } from './context.js';

/**
 * All values on their way in to this worker may take this part of the store, so that announcing large values and not
 * sending them cannot drive out what is there. Beyond it a value is collected in the input: its memory grows as it comes.
 */
const INCOMING_PART = 1 / 4;

/** Answer of stage(): there is no memory for the item. */
export const NO_MEMORY = -1;

export class PendingValues {
  private readonly context: MemcachedContext;
  /** Value bytes of all large values on their way. */
  private incomingBytes = 0;

  constructor(context: MemcachedContext) {
    this.context = context;
  }

  /** Throws away what has come of a refused value; returns the offset behind it. */
  swallow(client: MemcachedClient, offset: number, end: number): number {
    const swallowed = Math.min(client.swallowBytes, end - offset);
    client.swallowBytes -= swallowed;
    return offset + swallowed;
  }

  /** The command is refused: `length` bytes from `offset` on are not wanted. Returns the offset behind those that are there. */
  skip(client: MemcachedClient, offset: number, length: number, end: number): number {
    client.swallowBytes = length;
    return this.swallow(client, offset, end);
  }

  /** True for a value that is better received into its item than collected in the input. */
  isLarge(valueBytes: number): boolean {
    if (valueBytes <= INLINE_VALUE_BYTES) return false;
    return this.incomingBytes === 0 || this.incomingBytes + valueBytes <= this.incomingLimit;
  }

  /**
   * Stages the item of the current key for the value at `valueOffset`, whose command begins at `start`. Returns the offset
   * up to which the input is consumed: `start` when the value must be collected in the input all the same.
   */
  stage(client: MemcachedClient, start: number, valueOffset: number, valueBytes: number, end: number): number {
    const { context } = this;
    const { keyspace, input } = context;
    const h = context.hashKey();
    if (!context.stageKey(h, valueBytes)) {
      context.counters[Counter.storeNoMemory]++;
      return NO_MEMORY;
    }
    const { arena } = keyspace.staged;
    const { stagedOffset } = keyspace;
    const hereBytes = Math.min(valueBytes, end - valueOffset);
    copyBytes(keyspace.staged, stagedOffset, input, valueOffset, hereBytes);
    const slot: StageSlot = { held: 0, page: 0, unit: 0 };
    if (!keyspace.parkStaged(slot)) {
      // Too many large values at once: this one is collected in the input, as a small one is.
      keyspace.dropStaged();
      return start;
    }
    const head = Bytes.allocate(valueOffset - start);
    copyBytes(head, 0, input, start, head.length);
    const large = new LargeValue(slot, head, valueBytes);
    client.large = large;
    this.incomingBytes += valueBytes;
    setParked(client, context.counters, valueBytes);
    if (hereBytes === valueBytes) {
      large.isComplete = true;
    } else {
      client.intoArena = arena;
      client.intoOffset = stagedOffset + hereBytes;
      client.intoLength = valueBytes - hereBytes;
    }
    return valueOffset + hereBytes;
  }

  /** Gives back what the client had staged. */
  drop(client: MemcachedClient): void {
    const { large } = client;
    client.large = null;
    if (large === null) return;
    this.incomingBytes -= large.valueBytes;
    setParked(client, this.context.counters, 0);
    if (large.isParked) this.context.keyspace.dropParked(large.slot);
  }

  private get incomingLimit(): number {
    const { memory } = this.context.keyspace;
    return (memory.dramSize + memory.capacitySize) * Page.BYTES * INCOMING_PART;
  }
}
