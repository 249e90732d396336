/**
 * The text and meta protocol of a connection: batches of requests from bytes to handlers.
 *
 * requests() parses up to BATCH_REQUESTS requests, lets the store touch the memory of all their keys (prefetch), then
 * executes them in order. Invariant: what it reports as consumed has been executed and answered, or is a part of a large
 * value that lies in its staged item already; everything behind it is delivered again.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { Closing } from '../../protocol/driver.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { BATCH_REQUESTS, CommandCode, MAX_KEY_BYTES, Request, RequestFlag } from '../../protocol/memcached/request.js';
import { MAX_LINE_BYTES, Pending, type Tokenizer } from '../../protocol/memcached/tokenizer.js';
import type { Output } from '../../protocol/output.js';
import type { Environment } from '../environment.js';
import { authenticate, MAX_CREDENTIALS_BYTES } from './auth.js';
import type { LargeValue, MemcachedClient } from './client.js';
import { DB, type MemcachedContext } from './context.js';
import { execute, isWrite } from './dispatch.js';
import { goOnDumping } from './dump.js';
import { Front } from './front.js';
import { META_SET_FLAGS_START, prepareMetaSet } from './meta-set.js';
import { NO_MEMORY, type PendingValues } from './pending-values.js';
import { goOn } from './retrieval.js';
import { prepareClassic } from './storage.js';
import { dropOld } from './store.js';

const CRLF_BYTES = 2;
const CR = 13;
const LF = 10;

export class TextFront extends Front {
  private readonly tokenizer: Tokenizer;

  constructor(environment: Environment, output: Output, context: MemcachedContext, pending: PendingValues) {
    super(environment, output, context, pending);
    this.tokenizer = context.tokenizer;
  }

  /** Returns the offset up to which the input is consumed. */
  requests(client: MemcachedClient, input: Bytes, offset: number, end: number): number {
    const { tokenizer, context } = this;
    const { u8 } = input;
    if (client.isWatching) return end;
    this.repliesStart = this.output.written;
    context.isHashKnown = false;
    let position = offset;
    let budget = this.environment.settings.memcachedRequestsPerTurn;
    if (client.large !== null) {
      position = this.finishValue(client, input, position, end);
      if (client.large !== null || client.closing !== Closing.NO || client.suspended) return position;
      budget--;
    }
    if (client.retrieval !== null) {
      context.input = input;
      position = goOn(context, client.retrieval, position);
      if (client.retrieval.leftBytes > 0) return this.yieldAt(client, position);
      client.retrieval = null;
    }
    if (client.dump !== null) {
      if (!goOnDumping(context, client.dump)) return this.yieldAt(client, position);
      client.dump = null;
      // The end of the command's line waited for this.
      position++;
    }
    while (position < end) {
      if (budget <= 0) return this.yieldAt(client, position);
      const count = tokenizer.parse(u8, position, end, client.scannedBytes, Math.min(budget, BATCH_REQUESTS));
      client.scannedBytes = 0;
      if (count > 0) {
        const stopped = this.batch(client, input, position, count);
        if (stopped >= 0) return stopped;
        budget -= count;
      }
      position = tokenizer.consumed;
      switch (tokenizer.pending) {
        case Pending.LINE:
          if (end - position > MAX_LINE_BYTES) client.scannedBytes = end - position;
          return position;
        case Pending.LINE_TOO_LONG:
          context.reply.line(Replies.LINE_TOO_LONG);
          this.counters[Counter.protocolErrors]++;
          client.isFaulty = true;
          client.closing = Closing.AFTER_REPLY;
          return end;
        case Pending.VALUE:
          context.record = count * Request.WORDS;
          context.input = input;
          return this.beginValue(client, position, end);
      }
    }
    return position;
  }

  /** Executes the parsed requests; -1 when all were executed, else the offset of the first that was not. */
  private batch(client: MemcachedClient, input: Bytes, start: number, count: number): number {
    const { context, tokenizer } = this;
    const { records } = tokenizer;
    const looksAhead = this.hashes.pays(count);
    if (looksAhead) this.lookAhead(input, count);
    const areWritesPaused = this.environment.control?.isWritePaused === true;
    context.input = input;
    for (let i = 0; i < count; i++) {
      const record = i * Request.WORDS;
      const command = records[record + Request.command];
      if (areWritesPaused && isWrite(command)) {
        this.environment.control!.waitForUnpause(client);
        return i === 0 ? start : records[record - Request.WORDS + Request.next];
      }
      context.record = record;
      context.isHashKnown = looksAhead && this.hashes.has(i);
      if (context.isHashKnown) context.knownHash = this.hashes.take(i);
      context.hasAnswered = this.output.written !== this.repliesStart;
      this.count(client, command);
      if (client.isAuthenticated) execute(context);
      else authenticate(context);
      // Another database from here on: what was hashed ahead is void.
      if (command === CommandCode.FLUSH_ALL) this.hashes.forget();
      const next = records[record + Request.next];
      if (client.closing !== Closing.NO || client.suspended) return next;
      if (client.isWatching) return next;
      if (client.retrieval !== null) return this.yieldAt(client, next);
      if (client.dump !== null) return this.yieldAt(client, next - 1);
      if (this.hasRepliedEnough) return this.yieldAt(client, next);
    }
    context.isHashKnown = false;
    return -1;
  }

  /** Hashes of the first keys; then the store loads buckets and items, so that their cache misses overlap. */
  private lookAhead(input: Bytes, count: number): void {
    const { tokenizer } = this;
    const { keyspace } = this.environment;
    const { records, tokens } = tokenizer;
    this.hashes.begin();
    for (let i = 0; i < count; i++) {
      const record = i * Request.WORDS;
      const command = records[record + Request.command];
      const keyToken = command === CommandCode.GAT || command === CommandCode.GATS ? 2 : 1;
      this.hashes.skip(i);
      if (!hasKey(command) || records[record + Request.tokenCount] <= keyToken) continue;
      const pair = (records[record + Request.tokenFirst] + keyToken) * 2;
      const length = tokens[pair + 1];
      if (length > MAX_KEY_BYTES) continue;
      this.hashes.add(i, keyspace.hash(DB, input, tokens[pair], length));
    }
    this.hashes.load();
  }

  // ---- data blocks that are still on their way

  /** The context is on the record of a storage command whose line starts at `start`. Returns the offset consumed. */
  private beginValue(client: MemcachedClient, start: number, end: number): number {
    const { context, pending } = this;
    client.awaitsValue = true;
    const valueOffset = context.word(Request.valueOffset);
    const valueBytes = context.word(Request.valueLength);
    if (!client.isAuthenticated) {
      if (context.word(Request.command) === CommandCode.SET && valueBytes <= MAX_CREDENTIALS_BYTES) return start;
      return this.refuse(client, Replies.UNAUTHENTICATED, end);
    }
    const isMeta = context.word(Request.command) === CommandCode.META_SET;
    const error = isMeta
      ? (context.takeMeta(META_SET_FLAGS_START) ?? prepareMetaSet(context))
      : prepareClassic(context);
    if (error !== null) return this.refuse(client, error, end);
    if (isAppend(context) || !pending.isLarge(valueBytes)) return start;
    const consumed = pending.stage(client, start, valueOffset, valueBytes, end);
    if (consumed !== NO_MEMORY) return consumed;
    if (context.word(Request.command) === CommandCode.SET) dropOld(context, context.hashKey());
    return this.refuse(client, Replies.NO_MEMORY_STORING, end);
  }

  private refuse(client: MemcachedClient, error: Uint8Array, end: number): number {
    const { context } = this;
    // Meta errors are never quiet; a meta command has no noreply.
    context.answer(error);
    const length = context.word(Request.valueLength) + CRLF_BYTES;
    return this.pending.skip(client, context.word(Request.valueOffset), length, end);
  }

  /** Goes on with client.large, whose value is in its item: checks the CR LF behind it and executes the command. */
  private finishValue(client: MemcachedClient, input: Bytes, offset: number, end: number): number {
    const large = client.large as LargeValue;
    if (!large.isComplete || end - offset < CRLF_BYTES) return offset;
    const { context, tokenizer } = this;
    const isTerminated = input.u8[offset] === CR && input.u8[offset + 1] === LF;
    context.input = large.head;
    context.record = 0;
    tokenizer.parseLine(large.head.u8, 0, large.head.length);
    tokenizer.records[Request.valueLength] = large.valueBytes;
    if (!isTerminated) tokenizer.records[Request.flags] |= RequestFlag.BAD_CHUNK;
    context.isValueStaged = true;
    this.count(client, context.word(Request.command));
    execute(context);
    context.isValueStaged = false;
    this.pending.drop(client);
    return offset + CRLF_BYTES;
  }
}

function hasKey(command: number): boolean {
  return command >= CommandCode.GET && command <= CommandCode.TOUCH && command !== CommandCode.META_NOOP;
}

/** append and prepend build their value from two, under the lock: no place to receive into. */
function isAppend(context: MemcachedContext): boolean {
  const command = context.word(Request.command);
  if (command === CommandCode.APPEND || command === CommandCode.PREPEND) return true;
  const { mode } = context.flags;
  return command === CommandCode.META_SET && (mode === 0x41 || mode === 0x50);
}
