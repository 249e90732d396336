/** A unix socket that several pumps of a process share: who gets the connections, and what becomes of those under way when one leaves. */
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EventKind } from '../../src/native/addon.js';
import { Client, Harness } from './harness.js';

let directory: string;
let file: string;
let pumps: Harness[];
beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'entresol-unix-'));
  file = path.join(directory, 'shared.sock');
  pumps = Array.from({ length: 3 }, () => new Harness());
  pumps.forEach((harness, i) => {
    // Which pump has it, the reply tells.
    harness.onData = (conn, bytes) => {
      harness.reply(conn, String(i));
      return bytes.length;
    };
  });
});
afterEach(() => {
  for (const harness of pumps) harness.pump.destroy();
  fs.rmSync(directory, { recursive: true });
});

/** Turns all of `harnesses` until the condition holds. */
async function turnAll(harnesses: readonly Harness[], condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 5000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('waited for too long');
    for (const harness of harnesses) harness.turn();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function connectMany(count: number): Client[] {
  return Array.from({ length: count }, () => {
    const client = new Client(net.connect(file));
    client.socket.write('who?');
    return client;
  });
}

function countOf(clients: readonly Client[], text: string): number {
  return clients.filter((client) => client.text() === text).length;
}

test('each pump gets its share of the connections, whichever accepts', async () => {
  for (const harness of pumps) harness.pump.listenUnix(file, 0o600, 128, 0);
  const clients = connectMany(60);
  await turnAll(pumps, () => clients.every((client) => client.text() !== ''));
  for (let i = 0; i < 3; i++) expect(countOf(clients, String(i)), `of pump ${i}`).toBe(20);
  for (const client of clients) client.socket.destroy();
});

test('a paused pump gets none', async () => {
  for (const harness of pumps) harness.pump.listenUnix(file, 0o600, 128, 0);
  pumps[1].pump.pauseAccept(true);
  const clients = connectMany(20);
  await turnAll(pumps, () => clients.every((client) => client.text() !== ''));
  expect(countOf(clients, '0')).toBe(10);
  expect(countOf(clients, '2')).toBe(10);
  for (const client of clients) client.socket.destroy();
});

test('what was handed to a pump that leaves goes to the others; the file goes with the last', async () => {
  for (const harness of pumps) harness.pump.listenUnix(file, 0o600, 128, 0);
  const clients = connectMany(30);
  // Pump 0 accepts them all, 1 and 2 take nothing yet.
  await turnAll([pumps[0]], () => pumps[0].count(EventKind.ACCEPT) === 10);
  pumps[1].pump.destroy();
  await turnAll([pumps[0], pumps[2]], () => clients.every((client) => client.text() !== ''));
  expect(countOf(clients, '1')).toBe(0);
  expect(countOf(clients, '0') + countOf(clients, '2')).toBe(30);
  pumps[0].pump.destroy();
  expect(fs.existsSync(file)).toBe(true);
  const late = connectMany(2);
  await turnAll([pumps[2]], () => late.every((client) => client.text() === '2'));
  pumps[2].pump.destroy();
  expect(fs.existsSync(file)).toBe(false);
  for (const client of [...clients, ...late]) client.socket.destroy();
});

test('with nobody left, connections under way are closed', async () => {
  for (const harness of pumps) harness.pump.listenUnix(file, 0o600, 128, 0);
  const clients = connectMany(6);
  await turnAll([pumps[0]], () => pumps[0].count(EventKind.ACCEPT) === 2);
  for (const harness of pumps) harness.pump.destroy();
  await turnAll([], () => clients.every((client) => client.ended || client.socket.destroyed));
});

test('a file that somebody has replaced is not shared, and not removed', () => {
  pumps[0].pump.listenUnix(file, 0o600, 128, 0);
  fs.rmSync(file);
  fs.writeFileSync(file, 'precious');
  expect(() => pumps[1].pump.listenUnix(file, 0o600, 128, 0)).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }));
  pumps[0].pump.destroy();
  expect(fs.readFileSync(file, 'utf8')).toBe('precious');
});
