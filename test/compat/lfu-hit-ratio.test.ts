/**
 * How well allkeys-lfu chooses: hit ratio of a cache in front of a database, on the same Zipf load as redis-server, which gets memory for
 * as many items as ours holds. The load changes its favourites half-way, which is where policies differ.
 */
import { execFileSync, spawn } from 'node:child_process';
import { afterAll, describe, expect, it } from 'vitest';
import { Bytes } from '../../src/layout/bytes.js';
import { checkInvariants } from '../../src/store/invariants.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { freePorts } from '../helpers/ports.js';
import { RawClient } from '../helpers/raw-client.js';
import { openTestStore } from '../helpers/store.js';

const MIB = 1024 * 1024;
const KEYS = 60_000;
const OPS = 240_000;
const VALUE = 'v'.repeat(400);
/** Reads that go out together; what they miss is stored before the next ones. */
const BATCH = 200;

/** Zipf ranks, skew 0.9, and after half of the load other keys are the favourites. */
function* load(): Generator<number> {
  const sums = new Float64Array(KEYS);
  let sum = 0;
  for (let i = 0; i < KEYS; i++) sums[i] = sum += 1 / (i + 1) ** 0.9;
  let state = 12345;
  for (let op = 0; op < OPS; op++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    const wanted = ((state >>> 0) / 0x1_0000_0000) * sum;
    let low = 0;
    let high = KEYS - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sums[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    yield op < OPS / 2 ? low : (low + KEYS / 2) % KEYS;
  }
}

function keyOf(i: number): string {
  return `key:${String(i).padStart(6, '0')}`;
}

function oursOn(keyspace: Keyspace): number {
  const key = Bytes.allocate(10);
  keyspace.enterBatch();
  let hits = 0;
  let op = 0;
  for (const i of load()) {
    if (++op % BATCH === 0) keyspace.background(20);
    key.u8.set(Buffer.from(keyOf(i)));
    const hash = keyspace.hash(0, key, 0, 10);
    keyspace.lock(hash);
    const isHit = keyspace.find(hash, 0, key, 0, 10);
    if (isHit) keyspace.access();
    keyspace.unlock(hash);
    if (isHit) {
      if (op > OPS / 4) hits++;
      continue;
    }
    if (!keyspace.stage(hash, 0, key, 0, 10, VALUE.length)) throw new Error('refused');
    keyspace.lock(hash);
    keyspace.commit(1, 0, 0, 0);
    keyspace.unlock(hash);
  }
  checkInvariants(keyspace);
  keyspace.leaveBatch();
  return hits / (OPS * 0.75);
}

/** Memory that redis-server uses with so many of the items. */
async function memoryFor(client: RawClient, items: number): Promise<number> {
  for (let i = 0; i < items; i += BATCH) {
    const count = Math.min(BATCH, items - i);
    client.write(Array.from({ length: count }, (_, k) => `SET ${keyOf(i + k)} ${VALUE}\r\n`).join(''));
    await client.read(5 * count);
  }
  client.write('INFO memory\r\n');
  await client.line();
  let line = '';
  while (!line.startsWith('used_memory:')) line = await client.line();
  const bytes = Number(line.split(':')[1]);
  while (!line.startsWith('lazyfree')) line = await client.line();
  await client.until(() => client.text.endsWith('\r\n'), 'the end of INFO');
  await client.read(client.receivedBytes);
  await client.ask('FLUSHALL\r\n', '+OK\r\n');
  return bytes;
}

async function theirsOn(client: RawClient): Promise<number> {
  let hits = 0;
  let op = 0;
  let batch: number[] = [];
  const run = async (): Promise<void> => {
    client.write(batch.map((i) => `EXISTS ${keyOf(i)}\r\nTOUCH ${keyOf(i)}\r\n`).join(''));
    const replies = (await client.read(8 * batch.length)).toString('latin1').split('\r\n');
    const missing = new Set<number>();
    batch.forEach((i, k) => {
      if (replies[k * 2] === ':0') missing.add(i);
      else if (op > OPS / 4) hits++;
    });
    // A key that is wanted twice in a batch has been stored for the second one.
    const again = batch.filter((i) => missing.has(i)).length - missing.size;
    if (op > OPS / 4) hits += again;
    client.write([...missing].map((i) => `SET ${keyOf(i)} ${VALUE}\r\n`).join(''));
    await client.read(5 * missing.size);
    batch = [];
  };
  for (const i of load()) {
    op++;
    batch.push(i);
    if (batch.length === BATCH) await run();
  }
  return hits / (OPS * 0.75);
}

function hasRedis(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasRedis())('allkeys-lfu', () => {
  const started: ReturnType<typeof spawn>[] = [];
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
  });

  it('hits about as often as redis-server with memory for as many items', async () => {
    const keyspace = openTestStore({ dramBytes: 18 * MIB, policy: 'allkeys-lfu' });
    keyspace.refreshClock();
    const ours = oursOn(keyspace);
    const items = keyspace.size(0);
    expect(items).toBeLessThan(KEYS / 2);

    const [port] = await freePorts(1);
    started.push(spawn('redis-server', ['--port', String(port), '--save', ''], { stdio: 'ignore', cwd: '/tmp' }));
    let client: RawClient | null = null;
    while (client === null) client = await RawClient.connect(port).catch(() => null);
    const bytes = await memoryFor(client, items);
    await client.ask(`CONFIG SET maxmemory ${bytes} maxmemory-policy allkeys-lfu\r\n`, '+OK\r\n');
    const theirs = await theirsOn(client);
    client.write('DBSIZE\r\n');
    const theirItems = await client.line();
    client.destroy();
    console.log(`${items} items, theirs ${theirItems}: ours ${ours.toFixed(3)}, redis-server ${theirs.toFixed(3)}`);
    expect(ours).toBeGreaterThan(theirs - 0.02);
  }, 120_000);
});
