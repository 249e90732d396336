/**
 * Runs one request that changes a hundred keys, through driver and executor as a worker does, and dies at its n-th step in shared memory.
 * Without a death it prints how many steps there were. Runs from dist/.
 */

import { Users } from '../../dist/commands/acl/users.js';
import { Executor } from '../../dist/commands/executor.js';
import { createCommandTable } from '../../dist/commands/families.js';
import { RespDriver } from '../../dist/commands/resp-driver.js';
import { defaultSettings } from '../../dist/config/index.js';
import { Bytes } from '../../dist/layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../dist/layout/counters.js';
import { Held } from '../../dist/memory/held.js';
import { Journal } from '../../dist/memory/journal.js';
import { Output } from '../../dist/protocol/output.js';
import { Reply } from '../../dist/protocol/resp/reply.js';
import { attach } from '../../dist/store/attach.js';

const { handle, request, dieAt } = JSON.parse(process.argv[2]);

let steps = 0;
function step() {
  if (++steps === dieAt) process.kill(process.pid, 'SIGKILL');
}

function wrap(prototype, names) {
  for (const name of names) {
    const original = prototype[name];
    prototype[name] = function (...args) {
      step();
      return original.apply(this, args);
    };
  }
}

const keyspace = attach(handle);
const output = new Output(Bytes.allocate(65_536), new Int32Array(64 * 5), () => {});
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
  reportFault(error) {
    throw error;
  },
};
const driver = new RespDriver(new Executor(environment, table, reply), reply);
const client = driver.open(1, 1, 'test');
wrap(Journal.prototype, ['save', 'saveRange', 'commit']);
wrap(Held.prototype, ['set', 'clear', 'defer']);

const input = Bytes.from(Buffer.from(request, 'latin1'));
let consumed = 0;
do {
  // A long command takes several turns.
  keyspace.refreshClock();
  keyspace.enterBatch();
  output.begin(1);
  consumed += driver.feed(client, input, consumed, input.length);
  output.end();
  keyspace.leaveBatch();
} while (client.again);
if (consumed !== input.length) throw new Error(`consumed ${consumed} of ${input.length} bytes`);
if (reply.errorCount > 0) throw new Error(Buffer.from(output.bytes.u8.slice(0, 200)).toString('latin1'));
console.log(steps);
