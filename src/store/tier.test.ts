import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { probeDax } from '../devices/dax-probe.js';
import { Bytes } from '../layout/bytes.js';
import { ItemType } from '../layout/item.js';
import { attach, detach } from './attach.js';
import { decideTier, findStore, openStore } from './open.js';
import { chooseTier, type TierChoice } from './tier.js';

const MIB = 1 << 20;
const hasNode0 = existsSync('/sys/devices/system/node/node0');

let pool: string;

beforeEach(() => {
  pool = mkdtempSync(join(tmpdir(), 'entresol-tier-'));
});

afterEach(() => {
  const handle = findStore(pool);
  if (handle !== null) {
    rmSync(handle.dramPath, { force: true });
    if (handle.capacityPath !== null) rmSync(handle.capacityPath, { force: true });
  }
  rmSync(pool, { recursive: true });
});

/** Fills DRAM so that items move to the capacity tier, and reads all of them back. */
function demoteAndRead(tier: TierChoice): void {
  const handle = openStore({ pool, dramBytes: 16 * MIB, capacityBytes: 64 * MIB, tier, policy: 'noeviction' });
  const keyspace = attach(handle);
  const key = Bytes.allocate(8);
  const value = Bytes.from('v'.repeat(1000));
  for (let i = 0; i < 30_000; i++) {
    key.view.setInt32(0, i);
    const hash = keyspace.hash(0, key, 0, 8);
    if (!keyspace.stage(hash, 0, key, 0, 8, 1000)) throw new Error(`no memory for item ${i}`);
    keyspace.staged.u8.set(value.u8, keyspace.stagedOffset);
    keyspace.lock(hash);
    keyspace.commit(ItemType.STRING, 0, 0, 0);
    keyspace.unlock(hash);
  }
  let intact = 0;
  for (let i = 0; i < 30_000; i++) {
    key.view.setInt32(0, i);
    const hash = keyspace.hash(0, key, 0, 8);
    keyspace.lock(hash);
    if (keyspace.find(hash, 0, key, 0, 8) && keyspace.value.u8[keyspace.valueOffset + 999] === 0x76) intact++;
    keyspace.unlock(hash);
  }
  expect(intact).toBe(30_000);
  expect(keyspace.stats().demoted).toBeGreaterThan(10_000);
  detach(keyspace);
}

describe('capacity tiers', () => {
  it('file: items move there and are read from there', () => demoteAndRead('file'));

  it.runIf(hasNode0)('numa: likewise, bound to node 0', () => demoteAndRead('numa'));

  it('auto is file where there is no DAX', () => {
    const expected = probeDax(pool).isSync ? 'dax' : 'file';
    expect(chooseTier('auto', pool, 10, 0).tier).toBe(expected);
    expect(chooseTier('auto', pool, 0, 0).tier).toBe('none');
  });

  it('auto says why, for each thing that a probe finds', () => {
    const choose = (isDax: boolean, isSync: boolean, obstacle = '') =>
      chooseTier('auto', pool, 10, 0, { isDax, isSync, obstacle });
    expect(choose(true, true)).toMatchObject({ tier: 'dax', reason: expect.stringContaining('grants MAP_SYNC') });
    expect(choose(true, false)).toMatchObject({ tier: 'file', reason: expect.stringContaining('refuses MAP_SYNC') });
    expect(choose(false, false)).toMatchObject({
      tier: 'file',
      reason: expect.stringContaining('not mounted for DAX'),
    });
    expect(choose(false, false, 'EACCES')).toMatchObject({ tier: 'file', reason: expect.stringContaining('EACCES') });
    expect(() => chooseTier('dax', pool, 10, 0, { isDax: true, isSync: false, obstacle: '' })).toThrow(/MAP_SYNC/);
  });

  it('auto keeps the tier of a pool that holds data, and of that only', () => {
    const onDax = { isDax: true, isSync: true, obstacle: '' };
    const handle = openStore({ pool, dramBytes: 16 * MIB, capacityBytes: 16 * MIB, tier: 'file' });
    const keyspace = attach(handle);
    expect(decideTier('auto', pool, 16, 0, onDax).tier).toBe('dax');
    const key = Bytes.from('k');
    const hash = keyspace.hash(0, key, 0, 1);
    keyspace.stage(hash, 0, key, 0, 1, 1);
    keyspace.lock(hash);
    keyspace.commit(ItemType.STRING, 0, 0, 0);
    keyspace.unlock(hash);
    detach(keyspace);
    expect(decideTier('auto', pool, 16, 0, onDax)).toEqual({ tier: 'file', reason: 'the pool was made so' });
    expect(decideTier('dax', pool, 16, 0, onDax).tier).toBe('dax');
  });

  it.runIf(!probeDax(tmpdir()).isDax)('dax is refused where there is none, with what to do', () => {
    expect(() => openStore({ pool, dramBytes: 16 * MIB, capacityBytes: 16 * MIB, tier: 'dax' })).toThrow(/--tier file/);
  });

  it('a NUMA node that does not exist is refused', () => {
    expect(() => chooseTier('numa', pool, 10, 99)).toThrow(/no NUMA node 99/);
  });
});
