/** What a worker thread leaves behind when it is terminated: nothing. And what threads share. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addon } from '../../src/native/addon.js';
import { Harness } from './harness.js';

const addonPath = process.env.ENTRESOL_ADDON ?? path.resolve('native/addon/build/Release/entresol.node');
let directory: string;
let file: string;
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'entresol-workers-'));
  file = path.join(directory, 'control');
});
afterAll(() => {
  fs.rmSync(directory, { recursive: true });
});

/** Runs code in a worker with `addon`, `data` and `post`; gives the worker and the first message. */
async function start(code: string, data: object): Promise<{ worker: Worker; message: Record<string, number> }> {
  const prelude = `
    const { parentPort, workerData: data } = require('node:worker_threads');
    const addon = require(data.addonPath);
    const post = (message) => parentPort.postMessage(message);`;
  const worker = new Worker(prelude + code, { eval: true, workerData: { addonPath, ...data } });
  const [message] = await once(worker, 'message');
  return { worker, message };
}

test('terminate() frees port, byte lock, unix path and eventfds, although the worker never leaves its loop', async () => {
  const control = addon.openFile(file, true, false);
  const socketPath = path.join(directory, 'worker.sock');
  const { worker, message } = await start(
    `const fd = addon.openFile(data.file, false, false);
     addon.closeAtExit(fd);
     if (!addon.lockByte(fd, 5)) throw new Error('locked');
     const pump = addon.createPump({ inputBytes: 1 << 17, outputBytes: 4096, maxEvents: 16, receiveBytes: 4096 });
     const port = pump.listenerPort(pump.listenTcp('127.0.0.1', 0, 16, 0));
     pump.listenUnix(data.socketPath, 0o600, 16, 0);
     pump.receiveInto(-1, addon.allocateArena(4096, {}), 0, 1);
     post({ port, fd, wakeFd: pump.wakeFd, event: addon.openEvent() });
     for (;;) pump.poll(0, -1);`,
    { file, socketPath },
  );
  expect(addon.isByteLocked(control, 5)).toBe(true);
  expect(addon.lockByte(control, 5)).toBe(false);
  const client = net.connect(message.port, '127.0.0.1');
  await once(client, 'connect');
  const closed = once(client, 'close');
  client.on('error', () => {}).resume();
  const before = Date.now();
  await worker.terminate();
  expect(Date.now() - before).toBeLessThan(3000);
  await closed;
  expect(addon.isByteLocked(control, 5)).toBe(false);
  expect(addon.lockByte(control, 5)).toBe(true);
  expect(fs.existsSync(socketPath)).toBe(false);
  expect(() => addon.wake(message.wakeFd)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  expect(() => addon.wake(message.event)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  expect(() => fs.fstatSync(message.fd)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  const harness = new Harness();
  harness.pump.listenTcp('127.0.0.1', message.port, 16, 0);
  harness.pump.destroy();
  addon.closeFile(control);
});

test('an arena is one in all threads: words, futexes and wake-ups cross', async () => {
  const fd = addon.openMemory('workers-test');
  addon.reserve(fd, 0, 1 << 16);
  const arena = addon.mapArena(fd, 0, 1 << 16, {});
  const words = new Int32Array(addon.wrapArena(arena));
  const { worker, message } = await start(
    `const arena = addon.mapArena(data.fd, 0, 1 << 16, {});
     const words = new Int32Array(addon.wrapArena(arena));
     const pump = addon.createPump({ inputBytes: 1 << 17, outputBytes: 4096, maxEvents: 16, receiveBytes: 4096 });
     post({ arena, wakeFd: pump.wakeFd });
     while (Atomics.load(words, 0) === 0) addon.futexWait(arena, 0, 0, 500);
     words[1] = 42;
     Atomics.store(words, 2, 1);
     addon.futexWake(arena, 8, 1);
     while (pump.poll(0, -1) === 0);
     post({ woken: 1 });`,
    { fd },
  );
  expect(message.arena).toBe(arena);
  Atomics.store(words, 0, 1);
  addon.futexWake(arena, 0, 1);
  for (let i = 0; Atomics.load(words, 2) === 0 && i < 100; i++) addon.futexWait(arena, 8, 0, 100);
  expect(words[1]).toBe(42);
  const woken = once(worker, 'message');
  addon.wake(message.wakeFd);
  expect((await woken)[0]).toEqual({ woken: 1 });
  await worker.terminate();
  expect(words[1]).toBe(42);
  addon.releaseArena(arena);
  expect(words.length).toBe(0);
  addon.closeFile(fd);
});

test('wrapping what another thread mapped keeps it mapped', async () => {
  const arena = addon.allocateArena(4096, {});
  new Uint8Array(addon.wrapArena(arena))[7] = 77;
  const { worker } = await start(
    `const bytes = new Uint8Array(addon.wrapArena(data.arena));
     post({});
     parentPort.once('message', () => post({ value: bytes[7] }));`,
    { arena },
  );
  addon.releaseArena(arena);
  const answer = once(worker, 'message');
  worker.postMessage('released');
  expect((await answer)[0]).toEqual({ value: 77 });
  await worker.terminate();
  expect(() => addon.wrapArena(arena)).toThrow(RangeError);
});

test('workers that come and go leave no arena and no descriptor', async () => {
  const descriptors = () => fs.readdirSync('/proc/self/fd').length;
  const code = `
    const pump = addon.createPump({ inputBytes: 1 << 20, outputBytes: 1 << 20, maxEvents: 16, receiveBytes: 4096 });
    pump.listenTcp('127.0.0.1', 0, 16, 0);
    post({ arena: pump.inputArena });
    for (;;) pump.poll(0, 20);`;
  const arenas: number[] = [];
  let before = 0;
  for (let i = 0; i < 5; i++) {
    const { worker, message } = await start(code, {});
    arenas.push(message.arena);
    await worker.terminate();
    if (i === 0) before = descriptors();
  }
  expect(new Set(arenas).size).toBe(1);
  expect(descriptors()).toBeLessThanOrEqual(before);
});
