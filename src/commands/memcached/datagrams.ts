/**
 * memcached over UDP: one datagram in, all of its reply in datagrams out (see protocol/memcached/udp.ts for the frame and
 * for what is done against amplification).
 *
 * The reply is written into a buffer of its own, since its number of datagrams stands in each of them. Invariant: nothing
 * of a request reaches the socket before the request is done, and never more than MAX_REPLY_BYTES of it.
 */
import { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { Send } from '../../native/addon.js';
import { Closing } from '../../protocol/driver.js';
import { BinaryRecord } from '../../protocol/memcached/binary.js';
import { Magic, Opcode } from '../../protocol/memcached/binary-codes.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { BATCH_REQUESTS, CommandCode, Request } from '../../protocol/memcached/request.js';
import {
  DATAGRAM_BYTES,
  FRAME_BYTES,
  frameReply,
  hasFrame,
  isSingleDatagram,
  MAX_REPLY_BYTES,
  MAX_REPLY_DATAGRAMS,
  requestId,
} from '../../protocol/memcached/udp.js';
import { Writer } from '../../protocol/memcached/writer.js';
import { MAX_RESERVE_BYTES, Output } from '../../protocol/output.js';
import { execute as executeBinary } from './binary/dispatch.js';
import { MemcachedClient } from './client.js';
import type { MemcachedContext } from './context.js';
import { execute } from './dispatch.js';

/** The whole reply, and room behind it for the frames and for the longest reservation. */
const BUFFER_BYTES = MAX_REPLY_BYTES + MAX_REPLY_DATAGRAMS * FRAME_BYTES + MAX_RESERVE_BYTES;

export class Datagrams {
  private readonly context: MemcachedContext;
  private readonly output: Output;
  private readonly bytes = Bytes.allocate(BUFFER_BYTES);
  private readonly collected: Output;
  private readonly writer: Writer;
  private readonly client = new MemcachedClient(0, -1, '', true);
  private hasOverflowed = false;

  constructor(context: MemcachedContext, output: Output) {
    this.context = context;
    this.output = output;
    this.collected = new Output(this.bytes, new Int32Array(Send.WORDS * 4), () => {
      this.hasOverflowed = true;
    });
    this.writer = new Writer(this.collected);
  }

  answer(slot: number, input: Bytes, offset: number, end: number): void {
    if (!hasFrame(end - offset)) return;
    const { context, collected } = this;
    const tcpWriter = context.reply;
    this.hasOverflowed = false;
    collected.restart();
    collected.begin(0);
    context.reply = this.writer;
    context.client = this.client;
    try {
      if (!isSingleDatagram(input.u8, offset)) this.writer.line(Replies.MULTI_DATAGRAM);
      else if (input.u8[offset + FRAME_BYTES] === Magic.REQUEST) this.executeBinary(input, offset + FRAME_BYTES, end);
      else this.execute(input, offset + FRAME_BYTES, end);
    } finally {
      context.reply = tcpWriter;
    }
    let payloadBytes = collected.position;
    if (this.hasOverflowed || payloadBytes > MAX_REPLY_BYTES) {
      this.bytes.u8.set(Replies.REPLY_TOO_LARGE);
      payloadBytes = Replies.REPLY_TOO_LARGE.length;
    }
    if (payloadBytes > 0) this.send(slot, requestId(input.u8, offset), payloadBytes);
  }

  /** All complete requests of the payload; an incomplete one will never be completed and is dropped. */
  private execute(input: Bytes, offset: number, end: number): void {
    const { context, client } = this;
    const { tokenizer } = context;
    client.closing = Closing.NO;
    context.input = input;
    const isOpen = !context.credentials.areNeeded;
    let position = offset;
    while (position < end && !this.hasOverflowed) {
      const count = tokenizer.parse(input.u8, position, end, 0);
      if (count === 0) return;
      for (let i = 0; i < count; i++) {
        context.record = i * Request.WORDS;
        context.isHashKnown = false;
        context.counters[Counter.commands]++;
        if (!isOpen) this.writer.line(Replies.UNAUTHENTICATED);
        else if (needsConnection(context)) this.writer.line(Replies.NEEDS_CONNECTION);
        else execute(context);
        if (client.closing !== Closing.NO) return;
      }
      position = tokenizer.consumed;
    }
  }

  /** As execute, for the binary protocol. Statistics with a name, which may answer later, get no reply. */
  private executeBinary(input: Bytes, offset: number, end: number): void {
    const { context, client } = this;
    const { binary } = context;
    client.closing = Closing.NO;
    client.isAuthenticated = !context.credentials.areNeeded;
    context.input = input;
    let position = offset;
    while (position < end && !this.hasOverflowed) {
      const count = binary.parse(input.u8, position, end, BATCH_REQUESTS);
      if (count === 0) return;
      for (let i = 0; i < count; i++) {
        context.record = i * BinaryRecord.WORDS;
        context.isHashKnown = false;
        context.counters[Counter.commands]++;
        const isLongStat =
          context.binaryWord(BinaryRecord.opcode) === Opcode.STAT && context.binaryWord(BinaryRecord.keyLength) > 0;
        if (!isLongStat) executeBinary(context);
        if (client.closing !== Closing.NO) return;
      }
      position = binary.consumed;
    }
  }

  private send(slot: number, id: number, payloadBytes: number): void {
    const { bytes, output } = this;
    const total = frameReply(bytes.u8, 0, payloadBytes, id);
    for (let at = 0; at < total; at += DATAGRAM_BYTES) {
      output.beginDatagram(slot);
      output.range(bytes, at, Math.min(DATAGRAM_BYTES, total - at));
      output.end();
    }
  }
}

/** What answers later, or stops the server, wants a peer that is known. */
function needsConnection(context: MemcachedContext): boolean {
  const command = context.word(Request.command);
  if (command === CommandCode.VERBOSITY || command >= CommandCode.SHUTDOWN) return true;
  return command === CommandCode.STATS && context.tokenCount > 1;
}
