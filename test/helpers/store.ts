/**
 * A small real store for tests, in a temporary pool. One for each test file; `testStore` hands it out emptied.
 *
 * Invariant: the pool and its file in /dev/shm are removed at the end of the test file.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { attach, detach } from '../../src/store/attach.js';
import { checkInvariants } from '../../src/store/invariants.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { openStore } from '../../src/store/open.js';
import type { PolicyName } from '../../src/store/policy.js';

const MIB = 1024 * 1024;
const opened: (() => void)[] = [];

afterAll(() => {
  for (const close of opened.splice(0)) close();
});

export interface TestStoreOptions {
  readonly dramBytes?: number;
  readonly capacityBytes?: number;
  readonly policy?: PolicyName;
  readonly durability?: 'volatile' | 'durable';
}

/** A fresh store of its own. */
export function openTestStore(options: TestStoreOptions = {}): Keyspace {
  const pool = mkdtempSync(join(tmpdir(), 'entresol-test-'));
  const handle = openStore({
    pool,
    dramBytes: options.dramBytes ?? 32 * MIB,
    capacityBytes: options.capacityBytes ?? 0,
    policy: options.policy ?? 'noeviction',
    shards: 32,
    durability: options.durability ?? 'volatile',
  });
  const keyspace = attach(handle);
  opened.push(() => {
    checkInvariants(keyspace);
    detach(keyspace);
    rmSync(handle.dramPath, { force: true });
    rmSync(pool, { recursive: true, force: true });
  });
  return keyspace;
}

let shared: Keyspace | null = null;

/** The test file's store, without keys. */
export function testStore(): Keyspace {
  shared ??= openTestStore();
  shared.enterBatch();
  shared.closeGate();
  shared.flushAll();
  shared.openGate();
  shared.leaveBatch();
  return shared;
}
