/**
 * Messages between workers: pub/sub, keyspace events, client tracking, MONITOR and blocked clients on a server of three.
 */
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type InProcessServer, startInProcess } from '../helpers/in-process.js';
import { RawClient } from '../helpers/raw-client.js';
import { replyEnd } from '../helpers/resp-reply.js';

const WORKERS = 3;
/** Enough for every worker to have several: the kernel spreads connections over the workers. */
const CLIENTS = 16;

let server: InProcessServer;
const connections: RawClient[] = [];

beforeAll(async () => {
  server = await startInProcess({ workers: WORKERS, memcachedPort: 0 });
}, 60_000);

afterAll(async () => {
  for (const connection of connections) connection.destroy();
  await server.stop();
});

async function connect(): Promise<RawClient> {
  const connection = await RawClient.connect(server.redisPort);
  connections.push(connection);
  return connection;
}

async function connectMany(count: number): Promise<RawClient[]> {
  return Promise.all(Array.from({ length: count }, connect));
}

/** Sends one request and takes one reply. */
async function ask(client: RawClient, request: string): Promise<string> {
  client.write(`${request}\r\n`);
  await client.until(() => replyEnd(client.text, 0) >= 0, `a reply to ${request}`);
  return (await client.read(replyEnd(client.text, 0))).toString('latin1');
}

/** Takes everything up to and with `end`. */
async function until(client: RawClient, end: string): Promise<string> {
  await client.until(() => client.text.includes(end), end);
  return (await client.read(client.text.indexOf(end) + end.length)).toString('latin1');
}

/** Workers that these clients are on. */
async function workersOf(clients: RawClient[]): Promise<Set<string>> {
  const lines = await Promise.all(clients.map((client) => ask(client, 'CLIENT INFO')));
  return new Set(lines.map((line) => /worker=(\d+)/.exec(line)![1]));
}

describe('pub/sub on several workers', { timeout: 60_000 }, () => {
  it('counts and reaches all subscribers, whatever worker they are on', async () => {
    const subscribers = await connectMany(CLIENTS);
    const publishers = await connectMany(CLIENTS);
    expect((await workersOf(subscribers)).size).toBe(WORKERS);
    for (const subscriber of subscribers) await ask(subscriber, 'SUBSCRIBE news');
    // Acknowledged subscriptions count at once, for every publisher.
    for (const publisher of publishers) expect(await ask(publisher, 'PUBLISH news x')).toBe(`:${CLIENTS}\r\n`);
    expect(await ask(publishers[0], 'PUBSUB NUMSUB news')).toBe(`*2\r\n$4\r\nnews\r\n:${CLIENTS}\r\n`);
    expect(await ask(publishers[1], 'PUBSUB CHANNELS')).toBe('*1\r\n$4\r\nnews\r\n');
    const message = '*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n';
    for (const subscriber of subscribers) expect(await subscriber.read(message.length * CLIENTS)).toBeDefined();
    for (const subscriber of subscribers.splice(0, 5)) await ask(subscriber, 'UNSUBSCRIBE');
    for (const publisher of publishers) expect(await ask(publisher, 'PUBLISH news y')).toBe(`:${CLIENTS - 5}\r\n`);
    for (const client of [...subscribers, ...publishers]) client.destroy();
    await expect.poll(async () => ask(await connect(), 'PUBLISH news z')).toBe(':0\r\n');
  });

  it('keeps the order of each publisher', async () => {
    const [channelSubscriber, patternSubscriber] = await connectMany(2);
    await ask(channelSubscriber, 'SUBSCRIBE order');
    await ask(patternSubscriber, 'PSUBSCRIBE ord*');
    const publishers = await connectMany(6);
    const COUNT = 2000;
    await Promise.all(
      publishers.map(async (publisher, p) => {
        publisher.write(Array.from({ length: COUNT }, (_, i) => `PUBLISH order ${p}:${i}\r\n`).join(''));
        await publisher.until(() => publisher.receivedBytes >= COUNT * 4, 'all replies', 30_000);
        expect(publisher.text).toBe(':2\r\n'.repeat(COUNT));
      }),
    );
    for (const subscriber of [channelSubscriber, patternSubscriber]) {
      await subscriber.until(
        () => (subscriber.text.match(/\d:\d+\r/g) ?? []).length === 6 * COUNT,
        'all messages',
        30_000,
      );
      const seen = new Array<number>(6).fill(0);
      for (const [, p, i] of subscriber.text.matchAll(/(\d):(\d+)\r/g)) expect(Number(i)).toBe(seen[Number(p)]++);
    }
  });

  it('carries messages that are longer than a ring, among short ones', async () => {
    const subscribers = await connectMany(6);
    for (const subscriber of subscribers) await ask(subscriber, 'SUBSCRIBE long');
    const publisher = await connect();
    const long = 'x'.repeat(3_000_000);
    for (const payload of ['a', long, 'b', long, 'c']) {
      publisher.write(`*3\r\n$7\r\nPUBLISH\r\n$4\r\nlong\r\n$${payload.length}\r\n${payload}\r\n`);
    }
    await publisher.until(() => publisher.text.length >= 20, 'five replies', 30_000);
    const expected = ['a', long, 'b', long, 'c']
      .map((payload) => `*3\r\n$7\r\nmessage\r\n$4\r\nlong\r\n$${payload.length}\r\n${payload}\r\n`)
      .join('');
    for (const subscriber of subscribers) {
      expect((await subscriber.read(expected.length, 30_000)).toString('latin1') === expected).toBe(true);
    }
  });

  it('works for ioredis and node-redis at once', async () => {
    const subscriber = new Redis(server.redisPort);
    const publisher = createClient({ url: `redis://127.0.0.1:${server.redisPort}` });
    const other = publisher.duplicate();
    await Promise.all([publisher.connect(), other.connect()]);
    const heard: string[] = [];
    subscriber.on('message', (channel, message) => heard.push(`ioredis ${channel} ${message}`));
    await subscriber.subscribe('one');
    await other.pSubscribe('o*', (message, channel) => void heard.push(`redis ${channel} ${message}`));
    await other.sSubscribe('one', (message, channel) => void heard.push(`shard ${channel} ${message}`));
    expect(await publisher.publish('one', 'hello')).toBe(2);
    expect(await publisher.sPublish('one', 'hi')).toBe(1);
    await expect.poll(() => heard.sort()).toEqual(['ioredis one hello', 'redis one hello', 'shard one hi']);
    subscriber.disconnect();
    await Promise.all([publisher.close(), other.close()]);
  });
});

describe('other messages on several workers', { timeout: 60_000 }, () => {
  it('keyspace events of every worker', async () => {
    const [listener, ...writers] = await connectMany(8);
    await ask(writers[0], 'CONFIG SET notify-keyspace-events KEA');
    await ask(listener, 'PSUBSCRIBE __keyevent@0__:*');
    for (const [i, writer] of writers.entries()) await ask(writer, `SET event${i} 1`);
    await ask(writers[0], 'SET gone 1 PX 20');
    const heard = await until(listener, 'expired\r\n$4\r\ngone\r\n');
    for (let i = 0; i < writers.length; i++) expect(heard).toContain(`event${i}\r\n`);
    await ask(writers[0], 'CONFIG SET notify-keyspace-events ""');
  });

  it('invalidations, whoever changes the key', async () => {
    const readers = await connectMany(6);
    const writers = await connectMany(6);
    for (const reader of readers) {
      await ask(reader, 'HELLO 3');
      expect(await ask(reader, 'CLIENT TRACKING on')).toBe('+OK\r\n');
    }
    const invalidation = (key: string): string => `>2\r\n$10\r\ninvalidate\r\n*1\r\n$${key.length}\r\n${key}\r\n`;
    for (const [i, writer] of writers.entries()) {
      for (const reader of readers) await ask(reader, `GET cached${i}`);
      await ask(writer, `SET cached${i} 1`);
      await ask(writer, `SET cached${i} 2`);
      for (const reader of readers) {
        const expected = invalidation(`cached${i}`);
        expect((await reader.read(expected.length)).toString('latin1')).toBe(expected);
      }
    }
    await ask(writers[0], 'SET short 1 PX 20');
    for (const reader of readers) await ask(reader, 'GET short');
    for (const reader of readers) await until(reader, invalidation('short'));
    await ask(writers[0], 'FLUSHALL');
    for (const reader of readers)
      expect(await until(reader, 'invalidate\r\n_\r\n')).toBe('>2\r\n$10\r\ninvalidate\r\n_\r\n');
    const [prefixed] = await connectMany(1);
    await ask(prefixed, 'HELLO 3');
    await ask(prefixed, 'CLIENT TRACKING on BCAST PREFIX user:');
    for (const [i, writer] of writers.entries()) {
      await ask(writer, `SET user:${i} 1`);
      await until(prefixed, invalidation(`user:${i}`));
    }
  });

  it('invalidations redirected to another worker, and what happens when that client goes', async () => {
    const targets = await connectMany(6);
    const trackers = await connectMany(6);
    const writer = await connect();
    for (const [i, target] of targets.entries()) {
      const id = (await ask(target, 'CLIENT ID')).slice(1, -2);
      await ask(target, 'SUBSCRIBE __redis__:invalidate');
      expect(await ask(trackers[i], `CLIENT TRACKING on REDIRECT ${id}`)).toBe('+OK\r\n');
      await ask(trackers[i], `GET far${i}`);
      await ask(writer, `SET far${i} 1`);
      await until(target, `__redis__:invalidate\r\n*1\r\n$4\r\nfar${i}\r\n`);
      target.destroy();
      await expect
        .poll(async () => {
          await ask(trackers[i], `GET far${i}`);
          await ask(writer, `SET far${i} 1`);
          return ask(trackers[i], 'CLIENT TRACKINGINFO');
        })
        .toContain('broken_redirect');
    }
  });

  it('MONITOR', async () => {
    const [monitor, ...others] = await connectMany(8);
    await ask(monitor, 'MONITOR');
    for (const [i, other] of others.entries()) await ask(other, `ECHO from-${i}`);
    for (let i = 0; i < others.length; i++) {
      await monitor.until(() => monitor.text.includes(`"ECHO" "from-${i}"`), `the line of client ${i}`);
    }
  });

  it('CLIENT UNBLOCK, a time-out and a lost connection of blocked clients', async () => {
    const blocked = await connectMany(8);
    const control = await connect();
    const ids = await Promise.all(blocked.map(async (client) => (await ask(client, 'CLIENT ID')).slice(1, -2)));
    for (const client of blocked) client.write('WAIT 1 0\r\n');
    await expect.poll(() => ask(control, 'INFO clients')).toContain('blocked_clients:8\r\n');
    expect(await ask(control, `CLIENT UNBLOCK ${ids[0]}`)).toBe(':1\r\n');
    expect(await blocked[0].line()).toBe(':0');
    expect(await ask(control, `CLIENT UNBLOCK ${ids[1]} ERROR`)).toBe(':1\r\n');
    expect(await blocked[1].line()).toBe('-UNBLOCKED client unblocked via CLIENT UNBLOCK');
    expect(await ask(control, `CLIENT UNBLOCK ${ids[1]}`)).toBe(':0\r\n');
    expect(await ask(control, `CLIENT KILL ID ${ids[2]}`)).toBe(':1\r\n');
    await blocked[2].closed();
    blocked[3].socket.end();
    await blocked[3].closed();
    for (const client of blocked.slice(4)) client.destroy();
    await expect.poll(() => ask(control, 'INFO clients')).toContain('blocked_clients:0\r\n');
    blocked[0].write('WAIT 2 30\r\nPING\r\n');
    expect([await blocked[0].line(), await blocked[0].line()]).toEqual([':0', '+PONG']);
  });

  it('goes on when a worker dies and another takes its place', async () => {
    const subscribers = await connectMany(CLIENTS);
    for (const subscriber of subscribers) await ask(subscriber, 'SUBSCRIBE crash');
    await server.server.killWorker(1);
    await expect.poll(() => subscribers.filter((subscriber) => subscriber.isClosed).length).toBeGreaterThan(0);
    const living = subscribers.filter((subscriber) => !subscriber.isClosed);
    // The dead one's subscribers count until the others have noticed, which they look for once a second.
    await expect
      .poll(async () => ask(await connect(), 'PUBLISH crash x'), { timeout: 20_000 })
      .toBe(`:${living.length}\r\n`);
    const comeBack = async (): Promise<number> => (await workersOf(await connectMany(CLIENTS))).size;
    await expect.poll(comeBack, { timeout: 20_000 }).toBe(WORKERS);
    const again = await connectMany(CLIENTS);
    for (const subscriber of again) await ask(subscriber, 'SUBSCRIBE crash');
    const publisher = await connect();
    expect(await ask(publisher, 'PUBLISH crash again')).toBe(`:${living.length + CLIENTS}\r\n`);
    for (const subscriber of [...living, ...again]) await until(subscriber, 'again\r\n');
  });
});
