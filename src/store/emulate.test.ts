/** --emulate: every hit in the capacity tier, every append and every large item there is charged, by its bytes; nothing in DRAM is. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeviceCharge } from '../devices/model/charge.js';
import { Bytes } from '../layout/bytes.js';
import { ItemType, itemBytes } from '../layout/item.js';
import { attach, detach } from './attach.js';
import type { Keyspace } from './keyspace.js';
import { openStore } from './open.js';
import { removeStore } from './remove.js';

const MIB = 1 << 20;
const ITEMS = 20_000;
const VALUE_BYTES = 1000;
const KEY_BYTES = 8;

let pool: string;
let keyspace: Keyspace;
let charge: DeviceCharge;
const key = Bytes.allocate(KEY_BYTES);

function store(number: number, bytes: number): void {
  key.view.setInt32(0, number);
  const hash = keyspace.hash(0, key, 0, KEY_BYTES);
  if (!keyspace.stage(hash, 0, key, 0, KEY_BYTES, bytes)) throw new Error(`no room for item ${number}`);
  keyspace.lock(hash);
  keyspace.commit(ItemType.STRING, 0, 0, 0);
  keyspace.unlock(hash);
}

function read(number: number): void {
  key.view.setInt32(0, number);
  const hash = keyspace.hash(0, key, 0, KEY_BYTES);
  keyspace.lock(hash);
  if (!keyspace.find(hash, 0, key, 0, KEY_BYTES)) throw new Error(`item ${number} is not there`);
  keyspace.access();
  keyspace.unlock(hash);
}

beforeAll(() => {
  pool = mkdtempSync(join(tmpdir(), 'entresol-emulate-'));
  const sizes = { pool, dramBytes: 16 * MIB, capacityBytes: 64 * MIB };
  keyspace = attach(openStore({ ...sizes, tier: 'file', policy: 'noeviction', emulate: 'optane' }));
  if (keyspace.memory.charge === null) throw new Error('nothing is emulated');
  charge = keyspace.memory.charge;
});
afterAll(() => {
  detach(keyspace);
  removeStore(pool);
});

describe('an emulated device', () => {
  it('costs nothing while all is in DRAM', () => {
    for (let i = 0; i < 1000; i++) store(i, VALUE_BYTES);
    for (let i = 0; i < 1000; i++) read(i);
    expect(keyspace.stats().capacityHits).toBe(0);
    expect(charge.chargedNs).toBe(0);
  });

  it('charges each append to the log', () => {
    for (let i = 1000; i < ITEMS; i++) store(i, VALUE_BYTES);
    const { demoted } = keyspace.stats();
    expect(demoted).toBeGreaterThan(5000);
    expect(charge.chargedNs).toBeCloseTo(demoted * charge.writeNs(itemBytes(KEY_BYTES, VALUE_BYTES)), 0);
  });

  it('charges each hit there', () => {
    const before = charge.chargedNs;
    for (let i = 0; i < ITEMS; i++) read(i);
    const { capacityHits } = keyspace.stats();
    expect(capacityHits).toBeGreaterThan(5000);
    const expected = capacityHits * charge.readNs(itemBytes(KEY_BYTES, VALUE_BYTES));
    expect(charge.chargedNs - before).toBeCloseTo(expected, 0);
  });

  it('charges a large item that goes there at once', () => {
    const before = charge.chargedNs;
    store(-1, 2 * MIB);
    const bytes = itemBytes(KEY_BYTES, 2 * MIB);
    expect(charge.chargedNs - before).toBeCloseTo(charge.writeNs(bytes), 0);
    read(-1);
    expect(charge.chargedNs - before).toBeCloseTo(charge.writeNs(bytes) + charge.readNs(bytes), 0);
  });
});
