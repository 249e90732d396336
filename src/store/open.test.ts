/**
 * Pool files as an operator may leave them: foreign, newer, damaged, cut, of other sizes, half made, without space or permission. Each is
 * refused with its own error, and nothing in it is changed; what was stored is there after a restart.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Bytes } from '../layout/bytes.js';
import { Super } from '../layout/superblock.js';
import { attach, detach } from './attach.js';
import { PoolError } from './errors.js';
import { checkInvariants } from './invariants.js';
import type { Keyspace } from './keyspace.js';
import { openStore, type StoreHandle, type StoreOptions } from './open.js';

const MIB = 1024 * 1024;
let pool = '';
const leftovers: string[] = [];

beforeEach(() => {
  pool = mkdtempSync(join(tmpdir(), 'entresol-open-'));
});
afterEach(() => {
  for (const path of [...leftovers.splice(0), pool]) rmSync(path, { recursive: true, force: true });
});

function open(changes: Partial<StoreOptions> = {}): StoreHandle {
  const handle = openStore({
    pool,
    dramBytes: 18 * MIB,
    capacityBytes: 4 * MIB,
    tier: 'file',
    shards: 32,
    growth: 1,
    ...changes,
  });
  leftovers.push(handle.dramPath);
  return handle;
}

function set(keyspace: Keyspace, key: string, value: string): void {
  const bytes = Bytes.from(key);
  const hash = keyspace.hash(0, bytes, 0, bytes.length);
  expect(keyspace.stage(hash, 0, bytes, 0, bytes.length, value.length)).toBe(true);
  keyspace.staged.u8.set(Buffer.from(value), keyspace.stagedOffset);
  keyspace.lock(hash);
  expect(keyspace.commit(1, 0, 0, 0)).toBe(true);
  keyspace.unlock(hash);
}

function get(keyspace: Keyspace, key: string): string | null {
  const bytes = Bytes.from(key);
  const hash = keyspace.hash(0, bytes, 0, bytes.length);
  keyspace.lock(hash);
  const found = keyspace.find(hash, 0, bytes, 0, bytes.length);
  const { valueOffset, valueLength } = keyspace;
  const value = found ? Buffer.from(keyspace.value.u8.slice(valueOffset, valueOffset + valueLength)).toString() : null;
  keyspace.unlock(hash);
  return value;
}

function fill(handle: StoreHandle): void {
  const keyspace = attach(handle);
  for (let i = 0; i < 100; i++) set(keyspace, `key:${i}`, `value ${i}`);
  detach(keyspace);
}

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(PoolError);
    return (error as PoolError).code;
  }
  return 'none';
}

/** Writes words into a file's superblock. */
function patch(path: string, word: number, value: number): void {
  const bytes = readFileSync(path);
  bytes.writeInt32LE(value | 0, word * 4);
  writeFileSync(path, bytes);
}

/** Expects the refusal, and the files as they were. */
function expectRefusal(code: string, action: () => unknown, ...paths: string[]): void {
  const before = paths.map((path) => readFileSync(path));
  expect(codeOf(action)).toBe(code);
  for (const [i, path] of paths.entries()) expect(readFileSync(path).equals(before[i]), path).toBe(true);
}

describe('a restart', () => {
  it('finds everything that was stored', () => {
    fill(open());
    const keyspace = attach(open());
    for (let i = 0; i < 100; i++) expect(get(keyspace, `key:${i}`)).toBe(`value ${i}`);
    checkInvariants(keyspace);
    detach(keyspace);
  });

  it('after detaching with a staged, a parked and a pinned item leaves nothing behind', () => {
    const handle = open();
    const keyspace = attach(handle);
    const free = keyspace.pool.dramFree;
    const large = 'x'.repeat(20_000);
    set(keyspace, 'pinned', large);
    const bytes = Bytes.from('pinned');
    const hash = keyspace.hash(0, bytes, 0, bytes.length);
    keyspace.lock(hash);
    keyspace.find(hash, 0, bytes, 0, bytes.length);
    expect(keyspace.pin()).toBeGreaterThan(0);
    keyspace.remove();
    keyspace.unlock(hash);
    keyspace.stage(hash, 0, bytes, 0, bytes.length, 3 * MIB);
    expect(keyspace.parkStaged({ held: 0, page: 0, unit: 0 })).toBe(true);
    keyspace.stage(hash, 0, bytes, 0, bytes.length, 100);
    detach(keyspace);
    const next = attach(handle);
    expect(checkInvariants(next)).toBe(0);
    expect(next.pool.dramFree).toBeGreaterThanOrEqual(free - 2);
    detach(next);
  });

  it('goes on where formatting was cut short', () => {
    const handle = open();
    patch(handle.dramPath, Super.READY_WORD, 0);
    expect(codeOf(() => attach(handle))).toBe('POOL_BUSY');
    fill(open());
    writeFileSync(handle.dramPath, Buffer.alloc(18 * MIB));
    fill(open());
  });
});

describe('refuses, and changes nothing', () => {
  it('a file of another program', () => {
    const { dramPath, capacityPath } = open();
    for (const content of [Buffer.from('hello'), Buffer.alloc(2 * MIB, 'x'), Buffer.alloc(100)]) {
      writeFileSync(dramPath, content);
      expectRefusal('POOL_FOREIGN', open, dramPath, capacityPath as string);
    }
  });

  it('a capacity file of another program', () => {
    const path = join(pool, 'capacity.entresol');
    writeFileSync(path, Buffer.alloc(MIB, 'precious'));
    expectRefusal('POOL_FOREIGN', open, path);
  });

  it('a newer version, and the other byte order', () => {
    const { dramPath } = open();
    patch(dramPath, Super.VERSION_WORD, Super.VERSION + 1);
    expectRefusal('POOL_VERSION', open, dramPath);
    patch(dramPath, Super.MAGIC_WORD, 0x454e5452);
    expectRefusal('POOL_FOREIGN', open, dramPath);
  });

  it('a damaged header', () => {
    const { dramPath } = open();
    const words = [Super.DRAM_ROOM_WORD, Super.SHARD_TABLE_WORD, Super.SEED_LOW_WORD, Super.PAGE_TABLE_WORD];
    for (const word of words) {
      const before = readFileSync(dramPath);
      patch(dramPath, word, before.readInt32LE(word * 4) + 1);
      expectRefusal('POOL_CORRUPT', open, dramPath);
      writeFileSync(dramPath, before);
    }
  });

  it('a truncated file', () => {
    const { dramPath } = open();
    truncateSync(dramPath, 5 * MIB);
    expectRefusal('POOL_CORRUPT', open, dramPath);
  });

  it('other sizes while there is data, and takes them when there is none', () => {
    const handle = open();
    open({ dramBytes: 20 * MIB, capacityBytes: 8 * MIB });
    expect(statSync(handle.dramPath).size).toBe(20 * MIB);
    fill(open());
    expect(statSync(handle.dramPath).size).toBe(18 * MIB);
    for (const changes of [{ dramBytes: 20 * MIB }, { capacityBytes: 5 * MIB }, { shards: 64 }]) {
      expectRefusal('POOL_SIZE', () => open(changes), handle.dramPath, handle.capacityPath as string);
    }
    const keyspace = attach(open());
    expect(get(keyspace, 'key:7')).toBe('value 7');
    expectRefusal('POOL_BUSY', () => open({ dramBytes: 20 * MIB }));
    detach(keyspace);
  });

  it('a capacity file that is missing or of another pool while there is data', () => {
    const handle = open();
    fill(handle);
    const path = handle.capacityPath as string;
    const content = readFileSync(path);
    rmSync(path);
    expectRefusal('POOL_CORRUPT', open, handle.dramPath);
    expect(existsSync(path)).toBe(false);
    const identity = content.readInt32LE(4 * MIB);
    content.writeInt32LE(identity ^ 1, 4 * MIB);
    writeFileSync(path, content);
    expectRefusal('POOL_CORRUPT', open, handle.dramPath, path);
  });

  it('more than there is space for, leaving no file', () => {
    expect(codeOf(() => open({ capacityBytes: 2 ** 50 }))).toMatch(/POOL_(SIZE|IO)/);
    expect(existsSync(join(pool, 'capacity.entresol'))).toBe(false);
  });

  it.skipIf(process.getuid?.() !== 0)('a full and a read-only file system', () => {
    const mount = join(pool, 'mount');
    mkdirSync(mount);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', mount], { stdio: 'ignore' });
    } catch {
      return; // a container without the right to mount
    }
    try {
      expect(codeOf(() => open({ pool: mount, capacityBytes: 8 * MIB }))).toBe('POOL_IO');
      execFileSync('mount', ['-o', 'remount,ro', mount], { stdio: 'ignore' });
      expect(codeOf(() => open({ pool: join(mount, 'new'), capacityBytes: 2 * MIB }))).toBe('POOL_IO');
    } finally {
      execFileSync('umount', ['-l', mount]);
    }
  });
});

describe('seats', () => {
  it('refuses one participant too many, and seats again when one has left', () => {
    const handle = open({ dramBytes: 160 * MIB, capacityBytes: 0, tier: 'none' });
    const seated: Keyspace[] = [];
    const code = codeOf(() => {
      for (let i = 0; i < 200; i++) seated.push(attach(handle));
    });
    expect(code).toBe('POOL_FULL');
    expect(seated.length).toBe(126);
    detach(seated.pop() as Keyspace);
    seated.push(attach(handle));
    checkInvariants(seated[0]);
    for (const keyspace of seated) detach(keyspace);
  });
});

describe('a thread that maps the pool first', () => {
  it('is seen to be dead when it has been terminated, though its process lives', async () => {
    const handle = open({ capacityBytes: 0, tier: 'none' });
    const code = `
      const { workerData, parentPort } = require('node:worker_threads');
      import(workerData.module).then(({ attach }) => {
        const keyspace = attach(workerData.handle);
        keyspace.enterBatch();
        keyspace.lock(5);
        parentPort.postMessage('locked');
        setInterval(() => undefined, 1000);
      });`;
    const module = new URL('../../dist/store/attach.js', import.meta.url).href;
    const worker = new Worker(code, { eval: true, workerData: { handle, module } });
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
    const keyspace = attach(handle);
    keyspace.lock(5);
    keyspace.unlock(5);
    detach(keyspace);
  });
});
