/**
 * memcached over real sockets: the byte scripts against memcached itself, connections and their ends, large values, UDP,
 * several workers, both protocols on one key space.
 */
import { createSocket } from 'node:dgram';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Memcached, memcachedVersion, SocketPeer } from '../compat/memcached-oracle.js';
import { compare } from '../compat/memcached-run.js';
import { scripts } from '../compat/memcached-scripts.js';
import { freePorts } from '../helpers/ports.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

let server: TestServer;
let udpPort: number;

beforeAll(async () => {
  [udpPort] = await freePorts(1);
  server = await startTestServer({ workers: 2, dram: '192mb', args: [`--memcached-udp-port=${udpPort}`] });
});

afterAll(async () => {
  await server?.stop();
});

const connect = (): Promise<RawClient> => RawClient.connect(server.memcachedPort);

const version = memcachedVersion();

describe.skipIf(version === null)(`the same replies as memcached ${version}, over sockets`, () => {
  let memcached: Memcached;
  let theirs: SocketPeer;
  let ours: SocketPeer;

  beforeAll(async () => {
    memcached = await Memcached.start();
    theirs = new SocketPeer(memcached.port);
    ours = new SocketPeer(server.memcachedPort);
  });

  afterAll(() => {
    theirs?.close();
    ours?.close();
    memcached?.stop();
  });

  for (const script of scripts) it(script.name, () => compare(script, ours, theirs));
});

describe('connections', () => {
  it('take a request byte by byte', async () => {
    const client = await connect();
    for (const byte of 'set drip 1 0 2\r\nok\r\nget drip\r\n') {
      client.write(byte);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await client.ask('', 'STORED\r\nVALUE drip 1 2\r\nok\r\nEND\r\n');
    client.destroy();
  });

  it('end with quit, with a line too long, with HTTP', async () => {
    const quits = await connect();
    quits.write('mn\r\nquit\r\n');
    await quits.closed();
    expect(quits.text).toBe('MN\r\n');
    const babbles = await connect();
    babbles.write('x'.repeat(5000));
    await babbles.closed();
    expect(babbles.text).toBe('CLIENT_ERROR line too long\r\n');
    const browses = await connect();
    browses.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await browses.closed();
    expect(browses.text).toBe('');
  });

  it('may send a whole pipeline before they read', async () => {
    const client = await connect();
    const count = 20_000;
    client.write('set p 0 0 100\r\n'.concat('p'.repeat(100), '\r\n').concat('get p\r\n'.repeat(count)));
    const one = `VALUE p 0 100\r\n${'p'.repeat(100)}\r\nEND\r\n`;
    const reply = await client.read('STORED\r\n'.length + one.length * count, 30_000);
    expect(reply.toString() === `STORED\r\n${one.repeat(count)}`).toBe(true);
    client.destroy();
  });

  it('count together: no increment is lost', async () => {
    const first = await connect();
    await first.ask('set sum 0 0 1\r\n0\r\n', 'STORED\r\n');
    const clients = await Promise.all(Array.from({ length: 8 }, connect));
    await Promise.all(
      clients.map(async (client) => {
        client.write(`${'incr sum 1 noreply\r\n'.repeat(500)}mn\r\n`);
        await client.until(() => client.text.endsWith('MN\r\n'), 'the end');
        client.destroy();
      }),
    );
    await first.ask('get sum\r\n', 'VALUE sum 0 4\r\n4000\r\nEND\r\n');
    first.destroy();
  });

  it('are listed by stats conns, of all workers', async () => {
    const clients = await Promise.all(Array.from({ length: 6 }, connect));
    for (const client of clients) await client.ask('mn\r\n', 'MN\r\n');
    clients[0].write('stats conns\r\nmn\r\n');
    await clients[0].until(() => clients[0].text.endsWith('MN\r\n'), 'the end');
    expect(clients[0].text.match(/:addr tcp:127\.0\.0\.1:\d+\r\n/g)!.length).toBeGreaterThanOrEqual(6);
    expect(clients[0].text.match(/conn_parse_cmd/g)).toHaveLength(1);
    for (const client of clients) client.destroy();
  });
});

describe('large values', () => {
  it('go in and out whole, many at once', async () => {
    const clients = await Promise.all(Array.from({ length: 6 }, connect));
    await Promise.all(
      clients.map(async (client, i) => {
        for (let round = 0; round < 5; round++) {
          const value = Buffer.alloc(1_000_000 - i * 7 - round, `${i}${round}`);
          client.write(`set big${i} ${i} 0 ${value.length}\r\n`);
          client.write(value);
          client.write(`\r\nget big${i}\r\n`);
          const head = `STORED\r\nVALUE big${i} ${i} ${value.length}\r\n`;
          const reply = await client.read(head.length + value.length + 7, 30_000);
          expect(reply.subarray(0, head.length).toString()).toBe(head);
          expect(reply.subarray(head.length, -7).equals(value)).toBe(true);
          expect(reply.subarray(-7).toString()).toBe('\r\nEND\r\n');
        }
        client.destroy();
      }),
    );
  });

  it('leave nothing behind when their connection goes', async () => {
    const client = await connect();
    client.write(`set gone 0 0 1000000\r\n${'x'.repeat(500_000)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.destroy();
    const other = await connect();
    await other.ask(
      'get gone\r\nset gone 0 0 1\r\n1\r\nget gone\r\n',
      'END\r\nSTORED\r\nVALUE gone 0 1\r\n1\r\nEND\r\n',
    );
    other.destroy();
  });
});

describe('UDP', () => {
  const frame = (id: number, text: string): Buffer =>
    Buffer.concat([Buffer.from([id >> 8, id & 255, 0, 0, 0, 1, 0, 0]), Buffer.from(text)]);

  /** Sends one request; collects the reply's datagrams, in order. */
  async function ask(id: number, text: string): Promise<string> {
    const socket = createSocket('udp4');
    const parts: Buffer[] = [];
    const reply = new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no reply to ${text}`)), 5000);
      socket.on('message', (message) => {
        expect(message.readUInt16BE(0)).toBe(id);
        parts[message.readUInt16BE(2)] = message.subarray(8);
        if (Object.keys(parts).length < message.readUInt16BE(4)) return;
        clearTimeout(timer);
        resolve(Buffer.concat(parts).toString('latin1'));
      });
    });
    socket.send(frame(id, text), udpPort, '127.0.0.1');
    try {
      return await reply;
    } finally {
      socket.close();
    }
  }

  it('answers gets and sets', async () => {
    expect(await ask(1, 'set u 3 0 2\r\nup\r\n')).toBe('STORED\r\n');
    expect(await ask(2, 'get u nosuch\r\n')).toBe('VALUE u 3 2\r\nup\r\nEND\r\n');
    expect(await ask(3, 'mg u v f\r\n')).toBe('VA 2 f3\r\nup\r\n');
  });

  it('answers with several datagrams', async () => {
    const value = 'datagram'.repeat(2500);
    const client = await connect();
    await client.ask(`set long 0 0 ${value.length}\r\n${value}\r\n`, 'STORED\r\n');
    client.destroy();
    expect(await ask(0xffff, 'get long\r\n')).toBe(`VALUE long 0 ${value.length}\r\n${value}\r\nEND\r\n`);
  });
});

describe('one key space with Redis', () => {
  it('strings are the same strings; SET clears flags, types and times are kept', async () => {
    const memcached = await connect();
    const redis = await RawClient.connect(server.redisPort);
    await memcached.ask('set both 42 100 5\r\nhello\r\n', 'STORED\r\n');
    await redis.ask('GET both\r\n', '$5\r\nhello\r\n');
    await redis.ask('TTL both\r\n', ':100\r\n');
    await redis.ask('SET both world\r\n', '+OK\r\n');
    await memcached.ask('get both\r\n', 'VALUE both 0 5\r\nworld\r\nEND\r\n');
    await memcached.ask('mg both t\r\n', 'HD t-1\r\n');
    await redis.ask('SET n 41 EX 50\r\n', '+OK\r\n');
    await memcached.ask('incr n 1\r\n', '42\r\n');
    await redis.ask('INCR n\r\n', ':43\r\n');
    await memcached.ask('mg n v t\r\n', 'VA 2 t50\r\n43\r\n');
    await redis.ask('SELECT 1\r\nSET n other\r\n', '+OK\r\n+OK\r\n');
    await memcached.ask('get n\r\n', 'VALUE n 0 2\r\n43\r\nEND\r\n');
    await memcached.ask('flush_all\r\n', 'OK\r\n');
    await redis.ask('GET n\r\nSELECT 0\r\nEXISTS n both\r\n', '$5\r\nother\r\n+OK\r\n:0\r\n');
    memcached.destroy();
    redis.destroy();
  });
});

describe('settings', () => {
  it('shutdown stops the server where it is allowed', async () => {
    const own = await startTestServer({ args: ['--enable-shutdown'] });
    const client = await RawClient.connect(own.memcachedPort);
    client.write('shutdown\r\n');
    expect(await own.ended).toBe(0);
    client.destroy();
    await own.stop();
    const other = await connect();
    await other.ask('shutdown\r\n', 'ERROR: shutdown not enabled\r\n');
    other.destroy();
  });

  it('a password locks both protocols; items above 1 MiB on demand', async () => {
    const own = await startTestServer({
      dram: '192mb',
      args: ['--requirepass=sesame', '--item-size-max=40mb'],
    });
    const client = await RawClient.connect(own.memcachedPort);
    await client.ask('get a\r\n', 'CLIENT_ERROR unauthenticated\r\n');
    await client.ask('set auth 0 0 14\r\ndefault sesame\r\n', 'STORED\r\n');
    const value = Buffer.alloc(30_000_000, 'thirty million ');
    client.write(`set huge 0 0 ${value.length}\r\n`);
    client.write(value);
    await client.ask('\r\n', 'STORED\r\n');
    client.write(`append huge 0 0 5000000\r\n${'!'.repeat(5_000_000)}`);
    await client.ask('\r\nmg huge s\r\n', 'STORED\r\nHD s35000000\r\n');
    client.write('get huge\r\n');
    const head = 'VALUE huge 0 35000000\r\n';
    const reply = await client.read(head.length + 35_000_000 + 7, 30_000);
    expect(reply.subarray(head.length, head.length + value.length).equals(value)).toBe(true);
    expect(reply.subarray(-13).toString()).toBe('!!!!!!\r\nEND\r\n');
    client.destroy();
    await own.stop();
  });
});
