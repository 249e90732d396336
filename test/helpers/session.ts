/**
 * A RESP connection without a socket: bytes in, reply bytes out, through the real driver, executor and reply writer.
 *
 *   const session = new Session(testStore());
 *   session.send('SET k v')           // inline; an array sends exact bytes as one multibulk request
 *   -> '+OK\r\n'
 *
 * Invariant: after each send nothing is left staged, and a handler's exception is the test's.
 */

import { Users } from '../../src/commands/acl/users.js';
import type { Client } from '../../src/commands/clients/client.js';
import type { Control } from '../../src/commands/control.js';
import type { Environment } from '../../src/commands/environment.js';
import { Executor } from '../../src/commands/executor.js';
import { createCommandTable } from '../../src/commands/families.js';
import { RespDriver } from '../../src/commands/resp-driver.js';
import type { CommandTable } from '../../src/commands/table.js';
import { defaultSettings, type Settings } from '../../src/config/index.js';
import { Bytes } from '../../src/layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../src/layout/counters.js';
import { Send } from '../../src/native/addon.js';
import { Output } from '../../src/protocol/output.js';
import { Reply } from '../../src/protocol/resp/reply.js';
import type { Keyspace } from '../../src/store/keyspace.js';

/** Big enough for most replies, small enough that tests meet the flush. */
const OUTPUT_BYTES = 16 * 1024;
const SENDS = 64;

export class Session {
  readonly settings: Settings = defaultSettings();
  readonly driver: RespDriver;
  readonly executor: Executor;
  client: Client;
  readonly faults: unknown[] = [];

  readonly #keyspace: Keyspace;
  readonly #output: Output;
  readonly #sends = new Int32Array(SENDS * Send.WORDS);
  /** What each connection was sent and nobody has taken. */
  readonly #sent = new Map<number, Uint8Array[]>();
  #pending: Uint8Array = new Uint8Array(0);
  #clients = 0;

  /** `table`: further commands, for tests of what commands stand on. */
  constructor(keyspace: Keyspace, control: Control | null = null, table: CommandTable = createCommandTable()) {
    this.#keyspace = keyspace;
    this.#output = new Output(Bytes.allocate(OUTPUT_BYTES), this.#sends, (count) => this.#take(count));
    const reply = new Reply(this.#output);
    const block = createCounterBlock(1);
    const environment: Environment = {
      keyspace,
      users: new Users(table),
      settings: this.settings,
      counters: new CounterRow(block, 0),
      totals: new CounterTotals(block, createCounterBaseline()),
      control,
      reportFault: (error: unknown) => this.faults.push(error),
    };
    this.executor = new Executor(environment, table, reply);
    this.driver = new RespDriver(this.executor, reply);
    this.client = this.connect();
  }

  /** A further client; assign it to `client` to speak for it. */
  connect(): Client {
    return this.driver.open(++this.#clients, this.#clients, '127.0.0.1:50000');
  }

  /** Sends one request and returns the raw reply (latin1). */
  send(request: string | readonly (string | Uint8Array)[]): string {
    return this.raw(typeof request === 'string' ? `${request}\r\n` : multibulk(request));
  }

  /** Sends bytes as they are; what is incomplete waits for the next call. */
  raw(data: string | Uint8Array): string {
    const bytes = typeof data === 'string' ? Buffer.from(data, 'latin1') : data;
    const input = Bytes.from(Buffer.concat([this.#pending, bytes]));
    let consumed = 0;
    this.#output.begin(this.client.conn);
    do {
      this.#keyspace.refreshClock();
      this.#keyspace.enterBatch();
      consumed += this.driver.feed(this.client, input, consumed, input.length);
      this.#keyspace.leaveBatch();
    } while (this.client.again);
    this.#output.end();
    const sent = this.got(this.client.conn);
    this.#pending = input.u8.slice(consumed);
    if (this.#keyspace.hasStaged) throw new Error('an item is still staged');
    if (this.faults.length > 0) throw this.faults[0];
    return sent;
  }

  /** What `write` replies outside any feed, as the control plane does with its answers. */
  later(write: () => void): string {
    this.write(this.client.conn, write);
    return this.got(this.client.conn);
  }

  /** Runs `write` with the output on a connection. */
  write(conn: number, write: () => void): void {
    this.#output.begin(conn);
    write();
    this.#output.end();
  }

  /** What a connection was sent since it was last asked for. */
  got(conn: number): string {
    this.#take(this.#output.sendCount);
    this.#output.restart();
    const sent = this.#sent.get(conn) ?? [];
    this.#sent.delete(conn);
    return Buffer.concat(sent).toString('latin1');
  }

  /**
   * When a large value is expected (client.intoLength > 0), bytes that came with its header belong to it: returns how
   * many, and forgets them, so that the caller can put them where they belong. Else 0.
   */
  takePendingForInto(): number {
    if (this.client.intoLength === 0) return 0;
    return this.takePending();
  }

  /** Forgets what was sent and not consumed; returns how many bytes. */
  takePending(): number {
    const length = this.#pending.length;
    this.#pending = new Uint8Array(0);
    return length;
  }

  #take(count: number): void {
    for (let i = 0; i < count; i++) {
      const word = i * Send.WORDS;
      const conn = this.#sends[word + Send.conn];
      const offset = this.#sends[word + Send.offset];
      const bytes = this.#output.u8.slice(offset, offset + this.#sends[word + Send.length]);
      const sent = this.#sent.get(conn);
      if (sent === undefined) this.#sent.set(conn, [bytes]);
      else sent.push(bytes);
    }
  }
}

/** A request as clients send it. Strings are byte strings. */
export function multibulk(argv: readonly (string | Uint8Array)[]): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from(`*${argv.length}\r\n`)];
  for (const arg of argv) {
    const bytes = typeof arg === 'string' ? Buffer.from(arg, 'latin1') : arg;
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}
