/** Listeners: floods, ports in use, unix sockets, IPv6, datagrams. */
import { execFileSync, spawn } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addon, EventKind } from '../../src/native/addon.js';
import { Client, Harness, pattern } from './harness.js';

let harness: Harness;
let directory: string;
beforeEach(() => {
  harness = new Harness();
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'entresol-pump-'));
});
afterEach(() => {
  harness.pump.destroy();
  fs.rmSync(directory, { recursive: true });
});

function coded(code: string, more: object = {}): unknown {
  return expect.objectContaining({
    code,
    errno: -os.constants.errno[code as keyof typeof os.constants.errno],
    ...more,
  });
}

test('a flood above maxConnections: those beyond get the message, those within are served', async () => {
  harness.pump.setGlobalLimits(10, 1 << 20, Buffer.from('-ERR max number of clients reached\r\n'));
  harness.onData = (conn, bytes) => {
    harness.reply(conn, bytes.slice());
    return bytes.length;
  };
  const port = harness.listen();
  const clients = Array.from({ length: 200 }, () => new Client(net.connect(port, '127.0.0.1')));
  for (const client of clients) client.socket.write('ping');
  await harness.until(() => clients.every((client) => client.bytes > 0));
  expect(clients.filter((client) => client.text() === 'ping')).toHaveLength(10);
  const refused = clients.filter((client) => client.text() === '-ERR max number of clients reached\r\n');
  expect(refused).toHaveLength(190);
  await harness.until(() => refused.every((client) => client.ended));
  for (const client of clients) client.socket.destroy();
  await harness.until(() => harness.count(EventKind.CLOSE) === 10);
  const next = await harness.connect(port);
  next.socket.write('again');
  await harness.until(() => next.text() === 'again');
});

test('connections that come and go in numbers reuse few slots', async () => {
  const port = harness.listen();
  for (let round = 0; round < 20; round++) {
    const clients = await Promise.all(Array.from({ length: 20 }, () => connected(port)));
    for (const client of clients) client.destroy();
    await harness.until(() => harness.count(EventKind.CLOSE) === (round + 1) * 20);
  }
  expect(Math.max(...harness.seen.map((one) => one.conn))).toBeLessThan(100);
});

async function connected(port: number): Promise<net.Socket> {
  const socket = net.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

test('a port in use elsewhere: EADDRINUSE that names the address', async () => {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  expect(() => harness.pump.listenTcp('127.0.0.1', port, 16, 0)).toThrow(
    coded('EADDRINUSE', { syscall: 'bind', path: `127.0.0.1:${port}` }),
  );
  server.close();
});

test('threads of one process share a port, another process does not get it', async () => {
  const port = harness.listen();
  const second = new Harness();
  second.pump.listenTcp('127.0.0.1', port, 16, 0);
  second.pump.destroy();
  const script = `
    const addon = require(process.argv[1]);
    const pump = addon.createPump({ inputBytes: 1 << 17, outputBytes: 4096, maxEvents: 8, receiveBytes: 4096 });
    try { pump.listenTcp('127.0.0.1', ${port}, 16, 0); console.log('listening'); } catch (error) { console.log(error.code); }`;
  const file = process.env.ENTRESOL_ADDON ?? path.resolve('native/addon/build/Release/entresol.node');
  expect(execFileSync(process.execPath, ['-e', script, file]).toString().trim()).toBe('EADDRINUSE');
});

test('addresses that do not exist here, names that do not exist, ports that are none', () => {
  expect(() => harness.pump.listenTcp('192.0.2.1', 1234, 16, 0)).toThrow(coded('EADDRNOTAVAIL'));
  expect(() => harness.pump.listenTcp('no-such-host.invalid', 1234, 16, 0)).toThrow(
    coded('ENOTFOUND', { errno: expect.any(Number) }),
  );
  expect(() => harness.pump.listenTcp('127.0.0.1', 65536, 16, 0)).toThrow(RangeError);
  expect(() => harness.pump.listenTcp('127.0.0.1', 0, 16, 256)).toThrow(RangeError);
  const missing = path.join(directory, 'no', 'such.sock');
  expect(() => harness.pump.listenUnix(missing, 0o600, 16, 0)).toThrow(
    coded('ENOENT', { syscall: 'bind', path: missing }),
  );
  expect(() => harness.pump.setGlobalLimits(1, 1, 'text' as unknown as Uint8Array)).toThrow(TypeError);
  const small = new Harness({ inputBytes: 65536, receiveBytes: 4096 });
  expect(() => small.pump.listenUdp('127.0.0.1', 0, 0)).toThrow(RangeError);
  small.pump.destroy();
});

test('IPv6 and IPv4 on one port are two listeners', async () => {
  const port = harness.listen();
  expect(harness.pump.listenerPort(harness.pump.listenTcp('::1', port, 16, 9))).toBe(port);
  const socket = net.connect(port, '::1');
  await harness.until(() => harness.count(EventKind.ACCEPT) === 1);
  const { conn, aux } = harness.last(EventKind.ACCEPT);
  expect(aux).toBe(9);
  expect(harness.pump.peerAddress(conn)).toBe(`[::1]:${socket.localPort}`);
  socket.destroy();
});

test('a closed listener refuses, its connections stay; a paused one takes nobody until resumed', async () => {
  const listener = harness.pump.listenTcp('127.0.0.1', 0, 16, 0);
  const port = harness.pump.listenerPort(listener);
  const client = await harness.connect(port);
  harness.pump.pauseAccept(true);
  const waiting = await connected(port);
  await harness.turns(5);
  expect(harness.count(EventKind.ACCEPT)).toBe(1);
  harness.pump.pauseAccept(false);
  await harness.until(() => harness.count(EventKind.ACCEPT) === 2);
  harness.pump.closeListener(listener);
  expect(() => harness.pump.listenerPort(listener)).toThrow(RangeError);
  await expect(connected(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  harness.reply(client.conn, 'still served');
  await harness.until(() => client.text() === 'still served');
  waiting.destroy();
});

test('out of descriptors: accepting pauses instead of spinning, and goes on afterwards', async () => {
  const file = process.env.ENTRESOL_ADDON ?? path.resolve('native/addon/build/Release/entresol.node');
  const script = `
    const addon = require(process.argv[1]); const fs = require('node:fs');
    const pump = addon.createPump({ inputBytes: 1 << 17, outputBytes: 4096, maxEvents: 64, receiveBytes: 4096 });
    const port = pump.listenerPort(pump.listenTcp('127.0.0.1', 0, 64, 0));
    process.stdout.write(port + '\\n');
    const held = []; try { for (;;) held.push(fs.openSync('/dev/null')); } catch {}
    fs.readSync(0, Buffer.alloc(1)); // somebody has connected
    const start = Date.now(); let turns = 0; const events = new Int32Array(pump.events);
    while (Date.now() - start < 600) { turns++; if (pump.poll(0, 50) > 0) break; }
    const early = Date.now() - start < 600;
    for (const fd of held) fs.closeSync(fd);
    const count = pump.poll(0, 500) || pump.poll(0, 500);
    console.log(JSON.stringify({ early, turns, accepted: count }));`;
  const { spawn } = await import('node:child_process');
  const child = spawn('/bin/sh', ['-c', 'ulimit -n 100; exec "$0" -e "$1" "$2"', process.execPath, script, file], {
    stdio: 'pipe',
  });
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  await new Promise<void>((resolve) => {
    child.stdout.once('data', () => resolve());
  });
  const socket = await connected(Number.parseInt(out, 10));
  child.stdin.write('c');
  await once(child, 'close');
  socket.destroy();
  const result = JSON.parse(out.split('\n')[1]);
  expect(result).toMatchObject({ early: false, accepted: 1 });
  expect(result.turns).toBeLessThan(50);
});

test('unix socket: mode, peer, replies; its file goes with it', async () => {
  const file = path.join(directory, 'pump.sock');
  const listener = harness.pump.listenUnix(file, 0o700, 16, 4);
  expect(fs.statSync(file).mode & 0o777).toBe(0o700);
  expect(harness.pump.listenerPort(listener)).toBe(0);
  harness.onData = (conn, bytes) => {
    harness.reply(conn, bytes.slice());
    return bytes.length;
  };
  const client = new Client(net.connect(file));
  client.socket.end('over a path');
  await harness.until(() => client.ended);
  expect(client.text()).toBe('over a path');
  const second = new Client(net.connect(file));
  await harness.until(() => harness.count(EventKind.ACCEPT) === 2);
  expect(harness.pump.peerAddress(harness.last(EventKind.ACCEPT).conn)).toBe(file);
  second.socket.destroy();
  harness.pump.closeListener(listener);
  expect(fs.existsSync(file)).toBe(false);
});

test('a unix socket file: replaced when nobody listens, respected when somebody does, kept when it is another kind of file', async () => {
  const file = path.join(directory, 'stale.sock');
  const script = `require('node:net').createServer().listen(${JSON.stringify(file)}, () => process.kill(process.pid, 'SIGKILL'))`;
  try {
    execFileSync(process.execPath, ['-e', script], { stdio: 'ignore' });
  } catch {
    expect(fs.statSync(file).isSocket()).toBe(true);
  }
  const listener = harness.pump.listenUnix(file, 0o600, 16, 0);
  harness.pump.closeListener(listener);
  const other = spawn(process.execPath, [
    '-e',
    `require('node:net').createServer().listen(${JSON.stringify(file)}, () => console.log('listens'))`,
  ]);
  await once(other.stdout, 'data');
  expect(() => harness.pump.listenUnix(file, 0o600, 16, 0)).toThrow(coded('EADDRINUSE', { path: file }));
  other.kill('SIGKILL');
  await once(other, 'exit');
  fs.rmSync(file);
  fs.writeFileSync(file, 'precious');
  expect(() => harness.pump.listenUnix(file, 0o600, 16, 0)).toThrow(coded('EADDRINUSE', { path: file }));
  expect(fs.readFileSync(file, 'utf8')).toBe('precious');
  expect(() => harness.pump.listenUnix(path.join(directory, 'x'.repeat(200)), 0o600, 16, 0)).toThrow(
    coded('ENAMETOOLONG'),
  );
});

test('datagrams: batches in, replies to their senders, large ones whole', async () => {
  const port = harness.pump.listenerPort(harness.pump.listenUdp('127.0.0.1', 0, 5));
  harness.onData = (slot, bytes) => {
    harness.reply(slot, bytes.slice(), -2);
    return bytes.length;
  };
  const sockets = [dgram.createSocket('udp4'), dgram.createSocket('udp4')];
  const received: Buffer[][] = [[], []];
  sockets.forEach((socket, i) => {
    socket.on('message', (message) => received[i].push(message));
  });
  for (let i = 0; i < 20; i++) {
    sockets[0].send(`first ${i}`, port, '127.0.0.1');
    sockets[1].send(`second ${i}`, port, '127.0.0.1');
  }
  await harness.until(() => received[0].length === 20 && received[1].length === 20);
  expect(received[1].map(String)).toEqual(Array.from({ length: 20 }, (_, i) => `second ${i}`));
  expect(harness.last(EventKind.DATAGRAM).aux).toBe(5);
  const large = pattern(60_000);
  sockets[0].send(large, port, '127.0.0.1');
  await harness.until(() => received[0].length === 21);
  expect(received[0][20].equals(large)).toBe(true);
  // A reply that no datagram can hold is lost; those around it are not, nor those to another listener.
  const second = harness.pump.listenerPort(harness.pump.listenUdp('127.0.0.1', 0, 6));
  harness.onData = (slot, bytes) => {
    harness.reply(slot, bytes.slice(), -2);
    harness.reply(slot, Buffer.alloc(70_000), -2);
    harness.reply(slot, 'next', -2);
    return bytes.length;
  };
  sockets[0].send('a', port, '127.0.0.1');
  sockets[1].send('b', second, '127.0.0.1');
  await harness.until(() => received[0].length === 23 && received[1].length === 22);
  expect(received[1].slice(20).map(String)).toEqual(['b', 'next']);
  for (const socket of sockets) socket.close();
  harness.turn();
  harness.record(0, -2, 0, 1, 0);
  expect(() => harness.turn()).toThrow(RangeError);
});

test('addon.wake on a closed event is refused', () => {
  const { wakeFd } = harness.pump;
  harness.pump.destroy();
  expect(() => addon.wake(wakeFd)).toThrow(coded('EBADF'));
  expect(() => addon.wake(0)).toThrow(coded('EBADF'));
});
