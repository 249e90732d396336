/**
 * RDB files in both directions: what redis-server has written is loaded here, what SAVE and BGSAVE write is loaded there, and every key is
 * compared.
 */
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { fillWithEveryType } from '../helpers/every-type.js';
import { makePool, removePool } from '../helpers/pool.js';
import { contentOf, differences } from '../helpers/redis-content.js';
import { hasRedis } from '../helpers/redis-oracle.js';
import { redisFolder, startRedis } from '../helpers/redis-process.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const DATABASES = 16;
const clients: Redis[] = [];
const pools: string[] = [];

afterAll(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  for (const pool of pools.splice(0)) await removePool(pool);
});

function connect({ redisPort }: TestServer): Redis {
  const client = new Redis(redisPort);
  // A server that a test ends is no fault.
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

async function newPool(): Promise<string> {
  const pool = await makePool();
  pools.push(pool);
  return pool;
}

async function untilSaved(client: Redis): Promise<void> {
  while ((await client.info('persistence')).includes('rdb_bgsave_in_progress:1')) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(await client.info('persistence')).toContain('rdb_last_bgsave_status:ok');
}

describe.skipIf(!hasRedis())('RDB files (compared with redis-server)', () => {
  it('of redis-server are loaded, all types in several databases', { timeout: 240_000 }, async () => {
    const redis = await startRedis(redisFolder());
    await fillWithEveryType(redis.client);
    await redis.client.set('gone', 'x', 'PX', 1);
    await redis.client.call(
      'FUNCTION',
      'LOAD',
      "#!lua name=lib\nredis.register_function('f', function() return 7 end)",
    );
    await redis.client.save();
    const wanted = await contentOf(redis.client, DATABASES);
    expect(wanted.size).toBeGreaterThan(2000);

    const server = await startTestServer({ dram: '128mb', args: [`--load=${join(redis.folder, 'dump.rdb')}`] });
    const client = connect(server);
    expect(differences(wanted, await contentOf(client, DATABASES))).toEqual([]);
    expect(server.output()).toMatch(/dump\.rdb: \d+ keys loaded/);
    expect(await client.call('FCALL', 'f', 0).catch((error: Error) => error.message)).toSatisfy(
      (reply: unknown) => reply === 7 || String(reply).includes('no Lua'),
    );
    await server.stop();
    await redis.stop();
  });

  for (const how of ['SAVE', 'BGSAVE'] as const) {
    for (const compression of ['yes', 'no'] as const) {
      it(`of ${how}, compression ${compression}, are loaded by redis-server`, { timeout: 240_000 }, async () => {
        const server = await startTestServer({ dram: '128mb', workers: 2, args: [`--rdbcompression=${compression}`] });
        const client = connect(server);
        await fillWithEveryType(client);
        const before = Math.floor(Date.now() / 1000);
        if (how === 'SAVE') {
          expect(await client.save()).toBe('OK');
        } else {
          expect(await client.bgsave()).toBe('Background saving started');
          await untilSaved(client);
        }
        expect(await client.lastsave()).toBeGreaterThanOrEqual(before);
        expect(await client.info('persistence')).toContain('rdb_changes_since_last_save:0');
        const wanted = await contentOf(client, DATABASES);

        const folder = redisFolder();
        copyFileSync(join(server.pool, 'dump.rdb'), join(folder, 'dump.rdb'));
        const redis = await startRedis(folder);
        expect(differences(wanted, await contentOf(redis.client, DATABASES))).toEqual([]);
        await redis.stop();
        expect(readdirSync(server.pool).filter((name) => name.startsWith('temp-'))).toEqual([]);
        await server.stop();
      });
    }
  }

  it('BGSAVE holds every key whole and once while others write', { timeout: 300_000 }, async () => {
    const server = await startTestServer({ dram: '256mb', workers: 2 });
    const client = connect(server);
    const still = 20_000;
    for (let i = 0; i < still; i += 1000) {
      await client.mset(...Array.from({ length: 1000 }, (_, k) => [`still:${i + k}`, `value ${i + k}`]).flat());
    }
    const fields = 4000;
    const hash = (value: number): string[] => Array.from({ length: fields }, (_, k) => [`f${k}`, String(value)]).flat();
    for (const key of ['busy:1', 'busy:2', 'busy:3']) await client.hset(key, ...hash(0));

    // Every command sets all fields of a hash, or takes a list from a to b elements: never anything between.
    let isSaving = true;
    const writers = [connect(server), connect(server)];
    const work = writers.map(async (writer, w) => {
      for (let round = 1; isSaving; round++) {
        await writer.hset(`busy:${(round % 3) + 1}`, ...hash(round * 2 + w));
        await writer
          .multi()
          .del('list')
          .rpush('list', ...Array(500).fill('x'))
          .exec();
        await writer.set(`extra:${w}:${round}`, 'x');
      }
    });
    for (let i = 0; i < 3; i++) {
      await client.bgsave();
      await untilSaved(client);
    }
    isSaving = false;
    await Promise.all(work);

    const folder = redisFolder();
    copyFileSync(join(server.pool, 'dump.rdb'), join(folder, 'dump.rdb'));
    // A key that came twice would make redis-server refuse the file.
    const redis = await startRedis(folder);
    const there = await contentOf(redis.client, 1);
    for (let i = 0; i < still; i++) {
      const value = there.get(`0 ${Buffer.from(`still:${i}`).toString('hex')}`);
      if (value === undefined) throw new Error(`still:${i} is missing`);
    }
    for (const key of ['busy:1', 'busy:2', 'busy:3']) {
      const values = await redis.client.hvals(key);
      expect(values).toHaveLength(fields);
      expect(new Set(values).size).toBe(1);
    }
    expect([0, 500]).toContain(await redis.client.llen('list'));
    await redis.stop();
    await server.stop();
  });
});

describe('RDB files', () => {
  it('fill a new pool, and fields with an expiry come back in version 12', { timeout: 240_000 }, async () => {
    const first = await startTestServer({ args: ['--rdb-version=12'], pool: await newPool() });
    const client = connect(first);
    const at = Date.now() + 3_600_000;
    await client.hset('h', 'a', '1', 'b', '2');
    await client.call('HPEXPIREAT', 'h', at, 'FIELDS', 1, 'a');
    await client.set('k', 'v');
    await client.save();
    await first.stop();

    const pool = await newPool();
    copyFileSync(join(first.pool, 'dump.rdb'), join(pool, 'dump.rdb'));
    const second = await startTestServer({ pool });
    const other = connect(second);
    expect(await other.call('HPEXPIRETIME', 'h', 'FIELDS', 2, 'a', 'b')).toEqual([at, -1]);
    expect(await other.get('k')).toBe('v');
    // What the pool holds counts from then on, the file no more.
    await other.del('k', 'h');
    await second.stop();
    const third = await startTestServer({ pool });
    expect(await connect(third).dbsize()).toBe(0);
    await third.stop();
  });

  it('SAVE in version 10 says that expiries of fields are left out', { timeout: 240_000 }, async () => {
    const server = await startTestServer();
    const client = connect(server);
    await client.hset('h', 'a', '1', 'b', '2');
    await client.call('HEXPIRE', 'h', 1000, 'FIELDS', 1, 'a');
    await client.save();
    await server.stop();
    expect(server.output()).toMatch(/1 hashes have fields that expire: RDB version 10 has no place/);
  });

  it('that are damaged are refused with the place, until they are put right', { timeout: 240_000 }, async () => {
    const source = await startTestServer({ pool: await newPool() });
    const client = connect(source);
    await fillWithEveryType(client);
    await client.save();
    await source.stop();
    const whole = readFileSync(join(source.pool, 'dump.rdb'));

    const pool = await newPool();
    const file = join(pool, 'dump.rdb');
    const start = (args: string[] = []): Promise<TestServer> => startTestServer({ pool, dram: '128mb', args });
    writeFileSync(file, whole.subarray(0, whole.length >> 1));
    for (let i = 0; i < 2; i++) await expect(start()).rejects.toThrow(/dump\.rdb: cannot be loaded: .*, at byte \d+/);
    const changed = Buffer.from(whole);
    changed[changed.length - 1] ^= 1;
    writeFileSync(file, changed);
    await expect(start()).rejects.toThrow('its checksum is wrong');
    writeFileSync(file, 'something else altogether');
    await expect(start()).rejects.toThrow('it is no RDB file');
    writeFileSync(file, Buffer.concat([Buffer.from('REDIS0099'), whole.subarray(9)]));
    await expect(start()).rejects.toThrow('RDB version 99 is not known');
    await expect(start([`--load=${file}.not`])).rejects.toThrow('cannot be opened');
    writeFileSync(file, whole);
    const server = await start();
    expect(await connect(server).get('number:1')).toBe('7654321');
    expect(existsSync(join(pool, 'loading'))).toBe(false);
    await server.stop();
    // It holds keys now: another file is not for it.
    writeFileSync(file, 'something else altogether');
    const again = await start([`--load=${file}`]);
    expect(again.output()).toContain('is not loaded: the pool holds');
    await again.stop();
  });

  it('a load that was cut short begins anew', { timeout: 240_000 }, async () => {
    const pool = await newPool();
    const first = await startTestServer({ pool });
    const client = connect(first);
    await client.set('a', '1');
    await client.save();
    await client.set('b', '2');
    await first.stop();
    // As a death in the middle of it leaves the pool: keys, and the word that these are not all.
    const marker = join(pool, 'loading');
    writeFileSync(marker, join(pool, 'dump.rdb'));
    const second = await startTestServer({ pool });
    expect(await connect(second).keys('*')).toEqual(['a']);
    expect(existsSync(marker)).toBe(false);
    await second.stop();
    // Its file has been put out of the way.
    writeFileSync(marker, join(pool, 'dump.rdb'));
    rmSync(join(pool, 'dump.rdb'));
    const third = await startTestServer({ pool });
    expect(await connect(third).dbsize()).toBe(0);
    expect(existsSync(marker)).toBe(false);
    await third.stop();
  });

  it('one at a time; SHUTDOWN SAVE writes one first', { timeout: 240_000 }, async () => {
    const server = await startTestServer({ pool: await newPool() });
    const client = connect(server);
    await client.set('k', 'v');
    await expect(client.call('BGSAVE', 'NOW')).rejects.toThrow('ERR syntax error');
    expect(await client.call('BGSAVE', 'SCHEDULE')).toBe('Background saving started');
    await untilSaved(client);
    await expect(client.multi().save().exec()).rejects.toThrow(/EXECABORT/);
    const saved = readFileSync(join(server.pool, 'dump.rdb'));
    await client.set('k', 'another value');
    client.call('SHUTDOWN', 'SAVE').catch(() => undefined);
    expect(await server.ended).toBe(0);
    expect(readFileSync(join(server.pool, 'dump.rdb')).equals(saved)).toBe(false);
    expect(readFileSync(join(server.pool, 'dump.rdb')).includes('another value')).toBe(true);
  });
});
