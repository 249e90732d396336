/** The loop against real sockets, with a driver of a few words and a store that only counts. Runs in this thread. */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { settingsWith } from '../../src/config/index.js';
import { Bytes } from '../../src/layout/bytes.js';
import {
  Counter,
  CounterRow,
  CounterTotals,
  createCounterBaseline,
  createCounterBlock,
} from '../../src/layout/counters.js';
import { addon, type Pump } from '../../src/native/addon.js';
import { Closing, type Driver, type DriverClient, type InputBytes } from '../../src/protocol/driver.js';
import { Output } from '../../src/protocol/output.js';
import { Clock } from '../../src/server/clock.js';
import { Loop, type LoopStore } from '../../src/server/loop.js';
import type { ToMain, ToWorker } from '../../src/server/messages.js';
import { OutputHolds } from '../../src/server/output-holds.js';
import { WorkerControl } from '../../src/server/worker-control.js';
import { RawClient } from '../helpers/raw-client.js';

const LINES_PER_TURN = 4;

class CountingStore implements LoopStore {
  keepsExpired = false;
  depth = 0;
  batches = 0;
  slices = 0;
  more = 0;
  readonly unpinned: number[] = [];
  setClock(): void {}
  tryEnterBatch(): boolean {
    this.depth++;
    this.batches++;
    return true;
  }
  leaveBatch(): void {
    this.depth--;
  }
  background(): boolean {
    this.slices++;
    return this.more-- > 0;
  }
  unpin(token: number): void {
    this.unpinned.push(token);
  }
  setPolicy(): void {}
  setLfu(): void {}
  setMaxMemory(): void {}
  readonly sizes = { set: (): void => undefined, problem: (): null => null };
  chargedBytes = 0;
  chargeClients(bytes: number): void {
    this.chargedBytes = bytes;
  }
}

/** One command a line: '= text' echoes, 'into N' receives N bytes and echoes their sum, 'region', 'ask', 'bye', 'abort'. */
class LineDriver implements Driver {
  readonly arena = addon.allocateArena(1 << 20, {});
  readonly bytes = new Bytes(addon.wrapArena(this.arena), this.arena);
  readonly closedIds: number[] = [];
  readonly datagrams: string[] = [];
  constructor(
    readonly output: Output,
    readonly control: WorkerControl,
  ) {}

  open(id: number, conn: number): DriverClient {
    return {
      id,
      conn,
      again: false,
      suspended: false,
      closing: Closing.NO,
      intoArena: 0,
      intoOffset: 0,
      intoLength: 0,
      heapBytes: 0,
      parkedBytes: 0,
      noEvict: false,
    };
  }

  feed(client: DriverClient, input: InputBytes, offset: number, end: number): number {
    let at = offset;
    for (let lines = 0; lines < LINES_PER_TURN; lines++) {
      const newline = input.u8.indexOf(10, at);
      if (newline < 0 || newline >= end) return at - offset;
      const line = Buffer.from(input.u8.subarray(at, newline)).toString();
      at = newline + 1;
      at += this.#run(client, line, input, at, end);
      if (client.suspended || client.closing !== Closing.NO || client.intoLength > 0) return at - offset;
    }
    client.again = at < end;
    return at - offset;
  }

  #run(client: DriverClient, line: string, input: InputBytes, at: number, end: number): number {
    const [word, rest] = [line.split(' ')[0], line.slice(line.indexOf(' ') + 1)];
    if (word === '=') this.output.ascii(`${rest}\n`);
    else if (word === 'bye') client.closing = Closing.AFTER_REPLY;
    else if (word === 'abort') client.closing = Closing.NOW;
    else if (word === 'region') {
      this.bytes.u8.fill(0x72, 0, 1000);
      this.output.region(this.bytes, 0, 1000, 7);
    } else if (word === 'ask') {
      this.control.askWorkers(client, 'slowLogLength', null, (answers) => this.output.ascii(`${answers.join()}\n`));
    } else if (word === 'into') {
      const length = Number(rest);
      const here = Math.min(length, end - at);
      this.bytes.u8.set(input.u8.subarray(at, at + here), 0);
      client.intoArena = this.arena;
      client.intoOffset = here;
      client.intoLength = length - here;
      return here;
    }
    return 0;
  }

  consumedByNow(): number {
    return 0;
  }
  answersShutOut(): boolean {
    return true;
  }

  resumeInto(client: DriverClient): void {
    const sum = this.bytes.u8.reduce((total, byte) => total + byte, 0);
    this.output.ascii(`${client.id > 0 ? sum : 0}\n`);
  }

  closed(client: DriverClient): void {
    this.closedIds.push(client.id);
  }

  datagram(slot: number, input: InputBytes, offset: number, end: number): void {
    this.datagrams.push(Buffer.from(input.u8.subarray(offset, end)).toString());
    this.output.beginDatagram(slot);
    this.output.ascii('got it');
    this.output.end();
  }

  describe(): ReturnType<Driver['describe']> {
    return {
      name: 'line',
      user: '',
      db: 0,
      flags: 'N',
      multi: -1,
      watch: 0,
      queryBytes: 0,
      transactionBytes: 0,
      respVersion: 0,
      lastCommand: '',
      commands: 0,
      libraryName: '',
      libraryVersion: '',
    };
  }

  matches(): boolean {
    return true;
  }

  mayStay(): boolean {
    return true;
  }

  isOpen(): boolean {
    return false;
  }

  refusal(): string {
    return 'full\n';
  }
}

let pump: Pump;
let loop: Loop;
let store: CountingStore;
let driver: LineDriver;
let control: WorkerControl;
let counters: CounterRow;
let mainPort: MessagePort;
let port: number;
let udpPort: number;
const clients: RawClient[] = [];

beforeEach(() => {
  const channel = new MessageChannel();
  mainPort = channel.port1;
  const counterBlock = createCounterBlock(1);
  counters = new CounterRow(counterBlock, 0);
  control = new WorkerControl(
    {
      workerIndex: 0,
      workerCount: 1,
      settings: settingsWith({ maxclients: 3, clientOutputBufferSoft: 65_536 }),
      startedAtMs: 0,
      users: { removed: [], set: [] },
      port: channel.port2,
    },
    counters,
  );
  pump = addon.createPump({ inputBytes: 1 << 20, outputBytes: 1 << 16, maxEvents: 64, receiveBytes: 65_536 });
  const output = new Output(new Bytes(pump.output, pump.outputArena), new Int32Array(pump.sends), (count) =>
    pump.flush(count),
  );
  store = new CountingStore();
  driver = new LineDriver(output, control);
  loop = new Loop({
    pump,
    holds: new OutputHolds(pump),
    output,
    store,
    clock: new Clock(addon),
    counters,
    totals: new CounterTotals(counterBlock, createCounterBaseline()),
    control,
    drivers: [driver],
    makeScriptDriver: () => driver,
  });
  port = pump.listenerPort(pump.listenTcp('127.0.0.1', 0, 64, 0));
  udpPort = pump.listenerPort(pump.listenUdp('127.0.0.1', 0, 0));
});

afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  pump.destroy();
  mainPort.close();
});

async function connect(): Promise<RawClient> {
  const client = await RawClient.connect(port);
  clients.push(client);
  return client;
}

/** Runs turns until the condition holds, letting the client sockets of this thread have their events. */
async function turnUntil(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 5000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('the loop did not get there within 5 s');
    loop.turn(0);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function ask(client: RawClient, request: string, answer: string): Promise<void> {
  client.write(request);
  await turnUntil(() => client.receivedBytes >= answer.length);
  expect((await client.read(answer.length)).toString()).toBe(answer);
}

test('requests are answered in order, however they are cut, with bounded work a turn', async () => {
  const client = await connect();
  await ask(client, '= one\n= two\n', 'one\ntwo\n');
  client.write('= ha');
  for (let i = 0; i < 5; i++) {
    loop.turn(0);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ask(client, 'lf\n', 'half\n');
  const many = Array.from({ length: 50 }, (_, i) => `${i}`);
  await ask(client, many.map((text) => `= ${text}\n`).join(''), `${many.join('\n')}\n`);
  expect(store.depth).toBe(0);
  expect(counters.values[Counter.connections]).toBe(1);
  expect(counters.values[Counter.bytesIn]).toBe(loop.connections.bytesIn[0]);
  expect(counters.values[Counter.bytesOut]).toBe(loop.connections.bytesOut[0]);
});

test('a large argument is received into place', async () => {
  const client = await connect();
  client.write(`into 300000\n${'\x01'.repeat(100)}`);
  await turnUntil(() => counters.values[Counter.bytesIn] >= 112);
  await ask(client, `${'\x01'.repeat(299_900)}= next\n`, '300000\nnext\n');
});

test('a region send gives its pin back', async () => {
  const client = await connect();
  await ask(client, '= before\nregion\n= after\n', `before\n${'r'.repeat(1000)}after\n`);
  await turnUntil(() => store.unpinned.length > 0);
  expect(store.unpinned).toEqual([7]);
});

test('a client that asks the control plane waits, the others do not, and its later requests follow the answer', async () => {
  const asker = await connect();
  const other = await connect();
  const posted: ToMain[] = [];
  mainPort.on('message', (message: ToMain) => posted.push(message));
  asker.write('= first\nask\n= last\n');
  await turnUntil(() => posted.length > 0);
  expect(posted[0]).toMatchObject({ type: 'askWorkers', questions: [{ topic: 'slowLogLength' }] });
  expect(counters.values[Counter.suspendedClients]).toBe(1);
  await ask(other, '= still\n', 'still\n');
  asker.write('= more\n');
  await ask(other, '= still\n', 'still\n');
  expect(asker.text).toBe('first\n');

  const reply: ToWorker = {
    type: 'reply',
    askId: posted[0].type === 'askWorkers' ? posted[0].askId : 0,
    reply: [[3, 4]],
  };
  mainPort.postMessage(reply);
  addon.wake(pump.wakeFd);
  await turnUntil(() => asker.text === 'first\n3,4\nlast\nmore\n');
  expect(counters.values[Counter.suspendedClients]).toBe(0);
});

test('an answer for a client that has gone reaches nobody', async () => {
  const asker = await connect();
  const posted: ToMain[] = [];
  mainPort.on('message', (message: ToMain) => posted.push(message));
  asker.write('ask\n');
  await turnUntil(() => posted.length > 0);
  loop.closeClient(0, false);
  expect(driver.closedIds).toEqual([1]);
  const next = await connect();
  await ask(next, '= hello\n', 'hello\n');
  mainPort.postMessage({ type: 'reply', askId: 1, reply: [1] } satisfies ToWorker);
  addon.wake(pump.wakeFd);
  await ask(next, '= only this\n', 'only this\n');
});

test('a pause holds all clients until it ends', async () => {
  const client = await connect();
  await ask(client, '= before\n', 'before\n');
  control.pause(loop.nowMs + 200, false);
  const started = performance.now();
  await ask(client, '= after\n', 'after\n');
  expect(performance.now() - started).toBeGreaterThan(150);
});

test('closing after the reply sends the reply', async () => {
  const client = await connect();
  client.write('= last words\nbye\n= never\n');
  await turnUntil(() => client.isClosed);
  expect(client.text).toBe('last words\n');
  await turnUntil(() => loop.connections.count === 0);
  expect(driver.closedIds).toEqual([1]);
  const other = await connect();
  other.write('abort\n');
  await turnUntil(() => other.isClosed);
  expect(loop.connections.count).toBe(0);
});

test('a client above maxclients is told so and leaves no trace', async () => {
  const admitted = [await connect(), await connect(), await connect()];
  for (const client of admitted) await ask(client, '= in\n', 'in\n');
  const refused = await connect();
  await turnUntil(() => refused.isClosed);
  expect(refused.text).toBe('full\n');
  expect(counters.values[Counter.connectionsRejected]).toBe(1);
  expect(loop.connections.count).toBe(3);
  await ask(admitted[2], '= still in\n', 'still in\n');
});

test('datagrams reach the driver of their listener, and the reply goes back', async () => {
  const { createSocket } = await import('node:dgram');
  const socket = createSocket('udp4');
  const received: string[] = [];
  socket.on('message', (message) => received.push(message.toString()));
  await new Promise<void>((resolve) => socket.send('hello', udpPort, '127.0.0.1', () => resolve()));
  await turnUntil(() => received.length > 0);
  expect(driver.datagrams).toEqual(['hello']);
  expect(received).toEqual(['got it']);
  socket.close();
});

test('background work runs hz times a second, and on while there is more', async () => {
  const deadline = performance.now() + 550;
  while (performance.now() < deadline) loop.turn(5);
  expect(store.slices).toBeGreaterThanOrEqual(5);
  expect(store.slices).toBeLessThanOrEqual(8);
  store.more = 20;
  const before = store.slices;
  while (store.slices === before) loop.turn(5);
  for (let i = 0; i < 20; i++) loop.turn(0);
  expect(store.slices - before).toBe(21);
});
