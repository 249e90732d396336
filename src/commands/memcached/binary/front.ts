/**
 * The binary protocol of a connection: batches of requests from bytes to handlers, as text-front.ts does for lines.
 *
 * Invariant: what requests() reports as consumed has been executed and answered, or is a part of a large value that lies in
 * its staged item already; everything behind it is delivered again.
 */
import type { Bytes } from '../../../layout/bytes.js';
import { Counter } from '../../../layout/counters.js';
import { Closing } from '../../../protocol/driver.js';
import { type BinaryParser, BinaryPending, BinaryRecord, bodyBytes } from '../../../protocol/memcached/binary.js';
import { BinaryHeader, Opcode, Status } from '../../../protocol/memcached/binary-codes.js';
import { BATCH_REQUESTS, MAX_KEY_BYTES } from '../../../protocol/memcached/request.js';
import type { Output } from '../../../protocol/output.js';
import type { Environment } from '../../environment.js';
import type { LargeValue, MemcachedClient } from '../client.js';
import { DB, type MemcachedContext } from '../context.js';
import { Front } from '../front.js';
import { NO_MEMORY, type PendingValues } from '../pending-values.js';
import { dropOld } from '../store.js';
import { execute, isWrite, refusalOf } from './dispatch.js';
import { MAX_SASL_BYTES } from './sasl.js';
import { isAppendOpcode, isStorageOpcode, prepareStore } from './storage.js';

export class BinaryFront extends Front {
  private readonly parser: BinaryParser;

  constructor(environment: Environment, output: Output, context: MemcachedContext, pending: PendingValues) {
    super(environment, output, context, pending);
    this.parser = context.binary;
  }

  /** Returns the offset up to which the input is consumed. */
  requests(client: MemcachedClient, input: Bytes, offset: number, end: number): number {
    const { parser, context } = this;
    this.repliesStart = this.output.written;
    let position = offset;
    let budget = this.environment.settings.memcachedRequestsPerTurn;
    while (position < end) {
      if (budget <= 0) return this.yieldAt(client, position);
      const count = parser.parse(input.u8, position, end, Math.min(budget, BATCH_REQUESTS));
      if (count > 0) {
        const stopped = this.batch(client, input, position, count);
        if (stopped >= 0) return stopped;
        budget -= count;
      }
      position = parser.consumed;
      switch (parser.pending) {
        case BinaryPending.HEAD:
          return position;
        case BinaryPending.BAD_MAGIC:
          this.counters[Counter.protocolErrors]++;
          client.isFaulty = true;
          client.closing = Closing.AFTER_REPLY;
          return end;
        case BinaryPending.VALUE:
          context.record = count * BinaryRecord.WORDS;
          context.input = input;
          return this.beginValue(client, position, end);
      }
    }
    return position;
  }

  /** Executes the parsed requests; -1 when all were executed, else the offset of the first that was not. */
  private batch(client: MemcachedClient, input: Bytes, start: number, count: number): number {
    const { context } = this;
    const { records } = this.parser;
    const looksAhead = this.hashes.pays(count);
    if (looksAhead) this.lookAhead(input, count);
    const areWritesPaused = this.environment.control?.isWritePaused === true;
    context.input = input;
    for (let i = 0; i < count; i++) {
      const record = i * BinaryRecord.WORDS;
      const opcode = records[record + BinaryRecord.opcode];
      if (areWritesPaused && isWrite(opcode)) {
        this.environment.control!.waitForUnpause(client);
        return i === 0 ? start : records[record + BinaryRecord.start];
      }
      context.record = record;
      context.isHashKnown = looksAhead && this.hashes.has(i);
      if (context.isHashKnown) context.knownHash = this.hashes.take(i);
      this.count(client, opcode);
      execute(context);
      // Another database from here on: what was hashed ahead is void.
      if (opcode === Opcode.FLUSH || opcode === Opcode.FLUSHQ) this.hashes.forget();
      const next = records[record + BinaryRecord.next];
      if (client.closing !== Closing.NO || client.suspended) return next;
      if (this.hasRepliedEnough) return this.yieldAt(client, next);
    }
    context.isHashKnown = false;
    return -1;
  }

  /** Hashes of the keys; then the store loads buckets and items, so that their cache misses overlap. */
  private lookAhead(input: Bytes, count: number): void {
    const { keyspace } = this.environment;
    const { records } = this.parser;
    this.hashes.begin();
    for (let i = 0; i < count; i++) {
      const record = i * BinaryRecord.WORDS;
      const length = records[record + BinaryRecord.keyLength];
      this.hashes.skip(i);
      if (length === 0 || length > MAX_KEY_BYTES) continue;
      this.hashes.add(i, keyspace.hash(DB, input, records[record + BinaryRecord.keyOffset], length));
    }
    this.hashes.load();
  }

  // ---- values that are still on their way

  /** The context is on the record of a request that starts at `start` and whose value is not there whole. Returns the offset consumed. */
  private beginValue(client: MemcachedClient, start: number, end: number): number {
    const { context, pending } = this;
    client.awaitsValue = true;
    const opcode = context.binaryWord(BinaryRecord.opcode);
    const valueOffset = context.binaryWord(BinaryRecord.valueOffset);
    // As announced: the record's number stops at what can be served.
    const { u8 } = context.input;
    const valueBytes = bodyBytes(u8, start) - (valueOffset - start - BinaryHeader.BYTES);
    context.isHashKnown = false;
    context.reply.binary.answerTo(u8, start);
    const mayWait =
      isStorageOpcode(opcode) ||
      ((opcode === Opcode.SASL_AUTH || opcode === Opcode.SASL_STEP) && valueBytes <= MAX_SASL_BYTES);
    if (!mayWait || refusalOf(context) !== Status.OK) {
      // Its value changes nothing about the answer.
      this.count(client, opcode);
      execute(context);
      return client.closing !== Closing.NO ? end : pending.skip(client, valueOffset, valueBytes, end);
    }
    if (!isStorageOpcode(opcode)) return start;
    const status = prepareStore(context);
    if (status !== Status.OK) {
      this.count(client, opcode);
      context.reply.binary.error(status);
      return pending.skip(client, valueOffset, valueBytes, end);
    }
    if (isAppendOpcode(opcode) || !pending.isLarge(valueBytes)) return start;
    const consumed = pending.stage(client, start, valueOffset, valueBytes, end);
    if (consumed !== NO_MEMORY) return consumed;
    if (opcode === Opcode.SET || opcode === Opcode.SETQ) dropOld(context, context.hashKey());
    context.reply.binary.error(Status.NO_MEMORY);
    return pending.skip(client, valueOffset, valueBytes, end);
  }

  /** The value of client.large is in its item: executes the command. */
  finishValue(client: MemcachedClient): void {
    const { head } = client.large as LargeValue;
    const { context } = this;
    context.input = head;
    context.record = 0;
    context.isHashKnown = false;
    this.parser.head(head.u8, 0, head.length, 0);
    context.isValueStaged = true;
    this.count(client, context.binaryWord(BinaryRecord.opcode));
    execute(context);
    context.isValueStaged = false;
    this.pending.drop(client);
  }
}
