/**
 * entresol serve as an operator meets it: ready lines, signals, restarts, and starts that fail. Needs the build.
 *
 * What a failed start prints is one message with what to do, no stack trace, and exit code 1.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { freePorts } from '../helpers/ports.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer } from '../helpers/server.js';
import { entresol } from './command.js';

let pool: string;
beforeEach(async () => {
  pool = await makePool();
});
afterEach(() => removePool(pool));

function listenOn(port: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(false));
    socket.once('error', () => resolve(true));
  }).then((refused) => {
    socket.destroy();
    return refused as boolean;
  });
}

const small = ['--dram=64mb', '--capacity=0'];

describe('a server that runs', () => {
  it('says what listens when it does, and what to try', async () => {
    const server = await startTestServer();
    expect(server.output()).toContain(`Redis      127.0.0.1:${server.redisPort}\n`);
    expect(server.output()).toContain(`memcached  127.0.0.1:${server.memcachedPort}\n`);
    expect(server.output()).toContain(`redis-cli -p ${server.redisPort} SET greeting hello`);
    const redis = await RawClient.connect(server.redisPort);
    await redis.ask('SET greeting hello\r\n', '+OK\r\n');
    const memcached = await RawClient.connect(server.memcachedPort);
    await memcached.ask('get greeting\r\n', 'VALUE greeting 0 5\r\nhello\r\nEND\r\n');
    redis.destroy();
    memcached.destroy();
    await server.stop();
    expect(await isRefused(server.redisPort)).toBe(true);
    expect(await isRefused(server.memcachedPort)).toBe(true);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 after %s, with clients connected', async (signal) => {
    const server = await startTestServer({ workers: 2 });
    const client = await RawClient.connect(server.redisPort);
    await client.ask('PING\r\n', '+PONG\r\n');
    process.kill(server.pid, signal);
    expect(await server.ended).toBe(0);
    await client.closed();
    await server.stop();
  });

  it('goes on with its data after a restart, and after kill -9', async () => {
    const options = { pool, capacity: '64mb' };
    const first = await startTestServer(options);
    const writer = await RawClient.connect(first.redisPort);
    await writer.ask('SET a 1\r\n', '+OK\r\n');
    writer.destroy();
    await first.stop();

    const second = await startTestServer(options);
    const client = await RawClient.connect(second.redisPort);
    await client.ask('GET a\r\n', '$1\r\n1\r\n');
    await client.ask('SET b 2\r\n', '+OK\r\n');
    await second.kill();

    const third = await startTestServer(options);
    const reader = await RawClient.connect(third.redisPort);
    await reader.ask('GET a\r\n', '$1\r\n1\r\n');
    await reader.ask('GET b\r\n', '$1\r\n2\r\n');
    reader.destroy();
    await third.stop();
  });

  it('takes settings from file, environment and flags, and shows them to CONFIG GET', async () => {
    const config = join(pool, 'entresol.toml');
    writeFileSync(config, 'hz = 20\nmaxclients = 21\ntimeout = 22\n');
    const server = await startTestServer({
      args: ['--config', config, '--timeout', '24'],
      env: { ENTRESOL_MAXCLIENTS: '23' },
    });
    const client = await RawClient.connect(server.redisPort);
    await client.ask('CONFIG GET hz\r\n', '*2\r\n$2\r\nhz\r\n$2\r\n20\r\n');
    await client.ask('CONFIG GET maxclients\r\n', '*2\r\n$10\r\nmaxclients\r\n$2\r\n23\r\n');
    await client.ask('CONFIG GET timeout\r\n', '*2\r\n$7\r\ntimeout\r\n$2\r\n24\r\n');
    await client.ask('CONFIG SET hz 30\r\n', '+OK\r\n');
    await client.ask('CONFIG REWRITE\r\n', '+OK\r\n');
    expect(readFileSync(config, 'utf8')).toMatch(/^hz = 30\nmaxclients = 23\ntimeout = 24\n/);
    client.destroy();
    await server.stop();
  });

  it('serves a unix socket with the permissions asked for, and removes it', async () => {
    const path = join(pool, 'entresol.sock');
    const server = await startTestServer({ args: ['--unix', path, '--unix-mode', '600'] });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const client = await RawClient.connect(path);
    await client.ask('PING\r\n', '+PONG\r\n');
    client.destroy();
    await server.stop();
    expect(() => statSync(path)).toThrow('ENOENT');
  });
});

async function portFlags(): Promise<string[]> {
  const [port, memcachedPort] = await freePorts(2);
  return ['--port', String(port), '--memcached-port', String(memcachedPort)];
}

describe('a start that fails', () => {
  async function failed(args: readonly string[]): Promise<string> {
    const outcome = await entresol(['serve', ...small, ...args]);
    expect(outcome.out).toBe('');
    expect(outcome.err).not.toMatch(/^ {4}at /m);
    expect(outcome.code).toBe(1);
    return outcome.err;
  }

  it('names the port in use', async () => {
    const [port, memcachedPort] = await freePorts(2);
    const other = await listenOn(port);
    try {
      const message = await failed(['--port', String(port), '--memcached-port', String(memcachedPort), '--pool', pool]);
      expect(message).toContain(`127.0.0.1:${port}`);
      expect(message).toContain('another program listens there already');
    } finally {
      other.close();
    }
  });

  it('does not share its ports with another Entresol', async () => {
    const first = await startTestServer();
    const ports = ['--port', String(first.redisPort), '--memcached-port', String(first.memcachedPort)];
    expect(await failed(['--pool', pool, ...ports])).toContain('another program listens there already');
    const client = await RawClient.connect(first.redisPort);
    await client.ask('PING\r\n', '+PONG\r\n');
    client.destroy();
    await first.stop();
  });

  it('leaves a file alone that is no pool', async () => {
    const file = join(pool, 'dram.entresol');
    const content = Buffer.alloc(2 ** 21, 'not a pool');
    writeFileSync(file, content);
    const message = await failed(['--pool', pool, ...(await portFlags())]);
    expect(message).toContain(`${file}: this is not an Entresol pool`);
    expect(message).toContain('choose another --pool');
    expect(readFileSync(file).equals(content)).toBe(true);
  });

  it('wants a folder for the pool', async () => {
    const path = join(pool, 'plain');
    writeFileSync(path, 'text');
    expect(await failed(['--pool', path, ...(await portFlags())])).toContain('a folder is needed there');
  });

  it('says how much space a pool needs that does not fit', async () => {
    const message = await failed(['--capacity=15tb', '--pool', pool, ...(await portFlags())]);
    expect(message).toMatch(/15 TiB|capacity/);
  });
});
