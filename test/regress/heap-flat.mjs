/**
 * Child process of heap-flat.test.ts: a million GETs and SETs through the built driver, from memory, on a small store. Prints what they
 * cost the JavaScript heap. It runs dist/, because only compiled constants are what the server runs with.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Users } from '../../dist/commands/acl/users.js';
import { Executor } from '../../dist/commands/executor.js';
import { createCommandTable } from '../../dist/commands/families.js';
import { RespDriver } from '../../dist/commands/resp-driver.js';
import { defaultSettings } from '../../dist/config/index.js';
import { Bytes } from '../../dist/layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../dist/layout/counters.js';
import { addon } from '../../dist/native/addon.js';
import { Output } from '../../dist/protocol/output.js';
import { Reply } from '../../dist/protocol/resp/reply.js';
import { attach } from '../../dist/store/attach.js';
import { openStore } from '../../dist/store/open.js';

const REQUESTS_PER_TURN = 500;
const TURNS = 2000;
const WARM_UP_TURNS = 400;

const pool = mkdtempSync(join(tmpdir(), 'entresol-heap-'));
const handle = openStore({ pool, dramBytes: 32 * 1024 * 1024, capacityBytes: 0, policy: 'allkeys-lru', shards: 32 });
const keyspace = attach(handle);
/** Mapped memory, like the pump's: only that is copied without a view object. */
function mapped(length) {
  const arena = addon.allocateArena(length, {});
  return new Bytes(addon.wrapArena(arena), arena);
}

const output = new Output(mapped(1024 * 1024), new Int32Array(1024), () => {});
const reply = new Reply(output);
const block = createCounterBlock(1);
const table = createCommandTable();
const environment = {
  keyspace,
  users: new Users(table),
  settings: defaultSettings(),
  counters: new CounterRow(block, 0),
  totals: new CounterTotals(block, createCounterBaseline()),
  control: null,
  reportFault: (error) => {
    throw error;
  },
};
const driver = new RespDriver(new Executor(environment, table, reply), reply);
const client = driver.open(1, 1, '127.0.0.1:1');

function request(...argv) {
  return `*${argv.length}\r\n${argv.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`;
}

let text = '';
for (let i = 0; i < REQUESTS_PER_TURN; i += 2) {
  const key = `key:${String(i).padStart(12, '0')}`;
  text += request('SET', key, 'x'.repeat(100)) + request('GET', key);
}
const input = mapped(1024 * 1024);
input.u8.set(Buffer.from(text));

function turn() {
  keyspace.enterBatch();
  output.begin(1);
  const consumed = driver.feed(client, input, 0, text.length);
  output.end();
  output.restart();
  keyspace.leaveBatch();
  if (consumed !== text.length) throw new Error(`consumed ${consumed} of ${text.length} bytes`);
}

for (let i = 0; i < WARM_UP_TURNS; i++) turn();
await sleep(10);
let collections = 0;
new PerformanceObserver((list) => {
  collections += list.getEntries().length;
}).observe({ entryTypes: ['gc'] });
const before = process.memoryUsage().heapUsed;
for (let i = 0; i < TURNS; i++) turn();
const grownBytes = process.memoryUsage().heapUsed - before;
await sleep(10);
process.stdout.write(JSON.stringify({ requests: TURNS * REQUESTS_PER_TURN, collections, grownBytes }));
rmSync(handle.dramPath, { force: true });
rmSync(pool, { recursive: true, force: true });
process.exit(0);
