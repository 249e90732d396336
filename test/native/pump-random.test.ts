/**
 * Random histories: clients send framed messages in random pieces; the server side consumes at random, bounds its work, pauses,
 * receives some messages into place and sends them from there. Every client must get its own bytes back, in order.
 */
import { once } from 'node:events';
import net from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addon, EventKind } from '../../src/native/addon.js';
import { Harness, pattern } from './harness.js';

const PLACE_BYTES = 1 << 20;
const source = pattern(PLACE_BYTES);

/** A small generator, so that a failing seed repeats. */
class Dice {
  constructor(private state: number) {}
  below(limit: number): number {
    this.state = (Math.imul(this.state, 1103515245) + 12345) & 0x7fffffff;
    return (this.state >>> 8) % limit;
  }
}

/** Message = 4 bytes length (little endian) + payload; all of them, one after the other. */
function makeStream(dice: Dice): Buffer {
  const parts: Buffer[] = [];
  for (let messages = 1 + dice.below(60); messages > 0; messages--) {
    const kind = dice.below(20);
    const length = kind === 0 ? dice.below(400_000) : kind < 3 ? dice.below(70_000) : dice.below(200);
    const header = Buffer.alloc(4);
    header.writeUInt32LE(length);
    const from = dice.below(PLACE_BYTES - length);
    parts.push(header, source.subarray(from, from + length));
  }
  return Buffer.concat(parts);
}

/** The server's side of one connection. */
interface Served {
  readonly arena: number;
  /** The arena is being filled or sent. */
  isBusy: boolean;
  intoLength: number;
}

class Server {
  private readonly served = new Map<number, Served>();
  private readonly paused = new Set<number>();

  constructor(
    private readonly harness: Harness,
    private readonly dice: Dice,
  ) {
    harness.onData = (conn, bytes) => this.consume(conn, bytes);
    harness.onEvent = ({ conn, kind }) => {
      const one = this.of(conn);
      if (kind === EventKind.INTO_DONE) harness.record(conn, one.arena, 0, one.intoLength, conn + 1);
      if (kind === EventKind.SENT) one.isBusy = false;
    };
  }

  private of(conn: number): Served {
    let one = this.served.get(conn);
    if (one === undefined) {
      one = { arena: addon.allocateArena(PLACE_BYTES, {}), isBusy: false, intoLength: 0 };
      this.served.set(conn, one);
      this.harness.pump.setLimits(conn, 1 + this.dice.below(300_000), 0, 30_000);
    }
    return one;
  }

  private consume(conn: number, bytes: Uint8Array): number {
    const { dice, harness } = this;
    const one = this.of(conn);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    for (let budget = dice.below(8); ; budget--) {
      if (dice.below(30) === 0) {
        harness.pump.pauseReading(conn, true);
        this.paused.add(conn);
        return at;
      }
      if (bytes.length - at < 4) return at;
      if (budget === 0) return ~at;
      const length = view.getUint32(at, true);
      if (length > 2000 && !one.isBusy && dice.below(2) === 0) {
        harness.reply(conn, bytes.slice(at, at + 4));
        one.isBusy = true;
        one.intoLength = length;
        harness.pump.receiveInto(conn, one.arena, 0, length);
        return at + 4;
      }
      if (bytes.length - at < 4 + length) return at;
      harness.reply(conn, bytes.slice(at, at + 4 + length));
      at += 4 + length;
    }
  }

  resumeSome(): void {
    for (const conn of this.paused) {
      if (this.dice.below(3) > 0) continue;
      this.harness.pump.pauseReading(conn, false);
      this.paused.delete(conn);
    }
  }

  close(): void {
    this.harness.pump.destroy();
    for (const { arena } of this.served.values()) addon.releaseArena(arena);
  }
}

/** Sends a stream in random pieces with pauses, ends, and gives what came back. */
async function talk(port: number, stream: Buffer, dice: Dice): Promise<Buffer> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'connect');
  for (let at = 0; at < stream.length; ) {
    const piece = 1 + dice.below(dice.below(2) === 0 ? 300 : 100_000);
    socket.write(stream.subarray(at, at + piece));
    at += piece;
    if (dice.below(3) === 0) await new Promise((resolve) => setImmediate(resolve));
    if (dice.below(10) === 0) socket.pause();
    if (dice.below(5) === 0) socket.resume();
  }
  socket.resume().end();
  await once(socket, 'close');
  return Buffer.concat(chunks);
}

async function runHistory(seed: number): Promise<void> {
  const dice = new Dice(seed);
  const receiveBytes = 1024 << dice.below(7);
  const harness = new Harness({
    receiveBytes,
    inputBytes: Math.max(65536, receiveBytes * (2 + dice.below(3))),
    maxEvents: 8 << dice.below(4),
  });
  const server = new Server(harness, dice);
  try {
    const port = harness.listen();
    const streams = Array.from({ length: 1 + dice.below(12) }, () => makeStream(dice));
    const results: Buffer[] = [];
    const clients = streams.map(async (stream, i) => {
      results[i] = await talk(port, stream, new Dice(seed + i + 1));
    });
    let isDone = false;
    Promise.all(clients).then(
      () => {
        isDone = true;
      },
      () => {},
    );
    await harness.until(() => {
      server.resumeSome();
      return isDone;
    }, 20_000);
    streams.forEach((stream, i) => {
      expect(results[i].length).toBe(stream.length);
      expect(results[i].equals(stream)).toBe(true);
    });
    await harness.until(() => harness.count(EventKind.CLOSE) === streams.length);
    await harness.turns(2);
    expect(harness.pump.heldBytes()).toBe(0);
  } finally {
    server.close();
  }
}

test('every client gets its bytes back, in order, whatever happens in between', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 0x7ffffff }), async (seed) => {
      await runHistory(seed);
    }),
    { numRuns: 25, endOnFailure: true },
  );
});
