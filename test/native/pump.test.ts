/** The pump against real sockets of node:net. */
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { addon, Event, EventKind, type Pump, Send } from '../../src/native/addon.js';

let pump: Pump | undefined;
afterEach(() => {
  pump?.destroy();
  pump = undefined;
});

test('echo smoke', async () => {
  const p = addon.createPump({ inputBytes: 1 << 20, outputBytes: 1 << 20, maxEvents: 64, receiveBytes: 65536 });
  pump = p;
  const l = p.listenTcp('127.0.0.1', 0, 128, 3);
  const s = net.connect(p.listenerPort(l), '127.0.0.1');
  let got = '';
  s.on('data', (d) => {
    got += d.toString();
  });
  await once(s, 'connect');
  s.write('hello');
  const ev = new Int32Array(p.events);
  const sd = new Int32Array(p.sends);
  const input = new Uint8Array(p.input);
  const output = new Uint8Array(p.output);
  const kinds: number[] = [];
  let sends = 0;
  for (let i = 0; i < 20 && got !== 'hello'; i++) {
    const n = p.poll(sends, 5);
    sends = 0;
    for (let k = 0; k < n; k++) {
      const b = k * Event.WORDS;
      kinds.push(ev[b + Event.kind]);
      if (ev[b + Event.kind] === EventKind.DATA) {
        const len = ev[b + Event.length];
        output.set(input.subarray(ev[b + Event.offset], ev[b + Event.offset] + len), 0);
        ev[b + Event.consumed] = len;
        sd[Send.conn] = ev[b + Event.conn];
        sd[Send.arena] = -1;
        sd[Send.offset] = 0;
        sd[Send.length] = len;
        sends = 1;
      }
    }
    await new Promise((r) => setTimeout(r, 5));
  }
  expect(got).toBe('hello');
  expect(kinds).toEqual([EventKind.ACCEPT, EventKind.DATA]);
  s.destroy();
});
