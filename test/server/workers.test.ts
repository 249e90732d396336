/** Several workers: one port, one store, and what happens when one of them dies. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Counter } from '../../src/layout/counters.js';
import { type InProcessServer, startInProcess } from '../helpers/in-process.js';
import { RawClient } from '../helpers/raw-client.js';

let running: InProcessServer;

beforeAll(async () => {
  running = await startInProcess({ workers: 2 });
});

afterAll(async () => {
  await running.stop();
});

const opened: RawClient[] = [];

afterEach(async () => {
  for (const client of opened.splice(0)) client.destroy();
  const { counters } = running.server;
  while (counters.total(Counter.connections) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

async function connectMany(count: number, port: number): Promise<RawClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => RawClient.connect(port)));
  opened.push(...clients);
  return clients;
}

test('two workers share one port and one store', async () => {
  const clients = await connectMany(40, running.redisPort);
  await clients[0].ask('SET shared value\r\n', '+OK\r\n');
  for (const client of clients) await client.ask('GET shared\r\n', '$5\r\nvalue\r\n');
  const memcached = await connectMany(10, running.memcachedPort);
  for (const client of memcached) await client.ask('get shared\r\n', 'VALUE shared 0 5\r\nvalue\r\nEND\r\n');

  const { counters } = running.server;
  expect(counters.total(Counter.connections)).toBe(50);
  expect(counters.ofWorker(0, Counter.connections)).toBeGreaterThan(0);
  expect(counters.ofWorker(1, Counter.connections)).toBeGreaterThan(0);
});

test('every worker serves clients of the unix socket, also one that was started again', async () => {
  const path = join(tmpdir(), `entresol-workers-${process.pid}.sock`);
  const { server, stop } = await startInProcess({ workers: 2, unix: path });
  onTestFinished(stop);
  /** How many of `count` connections each worker has. */
  const connect = async (count: number): Promise<number[]> => {
    const clients = await Promise.all(Array.from({ length: count }, () => RawClient.connect(path)));
    for (const client of clients) await client.ask('PING\r\n', '+PONG\r\n');
    const shares = [0, 1].map((worker) => server.counters.ofWorker(worker, Counter.connections));
    for (const client of clients) client.destroy();
    while (server.counters.total(Counter.connections) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    return shares;
  };
  expect(await connect(20)).toEqual([10, 10]);
  await server.killWorker(0);
  const [first, second] = await connect(3);
  expect(first + second).toBe(3);
  while ((await connect(2))[0] === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await connect(20)).toEqual([10, 10]);
});

test('CLIENT LIST shows the clients of all workers, CLIENT KILL reaches them', async () => {
  const clients = await connectMany(20, running.redisPort);
  for (const [i, client] of clients.entries()) await client.ask(`CLIENT SETNAME many-${i}\r\n`, '+OK\r\n');
  const [asker] = clients;
  asker.write('CLIENT LIST\r\n');
  const header = await asker.line();
  const list = (await asker.read(Number(header.slice(1)) + 2)).toString();
  for (let i = 0; i < clients.length; i++) expect(list).toContain(`name=many-${i} `);

  const rows = list.split('\n').filter((row) => row.includes('name=many-'));
  const ids = rows.map((row) => /\bid=(\d+)/.exec(row)![1]);
  expect(new Set(ids).size).toBe(20);
  const others = rows.filter((row) => !row.includes('name=many-0 ')).map((row) => /\bid=(\d+)/.exec(row)![1]);
  for (const id of others) await asker.ask(`CLIENT KILL ID ${id}\r\n`, ':1\r\n');
  await Promise.all(clients.slice(1).map((client) => client.closed()));
});

test('CONFIG SET reaches every worker before it answers', async () => {
  const clients = await connectMany(20, running.redisPort);
  await clients[0].ask('CONFIG SET slowlog-max-len 77\r\n', '+OK\r\n');
  for (const client of clients) {
    await client.ask('CONFIG GET slowlog-max-len\r\n', '*2\r\n$15\r\nslowlog-max-len\r\n$2\r\n77\r\n');
  }
});

test('CLIENT PAUSE holds the clients of all workers', async () => {
  const clients = await connectMany(12, running.redisPort);
  for (const client of clients) await client.ask('PING\r\n', '+PONG\r\n');
  const started = performance.now();
  await clients[0].ask('CLIENT PAUSE 300\r\n', '+OK\r\n');
  await Promise.all(clients.map((client) => client.ask('PING\r\n', '+PONG\r\n')));
  expect(performance.now() - started).toBeGreaterThan(250);
});

test('a worker that dies is replaced; the other one and the data stay', async () => {
  const clients = await connectMany(30, running.redisPort);
  for (const [i, client] of clients.entries()) await client.ask(`SET crash-${i} ${i % 10}\r\n`, '+OK\r\n');
  const { counters } = running.server;
  await running.server.killWorker(0);
  const deadline = performance.now() + 10_000;
  while (counters.ofWorker(0, Counter.connections) === 0 && performance.now() < deadline) {
    await connectMany(1, running.redisPort);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(counters.ofWorker(0, Counter.connections)).toBeGreaterThan(0);

  const survivors = clients.filter((client) => !client.isClosed);
  expect(survivors.length).toBeGreaterThan(0);
  expect(survivors.length).toBeLessThan(clients.length);
  for (const client of survivors) await client.ask('PING\r\n', '+PONG\r\n');

  const fresh = await connectMany(30, running.redisPort);
  for (const [i, client] of fresh.entries()) await client.ask(`GET crash-${i}\r\n`, `$1\r\n${i % 10}\r\n`);
  const living = opened.filter((client) => !client.isClosed);
  expect(counters.total(Counter.connections)).toBe(living.length);
});

test('a worker that starts while users and settings change has them all', async () => {
  await running.server.killWorker(1);
  let users = 0;
  const { counters } = running.server;
  const deadline = performance.now() + 10_000;
  while (counters.ofWorker(1, Counter.connections) === 0 && performance.now() < deadline) {
    // One that was open before may be the dead worker's, and not know it yet.
    const [admin] = await connectMany(1, running.redisPort);
    await admin.ask(`ACL SETUSER late-${users++} on nopass +ping\r\n`, '+OK\r\n');
    await admin.ask(`CONFIG SET slowlog-max-len ${1000 + users}\r\n`, '+OK\r\n');
    await connectMany(1, running.redisPort);
  }
  expect(counters.ofWorker(1, Counter.connections)).toBeGreaterThan(0);
  // Among so many there are connections of both workers.
  for (const client of await connectMany(20, running.redisPort)) {
    await client.ask('CONFIG GET slowlog-max-len\r\n', `*2\r\n$15\r\nslowlog-max-len\r\n$4\r\n${1000 + users}\r\n`);
    for (let i = 0; i < users; i++) await client.ask(`AUTH late-${i} any\r\n`, '+OK\r\n');
  }
});
