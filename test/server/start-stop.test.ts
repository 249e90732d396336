/** Starting and stopping the real command: ready line, ports, signals, SHUTDOWN. */
import { rm, stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { freePorts } from '../helpers/ports.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer } from '../helpers/server.js';

test('both ports answer as soon as the ready line is there, and a stop frees them', async () => {
  const first = await startTestServer();
  const redis = await RawClient.connect(first.redisPort);
  await redis.ask('PING\r\n', '+PONG\r\n');
  const memcached = await RawClient.connect(first.memcachedPort);
  memcached.write('version\r\n');
  expect(await memcached.line()).toMatch(/^VERSION /);

  await first.stop();
  await redis.closed();
  await memcached.closed();

  const second = await startTestServer({ redisPort: first.redisPort, memcachedPort: first.memcachedPort });
  const again = await RawClient.connect(second.redisPort);
  await again.ask('PING\r\n', '+PONG\r\n');
  again.destroy();
  await second.stop();
});

test('a port in use is an error that names it and says what to do', async () => {
  const [port] = await freePorts(1);
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
  await expect(startTestServer({ redisPort: port })).rejects.toThrow(
    new RegExp(`ended with 1; it printed:[\\s\\S]*EADDRINUSE[\\s\\S]*${port}[\\s\\S]*--port`),
  );
  await new Promise((resolve) => other.close(resolve));
});

test('a second server on the ports of a first one is refused, not given half of the connections', async () => {
  const first = await startTestServer();
  await expect(startTestServer({ redisPort: first.redisPort })).rejects.toThrow(/EADDRINUSE/);
  await expect(startTestServer({ memcachedPort: first.memcachedPort })).rejects.toThrow(/EADDRINUSE/);
  const client = await RawClient.connect(first.redisPort);
  await client.ask('PING\r\n', '+PONG\r\n');
  client.destroy();
  await first.stop();
});

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends with code 0 and sends the replies under way', async (signal) => {
  const server = await startTestServer({ workers: 2 });
  const clients = await Promise.all(Array.from({ length: 8 }, () => RawClient.connect(server.redisPort)));
  await Promise.all(clients.map((client) => client.ask('SET k v\r\nGET k\r\n', '+OK\r\n$1\r\nv\r\n')));
  process.kill(server.pid, signal);
  expect(await server.ended).toBe(0);
  await Promise.all(clients.map((client) => client.closed()));
  await server.stop();
});

test('SHUTDOWN NOSAVE ends the process', async () => {
  const server = await startTestServer();
  const client = await RawClient.connect(server.redisPort);
  client.write('SHUTDOWN NOSAVE\r\n');
  expect(await server.ended).toBe(0);
  await client.closed();
  await server.stop();
});

test('a unix socket serves, is private, replaces a stale file and is removed at the end', async () => {
  const path = join(tmpdir(), `entresol-test-${process.pid}.sock`);
  const dead = await startTestServer({ args: [`--unix=${path}`], workers: 2 });
  await dead.kill();
  const server = await startTestServer({ args: [`--unix=${path}`], workers: 2 });
  expect((await stat(path)).mode & 0o777).toBe(0o700);
  const client = await RawClient.connect(path);
  await client.ask('PING\r\n', '+PONG\r\n');
  client.destroy();
  await server.stop();
  await expect(stat(path)).rejects.toThrow(/ENOENT/);
  await rm(path, { force: true });
});

test('other machines are not served without a password, and the message says how', async () => {
  await expect(startTestServer({ args: ['--bind=0.0.0.0'] })).rejects.toThrow(
    /protected mode[\s\S]*--protected-mode no/,
  );
  const server = await startTestServer({ args: ['--bind=0.0.0.0', '--protected-mode=no'] });
  const client = await RawClient.connect(server.redisPort);
  await client.ask('PING\r\n', '+PONG\r\n');
  client.destroy();
  await server.stop();
});

/** An address of this machine that is not a loopback one; the way to it is the loopback device all the same. */
const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address;

test.skipIf(ownAddress === undefined)(
  'a password that goes while the server runs shuts other machines out',
  async () => {
    const server = await startTestServer({ args: ['--bind=0.0.0.0'], env: { ENTRESOL_REQUIREPASS: 'secret' } });
    const from = async (host: string, port: number, request: string): Promise<string> => {
      const socket = connect(port, host);
      socket.end(request);
      const chunks = await socket.toArray();
      return Buffer.concat(chunks).toString();
    };
    const { redisPort } = server;
    expect(await from(ownAddress!, redisPort, 'PING\r\n')).toMatch(/^-NOAUTH/);
    expect(await from('127.0.0.1', redisPort, 'AUTH secret\r\nACL SETUSER default nopass\r\n')).toBe('+OK\r\n+OK\r\n');
    expect(await from('127.0.0.1', redisPort, 'PING\r\n')).toBe('+PONG\r\n');
    expect(await from(ownAddress!, redisPort, 'PING\r\n')).toMatch(/^-DENIED .*protected mode/);
    expect(await from('127.0.0.1', redisPort, 'CONFIG SET protected-mode no\r\n')).toBe('+OK\r\n');
    expect(await from(ownAddress!, redisPort, 'PING\r\n')).toBe('+PONG\r\n');
    await server.stop();
  },
);

test('a second server on the pool of a first one is refused and told who has it; the first does not notice', async () => {
  const first = await startTestServer({ args: ['--maxmemory-policy=noeviction'] });
  await expect(startTestServer({ pool: first.pool, args: ['--maxmemory-policy=allkeys-random'] })).rejects.toThrow(
    new RegExp(
      `ended with 1; it printed:[\\s\\S]*a server runs on this pool already, process ${first.pid}[\\s\\S]*--pool`,
    ),
  );
  const client = await RawClient.connect(first.redisPort);
  await client.ask('CONFIG GET maxmemory-policy\r\n', '*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n');
  await client.ask('SET k v\r\n', '+OK\r\n');
  client.destroy();
  await first.kill();
});

test('a killed server leaves the pool to the next one', async () => {
  const pool = await makePool();
  const first = await startTestServer({ pool });
  await first.kill();
  const second = await startTestServer({ pool });
  await second.stop();
  await removePool(pool);
});

test('a second SIGINT ends a stop that waits for a slow reader; the data stay', async () => {
  const pool = await makePool();
  const server = await startTestServer({ pool });
  const client = await RawClient.connect(server.redisPort);
  client.write(`SET k ${'v'.repeat(60_000)}\r\n`);
  expect(await client.line()).toBe('+OK');
  // Replies that nobody reads: the stop gives them its whole grace of a second.
  client.socket.pause();
  client.write('GET k\r\n'.repeat(500));
  await sleep(200);
  process.kill(server.pid, 'SIGINT');
  await sleep(100);
  const sentAtMs = performance.now();
  process.kill(server.pid, 'SIGINT');
  expect(await server.ended).toBe(130);
  expect(performance.now() - sentAtMs).toBeLessThan(700);
  client.destroy();

  const again = await startTestServer({ pool });
  const reader = await RawClient.connect(again.redisPort);
  await reader.ask('STRLEN k\r\n', ':60000\r\n');
  reader.destroy();
  await again.stop();
  await removePool(pool);
});

test('a second SIGTERM does not cut a stop short', async () => {
  const server = await startTestServer();
  process.kill(server.pid, 'SIGTERM');
  process.kill(server.pid, 'SIGTERM');
  expect(await server.ended).toBe(0);
  await server.stop();
});

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s under load: what was acknowledged is there after a restart',
  async (signal) => {
    const pool = await makePool();
    const server = await startTestServer({ pool, workers: 2 });
    // Each connection counts up in a key of its own, eight requests ahead, until the server hangs up.
    const acknowledged = await (async () => {
      const clients = await Promise.all(Array.from({ length: 8 }, () => RawClient.connect(server.redisPort)));
      const counts = Promise.all(
        clients.map(async (client, id) => {
          let sent = 0;
          let answered = 0;
          try {
            for (;;) {
              while (sent < answered + 8) client.write(`SET load:${id} ${++sent}\r\n`);
              if ((await client.line()) !== '+OK') throw new Error('not stored');
              answered++;
            }
          } catch (error) {
            if ((error as Error).message === 'not stored') throw error;
            return answered;
          } finally {
            client.destroy();
          }
        }),
      );
      await sleep(300);
      process.kill(server.pid, signal);
      return counts;
    })();
    expect(await server.ended).toBe(0);
    expect(Math.min(...acknowledged)).toBeGreaterThan(10);

    const again = await startTestServer({ pool, workers: 2 });
    const reader = await RawClient.connect(again.redisPort);
    for (const [id, count] of acknowledged.entries()) {
      reader.write(`GET load:${id}\r\n`);
      await reader.line();
      // What was stored and not yet answered may be there as well.
      expect(Number(await reader.line()), `load:${id}`).toBeGreaterThanOrEqual(count);
    }
    reader.destroy();
    await again.stop();
    await removePool(pool);
  },
);
