/**
 * Append-only files in both directions: what redis-server has written is loaded here, what BGREWRITEAOF writes is loaded there, and every key is
 * compared. Files that are cut off or damaged.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { fillWithEveryType } from '../helpers/every-type.js';
import { contentOf, differences } from '../helpers/redis-content.js';
import { hasRedis } from '../helpers/redis-oracle.js';
import { type RedisProcess, redisFolder, startRedis } from '../helpers/redis-process.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

const DATABASES = 16;
const clients: Redis[] = [];

afterAll(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

function connect({ redisPort }: TestServer): Redis {
  const client = new Redis(redisPort);
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

async function loaded(
  path: string,
  ...args: string[]
): Promise<{ readonly server: TestServer; readonly client: Redis }> {
  const server = await startTestServer({ dram: '128mb', args: [`--load=${path}`, ...args] });
  return { server, client: connect(server) };
}

/** Changes of all kinds, some of which Redis writes down as other commands than it was given. */
async function work({ client }: RedisProcess): Promise<void> {
  const soon = Date.now() + 3_600_000;
  // Redis notes the time when a second has passed.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await client.select(5);
  await client.set('counter', 1, 'EX', 3600);
  await client.incrbyfloat('counter', 0.5);
  await client.rpush('list', 'a', 'b', 'c');
  await client.blpop('list', 1);
  await client.sadd('set', 'a', 'b', 'c');
  await client.spop('set');
  await client.select(0);
  await client.multi().set('in one step', '1').incr('in one step').pexpireat('in one step', soon).exec();
  await client.eval(
    "redis.call('set', KEYS[1], ARGV[1]); redis.call('select', 7); return redis.call('incr', 'from a script')",
    1,
    'script',
    'x',
  );
  await client.eval(
    "redis.call('hset', KEYS[1], 'time', redis.call('time')[1]); redis.call('pexpire', KEYS[1], 5000000)",
    1,
    'clock',
  );
  await client.set('short', 'x', 'PX', 1);
  while ((await client.exists('short')) === 1) await new Promise((resolve) => setTimeout(resolve, 10));
  await client.xadd('events', '*', 'a', '1');
  await client.xgroup('CREATE', 'events', 'readers', '0');
  await client.xreadgroup('GROUP', 'readers', 'me', 'STREAMS', 'events', '>');
  await client.call('FUNCTION', 'LOAD', "#!lua name=late\nredis.register_function('late', function() return 8 end)");
  await client.swapdb(11, 12);
  await client.set('moved', 'x');
  await client.move('moved', 12);
  await client.del('string:3', 'hash:4');
  await client.set('binary', Buffer.from([0, 13, 10, 36, 42, 255]));
}

/** Waits until Redis has ended the rewrite that it was asked for. */
async function rewritten(client: Redis): Promise<void> {
  await client.call('BGREWRITEAOF');
  for (;;) {
    const info = await client.info('persistence');
    if (/aof_rewrite_in_progress:0/.test(info) && /aof_rewrite_scheduled:0/.test(info)) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(await client.info('persistence')).toContain('aof_last_bgrewrite_status:ok');
}

function partsIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => !name.endsWith('.manifest'));
  return names.sort((a, b) => Number(b.includes('.base.')) - Number(a.includes('.base.')));
}

describe.skipIf(!hasRedis())('append-only files (compared with redis-server)', () => {
  for (const preamble of ['yes', 'no'] as const) {
    it(`of redis-server are loaded, base with RDB: ${preamble}`, { timeout: 240_000 }, async () => {
      const settings = ['--appendonly', 'yes', '--aof-use-rdb-preamble', preamble, '--aof-timestamp-enabled', 'yes'];
      const redis = await startRedis(redisFolder(), [...settings, '--appendfsync', 'no']);
      await fillWithEveryType(redis.client);
      await redis.client.call(
        'FUNCTION',
        'LOAD',
        "#!lua name=lib\nredis.register_function('f', function() return 7 end)",
      );
      await rewritten(redis.client);
      await work(redis);
      await redis.stop();
      const folder = join(redis.folder, 'appendonlydir');
      // What it makes of the file itself: not all that it knew is in there.
      const copy = redisFolder();
      cpSync(folder, join(copy, 'appendonlydir'), { recursive: true });
      const reader = await startRedis(copy, settings);
      const wanted = await contentOf(reader.client, DATABASES);
      expect(wanted.size).toBeGreaterThan(2000);
      await reader.stop();
      const parts = partsIn(folder);
      expect(parts).toHaveLength(2);
      expect(readFileSync(join(folder, parts[1]), 'latin1').includes('#TS:')).toBe(true);

      const { server, client } = await loaded(folder);
      expect(differences(wanted, await contentOf(client, DATABASES))).toEqual([]);
      expect(server.output()).toMatch(/appendonlydir: \d+ keys loaded, \d+ commands carried out/);
      for (const [name, value] of [
        ['f', 7],
        ['late', 8],
      ] as const) {
        expect(await client.call('FCALL', name, 0).catch((error: Error) => error.message)).toSatisfy(
          (reply: unknown) => reply === value || String(reply).includes('no Lua'),
        );
      }
      await server.stop();

      // As Redis before version 7 has it: one file.
      const single = join(redis.folder, 'single.aof');
      writeFileSync(single, Buffer.concat(parts.map((name) => readFileSync(join(folder, name)))));
      const other = await loaded(single);
      expect(differences(wanted, await contentOf(other.client, DATABASES))).toEqual([]);
      await other.server.stop();
    });
  }

  it('of BGREWRITEAOF are loaded by redis-server, and accepted by redis-check-aof', { timeout: 240_000 }, async () => {
    const server = await startTestServer({ dram: '128mb', workers: 2 });
    const client = connect(server);
    await client.set('first', '1');
    await rewritten(client);
    await fillWithEveryType(client);
    await rewritten(client);
    const wanted = await contentOf(client, DATABASES);
    const own = join(server.pool, 'appendonlydir');
    expect(readdirSync(own).sort()).toEqual(['appendonly.aof.2.base.rdb', 'appendonly.aof.manifest']);
    const folder = redisFolder();
    cpSync(own, join(folder, 'appendonlydir'), { recursive: true });
    const checked = execFileSync('redis-check-aof', [join(folder, 'appendonlydir', 'appendonly.aof.manifest')]);
    expect(checked.toString()).toContain('All AOF files and manifest are valid');
    const redis = await startRedis(folder, ['--appendonly', 'yes']);
    expect(differences(wanted, await contentOf(redis.client, DATABASES))).toEqual([]);
    await redis.client.set('appended', '1');
    await redis.stop();

    // And back: what Redis has appended to it is loaded as well, and never thrown away.
    const again = await loaded(join(folder, 'appendonlydir'));
    expect(await again.client.get('appended')).toBe('1');
    expect(await again.client.dbsize()).toBe((await client.dbsize()) + 1);
    cpSync(join(folder, 'appendonlydir'), join(again.server.pool, 'appendonlydir'), { recursive: true });
    const before = readdirSync(join(again.server.pool, 'appendonlydir'));
    await again.client.call('BGREWRITEAOF');
    while (!again.server.output().includes('BGREWRITEAOF failed'))
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(readdirSync(join(again.server.pool, 'appendonlydir'))).toEqual(before);
    expect(await again.client.info('persistence')).toContain('aof_last_bgrewrite_status:err');
    await again.server.stop();
    await server.stop();
  });
});

const file = (...commands: readonly (readonly string[])[]): Buffer => Buffer.concat(commands.map(multibulk));

describe('append-only files', () => {
  it('keep what was changed before its time had come', { timeout: 120_000 }, async () => {
    const past = String(Date.now() - 10_000);
    const path = join(redisFolder(), 'a.aof');
    writeFileSync(
      path,
      file(
        ['SET', 'expired', '1', 'PXAT', past],
        ['INCR', 'expired'],
        ['SET', 'kept', '1', 'PXAT', past],
        ['INCR', 'kept'],
        ['PERSIST', 'kept'],
        ['HSET', 'hash', 'f', '1', 'g', '1'],
        ['HPEXPIREAT', 'hash', past, 'FIELDS', '1', 'f'],
        ['HINCRBY', 'hash', 'g', '1'],
        ['SET', 'relative', '1', 'EX', '1000'],
      ),
    );
    const { server, client } = await loaded(path);
    expect(await client.mget('expired', 'kept')).toEqual([null, '2']);
    expect(await client.hgetall('hash')).toEqual({ g: '2' });
    expect(await client.ttl('relative')).toBeGreaterThan(900);
    await server.stop();
  });

  it('that are cut off are loaded up to there, or refused', { timeout: 240_000 }, async () => {
    const path = join(redisFolder(), 'a.aof');
    const whole = file(['SET', 'a', '1'], ['MULTI'], ['SET', 'b', '1'], ['SET', 'c', '1'], ['EXEC']);
    const before = file(['SET', 'a', '1']).length;
    for (const cut of [20, file(['EXEC']).length]) {
      writeFileSync(path, whole.subarray(0, whole.length - cut));
      const { server, client } = await loaded(path);
      expect(await client.keys('*')).toEqual(['a']);
      expect(server.output()).toContain(`command or transaction that begins at byte ${before}, which is left out`);
      await server.stop();
    }
    await expect(loaded(path, '--no-aof-load-truncated')).rejects.toThrow(
      new RegExp(`a\\.aof: ends in the middle of the command or transaction that begins at byte ${before}, and`),
    );
  });

  it('that are damaged are refused with file and byte', { timeout: 240_000 }, async () => {
    const folder = join(redisFolder(), 'appendonlydir');
    mkdirSync(folder);
    const first = file(['SELECT', '2'], ['SET', 'a', '1']);
    writeFileSync(join(folder, 'x.1.incr.aof'), first.subarray(0, first.length - 3));
    writeFileSync(join(folder, 'x.2.incr.aof'), file(['SET', 'b', '1']));
    const manifest = 'file x.1.incr.aof seq 1 type i\nfile x.2.incr.aof seq 2 type i\n';
    writeFileSync(join(folder, 'x.manifest'), manifest);
    await expect(loaded(folder)).rejects.toThrow(
      /x\.1\.incr\.aof: ends in the middle of .* byte 23, and is not the last/,
    );

    const cases: readonly [Buffer, RegExp][] = [
      [
        Buffer.concat([first, Buffer.from('garbage')]),
        /x\.1\.incr\.aof: cannot be loaded: a command begins with '\*', not with 'g', at byte 50/,
      ],
      [Buffer.concat([first, file(['NOSUCH', '1'])]), /the command 'NOSUCH' is not known, at byte 50/],
      [
        Buffer.concat([file(['SELECT', '99']), first]),
        /'select' cannot be carried out: ERR DB index is out of range, at byte 0/,
      ],
    ];
    for (const [bytes, error] of cases) {
      writeFileSync(join(folder, 'x.1.incr.aof'), bytes);
      await expect(loaded(folder)).rejects.toThrow(error);
    }
    writeFileSync(join(folder, 'x.manifest'), 'file ../x.1.incr.aof seq 1 type i\n');
    await expect(loaded(folder)).rejects.toThrow(
      /x\.manifest: cannot be loaded: line 1 names a file that lies elsewhere/,
    );
    await expect(loaded(redisFolder())).rejects.toThrow(/is a folder without manifest/);
  });
});
