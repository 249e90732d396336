/**
 * entresol pool upgrade: pools that a build of layout version 3 has left (test/fixtures), every key of them through a server of today; what it
 * refuses; and what is left when it is cut off. Needs the build.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Super } from '../../src/layout/superblock.js';
import { addon } from '../../src/native/addon.js';
import { checkInvariants } from '../../src/store/invariants.js';
import { openStore } from '../../src/store/open.js';
import { openPoolCopy } from '../../src/store/pool-copy.js';
import { upgradePool } from '../../src/store/pool-upgrade.js';
import { FAR_MS, fillFixture } from '../helpers/fixture-content.js';
import { dramOf, unpackPool } from '../helpers/old-pool.js';
import { removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { contentOf, differences } from '../helpers/redis-content.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { entresol } from './command.js';

const COMMAND = fileURLToPath(new URL('../../bin/entresol.js', import.meta.url));
const DATABASES = 6;
/** Rounds of kill -9: more with npm run test:crash. */
const ROUNDS = process.env.ENTRESOL_CRASH_ROUNDS === undefined ? 1 : 50;
const SIZES = { dram: '16mb', capacity: '16mb' };

const pools: string[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await removePool(pool);
});

async function unpack(fixture: string): Promise<string> {
  const pool = await unpackPool(fixture);
  pools.push(pool);
  return pool;
}

function header(pool: string): Buffer {
  const bytes = Buffer.alloc(Super.BYTES);
  const fd = openSync(dramOf(pool), 'r');
  readSync(fd, bytes, 0, bytes.length, 0);
  closeSync(fd);
  return bytes;
}

const versionOf = (pool: string): number => header(pool).readInt32LE(Super.VERSION_WORD * 4);

function write(pool: string, at: number, bytes: Uint8Array): void {
  const fd = openSync(dramOf(pool), 'r+');
  writeSync(fd, bytes, 0, bytes.length, at);
  closeSync(fd);
}

function digest(pool: string): string {
  const hash = createHash('sha256').update(readFileSync(join(pool, 'capacity.entresol')));
  return hash.update(existsSync(dramOf(pool)) ? readFileSync(dramOf(pool)) : '').digest('hex');
}

async function contentOfServer(server: TestServer): Promise<Map<string, string>> {
  const client = new Redis(server.redisPort);
  try {
    return await contentOf(client, DATABASES);
  } finally {
    client.disconnect();
  }
}

/** Walks a pool of the present version. */
function check(pool: string): number {
  const copy = openPoolCopy(pool);
  try {
    return checkInvariants(copy.attach());
  } finally {
    copy.close();
  }
}

/** What the fixtures were filled with, as a server of today has it. */
let wanted: Map<string, string>;
beforeAll(async () => {
  const server = await startTestServer({ dram: '64mb', args: ['--maxmemory-policy=noeviction'] });
  const client = new Redis(server.redisPort);
  const memcached = await RawClient.connect(server.memcachedPort);
  await fillFixture(client, memcached);
  client.disconnect();
  memcached.destroy();
  wanted = await contentOfServer(server);
  await server.stop();
});

describe('a pool of layout version 3, whose server was killed', () => {
  it('has every key of every type after an upgrade, without which it is refused', async () => {
    const pool = await unpack('pool-3.bin');
    const before = digest(pool);
    const sizes = { pool, dramBytes: 16 << 20, capacityBytes: 16 << 20 };
    expect(() => openStore(sizes)).toThrow(expect.objectContaining({ code: 'POOL_VERSION' }));
    expect(() => openPoolCopy(pool)).toThrow(/layout version 3/);
    expect(digest(pool)).toBe(before);

    const { code, out, err } = await entresol(['pool', 'upgrade', pool]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(`upgraded from layout version 3 to ${Super.VERSION}`);
    expect(out).toMatch(/left over {3}1 participant ended without leaving/);
    expect(check(pool)).toBeGreaterThanOrEqual(wanted.size);
    const server = await startTestServer({ pool, ...SIZES });
    expect(differences(await contentOfServer(server), wanted)).toEqual([]);
    const client = await RawClient.connect(server.redisPort);
    await client.ask('HPEXPIRETIME hash:7 FIELDS 1 f0\r\n', `*1\r\n:${FAR_MS}\r\n`);
    await client.ask('SET new value\r\nGET new\r\n', '+OK\r\n$5\r\nvalue\r\n');
    client.destroy();
    const memcached = await RawClient.connect(server.memcachedPort);
    await memcached.ask('get flagged\r\n', 'VALUE flagged 77 2\r\nhi\r\nEND\r\n');
    memcached.destroy();
    await server.stop();
    expect(upgradePool(pool)).toMatchObject({ state: 'kept' });
  });

  it('is one or the other when the upgrade is killed, and the next one ends it', async () => {
    const pool = await unpack('pool-3.bin');
    const old = header(pool);
    const capacity = readFileSync(join(pool, 'capacity.entresol'));
    for (let round = 0; round < ROUNDS; round++) {
      const child = spawn(process.execPath, [COMMAND, 'pool', 'upgrade', pool], { stdio: 'ignore' });
      const ended = new Promise((resolve) => child.on('exit', resolve));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 800));
      child.kill('SIGKILL');
      await ended;
      const isDone = versionOf(pool) === Super.VERSION;
      if (!isDone) expect(header(pool)).toEqual(old);
      expect(upgradePool(pool).state).toBe(isDone ? 'kept' : 'upgraded');
      check(pool);
      write(pool, 0, old);
      writeFileSync(join(pool, 'capacity.entresol'), capacity);
    }
    // Cut off between its two writes.
    expect(upgradePool(pool).state).toBe('upgraded');
    write(pool, 0, old);
    expect(upgradePool(pool).state).toBe('upgraded');
    check(pool);
  });

  it('is not changed when something in it does not hold', async () => {
    const pool = await unpack('pool-3.bin');
    write(pool, readFileSync(dramOf(pool)).indexOf('string:17'), Buffer.from('S'));
    const before = digest(pool);
    const { code, out } = await entresol(['pool', 'upgrade', pool, '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ state: 'damaged', problem: expect.stringContaining('hashes to') });
    expect(digest(pool)).toBe(before);
  });

  it('is not changed when it is damaged, of an older version, in use, or without its capacity file', async () => {
    const pool = await unpack('pool-3.bin');
    const old = header(pool);
    const refused = (code: string): void => {
      const before = digest(pool);
      expect(() => upgradePool(pool)).toThrow(expect.objectContaining({ code }));
      expect(digest(pool)).toBe(before);
    };
    const fd = addon.openFile(dramOf(pool), false, false);
    expect(addon.lockByte(fd, 3)).toBe(true);
    refused('POOL_BUSY');
    addon.closeFile(fd);
    write(pool, Super.VERSION_WORD * 4, Buffer.from([2]));
    refused('POOL_VERSION');
    write(pool, 0, old);
    write(pool, Super.SHARD_SHIFT_WORD * 4, Buffer.from([9]));
    refused('POOL_CORRUPT');
    write(pool, 0, old);
    truncateSync(join(pool, 'capacity.entresol'), 5 << 20);
    refused('POOL_CORRUPT');
  });
});

describe('a warm pool of layout version 3, after a reboot', () => {
  it('comes back with what it had in its capacity tier', async () => {
    const pool = await unpack('warm-3.bin');
    const handle = { pool, dramBytes: 16 << 20, capacityBytes: 16 << 20, tier: 'file', durability: 'warm' } as const;
    expect(() => openStore(handle)).toThrow(/layout version 3/);
    const { code, out } = await entresol(['pool', 'upgrade', pool]);
    expect(code).toBe(0);
    expect(out).toContain('comes back with the next start');
    const server = await startTestServer({ pool, ...SIZES, args: ['--durability=warm'] });
    const client = new Redis(server.redisPort);
    while ((await client.info('persistence')).includes('rebuild_in_progress:1')) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    client.disconnect();
    const content = await contentOfServer(server);
    expect(content.size).toBeGreaterThan(500);
    for (const [key, value] of content) expect(value).toBe(wanted.get(key));
    await server.stop();
  });
});
