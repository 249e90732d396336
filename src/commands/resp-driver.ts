/**
 * The RESP side of a connection: batches of requests from bytes to the executor.
 *
 * feed() parses up to BATCH_REQUESTS requests, looks their commands up, lets the store touch the memory of all their keys
 * (prefetch), then executes them in order. Invariant: what feed() reports as consumed has been executed and answered;
 * everything behind it will be delivered again.
 */
import type { Bytes } from '../layout/bytes.js';
import { Counter } from '../layout/counters.js';
import { settleCopies } from '../native/copy.js';
import { Closing, type Driver, MAX_REPLY_BYTES_PER_TURN, MAX_REQUESTS_PER_TURN } from '../protocol/driver.js';
import { protocolErrorText } from '../protocol/resp/errors.js';
import {
  BATCH_REQUESTS,
  ParseStatus,
  type PartialRequest,
  Request,
  RequestParser,
  RequestSource,
} from '../protocol/resp/parser.js';
import type { Reply } from '../protocol/resp/reply.js';
import { mayUseChannel } from './acl/check.js';
import { BatchHashes } from './batch-hashes.js';
import { Attention, Client, ReplyMode } from './clients/client.js';
import { charge, endTransaction } from './clients/client-memory.js';
import { type Command, KeyMode } from './command.js';
import type { Context } from './context.js';
import type { ClientFilter } from './control.js';
import type { Environment } from './environment.js';
import { countErrors } from './error-counts.js';
import { type Executor, MAX_KEY_BYTES } from './executor.js';
import { dropWork } from './long-work.js';
import { deniesWrites, isDenied, WRITES_DENIED } from './persistence/disk-error.js';
import { Flag } from './spec.js';
import { LargeValues } from './strings/large-values.js';

/** Below this threshold SLOWLOG means O(1) commands, too. */
const SLOW_FAST_MICROSECONDS = 1000;
/** Commands that change nothing but what has expired, and read little. */
const READS = Flag.READONLY | Flag.FAST;
/** Commands that wait while writes are paused. */
const WRITES = Flag.WRITE | Flag.MAY_REPLICATE;

export class RespDriver implements Driver<Client> {
  private readonly environment: Environment;
  private readonly executor: Executor;
  private readonly context: Context;
  private readonly reply: Reply;
  private readonly parser = new RequestParser();
  private readonly large: LargeValues;
  private readonly counters: Float64Array;
  /** How many of reply.errorCount are in the counters. */
  private countedErrors = 0;
  /** Where the input of this feed begins, and where the request in hand ends. */
  private feedOffset = 0;
  private requestEnd = 0;
  /** One element per request of the batch. */
  private readonly commands: (Command | null)[] = new Array<Command | null>(BATCH_REQUESTS).fill(null);
  private readonly hashes: BatchHashes;

  constructor(executor: Executor, reply: Reply) {
    this.environment = executor.environment;
    this.executor = executor;
    this.context = executor.context;
    this.reply = reply;
    this.counters = executor.environment.counters.values;
    this.hashes = new BatchHashes(executor.environment.keyspace, BATCH_REQUESTS);
    this.large = new LargeValues(executor, this.parser);
  }

  open(id: number, conn: number, address: string): Client {
    const { users } = this.environment;
    const client = new Client(id, conn, address, users.default);
    client.authenticated = !users.needAuthentication;
    return client;
  }

  feed(client: Client, input: Bytes, offset: number, end: number): number {
    // Answers of the control plane are written between feeds.
    if (this.reply.errorCount !== this.countedErrors) this.countErrors();
    this.reply.protocol = client.protocol;
    client.again = false;
    client.intoLength = 0;
    this.feedOffset = offset;
    let position = offset;
    try {
      position = this.requests(client, input, offset, end);
    } catch (error) {
      // A handler's fault, not the client's: nothing stays locked, the others are served on, this client must go. If it
      // may have changed something by halves, the worker ends, and another participant puts the store back.
      if (!this.executor.abandon()) throw error;
      this.settleReplies();
      if (this.reply.output.isMuted) this.reply.output.unmute();
      this.environment.reportFault(error);
      this.reply.error('ERR internal error');
      client.closing = Closing.AFTER_REPLY;
      position = end;
    }
    if (this.reply.errorCount !== this.countedErrors) this.countErrors();
    return position - offset;
  }

  consumedByNow(): number {
    return this.requestEnd - this.feedOffset;
  }

  /** A request whose value is on its way into the store goes on there, and so does one that is half done. */
  answersShutOut(client: Client): boolean {
    return client.large === null && client.work === null;
  }

  resumeInto(client: Client): void {
    client.intoLength = 0;
  }

  closed(client: Client): void {
    this.executor.hub.closed(client);
    this.large.drop(client);
    endTransaction(client, this.counters);
    dropWork(client, this.counters);
    client.partial = null;
  }

  datagram(): void {}

  describe(client: Client) {
    let flags = '';
    if (client.transaction !== null) flags += 'x';
    if (client.blocked !== null) flags += 'b';
    if ((client.attention & Attention.MONITOR) !== 0) flags += 'O';
    if ((client.attention & Attention.SUBSCRIBED) !== 0) flags += 'P';
    if (client.tracking !== null) flags += client.tracking.broadcast ? 'tB' : 't';
    if (client.tracking?.redirectIsBroken === true) flags += 'R';
    if (client.closing !== Closing.NO) flags += 'c';
    if (client.noEvict) flags += 'e';
    if (client.noTouch) flags += 'T';
    return {
      name: client.name,
      user: client.user.name,
      db: client.db,
      flags: flags === '' ? 'N' : flags,
      multi: client.transaction === null ? -1 : client.transaction.count,
      watch: client.watched === null ? 0 : client.watched.size,
      queryBytes: client.suspended ? client.queryBytes : 0,
      transactionBytes: client.transaction?.memoryBytes ?? 0,
      subscriptions: client.subscription?.channels.size ?? 0,
      patterns: client.subscription?.patterns.size ?? 0,
      redirect: client.tracking?.redirect ?? -1,
      shardSubscriptions: client.subscription?.shardChannels.size ?? 0,
      respVersion: client.protocol,
      lastCommand: client.lastCommand === null ? 'NULL' : client.lastCommand.fullName,
      commands: client.commands,
      libraryName: client.libraryName,
      libraryVersion: client.libraryVersion,
    };
  }

  matches(client: Client, filter: ClientFilter): boolean {
    const type = (client.attention & Attention.SUBSCRIBED) !== 0 ? 'pubsub' : 'normal';
    if (filter.type !== undefined && filter.type !== type) return false;
    if (filter.user !== undefined && filter.user !== client.user.name) return false;
    return filter.name === undefined || filter.name === client.name;
  }

  /** False when its user is no more, or may no longer listen to something that the client has subscribed to. */
  mayStay({ user, subscription }: Client): boolean {
    if (this.environment.users.get(user.name) !== user) return false;
    if (subscription === null) return true;
    const { channels, shardChannels, patterns } = subscription;
    const mayUse = (name: string, isPattern: boolean): boolean =>
      mayUseChannel(user, Buffer.from(name, 'latin1'), isPattern);
    return (
      [...channels, ...shardChannels].every((name) => mayUse(name, false)) &&
      [...patterns].every((name) => mayUse(name, true))
    );
  }

  isOpen(): boolean {
    return !this.environment.users.needAuthentication;
  }

  refusal(reason: 'maxclients' | 'protected'): string {
    if (reason === 'maxclients') return '-ERR max number of clients reached\r\n';
    return (
      '-DENIED The server runs in protected mode and no password is set: it serves connections from this machine only. ' +
      'To serve others, set a password (requirepass) or, on a network you trust, switch protected mode off.\r\n'
    );
  }

  // ---- one feed

  private requests(client: Client, input: Bytes, offset: number, end: number): number {
    const parser = this.parser;
    const output = this.reply.output;
    const { settings } = this.environment;
    parser.maxBulkBytes = settings.protoMaxBulkLen;
    const timesAll = settings.slowlogLogSlowerThan >= 0 && settings.slowlogLogSlowerThan < SLOW_FAST_MICROSECONDS;
    const shutOutBy = this.environment.keyspace.gate.shutOutBy;
    this.executor.shutOutBy = shutOutBy;
    const repliesStart = output.written;
    let position = offset;
    let budget = MAX_REQUESTS_PER_TURN;
    if (client.large !== null) {
      this.executor.times.all = true;
      position = this.large.finish(client, input, offset, end);
      if (client.large !== null || client.closing !== Closing.NO || client.suspended) return position;
      budget--;
    }
    while (position < end) {
      // Limits depend on authentication, which any request may change: until then, one at a time.
      const limit = client.authenticated ? Math.min(budget, BATCH_REQUESTS) : 1;
      const status = parser.parse(input, position, end, limit, client.authenticated, client.partial);
      if (parser.partial !== null || client.partial !== null) this.keepPartial(client, parser.partial);
      const count = parser.count;
      if (count > 0) {
        // A request on its own costs a system call: two looks at the clock do not show beside it.
        this.executor.times.all = timesAll || count === 1;
        const executed = this.batch(client, input, position, count);
        this.settleReplies();
        budget -= count;
        if (executed >= 0) {
          // The partial request, if any, is behind requests that will be delivered again.
          if (client.partial !== null) this.keepPartial(client, null);
          return executed;
        }
        position = parser.requests[(count - 1) * Request.WORDS + Request.end];
      }
      if (status === ParseStatus.ERROR) {
        this.protocolError(client);
        return end;
      }
      if (status === ParseStatus.MORE) {
        // Empty requests (CRLF, *0) leave no record, but are done with.
        position = parser.restOffset;
        if (position < end && shutOutBy === 0) position = this.large.begin(client, input, position);
        return position;
      }
      if (count === 0) position = parser.restOffset;
      if (budget <= 0 || output.written - repliesStart > MAX_REPLY_BYTES_PER_TURN) {
        client.again = true;
        return position;
      }
    }
    return position;
  }

  /** Executes the parsed requests; returns -1 when all were executed, else the offset of the first that was not. */
  private batch(client: Client, input: Bytes, start: number, count: number): number {
    const parser = this.parser;
    const requests = parser.requests;
    const context = this.context;
    const executor = this.executor;
    const { keyspace } = this.environment;
    const { mailboxes } = keyspace;
    const looksAhead = this.hashes.pays(count);
    // Nobody else is at work, so what one read has found stays as it is until a command of this batch writes.
    const mayDefer = count > 1 && keyspace.memory.isLone;
    // What was hashed ahead holds as long as the client's database stays the same one: SELECT, FLUSHALL, SWAPDB, EXEC ...
    const db = client.db;
    const physical = keyspace.physical(db);
    const control = this.environment.control;
    const writesPaused = control?.isWritePaused === true;
    const writesDenied = deniesWrites(this.environment);
    if (looksAhead) this.lookAhead(client, input, count);
    for (let i = 0; i < count; i++) {
      const word = i * Request.WORDS;
      const source = requests[word + Request.source] === RequestSource.INPUT ? input : parser.scratch;
      context.bind(
        client,
        source,
        parser.args,
        requests[word + Request.firstArgument],
        requests[word + Request.argumentCount],
      );
      const command = looksAhead ? this.commands[i] : executor.lookup();
      let hashKnown = false;
      if (looksAhead && this.hashes.has(i) && client.db === db && keyspace.physical(db) === physical) {
        context.keyHash = this.hashes.take(i);
        hashKnown = true;
      }
      if (writesPaused && command !== null && this.isWrite(client, command)) {
        control!.waitForUnpause(client);
        return i === 0 ? start : requests[word - Request.WORDS + Request.end];
      }
      this.requestEnd = requests[word + Request.end];
      if (mayDefer) {
        const defers = command !== null && (command.flags & READS) === READS;
        if (!defers) settleCopies();
        this.reply.output.defersCopies = defers;
      }
      if (writesDenied && command !== null && isDenied(client, command)) {
        this.deny(client, command);
      } else if (client.replyMode === ReplyMode.ON) {
        executor.execute(command, hashKnown);
      } else {
        this.executeMuted(client, command, hashKnown);
      }
      if (mailboxes.localBytes !== 0) executor.hub.deliver();
      if (client.isHeldBack) {
        client.isHeldBack = false;
        return i === 0 ? start : requests[word - Request.WORDS + Request.end];
      }
      if (client.work !== null) {
        // It is delivered again, and goes on.
        client.again = true;
        return i === 0 ? start : requests[word - Request.WORDS + Request.end];
      }
      if (client.closing !== Closing.NO || client.suspended) return requests[word + Request.end];
    }
    return -1;
  }

  private settleReplies(): void {
    this.reply.output.defersCopies = false;
    settleCopies();
  }

  /** Commands and hashes of all requests; then the store loads buckets and items, so that their cache misses overlap. */
  private lookAhead(client: Client, input: Bytes, count: number): void {
    const parser = this.parser;
    const requests = parser.requests;
    const context = this.context;
    const keyspace = this.environment.keyspace;
    this.hashes.begin();
    for (let i = 0; i < count; i++) {
      const word = i * Request.WORDS;
      const source = requests[word + Request.source] === RequestSource.INPUT ? input : parser.scratch;
      const argc = requests[word + Request.argumentCount];
      context.bind(client, source, parser.args, requests[word + Request.firstArgument], argc);
      const command = this.executor.lookup();
      this.commands[i] = command;
      this.hashes.skip(i);
      if (command === null || command.keyMode !== KeyMode.ONE || command.exclusive || command.firstKey >= argc)
        continue;
      const length = context.argLength(command.firstKey);
      if (length > MAX_KEY_BYTES) continue;
      this.hashes.add(i, keyspace.hash(client.db, source, context.argOffset(command.firstKey), length));
    }
    this.hashes.load();
  }

  private executeMuted(client: Client, command: Command | null, hashKnown: boolean): void {
    const output = this.reply.output;
    if (client.replyMode === ReplyMode.SKIP_NEXT) client.replyMode = ReplyMode.SKIP;
    output.mute();
    this.executor.execute(command, hashKnown);
    // CLIENT REPLY ON has unmuted and answered.
    if (output.isMuted) output.unmute();
    if (client.replyMode === ReplyMode.SKIP && client.work === null) client.replyMode = ReplyMode.ON;
  }

  private deny(client: Client, command: Command): void {
    const { output } = this.reply;
    if (client.replyMode !== ReplyMode.ON) output.mute();
    this.executor.reject(command, WRITES_DENIED);
    if (output.isMuted) output.unmute();
  }

  /** True for what waits while writes are paused. */
  private isWrite({ transaction }: Client, command: Command): boolean {
    if (transaction === null) return (command.flagsOf(this.context) & WRITES) !== 0;
    return command.spec.name === 'exec' && (transaction.flags & WRITES) !== 0;
  }

  private countErrors(): void {
    this.counters[Counter.errorReplies] += this.reply.errorCount - this.countedErrors;
    this.countedErrors = this.reply.errorCount;
    countErrors(this.environment.counters, this.reply);
  }

  private protocolError(client: Client): void {
    this.counters[Counter.protocolErrors]++;
    this.reply.error(protocolErrorText(this.parser.error, this.parser.errorByte));
    client.closing = Closing.AFTER_REPLY;
    client.partial = null;
  }

  private keepPartial(client: Client, partial: PartialRequest | null): void {
    const before = client.partial?.chargedBytes ?? 0;
    if (partial !== null) partial.chargedBytes = partial.args.byteLength;
    charge(client, this.counters, (partial?.chargedBytes ?? 0) - before);
    client.partial = partial;
  }
}
