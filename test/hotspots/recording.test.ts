/**
 * The traced flavour tells of every write: a copy of the pool's memory that gets the told ranges, and nothing else, stays equal to it.
 *
 * The store is loaded after the flavour has been chosen, as `entresol hotspots` does it; so this file has no other tests.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { traceWrites } from '../../src/hotspots/traced.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { histories } from '../helpers/random-commands.js';

// Traced writers are slow, and so are some machines.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });
const listen = traceWrites();
const { attach, detach } = await import('../../src/store/attach.js');
const { checkInvariants } = await import('../../src/store/invariants.js');
const { openStore } = await import('../../src/store/open.js');
const { removeStore } = await import('../../src/store/remove.js');
const { RequestFeed } = await import('../../src/hotspots/feed.js');
const { request } = await import('../../src/hotspots/workloads.js');

const MIB = 2 ** 20;
const PARTICIPANTS = 2;

let pool: string;
let keyspaces: Keyspace[];
let feeds: InstanceType<typeof RequestFeed>[];
/** By arena number: the arena's memory, and what it would be if nothing had been written but what was told. */
const shadows = new Map<number, { readonly memory: Buffer; readonly shadow: Buffer }>();
let told: [arena: number, offset: number, bytes: number][] = [];

beforeAll(() => {
  pool = mkdtempSync(join(tmpdir(), 'entresol-recording-'));
  // Small enough for items to go down, and for the log to be reclaimed.
  const handle = openStore({
    pool,
    dramBytes: 24 * MIB,
    capacityBytes: 24 * MIB,
    tier: 'file',
    policy: 'allkeys-lru',
    shards: 32,
  });
  keyspaces = Array.from({ length: PARTICIPANTS }, () => attach(handle));
  feeds = keyspaces.map((keyspace) => new RequestFeed(keyspace));
  for (const { arena, u8 } of keyspaces[0].memory.arenas) {
    const memory = Buffer.from(u8.buffer);
    shadows.set(arena, { memory, shadow: Buffer.from(memory) });
  }
  listen((arena, offset, bytes) => {
    if (shadows.has(arena)) told.push([arena, offset, bytes]);
  });
});

afterAll(() => {
  for (const keyspace of keyspaces) detach(keyspace);
  removeStore(pool);
});

function expectToldOfAll(): void {
  for (const [arena, offset, bytes] of told) {
    const { memory, shadow } = shadows.get(arena) as { memory: Buffer; shadow: Buffer };
    memory.copy(shadow, offset, offset, offset + bytes);
  }
  told = [];
  for (const { memory, shadow } of shadows.values()) {
    if (memory.equals(shadow)) continue;
    const at = memory.findIndex((byte, i) => byte !== shadow[i]);
    throw new Error(`byte ${at} of an arena was written without a word`);
  }
}

it('tells of what commands of all kinds write', () => {
  const written = fc.sample(histories(40), { seed: 1, numRuns: 12 }).flat();
  written.forEach((words, i) => {
    feeds[i % PARTICIPANTS].run(request(...words));
  });
  const more = [
    ['ZADD', 'scores', ...Array.from({ length: 400 }, (_, i) => [String(i / 3), `member ${i}`]).flat()],
    ['ZREMRANGEBYRANK', 'scores', '10', '300'],
    ['XADD', 'events', '*', 'field', 'value'],
    ['XGROUP', 'CREATE', 'events', 'readers', '0'],
    ['XREADGROUP', 'GROUP', 'readers', 'one', 'STREAMS', 'events', '>'],
    ['PFADD', 'visitors', ...Array.from({ length: 200 }, (_, i) => `visitor ${i}`)],
    ['GEOADD', 'places', '13.4', '52.5', 'Berlin'],
    ['SUBSCRIBE', 'news'],
    ['PUBLISH', 'news', 'nothing new'],
    ['BLPOP', 'no such list', '0'],
    ['FLUSHALL'],
  ];
  more.forEach((words, i) => {
    feeds[i % PARTICIPANTS].run(request(...words));
  });
  expect(told.length).toBeGreaterThan(5000);
  expectToldOfAll();
});

it('tells of values that are received in place, of demotion and of reclaim', () => {
  const sizes = [100, 12_000, 40_000, 12_000];
  for (let i = 0; i < 1500; i++) {
    const bytes = i % 50 === 0 ? 300_000 : sizes[i % sizes.length];
    feeds[i % PARTICIPANTS].run(request('SET', `key ${i}`, Buffer.alloc(bytes, i)));
    if (i % 7 === 0) feeds[0].run(request('GET', `key ${i >> 1}`));
  }
  const { demoted } = keyspaces[0].stats();
  expect(demoted).toBeGreaterThan(10);
  expectToldOfAll();
  checkInvariants(keyspaces[0]);
});
