/**
 * Data blocks that are still on their way when their command line is there.
 *
 * begin() decides: refuse now and throw the block away as it comes; wait until it has come whole; or, when it is large,
 * stage the item and have the rest received straight into it. Invariant: client.large.isParked exactly while the slot holds
 * an item; drop() gives it back.
 */
import { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { Page } from '../../layout/location.js';
import { copyBytes } from '../../native/copy.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, Request, RequestFlag } from '../../protocol/memcached/request.js';
import { INLINE_VALUE_BYTES, type StageSlot } from '../../store/keyspace.js';
import { MAX_CREDENTIALS_BYTES } from './auth.js';
import { LargeValue, type MemcachedClient } from './client.js';
import type { MemcachedContext } from './context.js';
import { execute } from './dispatch.js';
import { META_SET_FLAGS_START, prepareMetaSet } from './meta-set.js';
import { prepareClassic } from './storage.js';
import { dropOld } from './store.js';

const CRLF_BYTES = 2;
/**
 * All values on their way in to this worker may take this part of the store, so that announcing large values and not
 * sending them cannot drive out what is there. Beyond it a value is collected in the input: its memory grows as it comes.
 */
const INCOMING_PART = 1 / 4;
const CR = 13;
const LF = 10;

export class PendingValues {
  private readonly context: MemcachedContext;
  /** Value bytes of all large values on their way. */
  private incomingBytes = 0;

  constructor(context: MemcachedContext) {
    this.context = context;
  }

  /** The context is on the record of a storage command whose line starts at `start`. Returns the offset consumed. */
  begin(client: MemcachedClient, start: number, end: number): number {
    const { context } = this;
    const valueOffset = context.word(Request.valueOffset);
    const valueBytes = context.word(Request.valueLength);
    if (!client.isAuthenticated) {
      if (context.word(Request.command) === CommandCode.SET && valueBytes <= MAX_CREDENTIALS_BYTES) return start;
      return this.refuse(client, Replies.UNAUTHENTICATED, valueOffset, end);
    }
    const isMeta = context.word(Request.command) === CommandCode.META_SET;
    const error = isMeta
      ? (context.takeMeta(META_SET_FLAGS_START) ?? prepareMetaSet(context))
      : prepareClassic(context);
    if (error !== null) return this.refuse(client, error, valueOffset, end);
    if (valueBytes <= INLINE_VALUE_BYTES || isAppend(context)) return start;
    if (this.incomingBytes > 0 && this.incomingBytes + valueBytes > this.incomingLimit) return start;
    return this.stage(client, start, end);
  }

  /** Throws away what has come of a refused data block; returns the offset behind it. */
  swallow(client: MemcachedClient, offset: number, end: number): number {
    const swallowed = Math.min(client.swallowBytes, end - offset);
    client.swallowBytes -= swallowed;
    return offset + swallowed;
  }

  /** Goes on with client.large, whose value is in its item: checks the CR LF behind it and executes the command. */
  finish(client: MemcachedClient, input: Bytes, offset: number, end: number): number {
    const large = client.large as LargeValue;
    if (!large.isComplete || end - offset < CRLF_BYTES) return offset;
    const { context } = this;
    const { tokenizer } = context;
    const isTerminated = input.u8[offset] === CR && input.u8[offset + 1] === LF;
    context.input = large.line;
    context.record = 0;
    tokenizer.parseLine(large.line.u8, 0, large.line.length);
    tokenizer.records[Request.valueLength] = large.valueBytes;
    if (!isTerminated) tokenizer.records[Request.flags] |= RequestFlag.BAD_CHUNK;
    context.isValueStaged = true;
    context.counters[Counter.commands]++;
    client.commands++;
    client.lastCommand = context.word(Request.command);
    execute(context);
    context.isValueStaged = false;
    this.drop(client);
    return offset + CRLF_BYTES;
  }

  /** Gives back what the client had staged. */
  drop(client: MemcachedClient): void {
    const { large } = client;
    client.large = null;
    if (large === null) return;
    this.incomingBytes -= large.valueBytes;
    if (large.isParked) this.context.keyspace.dropParked(large.slot);
  }

  private get incomingLimit(): number {
    const { memory } = this.context.keyspace;
    return (memory.dramPages + memory.capacityPages) * Page.BYTES * INCOMING_PART;
  }

  private refuse(client: MemcachedClient, error: Uint8Array, valueOffset: number, end: number): number {
    const { context } = this;
    // Meta errors are never quiet; a meta command has no noreply.
    context.answer(error);
    client.swallowBytes = context.word(Request.valueLength) + CRLF_BYTES;
    return this.swallow(client, valueOffset, end);
  }

  private stage(client: MemcachedClient, start: number, end: number): number {
    const { context } = this;
    const { keyspace, input } = context;
    const valueOffset = context.word(Request.valueOffset);
    const valueBytes = context.word(Request.valueLength);
    const h = context.hashKey();
    if (!context.stageKey(h, valueBytes)) {
      context.counters[Counter.storeNoMemory]++;
      if (context.word(Request.command) === CommandCode.SET) dropOld(context, h);
      return this.refuse(client, Replies.NO_MEMORY_STORING, valueOffset, end);
    }
    const { arena } = keyspace.staged;
    const { stagedOffset } = keyspace;
    const hereBytes = Math.min(valueBytes, end - valueOffset);
    copyBytes(keyspace.staged, stagedOffset, input, valueOffset, hereBytes);
    const slot: StageSlot = { held: 0, page: 0, unit: 0, database: 0 };
    if (!keyspace.parkStaged(slot)) {
      // Too many large values at once: this one is collected in the input, as a small one is.
      keyspace.dropStaged();
      return start;
    }
    const line = Bytes.allocate(valueOffset - start);
    copyBytes(line, 0, input, start, line.length);
    const large = new LargeValue(slot, line, valueBytes);
    client.large = large;
    this.incomingBytes += valueBytes;
    if (hereBytes === valueBytes) {
      large.isComplete = true;
    } else {
      client.intoArena = arena;
      client.intoOffset = stagedOffset + hereBytes;
      client.intoLength = valueBytes - hereBytes;
    }
    return valueOffset + hereBytes;
  }
}

/** append and prepend build their value from two, under the lock: no place to receive into. */
function isAppend(context: MemcachedContext): boolean {
  const command = context.word(Request.command);
  if (command === CommandCode.APPEND || command === CommandCode.PREPEND) return true;
  const { mode } = context.flags;
  return command === CommandCode.META_SET && (mode === 0x41 || mode === 0x50);
}
