/**
 * socket.io at work: two web servers that reach each other's browsers through our pub/sub (redis adapter) and streams (streams adapter).
 */
import { createServer, type Server as WebServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdapter } from '@socket.io/redis-adapter';
import { createAdapter as createStreamsAdapter } from '@socket.io/redis-streams-adapter';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Server } from 'socket.io';
import { io, type Socket } from 'socket.io-client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../helpers/server.js';

let server: TestServer;
let cleanUps: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startTestServer({ workers: 2, memcachedPort: 0 });
});

afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
  cleanUps = [];
});

afterAll(async () => {
  await server?.stop();
});

type Adapter =
  NonNullable<ConstructorParameters<typeof Server>[1]> extends infer O
    ? O extends { adapter?: infer A }
      ? A
      : never
    : never;

interface Site {
  readonly sockets: Server;
  readonly port: number;
}

async function startSite(adapter: Adapter): Promise<Site> {
  const web: WebServer = createServer();
  const sockets = new Server(web, { adapter });
  await new Promise<void>((done) => web.listen(0, '127.0.0.1', done));
  cleanUps.push(() => sockets.close());
  sockets.on('connection', (socket) => {
    socket.on('join', async (room: string, joined: () => void) => {
      await socket.join(room);
      joined();
    });
  });
  return { sockets, port: (web.address() as AddressInfo).port };
}

async function browser({ port }: Site): Promise<{ socket: Socket; got: unknown[] }> {
  const socket = io(`http://127.0.0.1:${port}`, { transports: ['websocket'] });
  cleanUps.push(() => socket.disconnect());
  const got: unknown[] = [];
  socket.on('news', (value: unknown) => got.push(value));
  await new Promise<void>((done) => socket.on('connect', done));
  return { socket, got };
}

const join = (socket: Socket, room: string): Promise<void> =>
  new Promise((done) => {
    socket.emit('join', room, done);
  });

/** What both adapters are for. */
async function reachEachOther(one: Site, two: Site): Promise<void> {
  const [here, there, apart] = [await browser(one), await browser(two), await browser(two)];
  await join(here.socket, 'room');
  await join(there.socket, 'room');
  // The sites know of each other's rooms a moment later.
  await expect.poll(async () => (await one.sockets.in('room').fetchSockets()).length, { timeout: 10_000 }).toBe(2);

  for (let i = 0; i < 50; i++) one.sockets.to('room').emit('news', i);
  two.sockets.emit('news', 'all');
  const numbers = Array.from({ length: 50 }, (_, i) => i);
  const sorted = (got: unknown[]): unknown[] => got.filter((value) => value !== 'all');
  await expect.poll(() => there.got.length, { timeout: 10_000 }).toBe(51);
  await expect.poll(() => here.got.length, { timeout: 10_000 }).toBe(51);
  expect(sorted(there.got)).toEqual(numbers);
  expect(sorted(here.got)).toEqual(numbers);
  await expect.poll(() => apart.got, { timeout: 10_000 }).toEqual(['all']);

  one.sockets.in('room').socketsLeave('room');
  await expect.poll(async () => (await two.sockets.in('room').fetchSockets()).length, { timeout: 10_000 }).toBe(0);
}

describe('socket.io', () => {
  it('with the redis adapter', async () => {
    const sites: Site[] = [];
    for (let i = 0; i < 2; i++) {
      const publisher = new Redis({ port: server.redisPort });
      const subscriber = publisher.duplicate();
      cleanUps.push(() => {
        publisher.disconnect();
        subscriber.disconnect();
      });
      sites.push(await startSite(createAdapter(publisher, subscriber)));
    }
    await reachEachOther(sites[0], sites[1]);
  });

  it('with the streams adapter', async () => {
    const sites: Site[] = [];
    for (let i = 0; i < 2; i++) {
      const client = createClient({ url: `redis://127.0.0.1:${server.redisPort}` });
      await client.connect();
      cleanUps.push(() => client.destroy());
      sites.push(await startSite(createStreamsAdapter(client)));
    }
    await reachEachOther(sites[0], sites[1]);
  });
});
