/** Clients that want too much: floods, idlers, half-closers, slow readers. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

async function residentBytes(server: TestServer): Promise<number> {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)![1]) * 1024;
}

test('connections above maxclients get the protocol error, those below go on', async () => {
  const server = await startTestServer({ workers: 2, args: ['--maxclients=10'] });
  const clients = await Promise.all(Array.from({ length: 10 }, () => RawClient.connect(server.redisPort)));
  for (const client of clients) await client.ask('PING\r\n', '+PONG\r\n');

  const refused = await Promise.all(Array.from({ length: 200 }, () => RawClient.connect(server.redisPort)));
  for (const client of refused) {
    await client.closed();
    expect(client.text).toBe('-ERR max number of clients reached\r\n');
  }
  for (const client of clients) await client.ask('PING\r\n', '+PONG\r\n');

  clients[0].destroy();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const next = await RawClient.connect(server.redisPort);
  await next.ask('PING\r\n', '+PONG\r\n');
  for (const client of [...clients, next]) client.destroy();
  await server.stop();
});

test('an idle client is closed after the timeout, a busy one is not', async () => {
  const server = await startTestServer({ args: ['--timeout=1'] });
  const idle = await RawClient.connect(server.redisPort);
  const busy = await RawClient.connect(server.redisPort);
  await idle.ask('PING\r\n', '+PONG\r\n');
  for (let i = 0; i < 12; i++) {
    await busy.ask('PING\r\n', '+PONG\r\n');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  expect(idle.isClosed).toBe(true);
  expect(busy.isClosed).toBe(false);
  busy.destroy();
  await server.stop();
});

test('a client that has closed its sending side still gets its replies', async () => {
  const server = await startTestServer();
  const client = await RawClient.connect(server.redisPort, { allowHalfOpen: true });
  client.write('SET half closed\r\nGET half\r\n');
  client.socket.end();
  await client.closed();
  expect(client.text).toBe('+OK\r\n$6\r\nclosed\r\n');
  const memcached = await RawClient.connect(server.memcachedPort, { allowHalfOpen: true });
  memcached.write('get half\r\n');
  memcached.socket.end();
  await memcached.closed();
  expect(memcached.text).toBe('VALUE half 0 6\r\nclosed\r\nEND\r\n');
  await server.stop();
});

test('a reader that does not read is not read either: memory stays bounded, nothing is lost', async () => {
  const server = await startTestServer({ args: ['--client-output-buffer-soft=1mb'] });
  const writer = await RawClient.connect(server.redisPort);
  const value = 'v'.repeat(10_000);
  await writer.ask(`SET big ${value}\r\n`, '+OK\r\n');
  const before = await residentBytes(server);

  const slow = await RawClient.connect(server.redisPort);
  slow.socket.pause();
  const requests = 20_000; // 200 MB of replies
  slow.write('GET big\r\n'.repeat(requests));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect((await residentBytes(server)) - before).toBeLessThan(64 * 1024 * 1024);
  await writer.ask('PING\r\n', '+PONG\r\n');

  slow.socket.resume();
  const reply = `$10000\r\n${value}\r\n`;
  let received = 0;
  while (received < requests) {
    expect((await slow.read(reply.length)).toString('latin1')).toBe(reply);
    received++;
    if (received === 50) break;
  }
  await slow.until(() => slow.receivedBytes === reply.length * (requests - received), 'all replies', 25_000);
  slow.destroy();
  writer.destroy();
  await server.stop();
});

test('a reader above the hard output limit is closed, the others go on', async () => {
  const server = await startTestServer({
    dram: '256mb',
    args: ['--client-output-buffer-soft=64kb', '--client-output-buffer-hard=1mb'],
  });
  const writer = await RawClient.connect(server.redisPort);
  const value = 'v'.repeat(10_000);
  await writer.ask(`SET big ${value}\r\n`, '+OK\r\n');
  const slow = await RawClient.connect(server.redisPort);
  slow.socket.pause();
  slow.write(`MGET${' big'.repeat(2000)}\r\n`);
  await new Promise((resolve) => setTimeout(resolve, 500));
  slow.socket.resume();
  await slow.closed();
  expect(slow.receivedBytes).toBeLessThan(2000 * 10_000);
  await writer.ask('PING\r\n', '+PONG\r\n');
  writer.destroy();
  await server.stop();
});
