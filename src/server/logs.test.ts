import { expect, test } from 'vitest';
import { SharedWord } from '../layout/counters.js';
import { LatencyMonitor } from './latency-monitor.js';
import { SlowLog } from './slow-log.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test('the slow log keeps the newest entries, with ids from the shared word', () => {
  const shared = new Int32Array(new SharedArrayBuffer(SharedWord.COUNT * 4));
  const log = new SlowLog(shared, 2);
  const other = new SlowLog(shared, 2);
  log.add(1000, 10, [bytes('a')], '127.0.0.1:1', '');
  other.add(1000, 10, [bytes('b')], '127.0.0.1:2', '');
  log.add(2000, 10, [bytes('c')], '127.0.0.1:1', '');
  log.add(3000, 10.4, [bytes('d')], '127.0.0.1:1', 'name');
  expect(log.newest(-1).map((entry) => entry.id)).toEqual([3, 2]);
  expect(log.newest(1)[0]).toMatchObject({ unixSeconds: 3, microseconds: 10, clientName: 'name' });
  log.setCapacity(1);
  expect(log.length).toBe(1);
  log.reset();
  expect(log.length).toBe(0);
});

test('the latency monitor keeps the worst of each second', () => {
  const monitor = new LatencyMonitor(0);
  monitor.record('command', 1000, 50);
  expect(monitor.get('')).toEqual([]);
  monitor.threshold = 10;
  monitor.record('command', 1000, 9);
  monitor.record('command', 1000, 12);
  monitor.record('command', 1500, 30.7);
  monitor.record('command', 2000, 15);
  expect(monitor.get('command')).toEqual([
    {
      event: 'command',
      samples: [
        { unixSeconds: 1, milliseconds: 30 },
        { unixSeconds: 2, milliseconds: 15 },
      ],
      maxMilliseconds: 30,
    },
  ]);
  for (let second = 3; second < 300; second++) monitor.record('command', second * 1000, 11);
  expect(monitor.get('command')[0].samples.length).toBe(160);
  expect(monitor.reset(['nothing'])).toEqual([]);
  expect(monitor.reset([])).toEqual(['command']);
});
