/**
 * A memcached connection without a socket: bytes in, reply bytes out, through the real driver, handlers and writer.
 *
 * Invariant: after each send nothing is left staged, and a handler's exception is the test's.
 */
import { Users } from '../../src/commands/acl/users.js';
import type { Control } from '../../src/commands/control.js';
import { createCommandTable } from '../../src/commands/families.js';
import type { MemcachedClient } from '../../src/commands/memcached/client.js';
import { MemcachedDriver } from '../../src/commands/memcached/driver.js';
import { defaultSettings, type Settings } from '../../src/config/index.js';
import { Bytes } from '../../src/layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../src/layout/counters.js';
import { Send } from '../../src/native/addon.js';
import { Closing } from '../../src/protocol/driver.js';
import { Output, SendKind } from '../../src/protocol/output.js';
import type { Keyspace } from '../../src/store/keyspace.js';

/** Small enough that tests meet the flush. */
const OUTPUT_BYTES = 16 * 1024;
const SENDS = 64;

export class MemcachedSession {
  readonly settings: Settings = defaultSettings();
  readonly driver: MemcachedDriver;
  readonly counters: CounterRow;
  client: MemcachedClient;
  readonly faults: unknown[] = [];

  readonly #keyspace: Keyspace;
  readonly #output: Output;
  readonly #sends = new Int32Array(SENDS * Send.WORDS);
  #sent: Uint8Array[] = [];
  #datagrams: Uint8Array[] = [];
  #pending: Uint8Array = new Uint8Array(0);
  #clients = 0;

  constructor(keyspace: Keyspace, control: Control | null = null) {
    this.#keyspace = keyspace;
    this.#output = new Output(Bytes.allocate(OUTPUT_BYTES), this.#sends, (count) => this.#take(count));
    const block = createCounterBlock(1);
    this.counters = new CounterRow(block, 0);
    const environment = {
      keyspace,
      users: new Users(createCommandTable()),
      settings: this.settings,
      counters: this.counters,
      totals: new CounterTotals(block, createCounterBaseline()),
      control,
      reportFault: (error: unknown) => this.faults.push(error),
    };
    this.driver = new MemcachedDriver(environment, this.#output);
    this.client = this.connect();
  }

  /** A further client; assign it to `client` to speak for it. */
  connect(): MemcachedClient {
    this.#pending = new Uint8Array(0);
    return this.driver.open(++this.#clients, this.#clients, '127.0.0.1:50000');
  }

  get isClosed(): boolean {
    return this.client.closing !== Closing.NO;
  }

  /** Sends bytes (strings are byte strings); what is incomplete waits for the next call. Returns the reply. */
  send(data: string | Uint8Array): string {
    const bytes = typeof data === 'string' ? Buffer.from(data, 'latin1') : data;
    let arrived: Uint8Array = bytes;
    this.#sent = [];
    this.#output.begin(this.client.conn);
    this.#keyspace.enterBatch();
    // Bytes for a staged item go past the parser, as the pump sends them.
    if (this.client.intoLength > 0) arrived = this.#into(arrived);
    let input = Bytes.from(Buffer.concat([this.#pending, arrived]));
    let consumed = 0;
    while (input.length > consumed && !this.isClosed) {
      consumed += this.driver.feed(this.client, input, consumed, input.length);
      if (this.client.intoLength > 0 && consumed < input.length) {
        input = Bytes.from(this.#into(input.u8.slice(consumed)));
        consumed = 0;
      } else if (!this.client.again) {
        break;
      }
    }
    this.#keyspace.leaveBatch();
    this.#output.end();
    this.#take(this.#output.sendCount);
    this.#output.restart();
    this.#pending = this.isClosed ? new Uint8Array(0) : input.u8.slice(consumed);
    this.#check();
    return Buffer.concat(this.#sent).toString('latin1');
  }

  /** Sends one datagram; returns the reply's datagrams. */
  datagram(bytes: Uint8Array): Uint8Array[] {
    this.#datagrams = [];
    const input = Bytes.from(bytes);
    this.#keyspace.enterBatch();
    this.driver.datagram(3, input, 0, input.length);
    this.#keyspace.leaveBatch();
    this.#take(this.#output.sendCount);
    this.#output.restart();
    this.#check();
    return this.#datagrams;
  }

  /** The control plane's answer: `write` runs with the output on this client. Returns what it wrote. */
  resume(write: () => void): string {
    this.#sent = [];
    this.client.suspended = false;
    this.#output.begin(this.client.conn);
    write();
    this.#output.end();
    this.#take(this.#output.sendCount);
    this.#output.restart();
    return Buffer.concat(this.#sent).toString('latin1');
  }

  close(): void {
    this.driver.closed(this.client);
    this.#check();
  }

  #into(arrived: Uint8Array): Uint8Array {
    const { client } = this;
    const part = arrived.subarray(0, client.intoLength);
    copyInto(this.#keyspace, client.intoArena, client.intoOffset, part);
    client.intoOffset += part.length;
    client.intoLength -= part.length;
    if (client.intoLength === 0) this.driver.resumeInto(client);
    return arrived.subarray(part.length);
  }

  #check(): void {
    if (this.faults.length > 0) throw this.faults[0];
    if (this.#keyspace.hasStaged) throw new Error('an item is still staged');
  }

  #take(count: number): void {
    for (let i = 0; i < count; i++) {
      const word = i * Send.WORDS;
      const offset = this.#sends[word + Send.offset];
      const arena = this.#sends[word + Send.arena];
      const bytes = this.#output.u8.slice(offset, offset + this.#sends[word + Send.length]);
      if (arena === SendKind.DATAGRAM) this.#datagrams.push(bytes);
      else this.#sent.push(bytes);
    }
  }
}

/** What the pump does with bytes for a staged item. */
function copyInto(keyspace: Keyspace, arena: number, offset: number, part: Uint8Array): void {
  const range = keyspace.memory.arenas.find((bytes) => bytes.arena === arena);
  if (range === undefined) throw new Error(`no arena ${arena}`);
  range.u8.set(part, offset);
}
