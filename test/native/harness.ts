/**
 * Drives a pump in this thread against clients of node:net in the same thread: polls without waiting, lets libuv run between
 * the turns, records every event.
 *
 * Owns nothing but the pump it opens. `onData` returns how many bytes it consumed (a negative number n = consumed ~n, deliver the
 * rest again next turn).
 */
import { once } from 'node:events';
import net from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { addon, Event, EventKind, type Pump, Send } from '../../src/native/addon.js';

export interface Seen {
  readonly conn: number;
  readonly kind: EventKind;
  readonly length: number;
  readonly aux: number;
  readonly arena: number;
}

export const MiB = 1 << 20;

export class Harness {
  readonly pump: Pump;
  readonly seen: Seen[] = [];
  onData: (conn: number, bytes: Uint8Array) => number = (_conn, bytes) => bytes.length;
  onEvent: (seen: Seen) => void = () => {};
  private readonly events: Int32Array;
  private readonly sends: Int32Array;
  private readonly input: Uint8Array;
  private readonly output: Uint8Array;
  private sendCount = 0;
  private outputUsed = 0;

  constructor(options: { inputBytes?: number; outputBytes?: number; maxEvents?: number; receiveBytes?: number } = {}) {
    this.pump = addon.createPump({
      inputBytes: MiB,
      outputBytes: 4 * MiB,
      maxEvents: 64,
      receiveBytes: 65536,
      ...options,
    });
    this.events = new Int32Array(this.pump.events);
    this.sends = new Int32Array(this.pump.sends);
    this.input = new Uint8Array(this.pump.input);
    this.output = new Uint8Array(this.pump.output);
  }

  /** Adds a reply from the output buffer (to an address slot when `arena` is -2). */
  reply(conn: number, bytes: Uint8Array | string, arena = -1): void {
    const data = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    if (this.outputUsed + data.length > this.output.length) this.flush();
    this.output.set(data, this.outputUsed);
    this.record(conn, arena, this.outputUsed, data.length, 0);
    this.outputUsed += data.length;
  }

  record(conn: number, arena: number, offset: number, length: number, token: number): void {
    const at = this.sendCount++ * Send.WORDS;
    this.sends[at + Send.conn] = conn;
    this.sends[at + Send.arena] = arena;
    this.sends[at + Send.offset] = offset;
    this.sends[at + Send.length] = length;
    this.sends[at + Send.token] = token;
  }

  flush(): void {
    this.pump.flush(this.sendCount);
    this.sendCount = this.outputUsed = 0;
  }

  /** One turn. */
  turn(timeoutMs = 0): Seen[] {
    const sendCount = this.sendCount;
    this.sendCount = this.outputUsed = 0;
    const count = this.pump.poll(sendCount, timeoutMs);
    const turn: Seen[] = [];
    for (let i = 0; i < count; i++) turn.push(this.handle(i * Event.WORDS));
    this.seen.push(...turn);
    return turn;
  }

  private handle(at: number): Seen {
    const words = this.events;
    const seen: Seen = {
      conn: words[at + Event.conn],
      kind: words[at + Event.kind],
      length: words[at + Event.length],
      aux: words[at + Event.aux],
      arena: words[at + Event.arena],
    };
    if (seen.kind === EventKind.DATA || seen.kind === EventKind.DATAGRAM) {
      const offset = words[at + Event.offset];
      const memory = seen.arena < 0 ? this.input : new Uint8Array(addon.wrapArena(seen.arena));
      const consumed = this.onData(seen.conn, memory.subarray(offset, offset + seen.length));
      words[at + Event.consumed] = consumed < 0 ? ~consumed : consumed;
      words[at + Event.aux] = consumed < 0 ? 1 : 0;
    }
    this.onEvent(seen);
    return seen;
  }

  /** Turns until the condition holds. */
  async until(condition: () => boolean, limitMs = 10_000): Promise<void> {
    const end = Date.now() + limitMs;
    while (!condition()) {
      if (Date.now() > end) throw new Error(`not reached; last events: ${JSON.stringify(this.seen.slice(-8))}`);
      this.turn();
      await nextTick();
    }
  }

  /** Turns for a while, to show that something does not happen. */
  async turns(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      this.turn(1);
      await nextTick();
    }
  }

  count(kind: EventKind): number {
    return this.seen.filter((one) => one.kind === kind).length;
  }

  last(kind: EventKind): Seen {
    const found = this.seen.findLast((one) => one.kind === kind);
    if (found === undefined) throw new Error(`no event of kind ${kind}`);
    return found;
  }

  listen(): number {
    return this.pump.listenerPort(this.pump.listenTcp('127.0.0.1', 0, 128, 7));
  }

  /** A connected client and its number in the pump. */
  async connect(port: number, options: { allowHalfOpen?: boolean } = {}): Promise<Client> {
    const client = new Client(net.connect({ port, host: '127.0.0.1', ...options }));
    const accepts = this.count(EventKind.ACCEPT);
    await once(client.socket, 'connect');
    await this.until(() => this.count(EventKind.ACCEPT) > accepts);
    client.conn = this.last(EventKind.ACCEPT).conn;
    return client;
  }
}

/** A client that collects what it receives. */
export class Client {
  conn = -1;
  bytes = 0;
  ended = false;
  closed = false;
  private readonly chunks: Buffer[] = [];

  constructor(readonly socket: net.Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.chunks.push(chunk);
      this.bytes += chunk.length;
    });
    socket.on('end', () => {
      this.ended = true;
    });
    socket.on('close', () => {
      this.closed = true;
    });
    socket.on('error', () => {
      this.closed = true;
    });
  }

  received(): Buffer {
    return Buffer.concat(this.chunks);
  }

  text(): string {
    return this.received().toString();
  }
}

/** Bytes that show a shifted or repeated copy. */
export function pattern(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 12345;
  for (let i = 0; i < length; i += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    for (let k = 0; k < 4 && i + k < length; k++) bytes[i + k] = state >>> (8 * k);
  }
  return bytes;
}
