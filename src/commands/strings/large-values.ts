/**
 * Large values on their way in: received from the socket straight into a staged item, without ever being a request in a buffer.
 *
 * begin() recognises an incomplete request whose large argument (CommandSpec.largeArgument) is what is missing, stages the
 * item and asks the server to receive into it; finish() takes the arguments behind it and executes the request.
 * Invariant: client.large.slot is parked exactly while the client has a LargeRequest with a slot; drop() gives it back.
 */
import { Bytes } from '../../layout/bytes.js';
import { Page } from '../../layout/location.js';
import { copyBytes } from '../../native/copy.js';
import { Closing } from '../../protocol/driver.js';
import { ProtocolError, protocolErrorText } from '../../protocol/resp/errors.js';
import type { RequestParser } from '../../protocol/resp/parser.js';
import { INLINE_VALUE_BYTES, type Keyspace, type StageSlot } from '../../store/keyspace.js';
import { mayDoEverything } from '../acl/authorize.js';
import { type Client, type LargeRequest, ReplyMode } from '../clients/client.js';
import { setParked } from '../clients/client-memory.js';
import { type Command, KeyMode } from '../command.js';
import { NO_MEMORY } from '../errors.js';
import { type Executor, MAX_KEY_BYTES } from '../executor.js';

const CRLF_BYTES = 2;
/**
 * All values on their way in to this worker may take this part of the store, so that announcing large values and not sending them
 * cannot drive out what is there. Beyond it, a value is received like any request: its memory grows as its bytes come.
 */
const INCOMING_PART = 1 / 4;

export class LargeValues {
  private readonly executor: Executor;
  private readonly parser: RequestParser;
  /** Value bytes of all parked items. */
  private parkedBytes = 0;

  constructor(executor: Executor, parser: RequestParser) {
    this.executor = executor;
    this.parser = parser;
  }

  /**
   * Looks at the incomplete request that parse() stopped at; returns how far the input is consumed: `rest` (it is not
   * of this kind) or the offset of the value's first byte.
   */
  begin(client: Client, input: Bytes, rest: number): number {
    const parser = this.parser;
    if (parser.pendingLength <= INLINE_VALUE_BYTES || parser.pendingCount === 0 || parser.pendingDone === 0)
      return rest;
    if (client.transaction !== null || client.partial !== null) return rest;
    // Whoever may not do everything is checked with the whole request at hand.
    if (!mayDoEverything(this.executor.environment, client)) return rest;
    const context = this.executor.context;
    context.bind(client, input, parser.args, parser.pendingFirstArgument, parser.pendingDone);
    const command = this.executor.lookup();
    if (command === null || command.largeArgument !== parser.pendingDone) return rest;
    if (command.keyMode !== KeyMode.ONE || !command.accepts(parser.pendingCount)) return rest;
    const keyLength = context.argLength(command.firstKey);
    if (keyLength > MAX_KEY_BYTES) return rest;
    const keyspace = context.keyspace;
    if (this.parkedBytes > 0 && this.parkedBytes + parser.pendingLength > this.incomingLimit(keyspace)) return rest;

    const h = context.hashOf(command.firstKey);
    const large = this.remember(command, parser.pendingCount, parser.pendingLength);
    client.large = large;
    if (context.stage(h, command.firstKey, parser.pendingLength)) {
      const { arena } = keyspace.staged;
      const slot: StageSlot = { held: 0, page: 0, unit: 0 };
      if (keyspace.parkStaged(slot)) {
        large.slot = slot;
        this.parkedBytes += parser.pendingLength;
        setParked(client, this.executor.environment.counters.values, parser.pendingLength);
        client.intoArena = arena;
        client.intoOffset = keyspace.stagedOffset;
        client.intoLength = parser.pendingLength;
      } else {
        keyspace.dropStaged();
      }
    }
    if (large.slot === null) large.skip = parser.pendingLength;
    return parser.pendingOffset;
  }

  /** Goes on with client.large: skips what must be skipped, takes the rest of the request and executes it. Returns the offset consumed. */
  finish(client: Client, input: Bytes, offset: number, end: number): number {
    const large = client.large as LargeRequest;
    if (large.skip > 0) {
      const skipped = Math.min(large.skip, end - offset);
      large.skip -= skipped;
      offset += skipped;
      if (large.skip > 0) return offset;
    }
    if (end - offset < CRLF_BYTES) return offset;
    const before = large.args.length >>> 1;
    const behind = large.argc - before;
    const parser = this.parser;
    const next = parser.parseArguments(input, offset + CRLF_BYTES, end, behind);
    if (next < 0) {
      if (parser.error === ProtocolError.NONE) return offset;
      this.drop(client);
      this.executor.context.reply.error(protocolErrorText(parser.error, parser.errorByte));
      client.closing = Closing.AFTER_REPLY;
      return end;
    }
    this.execute(client, large, input, behind);
    return next;
  }

  /** Gives back what a client that went away, or broke the protocol, had staged. */
  drop(client: Client): void {
    const large = client.large;
    client.large = null;
    if (large === null || large.slot === null) return;
    this.parkedBytes -= valueLength(large);
    setParked(client, this.executor.environment.counters.values, 0);
    this.executor.context.keyspace.dropParked(large.slot);
  }

  private incomingLimit({ memory }: Keyspace): number {
    return (memory.dramSize + memory.capacitySize) * Page.BYTES * INCOMING_PART;
  }

  private remember(command: Command, argc: number, valueLength: number): LargeRequest {
    const context = this.executor.context;
    const before = context.argc;
    let headLength = 0;
    for (let i = 0; i < before; i++) headLength += context.argLength(i);
    const head = Bytes.allocate(headLength);
    const args = new Int32Array((before + 1) * 2);
    let position = 0;
    for (let i = 0; i < before; i++) {
      const length = context.argLength(i);
      copyBytes(head, position, context.input, context.argOffset(i), length);
      args[i * 2] = position;
      args[i * 2 + 1] = length;
      position += length;
    }
    args[before * 2 + 1] = valueLength;
    return { command, slot: null, head, headLength, args, argc, skip: 0 };
  }

  private execute(client: Client, large: LargeRequest, input: Bytes, behind: number): void {
    const { executor, parser } = this;
    const context = executor.context;
    let tailLength = 0;
    for (let i = 0; i < behind; i++) tailLength += parser.args[i * 2 + 1];
    const all = Bytes.allocate(large.headLength + tailLength);
    copyBytes(all, 0, large.head, 0, large.headLength);
    const args = new Int32Array(large.argc * 2);
    args.set(large.args);
    let position = large.headLength;
    for (let i = 0; i < behind; i++) {
      const length = parser.args[i * 2 + 1];
      copyBytes(all, position, input, parser.args[i * 2], length);
      args[large.args.length + i * 2] = position;
      args[large.args.length + i * 2 + 1] = length;
      position += length;
    }
    client.large = null;
    context.bind(client, all, args, 0, large.argc);
    const muted = client.replyMode !== ReplyMode.ON;
    const output = context.reply.output;
    if (muted) output.mute();
    if (large.slot === null) {
      executor.reject(large.command, NO_MEMORY);
    } else {
      this.parkedBytes -= valueLength(large);
      setParked(client, executor.environment.counters.values, 0);
      context.keyspace.unparkStaged(large.slot, client.db);
      context.largeStaged = true;
      executor.execute(large.command, false);
      context.largeStaged = false;
    }
    if (muted) output.unmute();
    if (client.replyMode === ReplyMode.SKIP_NEXT) client.replyMode = ReplyMode.ON;
  }
}

function valueLength(large: LargeRequest): number {
  return large.args[large.args.length - 1];
}
