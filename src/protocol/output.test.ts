import { beforeEach, describe, expect, it } from 'vitest';
import { Bytes } from '../layout/bytes.js';
import { Send } from '../native/addon.js';
import { MAX_RESERVE_BYTES, Output, SendKind } from './output.js';

const CAPACITY = 2 * MAX_RESERVE_BYTES;

/** What a pump would have sent, by connection. */
let sent: Map<number, string>;
let regions: string[];
let output: Output;
let sends: Int32Array;

function take(count: number): void {
  for (let i = 0; i < count; i++) {
    const word = i * Send.WORDS;
    const [conn, arena, offset, length] = [Send.conn, Send.arena, Send.offset, Send.length].map((k) => sends[word + k]);
    if (arena >= 0) {
      regions.push(`${conn}:${arena}:${offset}:${length}:${sends[word + Send.token]}`);
      continue;
    }
    const text = Buffer.from(output.u8.subarray(offset, offset + length)).toString('latin1');
    sent.set(conn, (sent.get(conn) ?? '') + text);
  }
}

beforeEach(() => {
  sent = new Map();
  regions = [];
  sends = new Int32Array(8 * Send.WORDS);
  // Arena numbers that no mapping has: nothing is copied through them here.
  output = new Output(new Bytes(new ArrayBuffer(CAPACITY), 1_000_000), sends, take);
});

function finish(): void {
  output.end();
  take(output.sendCount);
  output.restart();
}

describe('Output', () => {
  it('keeps connections apart and in order', () => {
    output.begin(1);
    output.ascii('one');
    output.end();
    output.begin(2);
    output.ascii('two');
    output.end();
    output.begin(1);
    output.ascii(' more');
    finish();
    expect([...sent]).toEqual([
      [1, 'one more'],
      [2, 'two'],
    ]);
  });

  it('writes no record for a connection that got nothing', () => {
    output.begin(1);
    output.end();
    expect(output.sendCount).toBe(0);
  });

  it('flushes when the buffer is full, in the middle of a reply', () => {
    const text = 'abcdefgh'.repeat(CAPACITY);
    output.begin(3);
    output.ascii(text);
    output.array(Buffer.from(text));
    finish();
    expect(sent.get(3)).toBe(text + text);
    expect(output.totalBytes).toBe(2 * text.length);
  });

  it('flushes when the send records are full', () => {
    for (let conn = 0; conn < 50; conn++) {
      output.begin(conn);
      output.ascii(`reply ${conn}`);
      output.end();
    }
    take(output.sendCount);
    expect(sent.size).toBe(50);
    expect(sent.get(49)).toBe('reply 49');
  });

  it('puts regions between the bytes around them', () => {
    const arena = new Bytes(new ArrayBuffer(64), 5);
    output.begin(1);
    output.ascii('before');
    expect(output.region(arena, 8, 16, 77)).toBe(true);
    output.ascii('after');
    output.end();
    expect(output.sendCount).toBe(3);
    expect([0, 1, 2].map((i) => sends[i * Send.WORDS + Send.arena])).toEqual([SendKind.OUTPUT, 5, SendKind.OUTPUT]);
    take(output.sendCount);
    expect(regions).toEqual(['1:5:8:16:77']);
    expect(sent.get(1)).toBe('beforeafter');
  });

  it('copies a region of ordinary memory', () => {
    output.begin(1);
    expect(output.region(Bytes.from('value'), 1, 3, 9)).toBe(false);
    finish();
    expect(sent.get(1)).toBe('alu');
  });

  it('throws away what is written while muted, however much', () => {
    output.begin(1);
    output.ascii('a');
    output.mute();
    output.ascii('x'.repeat(3 * CAPACITY));
    expect(output.region(new Bytes(new ArrayBuffer(8), 5), 0, 8, 1)).toBe(false);
    output.unmute();
    output.ascii('b');
    finish();
    expect(sent.get(1)).toBe('ab');
    expect(regions).toEqual([]);
  });

  it.each([10, CAPACITY - 100, 3 * CAPACITY])('puts a header before %i held bytes', (length) => {
    output.begin(1);
    output.ascii('first ');
    output.hold();
    output.ascii('x'.repeat(length));
    output.release('header ');
    output.ascii(' last');
    finish();
    expect(sent.get(1)).toBe(`first header ${'x'.repeat(length)} last`);
  });

  it('drops held bytes', () => {
    output.begin(1);
    output.hold();
    output.ascii('x'.repeat(CAPACITY + 1));
    output.discardHeld();
    output.ascii('y');
    finish();
    expect(sent.get(1)).toBe('y');
  });

  it.each([10, 3 * CAPACITY])('hands %i held bytes over', (length) => {
    const parts: Uint8Array[] = [];
    output.begin(1);
    output.ascii('first ');
    output.hold();
    output.ascii('x'.repeat(length));
    expect(output.takeHeld(parts)).toBe(length);
    output.ascii('header ');
    for (const part of parts) output.array(part);
    finish();
    expect(sent.get(1)).toBe(`first header ${'x'.repeat(length)}`);
  });

  it('reserves contiguous room', () => {
    output.begin(1);
    for (let i = 0; i < 10; i++) {
      const p = output.reserve(MAX_RESERVE_BYTES);
      output.u8.fill(0x61 + i, p, p + MAX_RESERVE_BYTES);
      output.position = p + MAX_RESERVE_BYTES;
    }
    finish();
    const expected = Array.from({ length: 10 }, (_, i) => String.fromCharCode(0x61 + i).repeat(MAX_RESERVE_BYTES));
    expect(sent.get(1)).toBe(expected.join(''));
  });

  it('sends a datagram as one record', () => {
    output.beginDatagram(4);
    output.ascii('datagram');
    output.end();
    expect([...sends.subarray(0, 4)]).toEqual([4, SendKind.DATAGRAM, 0, 8]);
  });
});
