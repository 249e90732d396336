/** Schedules of saves, writes that are refused after a failed one, and what SHUTDOWN and SIGTERM save. */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const clients: Redis[] = [];
const pools: string[] = [];

afterAll(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  for (const pool of pools.splice(0)) await removePool(pool);
});

function connect({ redisPort }: TestServer): Redis {
  const client = new Redis(redisPort);
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

async function newPool(): Promise<string> {
  const pool = await makePool();
  pools.push(pool);
  return pool;
}

async function infoField(client: Redis, name: string): Promise<string> {
  return new RegExp(`^${name}:(.*)\r$`, 'm').exec(await client.info('persistence'))?.[1] ?? '';
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

const changes = (client: Redis): Promise<string> => infoField(client, 'rdb_changes_since_last_save');

describe('a schedule of saves', () => {
  it('saves when so much has changed, removals too', { timeout: 120_000 }, async () => {
    const server = await startTestServer({ workers: 2 });
    const client = connect(server);
    await client.mset('a', '1', 'b', '2');
    expect(await changes(client)).toBe('2');
    await client.del('a');
    await client.expire('b', 1000);
    expect(await changes(client)).toBe('4');
    await client.config('SET', 'save', '1 5');
    expect(await client.config('GET', 'save')).toEqual(['save', '1 5']);
    expect(existsSync(join(server.pool, 'dump.rdb'))).toBe(false);
    await client.flushall();
    await until(async () => (await infoField(client, 'rdb_saves')) === '1');
    await until(async () => (await infoField(client, 'rdb_bgsave_in_progress')) === '0');
    expect(await changes(client)).toBe('0');
    expect(existsSync(join(server.pool, 'dump.rdb'))).toBe(true);
    expect(server.output()).toContain('5 changes in 1 seconds: saving');
    await server.stop();
  });

  it('refuses writes after a save that has failed, and saves when the server stops', { timeout: 120_000 }, async () => {
    const pool = await newPool();
    const server = await startTestServer({ pool, args: ['--save', '3600 1', '--save', '1800 100'] });
    const client = connect(server);
    expect(await client.config('GET', 'save')).toEqual(['save', '3600 1 1800 100']);
    await client.set('k', 'v');
    // Nothing can take its place.
    mkdirSync(join(pool, 'dump.rdb'));
    await client.bgsave();
    await until(async () => (await infoField(client, 'rdb_last_bgsave_status')) === 'err');
    const commands = ['SET k x', 'PING', `EVAL return(redis.call('set','k','x')) 0`];
    for (const [name, ...words] of commands.map((command) => command.split(' '))) {
      const reply = await client.call(name, ...words).catch((error: Error) => error.message);
      if (!String(reply).includes('no Lua'))
        expect(reply).toContain('MISCONF Redis is configured to save RDB snapshots');
    }
    await expect(client.multi().set('k', 'x').exec()).rejects.toThrow(/EXECABORT/);
    expect(await client.get('k')).toBe('v');
    await expect(client.call('SHUTDOWN')).rejects.toThrow('ERR Errors trying to SHUTDOWN. Check logs.');
    rmdirSync(join(pool, 'dump.rdb'));
    await client.bgsave();
    await until(async () => (await infoField(client, 'rdb_last_bgsave_status')) === 'ok');
    expect(await client.set('k', 'at the end')).toBe('OK');
    await server.stop();
    expect(readFileSync(join(pool, 'dump.rdb'), 'latin1')).toContain('at the end');
    const again = await startTestServer({ pool, args: ['--save=3600 1'] });
    await connect(again).set('k', 'later');
    connect(again)
      .call('SHUTDOWN', 'NOSAVE')
      .catch(() => undefined);
    expect(await again.ended).toBe(0);
    expect(readFileSync(join(pool, 'dump.rdb'), 'latin1')).not.toContain('later');
  });
});

describe('SHUTDOWN ABORT', () => {
  it('calls off what SIGTERM or SHUTDOWN has begun, while it saves', { timeout: 120_000 }, async () => {
    const pool = await newPool();
    const server = await startTestServer({ pool, workers: 2, args: ['--save=3600 1'] });
    const [client, other] = [connect(server), connect(server)];
    await client.set('k', 'v');
    await expect(client.call('SHUTDOWN', 'ABORT')).rejects.toThrow('ERR No shutdown in progress.');
    // A save reads the libraries first: from a pipe, for as long as we keep it waiting.
    const libraries = join(pool, 'functions.rdb');
    execFileSync('mkfifo', [libraries]);
    process.kill(server.pid, 'SIGTERM');
    await until(async () => (await infoField(client, 'rdb_bgsave_in_progress')) === '1');
    expect(await client.call('SHUTDOWN', 'ABORT')).toBe('OK');
    const refused = expect(other.call('SHUTDOWN')).rejects.toThrow('ERR Errors trying to SHUTDOWN. Check logs.');
    while ((await client.call('SHUTDOWN', 'ABORT').catch(() => '')) !== 'OK');
    await refused;
    expect(server.output()).toContain('Shutdown manually aborted');
    // The save that has begun is not called off.
    expect(await infoField(client, 'rdb_bgsave_in_progress')).toBe('1');
    const fd = openSync(libraries, 'r+');
    rmSync(libraries);
    closeSync(fd);
    expect(await client.get('k')).toBe('v');
    client.call('SHUTDOWN', 'NOSAVE').catch(() => undefined);
    expect(await server.ended).toBe(0);
  });
});

describeWithRedis('a schedule of saves', (peers) => {
  it('is set as in redis-server', () =>
    peers.compare([
      'CONFIG GET save',
      'CONFIG SET save "900 1"',
      'CONFIG GET save',
      'CONFIG SET save "900 1 300"',
      'CONFIG SET save "900 x"',
      'CONFIG SET save "0 1"',
      'CONFIG SET save "-1 1"',
      'CONFIG SET save "900 -1"',
      'CONFIG SET save "100 1 300 10" stop-writes-on-bgsave-error no',
      'CONFIG GET save',
      'CONFIG SET save "" stop-writes-on-bgsave-error yes',
      'CONFIG GET save',
      'CONFIG GET appendfilename',
      'CONFIG GET appenddirname',
      'CONFIG SET appenddirname x',
      'CONFIG SET aof-load-truncated yes',
    ]));

  it('BGREWRITEAOF and BGSAVE in a transaction are for later', () =>
    peers.compare(['MULTI', 'BGSAVE', 'BGREWRITEAOF', 'EXEC', 'BGSAVE x', 'BGREWRITEAOF x']));
});
