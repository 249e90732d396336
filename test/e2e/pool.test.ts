/** entresol pool info|check as a process: what it says of pools whole, left by a killed server, damaged, in use, not there. Needs the build. */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Page } from '../../src/layout/location.js';
import { PageInfo, PageKind, Shard, Super } from '../../src/layout/superblock.js';
import { readPoolName } from '../../src/store/pool-name.js';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer } from '../helpers/server.js';
import { entresol } from './command.js';

const ITEMS = 20_000;
const VALUE = 'v'.repeat(1000);

const dramOf = (pool: string): string => join('/dev/shm', readPoolName(pool) ?? 'none');

/** Every type, several databases, expiries, a large value, and more than DRAM holds. */
async function fill(port: number): Promise<void> {
  const client = await RawClient.connect(port);
  for (let first = 0; first < ITEMS; first += 1000) {
    let requests = '';
    for (let i = first; i < first + 1000; i++) requests += `SET item:${i} ${VALUE}\r\n`;
    await client.ask(requests, '+OK\r\n'.repeat(1000));
  }
  await client.ask('SET gone 1 EX 100\r\nSET big x\r\nSETRANGE big 600000 y\r\n', '+OK\r\n+OK\r\n:600001\r\n');
  await client.ask(
    'RPUSH list a b c\r\nSADD set a b\r\nHSET hash f v\r\nZADD zset 1 a\r\n',
    ':3\r\n:2\r\n:1\r\n:1\r\n',
  );
  for (let i = 0; i < 300; i++) await client.ask(`RPUSH long ${'e'.repeat(200)}\r\n`, `:${i + 1}\r\n`);
  await client.ask('SELECT 3\r\nSET other 1\r\nSELECT 5\r\nSET flushed 1\r\nFLUSHDB\r\n', '+OK\r\n'.repeat(5));
  client.destroy();
}

const options = { dram: '20mb', capacity: '64mb' };

function digest(pool: string): string {
  const hash = createHash('sha256');
  for (const path of [dramOf(pool), join(pool, 'capacity.entresol')]) hash.update(readFileSync(path));
  return hash.digest('hex');
}

async function json(action: string, path: string): Promise<{ code: number | null; report: Record<string, unknown> }> {
  const { code, out } = await entresol(['pool', action, path, '--json']);
  return { code, report: JSON.parse(out) as Record<string, unknown> };
}

describe('a pool whose server was killed', () => {
  let pool: string;
  let before: string;
  beforeAll(async () => {
    pool = await makePool();
    const server = await startTestServer({
      pool,
      ...options,
      args: ['--maxmemory-policy=noeviction', '--growth-room=1'],
    });
    await fill(server.redisPort);
    await server.kill();
    before = digest(pool);
  });
  afterAll(() => removePool(pool));

  it('is described', async () => {
    const { code, report } = await json('info', pool);
    expect(code).toBe(0);
    expect(report).toMatchObject({
      version: 1,
      path: pool,
      layoutVersion: Super.VERSION,
      tier: 'file',
      shards: 256,
      policy: 'noeviction',
      databases: [
        { database: 0, items: ITEMS + 7, expiring: 1 },
        { database: 3, items: 1, expiring: 0 },
      ],
      stats: { dramBytes: 20 * Page.BYTES, capacityBytes: 64 * Page.BYTES, expiring: 1 },
      dramPages: { meta: expect.any(Number), slab: expect.any(Number) },
      capacityPages: { 'log-sealed': expect.any(Number) },
    });
    const pages = report.dramPages as Record<string, number>;
    expect(Object.values(pages).reduce((a, b) => a + b)).toBe(20);
    expect(report.deaths).toHaveLength(1);
    const { out } = await entresol(['pool', 'info', pool]);
    expect(out).toContain(`items       ${ITEMS + 8 + (report.flushedItems as number)}, 1 with an expiry`);
    expect(out).toMatch(/left over {3}1 participant ended without leaving \(process \d+\)/);
  });

  it('is sound, with what was left half done mended in memory', async () => {
    const { code, out, err } = await entresol(['pool', 'check', pool]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/: sound\n {2}walked {6}200\d\d items, 20 pages of DRAM, 64 of capacity\n/);
  });

  it('is not changed by that', () => {
    expect(digest(pool)).toBe(before);
    expect(readdirSync(pool).sort()).toEqual(['capacity.entresol', 'pool.id', 'pool.lock']);
  });

  it('starts again with all of it', async () => {
    const server = await startTestServer({ pool, ...options });
    const client = await RawClient.connect(server.redisPort);
    await client.ask(`GET item:${ITEMS - 1}\r\nLLEN long\r\n`, `$1000\r\n${VALUE}\r\n:300\r\n`);
    client.destroy();
    await server.stop();
    expect((await json('info', pool)).report.deaths).toEqual([]);
  });
});

describe('a pool that cannot be looked at', () => {
  let pool: string;
  beforeEach(async () => {
    pool = await makePool();
  });
  afterEach(() => removePool(pool));

  it('is one that a server has; the message names its process', async () => {
    const server = await startTestServer({ pool, dram: '16mb' });
    for (const action of ['info', 'check']) {
      expect(await entresol(['pool', action, pool])).toEqual({
        code: 2,
        out: '',
        err: `entresol: ${pool}: a server runs on this pool already, process ${server.pid}\n`,
      });
    }
    await server.stop();
  });

  it('is one that is not there, and none is made', async () => {
    const path = join(pool, 'none');
    expect(await json('check', path)).toMatchObject({ code: 2, report: { state: 'unreadable', code: 'POOL_MISSING' } });
    expect(existsSync(path)).toBe(false);
    expect(await json('info', pool)).toMatchObject({ code: 2, report: { code: 'POOL_MISSING' } });
    expect(readdirSync(pool)).toEqual([]);
  });

  it('is one without its memory or its capacity file', async () => {
    const server = await startTestServer({ pool, dram: '16mb', capacity: '16mb' });
    await server.stop();
    rmSync(join(pool, 'capacity.entresol'));
    expect(await json('check', pool)).toMatchObject({ code: 2, report: { code: 'POOL_CORRUPT' } });
    rmSync(dramOf(pool));
    expect(await json('check', pool)).toMatchObject({ code: 2, report: { code: 'POOL_MISSING' } });
  });

  it('or the usage is wrong', async () => {
    for (const args of [[], ['chek', pool], ['check'], ['check', pool, 'more'], ['check', '--all']]) {
      expect(await entresol(['pool', ...args])).toMatchObject({ code: 2, out: '' });
    }
    expect(await entresol(['pool', '--help'])).toMatchObject({ code: 0 });
  });
});

describe('damage', () => {
  let pool: string;
  let path: string;
  beforeEach(async () => {
    pool = await makePool();
    const server = await startTestServer({ pool, dram: '16mb', capacity: '0' });
    const client = await RawClient.connect(server.redisPort);
    await client.ask('SET findable-key some-value\r\nRPUSH list a b c\r\n', '+OK\r\n:3\r\n');
    client.destroy();
    await server.stop();
    path = dramOf(pool);
    expect(await json('check', pool)).toMatchObject({ code: 0 });
  });
  afterEach(() => removePool(pool));

  function readWord(word: number): number {
    const fd = openSync(path, 'r');
    const buffer = Buffer.alloc(4);
    readSync(fd, buffer, 0, 4, word * 4);
    closeSync(fd);
    return buffer.readInt32LE(0);
  }

  function writeWord(word: number, value: number): void {
    const fd = openSync(path, 'r+');
    const buffer = Buffer.alloc(4);
    buffer.writeInt32LE(value | 0);
    writeSync(fd, buffer, 0, 4, word * 4);
    closeSync(fd);
  }

  async function expectDamage(words: RegExp): Promise<void> {
    const { code, report } = await json('check', pool);
    expect(report).toMatchObject({ state: 'damaged', problem: expect.stringMatching(words) });
    expect(code).toBe(1);
  }

  it('of a key is found', async () => {
    const at = readFileSync(path).indexOf('findable-key');
    expect(at).toBeGreaterThan(0);
    const fd = openSync(path, 'r+');
    writeSync(fd, 'F', at);
    closeSync(fd);
    await expectDamage(/the key hashes to/);
  });

  it('of a count is found', async () => {
    const shard = readWord(Super.SHARD_TABLE_WORD) + 7 * Shard.WORDS;
    writeWord(shard + Shard.ITEMS_WORD, readWord(shard + Shard.ITEMS_WORD) + 1);
    await expectDamage(/shard 7: \d+ entries, counted/);
  });

  it('of the page table is found', async () => {
    const table = readWord(Super.PAGE_TABLE_WORD);
    let page = 0;
    while ((readWord(table + page * PageInfo.WORDS) & 0xff) !== PageKind.SLAB) page++;
    writeWord(table + page * PageInfo.WORDS, PageKind.FREE);
    await expectDamage(/./);
  });

  it('of the index directory, which leads nowhere, is found', async () => {
    writeWord(readWord(Super.DIRECTORY_WORD), 0x7fffffff);
    await expectDamage(/./);
  });

  it('of the header is refused', async () => {
    writeWord(Super.SHARD_TABLE_WORD, 4711);
    expect(await json('check', pool)).toMatchObject({ code: 2, report: { code: 'POOL_CORRUPT' } });
  });
});
