/** Sending: queues, back-pressure, limits, region sends, closing. */
import { once } from 'node:events';
import { constants } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addon, EventKind } from '../../src/native/addon.js';
import { type Client, Harness, MiB, pattern } from './harness.js';

let harness: Harness;
let port: number;
let arena = -1;
beforeEach(() => {
  harness = new Harness();
  port = harness.listen();
});
afterEach(() => {
  harness.pump.destroy();
  if (arena >= 0) addon.releaseArena(arena);
  arena = -1;
});

/** An arena filled with a pattern. */
function region(bytes: number): Buffer {
  arena = addon.allocateArena(bytes, {});
  const memory = Buffer.from(addon.wrapArena(arena));
  pattern(bytes).copy(memory);
  return memory;
}

async function stalled(): Promise<Client> {
  const client = await harness.connect(port);
  client.socket.pause();
  return client;
}

test('replies and regions of one connection leave in order; the token comes back once', async () => {
  const memory = region(3 * MiB);
  const client = await harness.connect(port);
  harness.reply(client.conn, 'header ');
  harness.record(client.conn, arena, 5, 2 * MiB, 77);
  harness.reply(client.conn, ' trailer');
  const expected = Buffer.concat([Buffer.from('header '), memory.subarray(5, 5 + 2 * MiB), Buffer.from(' trailer')]);
  await harness.until(() => client.bytes === expected.length && harness.count(EventKind.SENT) === 1);
  expect(client.received().equals(expected)).toBe(true);
  expect(harness.last(EventKind.SENT)).toMatchObject({ conn: client.conn, aux: 77 });
  await harness.turns(3);
  expect(harness.count(EventKind.SENT)).toBe(1);
  expect(harness.pump.outputQueued(client.conn)).toBe(0);
});

test('300 MiB out of a region, to a reader that starts late', async () => {
  const total = 300 * MiB;
  const memory = region(total / 10);
  const client = await stalled();
  for (let i = 0; i < 10; i++) harness.record(client.conn, arena, 0, memory.length, i + 1);
  await harness.turns(3);
  expect(harness.pump.outputQueued(client.conn)).toBeGreaterThan(200 * MiB);
  expect(harness.pump.heldBytes()).toBe(0);
  let bytes = 0;
  let wrong = 0;
  client.socket.removeAllListeners('data');
  client.socket.on('data', (chunk: Buffer) => {
    const at = bytes % memory.length;
    const part = Math.min(chunk.length, memory.length - at);
    if (chunk.compare(memory, at, at + part, 0, part) !== 0) wrong++;
    bytes += chunk.length;
  });
  client.socket.resume();
  await harness.until(() => bytes === total, 20_000);
  expect(wrong).toBe(0);
  await harness.until(() => harness.count(EventKind.SENT) === 10);
  expect(harness.seen.filter((one) => one.kind === EventKind.SENT).map((one) => one.aux)).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  ]);
});

test('a slow reader stops being read above the soft limit, and is read again below half of it', async () => {
  const reply = pattern(100_000);
  harness.onData = (conn, bytes) => {
    harness.reply(conn, reply);
    return bytes.length > 1 ? ~1 : 1;
  };
  const client = await stalled();
  harness.pump.setLimits(client.conn, 500_000, 0, 0);
  client.socket.write('r'.repeat(400));
  await harness.until(() => harness.pump.outputQueued(client.conn) > 500_000);
  await harness.turns(20);
  expect(harness.count(EventKind.DATA)).toBeLessThan(390);
  expect(harness.pump.outputQueued(client.conn)).toBeLessThan(700_000);
  client.socket.resume();
  await harness.until(() => client.bytes === 400 * reply.length, 20_000);
  expect(client.received().subarray(-reply.length).equals(reply)).toBe(true);
  expect(harness.count(EventKind.DATA)).toBe(400);
});

test('queued copies above the hard limit close with ENOBUFS; another client does not notice', async () => {
  const slow = await stalled();
  const other = await harness.connect(port);
  harness.pump.setLimits(slow.conn, 0, 1_000_000, 0);
  for (let i = 0; i < 20 && harness.count(EventKind.CLOSE) === 0; i++) {
    harness.reply(slow.conn, pattern(MiB));
    harness.turn();
  }
  expect(harness.last(EventKind.CLOSE)).toMatchObject({ conn: slow.conn, aux: constants.errno.ENOBUFS });
  expect(harness.pump.heldBytes()).toBe(0);
  harness.reply(other.conn, 'still here');
  await harness.until(() => other.text() === 'still here');
});

test('tokens of a connection that is gone come back', async () => {
  const memory = region(64 * MiB);
  const client = await stalled();
  harness.record(client.conn, arena, 0, memory.length, 5);
  await harness.turns(2);
  expect(harness.count(EventKind.SENT)).toBe(0);
  harness.pump.close(client.conn, true);
  harness.record(client.conn, arena, 0, 10, 6);
  await harness.turns(2);
  expect(harness.seen.filter((one) => one.kind === EventKind.SENT).map((one) => one.aux)).toEqual([5, 6]);
  expect(harness.count(EventKind.CLOSE)).toBe(0);
  expect(harness.pump.fd(client.conn)).toBe(-1);
  expect(harness.pump.outputQueued(client.conn)).toBe(0);
  expect(harness.pump.peerAddress(client.conn)).toBe('');
});

test('close without abort sends everything first, this turn included', async () => {
  const client = await stalled();
  const bytes = pattern(3 * MiB);
  harness.reply(client.conn, bytes);
  harness.reply(client.conn, 'last words');
  harness.pump.close(client.conn, false);
  client.socket.write('ignored');
  await harness.turns(3);
  client.socket.resume();
  await harness.until(() => client.ended && harness.count(EventKind.CLOSE) === 1);
  expect(client.bytes).toBe(bytes.length + 10);
  expect(client.text().endsWith('last words')).toBe(true);
  expect(harness.count(EventKind.DATA)).toBe(0);
});

test('an error reply survives unread input of the same client', async () => {
  const client = await harness.connect(port);
  harness.onData = (conn) => {
    harness.reply(conn, '-ERR protocol\r\n');
    harness.pump.close(conn, false);
    return 0;
  };
  client.socket.write(pattern(200_000));
  await harness.until(() => client.closed);
  expect(client.text()).toBe('-ERR protocol\r\n');
});

test('flush makes room in the output buffer within a turn', async () => {
  const client = await harness.connect(port);
  const bytes = pattern(3 * MiB);
  for (let i = 0; i < 4; i++) harness.reply(client.conn, bytes);
  await harness.until(() => client.bytes === 4 * bytes.length);
  expect(
    client
      .received()
      .subarray(9 * MiB)
      .equals(bytes),
  ).toBe(true);
});

test('many records of many connections in one turn', async () => {
  const clients: Client[] = [];
  for (let i = 0; i < 10; i++) clients.push(await harness.connect(port));
  for (let round = 0; round < 300; round++) {
    for (const client of clients) harness.reply(client.conn, `${round},`);
  }
  for (let round = 0; round < 300; round++) harness.reply(clients[0].conn, `${round};`);
  const numbers = Array.from({ length: 300 }, (_, i) => i);
  const first = `${numbers.join(',')},${numbers.join(';')};`;
  await harness.until(() => clients[0].text() === first && clients[9].text() === `${numbers.join(',')},`);
});

test('a wrong send record is refused, and the pump goes on', async () => {
  const client = await harness.connect(port);
  harness.record(client.conn, -1, 4 * MiB - 1, 2, 0);
  expect(() => harness.turn()).toThrow(RangeError);
  harness.record(client.conn, 60_000, 0, 1, 0);
  expect(() => harness.turn()).toThrow(RangeError);
  harness.record(99_999, -1, 0, 1, 0);
  expect(() => harness.flush()).toThrow(RangeError);
  expect(() => harness.pump.poll(1_000_000, 0)).toThrow(RangeError);
});

test('a destroyed pump closes its connections and refuses calls', async () => {
  const client = await harness.connect(port);
  const closed = once(client.socket, 'close');
  const { input } = harness.pump;
  harness.pump.destroy();
  await closed;
  expect(input.byteLength).toBe(0);
  expect(() => harness.pump.poll(0, 0)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  harness.pump.destroy();
});

test('close without abort waits for a slow reader of much output', async () => {
  const client = await stalled();
  const bytes = pattern(3 * MiB);
  for (let i = 0; i < 12; i++) harness.reply(client.conn, bytes);
  harness.pump.close(client.conn, false);
  await harness.turns(5);
  expect(harness.count(EventKind.CLOSE)).toBe(0);
  expect(harness.pump.heldBytes()).toBeGreaterThan(MiB);
  client.socket.resume();
  await harness.until(() => client.ended && harness.count(EventKind.CLOSE) === 1);
  expect(client.bytes).toBe(12 * bytes.length);
  expect(harness.pump.heldBytes()).toBe(0);
});

test('close without abort gives up on a reader that does not read', async () => {
  const client = await stalled();
  harness.pump.setLimits(client.conn, 0, 0, 100);
  for (let i = 0; i < 12; i++) harness.reply(client.conn, pattern(3 * MiB));
  harness.pump.close(client.conn, false);
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE).aux).toBe(constants.errno.ETIMEDOUT);
});

test('of many regions in one turn, those that are out come back before the last', async () => {
  const memory = region(512 * 1024);
  const client = await stalled();
  const numbers = Array.from({ length: 60 }, (_, i) => i + 1);
  for (const token of numbers) harness.record(client.conn, arena, 0, memory.length, token);
  await harness.turns(3);
  const early = harness.count(EventKind.SENT);
  expect(early).toBeGreaterThan(0);
  expect(early).toBeLessThan(60);
  client.socket.resume();
  await harness.until(() => client.bytes === 60 * memory.length && harness.count(EventKind.SENT) === 60);
  expect(harness.seen.filter((one) => one.kind === EventKind.SENT).map((one) => one.aux)).toEqual(numbers);
});

test('a region that is released before it is out: the connection ends with EFAULT, its token comes back', async () => {
  const released = addon.allocateArena(64 * MiB, {});
  const client = await stalled();
  harness.record(client.conn, released, 0, 64 * MiB, 9);
  await harness.turns(2);
  addon.releaseArena(released);
  client.socket.resume();
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE).aux).toBe(constants.errno.EFAULT);
  expect(harness.last(EventKind.SENT).aux).toBe(9);
});

test('replies to a client that has reset the connection: CLOSE 0', async () => {
  const client = await harness.connect(port);
  const other = await harness.connect(port);
  client.socket.resetAndDestroy();
  await once(client.socket, 'close');
  for (let i = 0; i < 3; i++) harness.reply(client.conn, 'too late');
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE)).toMatchObject({ conn: client.conn, aux: 0 });
  harness.reply(other.conn, 'fine');
  await harness.until(() => other.text() === 'fine');
});
