/** Receiving: partial requests, pipelining, large requests, receiveInto, fairness, half close. */
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addon, EventKind } from '../../src/native/addon.js';
import { type Client, Harness, MiB, pattern } from './harness.js';

let harness: Harness;
let port: number;
beforeEach(() => {
  harness = new Harness();
  port = harness.listen();
});
afterEach(() => {
  harness.pump.destroy();
});

/** Consumes whole lines, at most `limit` a turn, and answers each with itself. */
function echoLines(limit = Number.POSITIVE_INFINITY): void {
  harness.onData = (conn, bytes) => {
    let from = 0;
    for (let lines = 0; lines < limit; lines++) {
      const end = bytes.indexOf(10, from);
      if (end < 0) return from;
      harness.reply(conn, bytes.slice(from, end + 1));
      from = end + 1;
    }
    return from < bytes.length ? ~from : from;
  };
}

test('an accepted connection carries its listener kind; what it sends is delivered and answered', async () => {
  echoLines();
  const client = await harness.connect(port);
  expect(harness.last(EventKind.ACCEPT).aux).toBe(7);
  client.socket.write('hello\n');
  await harness.until(() => client.text() === 'hello\n');
  expect(harness.pump.heldBytes()).toBe(0);
  expect(harness.pump.peerAddress(client.conn)).toBe(`127.0.0.1:${client.socket.localPort}`);
  expect(harness.pump.localAddress(client.conn)).toBe(`127.0.0.1:${port}`);
  expect(harness.pump.fd(client.conn)).toBeGreaterThan(2);
});

test('a request that comes byte by byte is delivered contiguous, only when more has come', async () => {
  echoLines();
  const client = await harness.connect(port);
  for (const byte of 'partial') {
    const before = harness.count(EventKind.DATA);
    client.socket.write(byte);
    await harness.until(() => harness.count(EventKind.DATA) === before + 1);
    await harness.turns(2);
    expect(harness.count(EventKind.DATA)).toBe(before + 1);
  }
  expect(harness.pump.heldBytes()).toBeGreaterThan(0);
  client.socket.write('\n');
  await harness.until(() => client.text() === 'partial\n');
  expect(harness.count(EventKind.DATA)).toBe(8);
  await harness.turns(1);
  expect(harness.pump.heldBytes()).toBe(0);
});

test('pipelined requests with bounded work per turn are all answered, in order', async () => {
  echoLines(3);
  const client = await harness.connect(port);
  const lines = Array.from({ length: 2000 }, (_, i) => `line ${i}\n`).join('');
  client.socket.write(lines);
  await harness.until(() => client.bytes === lines.length);
  expect(client.text()).toBe(lines);
});

test('bounded work of one connection does not starve another', async () => {
  echoLines(1);
  const busy = await harness.connect(port);
  const quiet = await harness.connect(port);
  busy.socket.write('x\n'.repeat(20_000));
  await harness.until(() => busy.bytes > 10);
  quiet.socket.write('q\n');
  await harness.until(() => quiet.text() === 'q\n');
  expect(busy.bytes).toBeLessThan(40_000);
});

test('more ready connections than events or input space: all are served', async () => {
  harness.pump.destroy();
  harness = new Harness({ maxEvents: 8, inputBytes: 65536, receiveBytes: 8192 });
  port = harness.listen();
  echoLines();
  const clients: Client[] = [];
  for (let i = 0; i < 40; i++) clients.push(await harness.connect(port));
  const line = `${'y'.repeat(9000)}\n`;
  for (let round = 0; round < 3; round++) for (const client of clients) client.socket.write(line);
  await harness.until(() => clients.every((client) => client.bytes === 3 * line.length));
  for (const client of clients) expect(client.text()).toBe(line.repeat(3));
});

test('a request of 10 MiB is delivered contiguous, and its memory goes afterwards', async () => {
  const request = pattern(10 * MiB);
  let whole: Buffer | undefined;
  let deliveries = 0;
  harness.onData = (_conn, bytes) => {
    deliveries++;
    if (bytes.length < request.length) return 0;
    whole = Buffer.from(bytes);
    return bytes.length;
  };
  const client = await harness.connect(port);
  client.socket.write(request);
  await harness.until(() => whole !== undefined);
  expect(whole?.equals(request)).toBe(true);
  expect(harness.last(EventKind.DATA).arena).toBeGreaterThanOrEqual(0);
  await harness.turns(1);
  expect(harness.pump.heldBytes()).toBe(0);
  expect(deliveries).toBeLessThan(400);
});

test('the arena of a large request is detached once it is gone', async () => {
  let view: ArrayBuffer | undefined;
  harness.onData = (_conn, bytes) => {
    if (bytes.length < 300_000) return 0;
    view = bytes.buffer as ArrayBuffer;
    return bytes.length;
  };
  const client = await harness.connect(port);
  client.socket.write(pattern(300_000));
  await harness.until(() => view !== undefined);
  expect(view?.byteLength).toBeGreaterThanOrEqual(300_000);
  await harness.turns(2);
  expect(view?.byteLength).toBe(0);
});

test('small requests behind and before a large one keep their order', async () => {
  echoLines();
  const client = await harness.connect(port);
  const large = Buffer.alloc(700_000, 'z').toString();
  const all = `a\n${large}\nb\n${large}\nc\n`;
  client.socket.write(all);
  await harness.until(() => client.bytes === all.length);
  expect(client.text() === all).toBe(true);
});

test('unparsed input beyond the limit closes with EMSGSIZE', async () => {
  harness.pump.setGlobalLimits(100, 200_000, new Uint8Array(0));
  harness.onData = () => 0;
  const client = await harness.connect(port);
  client.socket.write(pattern(4 * MiB));
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE).aux).toBe(constants.errno.EMSGSIZE);
  await harness.turns(2);
  expect(harness.pump.heldBytes()).toBe(0);
});

test('receiveInto puts a value in its place: bytes held, bytes to come, and nothing of what follows', async () => {
  const arena = addon.allocateArena(8 * MiB, {});
  const place = new Uint8Array(addon.wrapArena(arena));
  const value = pattern(5 * MiB);
  const lines: string[] = [];
  harness.onData = (conn, bytes) => {
    const text = Buffer.from(bytes.subarray(0, 16)).toString();
    if (text.startsWith('set ')) {
      harness.pump.receiveInto(conn, arena, 1000, value.length);
      return text.indexOf('\n') + 1;
    }
    lines.push(Buffer.from(bytes).toString());
    return bytes.length;
  };
  const client = await harness.connect(port);
  client.socket.write(Buffer.concat([Buffer.from('set \n'), value, Buffer.from('after\n')]));
  await harness.until(() => lines.join('') === 'after\n');
  expect(harness.count(EventKind.INTO_DONE)).toBe(1);
  expect(harness.last(EventKind.INTO_DONE).length).toBe(value.length);
  expect(value.equals(place.subarray(1000, 1000 + value.length))).toBe(true);
  expect(place[999]).toBe(0);
  expect(place[1000 + value.length]).toBe(0);
  addon.releaseArena(arena);
});

test('receiveInto after receiveInto, both wholly in one packet, keep their order', async () => {
  const arena = addon.allocateArena(4096, {});
  const place = Buffer.from(addon.wrapArena(arena));
  const rest: string[] = [];
  harness.onData = (conn, bytes) => {
    if (bytes[0] === 83) {
      harness.pump.receiveInto(conn, arena, 0, 3);
      return 1;
    }
    rest.push(Buffer.from(bytes).toString());
    return bytes.length;
  };
  harness.onEvent = (seen) => {
    if (seen.kind === EventKind.INTO_DONE && harness.count(EventKind.INTO_DONE) === 0)
      harness.pump.receiveInto(seen.conn, arena, 10, 2);
  };
  const client = await harness.connect(port);
  client.socket.write('Sabcdetail');
  await harness.until(() => rest.join('') === 'tail');
  expect(place.toString('latin1', 0, 3)).toBe('abc');
  expect(place.toString('latin1', 10, 12)).toBe('de');
  addon.releaseArena(arena);
});

test('a client that sends, finishes sending and reads gets all replies, then the end', async () => {
  echoLines(1);
  const client = await harness.connect(port, { allowHalfOpen: true });
  const lines = 'get x\r\n'.repeat(500);
  client.socket.end(lines);
  await harness.until(() => client.ended);
  expect(client.text()).toBe(lines);
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE).aux).toBe(0);
});

test('a connection closed in the middle of a request ends with CLOSE 0 and holds nothing', async () => {
  harness.onData = () => 0;
  const client = await harness.connect(port);
  client.socket.write('half a req');
  await harness.until(() => harness.count(EventKind.DATA) === 1);
  client.socket.destroy();
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE).aux).toBe(0);
  expect(harness.pump.heldBytes()).toBe(0);
});

test('paused: nothing is delivered, the peer end is told once; resumed: held bytes come back', async () => {
  const seen: string[] = [];
  harness.onData = (conn, bytes) => {
    seen.push(Buffer.from(bytes).toString());
    if (seen.length > 1) return bytes.length;
    harness.pump.pauseReading(conn, true);
    return 4;
  };
  const client = await harness.connect(port, { allowHalfOpen: true });
  client.socket.write('one\ntwo\n');
  await harness.until(() => seen.length === 1);
  client.socket.end('three\n');
  await harness.until(() => harness.count(EventKind.PEER_END) === 1);
  await harness.turns(5);
  expect(seen).toEqual(['one\ntwo\n']);
  expect(harness.count(EventKind.PEER_END)).toBe(1);
  expect(harness.count(EventKind.CLOSE)).toBe(0);
  harness.pump.pauseReading(client.conn, false);
  harness.reply(client.conn, 'late reply\n');
  await harness.until(() => client.ended);
  expect(seen.slice(1).join('')).toBe('two\nthree\n');
  expect(client.text()).toBe('late reply\n');
});

test('an idle connection is closed with ETIMEDOUT, a busy one is not', async () => {
  echoLines();
  const idle = await harness.connect(port);
  const busy = await harness.connect(port);
  harness.pump.setLimits(idle.conn, 0, 0, 200);
  harness.pump.setLimits(busy.conn, 0, 0, 200);
  const start = Date.now();
  while (harness.count(EventKind.CLOSE) === 0 && Date.now() - start < 5000) {
    busy.socket.write('.\n');
    harness.turn(20);
    await sleep(1);
  }
  expect(Date.now() - start).toBeGreaterThanOrEqual(190);
  expect(harness.last(EventKind.CLOSE)).toMatchObject({ conn: idle.conn, aux: constants.errno.ETIMEDOUT });
  await harness.until(() => idle.closed);
  expect(busy.closed).toBe(false);
});

test('a wake-up ends the wait', async () => {
  addon.wake(harness.pump.wakeFd);
  expect(harness.turn(1000)).toMatchObject([{ kind: EventKind.WAKE }]);
  expect(harness.turn(0)).toEqual([]);
});

test('a connection number rests after its CLOSE', async () => {
  const first = await harness.connect(port);
  first.socket.destroy();
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  const second = await harness.connect(port);
  await harness.turns(3);
  second.socket.destroy();
  await harness.until(() => harness.count(EventKind.CLOSE) === 2);
  await harness.turns(3);
  const third = await harness.connect(port);
  expect(third.conn).toBeLessThan(2);
});

test('bytes held from earlier turns go first into the place that receiveInto names later', async () => {
  const arena = addon.allocateArena(MiB, {});
  const place = Buffer.from(addon.wrapArena(arena));
  for (const length of [300_000, 3000]) {
    const bytes = pattern(length);
    const rest: Buffer[] = [];
    let isHolding = true;
    harness.onData = (_conn, data) => {
      if (isHolding) return 0;
      rest.push(Buffer.from(data));
      return data.length;
    };
    const client = await harness.connect(port);
    client.socket.write(bytes);
    await harness.until(() => harness.seen.at(-1)?.length === length);
    await harness.turns(1);
    isHolding = false;
    const done = harness.count(EventKind.INTO_DONE);
    const part = length - 1000;
    harness.pump.receiveInto(client.conn, arena, 64, part);
    await harness.until(() => harness.count(EventKind.INTO_DONE) === done + 1 && Buffer.concat(rest).length === 1000);
    expect(bytes.equals(Buffer.concat([place.subarray(64, 64 + part), ...rest]))).toBe(true);
    harness.pump.receiveInto(client.conn, arena, 0, 0);
    await harness.until(() => harness.count(EventKind.INTO_DONE) === done + 2);
    harness.pump.close(client.conn, true);
  }
  addon.releaseArena(arena);
});

test('receiveInto: a second one while the first is under way, or a range that is none, is refused', async () => {
  const arena = addon.allocateArena(4096, {});
  const client = await harness.connect(port);
  expect(() => harness.pump.receiveInto(client.conn, arena, 4000, 97)).toThrow(RangeError);
  harness.pump.receiveInto(client.conn, arena, 0, 4096);
  expect(() => harness.pump.receiveInto(client.conn, arena, 0, 1)).toThrow(RangeError);
  addon.releaseArena(arena);
});

test('a place that is released while it is being filled: the connection ends with EFAULT', async () => {
  const arena = addon.allocateArena(4096, {});
  const client = await harness.connect(port);
  harness.pump.receiveInto(client.conn, arena, 0, 4096);
  addon.releaseArena(arena);
  client.socket.write('x'.repeat(100));
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE).aux).toBe(constants.errno.EFAULT);
});

test('a client that goes away in the middle of a receiveInto ends with CLOSE 0', async () => {
  const arena = addon.allocateArena(4096, {});
  const client = await harness.connect(port);
  harness.pump.receiveInto(client.conn, arena, 0, 4096);
  client.socket.end('only this');
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE).aux).toBe(0);
  expect(harness.count(EventKind.INTO_DONE)).toBe(0);
  addon.releaseArena(arena);
});

test('a reset while reading is paused ends the connection', async () => {
  const client = await harness.connect(port);
  harness.pump.pauseReading(client.conn, true);
  client.socket.resetAndDestroy();
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(harness.last(EventKind.CLOSE)).toMatchObject({ conn: client.conn, aux: 0 });
});

test('requests that came whole are executed although the client is gone', async () => {
  let lines = 0;
  harness.onData = (_conn, bytes) => {
    lines++;
    const consumed = bytes.indexOf(10) + 1;
    return consumed < bytes.length ? ~consumed : consumed;
  };
  const client = await harness.connect(port, { allowHalfOpen: true });
  client.socket.end('set x\n'.repeat(300));
  await harness.until(() => lines > 20);
  client.socket.resetAndDestroy();
  await harness.until(() => harness.count(EventKind.CLOSE) === 1);
  expect(lines).toBe(300);
});
