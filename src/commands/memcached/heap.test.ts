/** Hundreds of thousands of gets leave nothing on the JavaScript heap. */
import { expect, it } from 'vitest';
import { testStore } from '../../../test/helpers/store.js';
import { defaultSettings } from '../../config/index.js';
import { Bytes } from '../../layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../layout/counters.js';
import { addon, Send } from '../../native/addon.js';
import { Output } from '../../protocol/output.js';
import { Users } from '../acl/users.js';
import { createCommandTable } from '../families.js';
import { MemcachedDriver } from './driver.js';

const GETS = 400_000;
const DEPTH = 100;
const OUTPUT_BYTES = 256 * 1024;
/** The driver's own warming up, the test runner's doings; one object a request would be 30 MB. */
const TOLERATED_BYTES = 8 * 1024 * 1024;

it('keeps the heap flat', () => {
  const keyspace = testStore();
  // Mapped memory, as the pump's: copies into ordinary memory make objects.
  const arena = addon.allocateArena(OUTPUT_BYTES, {});
  const output = new Output(new Bytes(addon.wrapArena(arena), arena), new Int32Array(Send.WORDS * 64), () => {});
  const block = createCounterBlock(1);
  const driver = new MemcachedDriver(
    {
      keyspace,
      users: new Users(createCommandTable()),
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
  const feed = (input: Bytes): void => {
    keyspace.enterBatch();
    output.begin(1);
    for (let at = 0; at < input.length; ) at += driver.feed(client, input, at, input.length);
    output.end();
    output.restart();
    keyspace.leaveBatch();
  };
  feed(Bytes.from(`set key 7 0 100\r\n${'x'.repeat(100)}\r\n`));
  const input = Bytes.from('get key\r\nmg key v\r\n'.repeat(DEPTH / 2));
  for (let i = 0; i < 500; i++) feed(input);
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < GETS / DEPTH; i++) feed(input);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(TOLERATED_BYTES);
}, 60_000);
