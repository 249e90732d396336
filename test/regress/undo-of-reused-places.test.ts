/**
 * Places that one command empties and fills again: an index slot (RENAME onto a key, DEL and SET in one transaction), the right half of an
 * inner node that has been split. Their old words were not saved, so that an undo after a death brought back half of each.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { Bytes } from '../../src/layout/bytes.js';
import { attach, detach } from '../../src/store/attach.js';
import { LISTS } from '../../src/store/collections/collection.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { openStore } from '../../src/store/open.js';

let close = (): void => undefined;
afterEach(() => close());

/** Stores in which a command is undone in its middle are good for nothing afterwards. */
function openStoreToBreak(): Keyspace {
  const pool = mkdtempSync(join(tmpdir(), 'entresol-test-'));
  const options = { pool, dramBytes: 20 * 1024 * 1024, capacityBytes: 0, policy: 'noeviction', shards: 32 } as const;
  const handle = openStore(options);
  const keyspace = attach(handle);
  close = () => {
    close = () => undefined;
    detach(keyspace);
    rmSync(handle.dramPath, { force: true });
    rmSync(pool, { recursive: true, force: true });
  };
  return keyspace;
}

it('an entry that takes the place of a removed one', () => {
  const keyspace = openStoreToBreak();
  const key = Bytes.from('key');
  const hash = keyspace.hash(0, key, 0, 3);
  const put = (value: string, expiryMs: number): void => {
    keyspace.stage(hash, 0, key, 0, 3, value.length);
    keyspace.staged.u8.set(Buffer.from(value), keyspace.stagedOffset);
    keyspace.commit(1, 0, 0, expiryMs);
  };
  const expiryMs = keyspace.nowMs + 10_000_000;
  keyspace.lock(hash);
  put('old', expiryMs);
  keyspace.unlock(hash);

  keyspace.lock(hash);
  expect(keyspace.find(hash, 0, key, 0, 3)).toBe(true);
  keyspace.remove();
  put('another, which lies elsewhere', 0);
  keyspace.journal.rollback();
  keyspace.forgetFinds();
  expect(keyspace.find(hash, 0, key, 0, 3)).toBe(true);
  const { value, valueOffset, valueLength } = keyspace;
  expect(Buffer.from(value.u8.subarray(valueOffset, valueOffset + valueLength)).toString()).toBe('old');
  expect(keyspace.expiryMs).toBe(expiryMs);
  keyspace.unlock(hash);
});

/** A leaf holds four of these: the node above gets its hundred children, and is split, after some two hundred. */
const ELEMENT_BYTES = 900;

/** Elements inserted one after the other, each by a command of its own but the last, which is undone; levels of the list's tree then. */
function insertAndUndo(count: number): number {
  const keyspace = openStoreToBreak();
  const key = Bytes.from('list');
  const hash = keyspace.hash(0, key, 0, 4);
  const list = keyspace.collections[0];
  const open = (): void => {
    keyspace.lock(hash);
    list.open(LISTS, hash, 0, key, 0, 4);
  };
  const elements = (): string[] => {
    const all: string[] = [];
    for (let more = list.first(); more; more = list.next()) {
      list.load();
      all.push(Buffer.from(list.key.u8.subarray(list.keyOffset, list.keyOffset + 8)).toString());
    }
    return all;
  };
  let before: string[] = [];
  for (let made = 0; made < count; made++) {
    const element = Bytes.from(String(made).padEnd(ELEMENT_BYTES, '.'));
    open();
    if (made === count - 1) before = elements();
    list.seekRank(Math.floor(made / 3));
    list.insert(element, 0, ELEMENT_BYTES);
    if (made < count - 1) keyspace.unlock(hash);
  }
  const { levels } = list as unknown as { levels: number };
  keyspace.journal.rollback();
  list.open(LISTS, hash, 0, key, 0, 4);
  expect(elements()).toEqual(before);
  keyspace.unlock(hash);
  close();
  return levels;
}

it('entries behind the half that a split node keeps', () => {
  let count = 190;
  while (insertAndUndo(count) < 3) count++;
  expect(count).toBeGreaterThan(190);
});
