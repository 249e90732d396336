/**
 * What one worker keeps and the clients of another ask for or change: transactions that ask all workers, order of invalidations, scripts
 * beyond maxmemory. Two workers, with connections on both.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type InProcessServer, startInProcess } from '../helpers/in-process.js';
import { RawClient } from '../helpers/raw-client.js';
import { parseReply, replyEnd } from '../helpers/resp-reply.js';
import { multibulk } from '../helpers/session.js';

let server: InProcessServer;
let connections: RawClient[] = [];

beforeAll(async () => {
  server = await startInProcess({ workers: 2, memcachedPort: 0, maxmemoryPolicy: 'noeviction' });
}, 60_000);

afterEach(() => {
  for (const connection of connections) connection.destroy();
  connections = [];
});

afterAll(async () => {
  await server.stop();
});

type Request = string | readonly string[];

function send(client: RawClient, request: Request): void {
  client.write(multibulk(typeof request === 'string' ? request.split(' ') : request));
}

async function receive(client: RawClient): Promise<string> {
  await client.until(() => replyEnd(client.text, 0) >= 0, 'a reply');
  return (await client.read(replyEnd(client.text, 0))).toString('latin1');
}

async function ask(client: RawClient, request: Request): Promise<unknown> {
  send(client, request);
  return parseReply(await receive(client));
}

/** Asks for all of it as one transaction; the elements of EXEC's reply. */
async function inOne(client: RawClient, ...requests: Request[]): Promise<unknown> {
  expect(await ask(client, 'MULTI')).toBe('OK');
  for (const request of requests) expect(await ask(client, request)).toBe('QUEUED');
  return ask(client, 'EXEC');
}

/** A new connection to that worker: the kernel chooses, so it takes some tries. */
async function connectTo(worker: number): Promise<RawClient> {
  for (;;) {
    const client = await RawClient.connect(server.redisPort);
    connections.push(client);
    if (String(await ask(client, 'CLIENT INFO')).includes(` worker=${worker}`)) return client;
  }
}

async function idOf(client: RawClient): Promise<number> {
  return Number(await ask(client, 'CLIENT ID'));
}

/** Waits until so many clients are blocked or paused. */
async function blockedClients(client: RawClient, count: number): Promise<void> {
  await expect.poll(() => ask(client, 'INFO clients'), { timeout: 10_000 }).toContain(`blocked_clients:${count}\r\n`);
}

describe('a transaction on one of two workers', { timeout: 60_000 }, () => {
  it('asks the other for its clients, channels and logs', async () => {
    const [here, there] = [await connectTo(0), await connectTo(1)];
    await ask(there, 'CLIENT SETNAME far');
    await ask(there, 'CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 100');
    expect(await inOne(here, 'SLOWLOG RESET', 'SLOWLOG LEN', 'LATENCY RESET', 'ACL LOG RESET')).toEqual([
      'OK',
      1,
      0,
      'OK',
    ]);
    await ask(there, 'SET far 1');
    await ask(there, 'SUBSCRIBE news');
    const [count, entries, list, channels] = (await inOne(
      here,
      'INCR n',
      'SLOWLOG GET',
      'CLIENT LIST',
      'PUBSUB CHANNELS',
    )) as [number, [number, number, number, string[]][], string, string[]];
    expect(count).toBe(1);
    const words = entries.map(([, , , argv]) => argv.join(' '));
    // The last command before, on the other worker, and the one of the transaction itself.
    expect(words.slice(0, 3)).toEqual(['INCR n', 'MULTI', 'SUBSCRIBE news']);
    expect(words).toContain('SET far 1');
    expect(list).toContain('name=far');
    expect(channels).toEqual(['news']);
    await ask(here, 'CONFIG SET slowlog-log-slower-than 10000');
  });

  it('kills, wakes and pauses clients of the other, unless a watched key has changed', async () => {
    const [here, there, victim] = [await connectTo(0), await connectTo(1), await connectTo(1)];
    const waiter = await connectTo(1);
    await ask(here, 'WATCH guard');
    await ask(there, 'SET guard changed');
    expect(await inOne(here, `CLIENT KILL ID ${await idOf(victim)}`)).toBe(null);
    expect(await ask(victim, 'PING')).toBe('PONG');
    const waiterId = await idOf(waiter);
    send(waiter, 'BLPOP nothing 0');
    await blockedClients(here, 1);
    expect(
      await inOne(
        here,
        `CLIENT KILL ID ${await idOf(victim)}`,
        `CLIENT UNBLOCK ${waiterId}`,
        'CLIENT PAUSE 60000 WRITE',
      ),
    ).toEqual([1, 1, 'OK']);
    await victim.closed();
    expect(parseReply(await receive(waiter))).toBe(null);
    send(there, 'SET paused 1');
    await blockedClients(here, 1);
    expect(await ask(here, 'GET paused')).toBe(null);
    expect(await inOne(here, 'CLIENT UNPAUSE', 'PING')).toEqual(['OK', 'PONG']);
    expect(parseReply(await receive(there))).toBe('OK');
  });

  it('redirects invalidations to a client of the other', async () => {
    const [here, there, writer] = [await connectTo(0), await connectTo(1), await connectTo(1)];
    await ask(there, 'HELLO 3');
    const id = await idOf(there);
    expect(await inOne(here, `CLIENT TRACKING ON REDIRECT ${id}`, 'GET cached')).toEqual(['OK', null]);
    expect(await ask(here, 'CLIENT GETREDIR')).toBe(id);
    await ask(writer, 'SET cached 2');
    expect(await receive(there)).toBe('>2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\ncached\r\n');
    expect(await inOne(here, 'CLIENT TRACKING ON REDIRECT 99999999')).toEqual([
      '-ERR The client ID you want redirect to does not exist',
    ]);
  });

  it('that changes settings is answered when the other has them', async () => {
    const [here, there] = [await connectTo(0), await connectTo(1)];
    for (let i = 1; i <= 50; i++) {
      expect(await inOne(here, `CONFIG SET slowlog-max-len ${i}`)).toEqual(['OK']);
      expect(await ask(there, 'CONFIG GET slowlog-max-len')).toEqual(['slowlog-max-len', String(i)]);
    }
    expect(await inOne(here, 'CONFIG SET nothing 1', 'CONFIG SET slowlog-max-len 128', 'PING')).toEqual([
      expect.stringContaining('Unknown option'),
      'OK',
      'PONG',
    ]);
  });

  it('refuses wrong words when it runs', async () => {
    const here = await connectTo(0);
    expect(await inOne(here, 'CLIENT LIST TYPE none', 'PING', 'CLIENT INFO')).toEqual([
      "-ERR Unknown client type 'none'",
      'PONG',
      expect.stringContaining('cmd=exec'),
    ]);
  });
});

describe('the logs of two workers', { timeout: 60_000 }, () => {
  it('are one: no longer than they may be, a sample a second, each event once', async () => {
    const clients = [await connectTo(0), await connectTo(1)];
    const [one, other] = clients;
    await ask(one, 'CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 5 latency-monitor-threshold 1');
    await ask(one, 'LATENCY RESET');
    for (let i = 0; i < 6; i++) for (const client of clients) await ask(client, `ECHO ${i}`);
    expect(await ask(one, 'SLOWLOG LEN')).toBe(5);
    expect(((await ask(other, 'SLOWLOG GET -1')) as unknown[]).length).toBe(5);
    for (let i = 0; i < 3; i++) {
      for (const client of clients) send(client, 'DEBUG SLEEP 0.01');
      for (const client of clients) expect(await receive(client)).toBe('+OK\r\n');
    }
    const samples = (await ask(one, 'LATENCY HISTORY command')) as [number, number][];
    const seconds = samples.map(([second]) => second);
    expect(seconds).toEqual([...new Set(seconds)].sort());
    expect(await ask(other, 'LATENCY RESET command')).toBe(1);
    expect(await ask(one, 'LATENCY HISTORY command')).toEqual([]);
    await ask(one, 'CONFIG SET slowlog-log-slower-than 10000 slowlog-max-len 128 latency-monitor-threshold 0');
  });

  it('INFO counts channels', async () => {
    const [one, other] = [await connectTo(0), await connectTo(1)];
    await ask(one, 'SUBSCRIBE a');
    send(other, 'SSUBSCRIBE b');
    await receive(other);
    const asker = await connectTo(0);
    const info = String(await ask(asker, 'INFO stats'));
    expect(info).toContain('pubsub_channels:1\r\n');
    expect(info).toContain('pubsubshard_channels:1\r\n');
    one.destroy();
    await expect.poll(() => ask(asker, 'INFO stats')).toContain('pubsub_channels:0\r\n');
  });
});

describe('invalidations from the other worker', { timeout: 60_000 }, () => {
  it('of a prefix come before the reply to what is sent later', async () => {
    const [here, there] = [await connectTo(0), await connectTo(1)];
    await ask(here, 'HELLO 3');
    await ask(here, 'CLIENT TRACKING ON BCAST');
    for (let i = 0; i < 50; i++) {
      await ask(there, `SET k${i} 1`);
      send(here, 'PING');
      expect(await receive(here)).toContain(`k${i}`);
      expect(await receive(here)).toBe('+PONG\r\n');
    }
  });

  it('that a blocked client has brought about itself come behind its reply', async () => {
    const [here, there] = [await connectTo(0), await connectTo(1)];
    await ask(there, 'DEL from to');
    await ask(here, 'HELLO 3');
    await ask(here, 'CLIENT TRACKING ON');
    for (let i = 0; i < 20; i++) {
      await ask(here, 'LRANGE to 0 -1');
      send(here, 'BLMOVE from to LEFT LEFT 0');
      await blockedClients(there, 1);
      await ask(there, 'RPUSH from x');
      expect(await receive(here)).toBe('$1\r\nx\r\n');
      expect(await receive(here)).toBe('>2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\nto\r\n');
    }
  });
});

describe('a script that may run although memory is full', { timeout: 60_000 }, () => {
  it('stores on every worker, and other commands still do not', async () => {
    const clients = [await connectTo(0), await connectTo(1)];
    await ask(clients[0], 'CONFIG SET maxmemory 1');
    for (const [i, client] of clients.entries()) {
      const script =
        '#!lua flags=allow-oom\nfor i = 1, 40 do redis.call("SET", KEYS[1] .. i, ARGV[1]) end return "done"';
      expect(await ask(client, ['EVAL', script, '1', `oom${i}`, 'x'.repeat(60_000)])).toBe('done');
      expect(await ask(client, 'SET other 1')).toMatch(/^-OOM/);
      expect(String(await ask(client, `GET oom${i}40`)).length).toBe(60_000);
    }
    await ask(clients[0], 'CONFIG SET maxmemory 0');
    expect(await ask(clients[1], 'SET other 1')).toBe('OK');
  });
});
