/**
 * The pump without sockets: it accepts its connections once, hands out batches in order and round again, and notices what
 * was not consumed.
 */
import { expect, it } from 'vitest';
import { CONNECTION_COUNT, MemoryPump } from '../../bench/store/memory-pump.js';

const names = {
  Event: { conn: 0, kind: 1, offset: 2, length: 3, consumed: 4, aux: 5, arena: 6, WORDS: 7 },
  EventKind: { DATA: 1, ACCEPT: 2 },
  Send: { conn: 0, arena: 1, offset: 2, length: 3, token: 4, WORDS: 5 },
};

it('hands out batches in order, round and round', () => {
  const offsets = Int32Array.from({ length: 11 }, (_, index) => index * 100);
  const pump = new MemoryPump(new ArrayBuffer(1000), 1, new ArrayBuffer(10), 2, offsets, names);
  const events = new Int32Array(pump.events);
  const column = (word: number): number[] =>
    Array.from({ length: CONNECTION_COUNT }, (_, index) => events[index * names.Event.WORDS + word]);

  expect(pump.poll(0)).toBe(CONNECTION_COUNT);
  expect(new Set(column(names.Event.kind))).toEqual(new Set([names.EventKind.ACCEPT]));
  expect(pump.batchesServed).toBe(0);

  pump.poll(0);
  expect(column(names.Event.offset)).toEqual([0, 100, 200, 300, 400, 500, 600, 700]);
  for (let i = 0; i < CONNECTION_COUNT; i++) events[i * names.Event.WORDS + names.Event.consumed] = 100;
  pump.poll(0);
  expect(column(names.Event.offset)).toEqual([800, 900, 0, 100, 200, 300, 400, 500]);
  expect(pump.failures).toBe(0);
  pump.poll(0);
  expect(pump.failures).toBe(CONNECTION_COUNT);
  expect(pump.batchesServed).toBe(3 * CONNECTION_COUNT);
});

it('counts what is sent', () => {
  const pump = new MemoryPump(new ArrayBuffer(8), 1, new ArrayBuffer(8), 2, Int32Array.of(0, 8), names);
  const sends = new Int32Array(pump.sends);
  sends[names.Send.length] = 30;
  sends[names.Send.WORDS + names.Send.length] = 12;
  pump.flush(2);
  expect(pump.bytesSent).toBe(42);
});
