/** Hundreds of thousands of requests leave nothing on the JavaScript heap, in the text, the meta and the binary protocol. */
import { expect, it } from 'vitest';
import { binaryRequest, extras } from '../../../test/helpers/binary-protocol.js';
import { testStore } from '../../../test/helpers/store.js';
import { defaultSettings } from '../../config/index.js';
import { Bytes } from '../../layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../layout/counters.js';
import { addon, Send } from '../../native/addon.js';
import { Opcode } from '../../protocol/memcached/binary-codes.js';
import { Output } from '../../protocol/output.js';
import { MemcachedDriver } from './driver.js';

const REQUESTS = 400_000;
const DEPTH = 100;
const OUTPUT_BYTES = 256 * 1024;
/** The driver's own warming up, the test runner's doings; one object a request would be 30 MB. */
const TOLERATED_BYTES = 8 * 1024 * 1024;

const VALUE = 'x'.repeat(100);
const TEXT = ['get key\r\nmg key v\r\n', `set key 7 0 100\r\n${VALUE}\r\nget nosuch\r\n`];
const BINARY = [
  [binaryRequest({ opcode: Opcode.GETK, key: 'key' }), binaryRequest({ opcode: Opcode.GETQ, key: 'nosuch' })],
  [
    binaryRequest({ opcode: Opcode.SET, key: 'key', value: VALUE, extras: extras(7, 0) }),
    binaryRequest({ opcode: Opcode.INCREMENT, key: 'n', extras: extras(1n, 0n, 0) }),
  ],
].map((requests) => Buffer.concat(requests).toString('latin1'));

it.each([
  ['text', TEXT],
  ['binary', BINARY],
])(
  'keeps the heap flat: %s',
  (_, pairs) => {
    const keyspace = testStore();
    // Mapped memory, as the pump's: copies into ordinary memory make objects.
    const arena = addon.allocateArena(OUTPUT_BYTES, {});
    const output = new Output(new Bytes(addon.wrapArena(arena), arena), new Int32Array(Send.WORDS * 64), () => {});
    const block = createCounterBlock(1);
    const driver = new MemcachedDriver(
      {
        keyspace,
        settings: defaultSettings(),
        counters: new CounterRow(block, 0),
        totals: new CounterTotals(block, createCounterBaseline()),
        control: null,
        reportFault: (error) => {
          throw error;
        },
      },
      output,
    );
    const client = driver.open(1, 1, '127.0.0.1:1');
    const feed = (input: Bytes, end: number): void => {
      keyspace.enterBatch();
      output.begin(1);
      for (let at = 0; at < end; ) at += driver.feed(client, input, at, end);
      output.end();
      output.restart();
      keyspace.leaveBatch();
    };
    for (const pair of pairs) {
      const bytes = Buffer.from(pair.repeat(DEPTH / 2), 'latin1');
      // Mapped too: values are copied out of it.
      const from = addon.allocateArena(bytes.length, {});
      const input = new Bytes(addon.wrapArena(from), from);
      input.u8.set(bytes);
      for (let i = 0; i < 500; i++) feed(input, bytes.length);
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < REQUESTS / DEPTH; i++) feed(input, bytes.length);
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(TOLERATED_BYTES);
    }
  },
  60_000,
);
