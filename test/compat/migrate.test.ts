/** MIGRATE: to redis-server, from it, and between two of ours; word for word what redis-server answers. */
import { createServer, type Server } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { fillWithEveryType } from '../helpers/every-type.js';
import { freePorts } from '../helpers/ports.js';
import { contentOf, differences } from '../helpers/redis-content.js';
import { describeWithRedis, hasRedis } from '../helpers/redis-oracle.js';
import { redisFolder, startRedis } from '../helpers/redis-process.js';
import { startTestServer } from '../helpers/server.js';

const clients: Redis[] = [];
const silent: Server[] = [];

afterEach(() => {
  for (const server of silent.splice(0)) server.close();
});
afterAll(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

function connect(port: number, options: { username?: string; password?: string } = {}): Redis {
  const client = new Redis(port, options);
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

/** A server that takes connections and never says a word. */
async function startSilent(): Promise<number> {
  const [port] = await freePorts(1);
  const server = createServer((socket) => socket.on('error', () => undefined));
  silent.push(server);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return port;
}

/** What a server holds, and which keys expire: MIGRATE says how long they have left, not until when. */
async function timeless(client: Redis): Promise<Map<string, string>> {
  const content = await contentOf(client, 16);
  for (const [key, text] of content) {
    const [type, expiryMs, value] = JSON.parse(text) as [string, number, unknown];
    content.set(key, JSON.stringify([type, expiryMs > 0, value]));
  }
  return content;
}

/** Moves everything in every database, a hundred keys at a time. */
async function moveAll(from: Redis, port: number): Promise<void> {
  for (let db = 0; db < 16; db++) {
    await from.select(db);
    const keys = await from.keysBuffer('*');
    for (let i = 0; i < keys.length; i += 100) {
      const some = keys.slice(i, i + 100);
      expect(await from.call('MIGRATE', '127.0.0.1', port, '', db, 60_000, 'KEYS', ...some)).toBe('OK');
    }
    expect(await from.dbsize()).toBe(0);
  }
}

describe.skipIf(!hasRedis())('MIGRATE (with redis-server)', () => {
  it('takes every value there and back', { timeout: 300_000 }, async () => {
    const redis = await startRedis(redisFolder());
    const ours = await startTestServer({ dram: '128mb', workers: 2 });
    const other = await startTestServer({ dram: '128mb' });
    const client = connect(ours.redisPort);
    await fillWithEveryType(client);
    const wanted = await timeless(client);
    await moveAll(client, redis.port);
    expect(differences(wanted, await timeless(redis.client))).toEqual([]);
    await moveAll(redis.client, other.redisPort);
    const there = connect(other.redisPort);
    expect(differences(wanted, await timeless(there))).toEqual([]);
    expect(await there.call('MIGRATE', '127.0.0.1', ours.redisPort, 'large list', 0, 60_000)).toBe('OK');
    await client.select(0);
    expect(await client.llen('large list')).toBe(5000);
    expect(await there.info('stats')).toContain('migrate_cached_sockets:1');
    await Promise.all([redis.stop(), ours.stop(), other.stop()]);
  });
});

describe('MIGRATE', () => {
  it('copies, replaces, and gives up only what has arrived', { timeout: 120_000 }, async () => {
    const [one, two] = await Promise.all([
      startTestServer(),
      startTestServer({ env: { ENTRESOL_REQUIREPASS: 'secret' } }),
    ]);
    const from = connect(one.redisPort);
    const to = connect(two.redisPort, { password: 'secret' });
    const migrate = (key: string, ...rest: (string | number)[]): Promise<unknown> =>
      from.call('MIGRATE', '127.0.0.1', two.redisPort, key, 3, 5000, ...rest);
    await to.select(3);
    await from.mset('a', '1', 'b', '2', 'c', '3');
    await from.pexpire('a', 100_000);
    await expect(migrate('a')).rejects.toThrow(/^ERR Target instance replied with error: NOAUTH/);
    expect(await from.exists('a')).toBe(1);
    await expect(migrate('a', 'AUTH', 'wrong')).rejects.toThrow(/replied with error: WRONGPASS/);
    expect(await migrate('a', 'COPY', 'AUTH', 'secret')).toBe('OK');
    expect(await Promise.all([from.get('a'), to.get('a')])).toEqual(['1', '1']);
    expect(await to.pttl('a')).toBeGreaterThan(50_000);
    await expect(migrate('a', 'AUTH2', 'default', 'secret')).rejects.toThrow(
      /error: BUSYKEY Target key name already exists/,
    );
    await from.set('a', 'new');
    expect(await migrate('a', 'REPLACE', 'AUTH2', 'default', 'secret')).toBe('OK');
    expect(await Promise.all([from.exists('a'), to.get('a'), to.pttl('a')])).toEqual([0, 'new', -1]);
    // One of three is taken there.
    await from.set('a', '1');
    await expect(migrate('', 'AUTH', 'secret', 'KEYS', 'b', 'a', 'none', 'c')).rejects.toThrow(/error: BUSYKEY/);
    expect(await Promise.all([from.exists('a', 'b', 'c'), to.mget('a', 'b', 'c')])).toEqual([1, ['new', '2', '3']]);
    expect(await migrate('none', 'AUTH', 'secret')).toBe('NOKEY');
    expect(await from.multi().call('MIGRATE', '127.0.0.1', two.redisPort, 'a', 0, 100).exec()).toMatchObject([
      [{ message: expect.stringContaining('ERR MIGRATE waits for another server') }],
    ]);
    await Promise.all([one.stop(), two.stop()]);
  });

  it('makes its client wait, and nobody else', { timeout: 120_000 }, async () => {
    const server = await startTestServer();
    const port = await startSilent();
    const [waiting, working] = [connect(server.redisPort), connect(server.redisPort)];
    await working.set('k', 'v');
    const startedMs = performance.now();
    const answer = waiting.call('MIGRATE', '127.0.0.1', port, 'k', 0, 3000).catch((error: Error) => error.message);
    let pings = 0;
    while (performance.now() - startedMs < 1500) pings += (await working.ping()) === 'PONG' ? 1 : 0;
    expect(pings).toBeGreaterThan(20);
    expect(await answer).toBe('IOERR error or timeout reading to target instance');
    expect(await working.get('k')).toBe('v');
    const [closed] = await freePorts(1);
    await expect(waiting.call('MIGRATE', '127.0.0.1', closed, 'k', 0, 3000)).rejects.toThrow(
      'IOERR error or timeout writing to target instance',
    );
    await server.stop();
  });

  it('sends again what was changed meanwhile', { timeout: 120_000 }, async () => {
    const [one, two] = await Promise.all([startTestServer({ workers: 2 }), startTestServer()]);
    const [from, writer, to] = [connect(one.redisPort), connect(one.redisPort), connect(two.redisPort)];
    await from.set('counter', '0');
    let last = 0;
    let isWriting = true;
    const writes = (async () => {
      while (isWriting) last = Math.max(last, await writer.incr('counter'));
    })();
    // The counter begins anew once it has gone; what has gone must be what it was last.
    const reply = await from
      .call('MIGRATE', '127.0.0.1', two.redisPort, 'counter', 0, 5000)
      .catch((error: Error) => error.message);
    isWriting = false;
    await writes;
    const there = Number(await to.get('counter'));
    if (reply === 'OK') expect(there + Number((await from.get('counter')) ?? 0)).toBeGreaterThanOrEqual(last);
    else expect(String(reply)).toContain('were changed again and again');
    await Promise.all([one.stop(), two.stop()]);
  });
});

describeWithRedis('MIGRATE', (peers) => {
  it('answers as redis-server', async () => {
    const [closed] = await freePorts(1);
    await peers.compare([
      'MIGRATE',
      'MIGRATE 127.0.0.1 1 k 0',
      `MIGRATE 127.0.0.1 ${closed} k 0 100`,
      'SET k v',
      `MIGRATE 127.0.0.1 ${closed} k 0 100`,
      `MIGRATE 127.0.0.1 ${closed} k x 100`,
      `MIGRATE 127.0.0.1 ${closed} k 0 x`,
      `MIGRATE 127.0.0.1 ${closed} k 0 100 BAD`,
      `MIGRATE 127.0.0.1 ${closed} k 0 100 AUTH`,
      `MIGRATE 127.0.0.1 ${closed} k 0 100 AUTH2 a`,
      `MIGRATE 127.0.0.1 ${closed} k 0 100 KEYS a b`,
      ['MIGRATE', '127.0.0.1', String(closed), '', '0', '100', 'KEYS', 'none'],
      ['MIGRATE', '127.0.0.1', String(closed), '', '0', '100', 'COPY', 'REPLACE', 'KEYS', 'k', 'none'],
      'GET k',
      'COMMAND GETKEYS MIGRATE 127.0.0.1 1 k 0 100',
      ['COMMAND', 'GETKEYS', 'MIGRATE', '127.0.0.1', '1', '', '0', '100', 'COPY', 'KEYS', 'a', 'b'],
      ['COMMAND', 'GETKEYSANDFLAGS', 'MIGRATE', '127.0.0.1', '1', '', '0', '100', 'AUTH', 'KEYS', 'KEYS', 'a', 'b'],
    ]);
  });
});
