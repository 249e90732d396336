/**
 * The memcached side of a connection: batches of requests from bytes to handlers.
 *
 * feed() parses up to BATCH_REQUESTS requests, lets the store touch the memory of all their keys (prefetch), then executes
 * them in order. Invariant: what feed() reports as consumed has been executed and answered, or is a part of a large value
 * that lies in its staged item already; everything behind it is delivered again.
 */

import type { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { Closing, type Driver, MAX_REPLY_BYTES_PER_TURN, MAX_REQUESTS_PER_TURN } from '../../protocol/driver.js';
import { COMMAND_NAMES } from '../../protocol/memcached/command-names.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { BATCH_REQUESTS, CommandCode, MAX_KEY_BYTES, Request } from '../../protocol/memcached/request.js';
import { MAX_LINE_BYTES, Pending, type Tokenizer } from '../../protocol/memcached/tokenizer.js';
import { Writer } from '../../protocol/memcached/writer.js';
import type { Output } from '../../protocol/output.js';
import type { ClientFilter } from '../control.js';
import type { Environment } from '../environment.js';
import { authenticate } from './auth.js';
import { MemcachedClient } from './client.js';
import { DB, MemcachedContext } from './context.js';
import { Datagrams } from './datagrams.js';
import { execute, isWrite } from './dispatch.js';
import { PendingValues } from './pending-values.js';
import { goOn } from './retrieval.js';

/** Fewer requests than this are not worth two passes over their keys. */
const PREFETCH_MIN = 4;
/** First byte of the binary protocol, which memcached has deprecated and this server does not speak. */
const BINARY_MAGIC = 0x80;

export class MemcachedDriver implements Driver<MemcachedClient> {
  private readonly environment: Environment;
  private readonly output: Output;
  private readonly context: MemcachedContext;
  private readonly tokenizer: Tokenizer;
  private readonly pending: PendingValues;
  private readonly datagrams: Datagrams;
  private readonly counters: Float64Array;
  private readonly hashes = new Int32Array(BATCH_REQUESTS);
  private readonly hashKnown = new Uint8Array(BATCH_REQUESTS);
  private repliesStart = 0;
  /** The known hashes without gaps, for the store's prefetch passes. */
  private readonly wanted = new Int32Array(BATCH_REQUESTS);

  constructor(environment: Environment, output: Output) {
    this.environment = environment;
    this.output = output;
    this.context = new MemcachedContext(environment, new Writer(output), new MemcachedClient(0, -1, '', false));
    this.tokenizer = this.context.tokenizer;
    this.pending = new PendingValues(this.context);
    this.datagrams = new Datagrams(this.context, output);
    this.counters = environment.counters.values;
  }

  open(id: number, conn: number, address: string): MemcachedClient {
    return new MemcachedClient(id, conn, address, this.environment.settings.requirepass === '');
  }

  feed(client: MemcachedClient, input: Bytes, offset: number, end: number): number {
    client.again = false;
    client.intoLength = 0;
    this.context.client = client;
    try {
      return this.requests(client, input, offset, end) - offset;
    } catch (error) {
      this.fault(error);
      this.context.reply.text('SERVER_ERROR internal error\r\n');
      client.closing = Closing.AFTER_REPLY;
      return end - offset;
    }
  }

  resumeInto(client: MemcachedClient): void {
    client.intoLength = 0;
    if (client.large !== null) client.large.isComplete = true;
  }

  closed(client: MemcachedClient): void {
    this.pending.drop(client);
  }

  datagram(slot: number, input: Bytes, offset: number, end: number): void {
    try {
      this.datagrams.answer(slot, input, offset, end);
    } catch (error) {
      // No reply: to a client a lost datagram is a miss.
      this.fault(error);
    }
  }

  describe(client: MemcachedClient) {
    return {
      name: '',
      user: 'default',
      db: DB,
      flags: client.closing !== Closing.NO ? 'c' : 'N',
      multi: -1,
      watch: 0,
      queryBytes: 0,
      respVersion: 0,
      lastCommand: COMMAND_NAMES[client.lastCommand],
      commands: client.commands,
      libraryName: '',
      libraryVersion: '',
    };
  }

  matches(_client: MemcachedClient, filter: ClientFilter): boolean {
    if (filter.type !== undefined && filter.type !== 'normal') return false;
    if (filter.user !== undefined && filter.user !== 'default') return false;
    return filter.name === undefined || filter.name === '';
  }

  mayStay(): boolean {
    return true;
  }

  refusal(reason: 'maxclients' | 'protected'): string {
    if (reason === 'maxclients') return 'ERROR Too many open connections\r\n';
    return 'SERVER_ERROR protected mode: without a password (requirepass) this server serves its own machine only\r\n';
  }

  // ---- one feed

  /** Returns the offset up to which the input is consumed. */
  private requests(client: MemcachedClient, input: Bytes, offset: number, end: number): number {
    const { tokenizer, context } = this;
    const { u8 } = input;
    this.repliesStart = this.output.written;
    context.isHashKnown = false;
    let position = offset;
    let budget = MAX_REQUESTS_PER_TURN;
    if (client.swallowBytes > 0) position = this.pending.swallow(client, position, end);
    if (client.large !== null) {
      position = this.pending.finish(client, input, position, end);
      if (client.large !== null || client.closing !== Closing.NO || client.suspended) return position;
      budget--;
    }
    if (client.retrieval !== null) {
      context.input = input;
      position = goOn(context, client.retrieval, position);
      if (client.retrieval.leftBytes > 0) {
        return this.yieldAt(client, position);
      }
      client.retrieval = null;
    }
    while (position < end) {
      if (u8[position] === BINARY_MAGIC) return this.refuseBinary(client, end);
      const count = tokenizer.parse(u8, position, end, client.scannedBytes);
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
          client.closing = Closing.AFTER_REPLY;
          return end;
        case Pending.VALUE:
          context.record = count * Request.WORDS;
          context.input = input;
          return this.pending.begin(client, position, end);
      }
      if (budget <= 0 && position < end) return this.yieldAt(client, position);
    }
    return position;
  }

  /** Executes the parsed requests; -1 when all were executed, else the offset of the first that was not. */
  private batch(client: MemcachedClient, input: Bytes, start: number, count: number): number {
    const { context, tokenizer } = this;
    const { records } = tokenizer;
    const looksAhead = count >= PREFETCH_MIN && this.environment.keyspace.prefetchWorthwhile;
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
      context.isHashKnown = looksAhead && this.hashKnown[i] === 1;
      context.knownHash = this.hashes[i];
      this.counters[Counter.commands]++;
      client.commands++;
      client.lastCommand = command;
      if (client.isAuthenticated) execute(context);
      else authenticate(context);
      // Another database from here on: what was hashed ahead is void.
      if (command === CommandCode.FLUSH_ALL) this.hashKnown.fill(0);
      const next = records[record + Request.next];
      if (client.closing !== Closing.NO || client.suspended) return next;
      if (client.retrieval !== null) return this.yieldAt(client, next);
      if (this.output.written - this.repliesStart > MAX_REPLY_BYTES_PER_TURN) return this.yieldAt(client, next);
    }
    context.isHashKnown = false;
    return -1;
  }

  /** The rest is for the next turn. */
  private yieldAt(client: MemcachedClient, offset: number): number {
    client.again = true;
    this.counters[Counter.connectionYields]++;
    return offset;
  }

  /** Hashes of the first keys; then the store loads buckets and items, so that their cache misses overlap. */
  private lookAhead(input: Bytes, count: number): void {
    const { tokenizer } = this;
    const { keyspace } = this.environment;
    const { records, tokens } = tokenizer;
    let wantedCount = 0;
    for (let i = 0; i < count; i++) {
      const record = i * Request.WORDS;
      const command = records[record + Request.command];
      const keyToken = command === CommandCode.GAT || command === CommandCode.GATS ? 2 : 1;
      this.hashKnown[i] = 0;
      if (!hasKey(command) || records[record + Request.tokenCount] <= keyToken) continue;
      const pair = (records[record + Request.tokenFirst] + keyToken) * 2;
      const length = tokens[pair + 1];
      if (length > MAX_KEY_BYTES) continue;
      const hash = keyspace.hash(DB, input, tokens[pair], length);
      this.hashes[i] = hash;
      this.hashKnown[i] = 1;
      this.wanted[wantedCount++] = hash;
    }
    keyspace.prefetch(this.wanted, wantedCount);
  }

  private refuseBinary(client: MemcachedClient, end: number): number {
    this.context.reply.text('SERVER_ERROR the binary protocol is not supported: use the text or meta protocol\r\n');
    this.counters[Counter.protocolErrors]++;
    client.closing = Closing.AFTER_REPLY;
    return end;
  }

  /** A handler threw: our mistake. Nothing stays locked, the others are served on. */
  private fault(error: unknown): void {
    this.context.abandon();
    this.environment.reportFault(error);
  }
}

function hasKey(command: number): boolean {
  return command >= CommandCode.GET && command <= CommandCode.TOUCH && command !== CommandCode.META_NOOP;
}
