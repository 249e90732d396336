/** LATENCY HISTOGRAM and GRAPH and INFO's statistics of commands, beside redis-server's. */
import { expect, it, test } from 'vitest';
import { latencyGraph } from '../../src/commands/server/latency.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';

/** Microseconds that a histogram may name: Redis's borders, from its documentation. */
const BORDERS = [
  1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113, 4227, 8454, 16908, 33816, 67633, 135266, 270532, 541065, 1082130,
];

/** The flat RESP2 reply as a tree of strings and numbers. */
function parse(text: string): unknown {
  let at = 0;
  const line = (): string => {
    const end = text.indexOf('\r\n', at);
    const found = text.slice(at, end);
    at = end + 2;
    return found;
  };
  const value = (): unknown => {
    const head = line();
    if (head[0] === ':') return Number(head.slice(1));
    if (head[0] === '$') return line();
    return Array.from({ length: Number(head.slice(1)) }, value);
  };
  return value();
}

describeWithRedis('latencies of commands', (peers) => {
  it('HISTOGRAM has the shape of Redis and counts every call', async () => {
    const setUp = ['CONFIG RESETSTAT', 'SET a 1', ...Array(300).fill('GET a'), 'CONFIG GET port', 'CONFIG GET save'];
    const both: unknown[] = [];
    for (const port of [peers.redisPort, peers.ourPort]) {
      const replies = await peers.talk(port, [
        ...setUp,
        'LATENCY HISTOGRAM get set nope config',
        'LATENCY HISTOGRAM nope',
      ]);
      expect(replies.at(-1)).toBe('*0\r\n');
      both.push(parse(replies.at(-2)!));
    }
    const [theirs, ours] = both.map((reply) => {
      const flat = reply as [string, [string, number, string, number[]]][];
      const found: Record<string, unknown> = {};
      for (let i = 0; i < flat.length; i += 2) {
        const [callsName, calls, histogramName, steps] = flat[i + 1] as unknown as [string, number, string, number[]];
        expect([callsName, histogramName]).toEqual(['calls', 'histogram_usec']);
        const micros = steps.filter((_, k) => k % 2 === 0);
        expect(BORDERS, `microseconds of ${flat[i]}`).toEqual(expect.arrayContaining(micros));
        expect(steps.at(-1)).toBe(calls);
        found[flat[i] as unknown as string] = calls;
      }
      return found;
    });
    expect(ours).toEqual(theirs);
    expect(ours).toEqual({ get: 300, set: 1, 'config|get': 2, 'config|resetstat': 1 });
  });

  it('INFO commandstats and latencystats name the same fields', async () => {
    const shapes: string[][] = [];
    for (const port of [peers.redisPort, peers.ourPort]) {
      const [, , , , text] = await peers.talk(port, [
        'CONFIG SET latency-tracking-info-percentiles "50 99.9 100"',
        'CONFIG RESETSTAT',
        'SET a 1',
        'INCRBY a x',
        'INFO latencystats',
      ]);
      const [stats] = await peers.talk(port, ['INFO commandstats']);
      const lines = `${text}${stats}`.split('\r\n').filter((line) => /_(set|incrby):/.test(line));
      shapes.push(
        lines.map((line) => line.replace(/\d+(\.\d+)?(?=,|$)/g, (n) => (n.includes('.') ? 'x.x' : 'n'))).sort(),
      );
    }
    expect(shapes[1]).toEqual(shapes[0]);
    expect(shapes[1]).toHaveLength(4);
  });

  it('switched off, nothing is added', async () => {
    const [, , , , histogram] = await peers.talk(peers.ourPort, [
      'CONFIG RESETSTAT',
      'CONFIG SET latency-tracking no',
      'GET a',
      'CONFIG SET latency-tracking yes',
      'LATENCY HISTOGRAM get',
    ]);
    expect(histogram).toBe('*0\r\n');
  });

  it('errors and settings', () =>
    peers.compare(
      [
        'LATENCY GRAPH command',
        'LATENCY GRAPH',
        'CONFIG SET latency-tracking-info-percentiles "50 101"',
        'CONFIG SET latency-tracking-info-percentiles "50 99 99.9"',
        'CONFIG SET latency-tracking maybe',
        'CONFIG GET latency-tracking',
      ],
      { except: [{ step: /50 101/, because: 'worded for flags and files as well' }] },
    ));

  it('GRAPH draws what DEBUG SLEEP has caused, as Redis does', async () => {
    const graphs: string[] = [];
    for (const port of [peers.redisPort, peers.ourPort]) {
      const replies = await peers.talk(port, [
        'LATENCY RESET',
        'CONFIG SET latency-monitor-threshold 20',
        'DEBUG SLEEP 0.05',
        'LATENCY GRAPH command',
        'CONFIG SET latency-monitor-threshold 0',
      ]);
      graphs.push(
        replies[3]
          .replace(/\d+(?= ms)/g, 'N')
          .replace(/^\$\d+/, '')
          .replace(/[1-9](?=s?\n)/g, '0'),
      );
    }
    expect(graphs[1].split('\n').map((line) => line.trimEnd())).toEqual(
      graphs[0].split('\n').map((line) => line.trimEnd()),
    );
  });
});

test('a graph shows the newest samples by height, with their ages', () => {
  const samples = [10, 100, 55, 1000].map((milliseconds, i) => ({
    unixSeconds: 100_000 - [90_000, 4000, 75, 5][i],
    milliseconds,
  }));
  expect(latencyGraph('fork', samples, 2000, 100_000).split('\n')).toEqual([
    'fork - high 1000 ms, low 10 ms (all time high 2000 ms)',
    '-'.repeat(80),
    '   #',
    '   |',
    '   |',
    '_o_|',
    '',
    '1115',
    'dhms',
    '',
  ]);
});
