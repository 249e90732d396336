/**
 * Requests executed in this thread as a worker executes them, without sockets: the same driver, executor and store.
 *
 * What comes in larger pieces than a worker receives at a time goes straight into the store, as the pump does it, here through the arena's
 * view, so that it is recorded. Replies are dropped. Invariant: after `run` nothing of the request is left to be done.
 */
import { Users } from '../commands/acl/users.js';
import type { Client } from '../commands/clients/client.js';
import type { Environment } from '../commands/environment.js';
import { Executor } from '../commands/executor.js';
import { createCommandTable } from '../commands/families.js';
import { RespDriver } from '../commands/resp-driver.js';
import { defaultSettings } from '../config/index.js';
import { Bytes } from '../layout/bytes.js';
import { Counter, CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../layout/counters.js';
import { addon, Send } from '../native/addon.js';
import { Closing } from '../protocol/driver.js';
import { Output } from '../protocol/output.js';
import { Reply } from '../protocol/resp/reply.js';
import type { Keyspace } from '../store/keyspace.js';

/** As server/worker: what one turn receives from a connection. */
const RECEIVE_BYTES = 64 * 1024;
/** In mapped memory, as the pump's: copies out of it are native ones. Requests that are longer come in memory of their own. */
const INPUT_BYTES = 4 * 1024 * 1024;
const OUTPUT_BYTES = 1024 * 1024;
const SENDS = 1024;
/** Background work: after so many requests, as a worker with a full turn does it, and no longer than so long. */
const BACKGROUND_EVERY = 64;
const BACKGROUND_US = 50;

export class RequestFeed {
  /** Error replies so far: of requests that the store did not like. */
  get errors(): number {
    return this.#counters.values[Counter.errorReplies];
  }

  readonly #keyspace: Keyspace;
  readonly #input: Bytes;
  readonly #counters = new CounterRow(createCounterBlock(1), 0);
  readonly #driver: RespDriver;
  readonly #output: Output;
  readonly #sends = new Int32Array(SENDS * Send.WORDS);
  #client: Client;
  #clients = 0;
  #requests = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    const arena = addon.allocateArena(INPUT_BYTES, {});
    this.#input = new Bytes(addon.wrapArena(arena), arena);
    // No arena: values are copied into it, whatever their size, and none stays pinned.
    this.#output = new Output(Bytes.allocate(OUTPUT_BYTES), this.#sends, () => {});
    const reply = new Reply(this.#output);
    const table = createCommandTable();
    const environment: Environment = {
      keyspace,
      users: new Users(table),
      settings: defaultSettings(),
      counters: this.#counters,
      totals: new CounterTotals(createCounterBlock(1), createCounterBaseline()),
      control: null,
      reportFault: (error: unknown) => {
        throw error;
      },
    };
    this.#driver = new RespDriver(new Executor(environment, table, reply), reply);
    this.#client = this.#connect();
  }

  #connect(): Client {
    return this.#driver.open(++this.#clients, this.#clients, '127.0.0.1:0');
  }

  /** Executes one whole request. */
  run(request: Uint8Array): void {
    this.#requests++;
    for (let at = 0; at < request.length; ) {
      // A turn sees what has come; what is not a whole request yet comes again with the rest.
      let end = Math.min(request.length, at + RECEIVE_BYTES);
      let used = this.#turn(request.subarray(at, end));
      while (used === 0 && end < request.length && this.#client.intoLength === 0) {
        end = Math.min(request.length, end + RECEIVE_BYTES);
        used = this.#turn(request.subarray(at, end));
      }
      at += used;
      at += this.#receiveInto(request.subarray(at));
      if (this.#client.closing !== Closing.NO || this.#client.suspended) {
        // One that waits for something would wait for ever: the next request is another client's.
        this.#driver.closed(this.#client);
        this.#client = this.#connect();
        return;
      }
      if (used === 0 && end === request.length) throw new Error('a request ends before it is whole');
    }
  }

  #turn(bytes: Uint8Array): number {
    const keyspace = this.#keyspace;
    const input = bytes.length > INPUT_BYTES ? Bytes.from(bytes) : this.#input;
    if (input === this.#input) input.u8.set(bytes);
    let used = 0;
    do {
      keyspace.refreshClock();
      keyspace.enterBatch();
      this.#output.begin(this.#client.conn);
      used += this.#driver.feed(this.#client, input, used, bytes.length);
      this.#output.end();
      this.#output.restart();
      if (this.#requests % BACKGROUND_EVERY === 0) keyspace.background(BACKGROUND_US);
      keyspace.leaveBatch();
    } while (this.#client.again);
    return used;
  }

  #receiveInto(bytes: Uint8Array): number {
    const { intoArena, intoOffset, intoLength } = this.#client;
    if (intoLength === 0) return 0;
    const arena = this.#keyspace.memory.arenas.find((candidate) => candidate.arena === intoArena);
    if (arena === undefined) throw new Error(`arena ${intoArena} is none of the pool's`);
    if (bytes.length < intoLength) throw new Error('a request ends before its value does');
    for (let at = 0; at < intoLength; at += RECEIVE_BYTES) {
      arena.u8.set(bytes.subarray(at, Math.min(intoLength, at + RECEIVE_BYTES)), intoOffset + at);
    }
    this.#driver.resumeInto(this.#client);
    return intoLength;
  }
}
