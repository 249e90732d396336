/** entresol pool export --rdb: redis-check-rdb takes the file, redis-server loads it, and every key is compared. Needs the build. */
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fillWithEveryType } from '../helpers/every-type.js';
import { makePool, removePool } from '../helpers/pool.js';
import { contentOf, differences } from '../helpers/redis-content.js';
import { hasRedis } from '../helpers/redis-oracle.js';
import { redisFolder, startRedis } from '../helpers/redis-process.js';
import { startTestServer } from '../helpers/server.js';

const COMMAND = fileURLToPath(new URL('../../bin/entresol.js', import.meta.url));
const DATABASES = 16;
const LIBRARY = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";

let pool: string;
beforeEach(async () => {
  pool = await makePool();
});
afterEach(() => removePool(pool));

/** Into a file, as a shell does it. */
async function exportTo(path: string, ...options: readonly string[]): Promise<{ code: number | null; err: string }> {
  const fd = openSync(path, 'w');
  const child = spawn(process.execPath, [COMMAND, 'pool', 'export', pool, '--rdb', ...options], {
    stdio: ['ignore', fd, 'pipe'],
  });
  let err = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  closeSync(fd);
  return { code, err };
}

describe('entresol pool export --rdb', () => {
  it.skipIf(!hasRedis())('writes what redis-server loads, every key the same', { timeout: 120_000 }, async () => {
    // Two tiers: the export reads from both.
    const server = await startTestServer({
      pool,
      dram: '16mb',
      capacity: '32mb',
      args: ['--maxmemory-policy=noeviction'],
    });
    const client = new Redis(server.redisPort);
    await fillWithEveryType(client);
    await client.set('gone', 'x', 'PX', 1);
    await client.call('FUNCTION', 'LOAD', LIBRARY);
    const batch = client.pipeline();
    for (let i = 0; i < 900; i++) batch.set(`filler:${i}`, `${i}`.repeat(9000).slice(0, 9000));
    await batch.exec();
    const wanted = await contentOf(client, DATABASES);
    client.disconnect();
    await server.kill();

    const folder = redisFolder();
    const path = join(folder, 'dump.rdb');
    expect(await exportTo(path)).toEqual({ code: 0, err: '' });
    expect(execFileSync('redis-check-rdb', [path], { encoding: 'utf8' })).toContain('RDB looks OK!');
    const redis = await startRedis(folder);
    expect(differences(await contentOf(redis.client, DATABASES), wanted)).toEqual([]);
    expect(await redis.client.call('FCALL', 'f', 0)).toBe(7);
  });

  it('says which expiries the version has no place for, and keeps them in one that has', async () => {
    const server = await startTestServer({ pool, dram: '16mb' });
    const client = new Redis(server.redisPort);
    await client.hset('hash', 'f', 'v', 'g', 'w');
    await client.call('HPEXPIREAT', 'hash', '4000000000000', 'FIELDS', '1', 'g');
    client.disconnect();
    await server.stop();

    const folder = mkdtempSync(join(tmpdir(), 'entresol-rdb-'));
    const path = join(folder, 'dump.rdb');
    expect((await exportTo(path)).err).toMatch(/^entresol: export: 1 hashes have fields that expire: RDB version 10/);
    expect(await exportTo(path, '--rdb-version', '12')).toEqual({ code: 0, err: '' });
    const again = await startTestServer({ dram: '16mb', args: [`--load=${path}`] });
    const reader = new Redis(again.redisPort);
    expect(await reader.call('HPEXPIRETIME', 'hash', 'FIELDS', '2', 'f', 'g')).toEqual([-1, 4_000_000_000_000]);
    reader.disconnect();
    await again.stop();
    rmSync(folder, { recursive: true, force: true });
  });
});
