/** ZSCAN: replies of small sorted sets beside redis-server, and what a whole walk of a large one returns while it changes. */
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { describeWithRedis } from '../helpers/redis-oracle.js';

describeWithRedis('ZSCAN', (peers) => {
  it('of small sorted sets, and what it refuses', () =>
    peers.compare([
      'ZSCAN nope 0',
      'ZADD z 1 a 2 b 2.5 ab inf c',
      'ZSCAN z 0',
      'ZSCAN z 0 COUNT 1',
      'ZSCAN z 0 MATCH a*',
      'ZSCAN z 0 MATCH nope*',
      'ZSCAN z 0 COUNT 0',
      'ZSCAN z 0 COUNT x',
      'ZSCAN z 0 FOO',
      'ZSCAN z x',
      'ZSCAN z',
      'SET s 1',
      'ZSCAN s 0',
    ]));

  for (const [shape, scoreOf] of [
    ['one score', () => 0],
    ['ten scores', (i: number) => i % 10],
    ['scores of their own', (i: number) => i / 8],
  ] as const) {
    it(`walks a large sorted set with ${shape}, whatever changes meanwhile`, async () => {
      const client = new Redis(peers.ourPort);
      try {
        await client.flushall();
        const members = Array.from({ length: 5000 }, (_, i) => `m${i}`);
        await client.zadd('z', ...members.flatMap((name, i) => [scoreOf(i), name]));
        const seen: string[] = [];
        let cursor = '0';
        let calls = 0;
        do {
          const [next, pairs] = await client.zscan('z', cursor, 'COUNT', 20);
          for (let i = 0; i < pairs.length; i += 2) seen.push(pairs[i]);
          cursor = next;
          calls++;
          // What comes and goes, and what gets another score.
          await client.zadd('z', 1, `new${calls}`);
          await client.zrem('z', `m${calls * 2}`);
          await client.zadd('z', 77, `m${calls * 2 + 1}`);
        } while (cursor !== '0');
        expect(calls).toBeGreaterThan(10);
        // Where many members have one score, the first change makes the scan begin anew: what one call returned comes twice.
        expect(seen.length - new Set(seen).size).toBeLessThanOrEqual(20);
        const found = new Set(seen);
        const stayed = members.filter((_, i) => i % 2 === 1 || i === 0 || i > calls * 2);
        expect(stayed.filter((name) => !found.has(name))).toEqual([]);
        expect(seen.filter((name) => !/^(m|new)\d+$/.test(name))).toEqual([]);
      } finally {
        client.disconnect();
      }
    });

    it(`walks a large sorted set with ${shape} in calls of COUNT while it does not change`, async () => {
      const client = new Redis(peers.ourPort);
      try {
        await client.flushall();
        const members = Array.from({ length: 5000 }, (_, i) => `m${i}`);
        await client.zadd('z', ...members.flatMap((name, i) => [scoreOf(i), name]));
        const seen = new Map<string, string>();
        let cursor = '0';
        let calls = 0;
        do {
          const [next, pairs] = await client.zscan('z', cursor, 'COUNT', 50);
          expect(pairs.length).toBeLessThanOrEqual(2 * 51);
          for (let i = 0; i < pairs.length; i += 2) {
            expect(seen.has(pairs[i])).toBe(false);
            seen.set(pairs[i], pairs[i + 1]);
          }
          cursor = next;
          calls++;
        } while (cursor !== '0');
        expect(calls).toBeGreaterThanOrEqual(5000 / 51);
        expect(seen.size).toBe(5000);
        members.forEach((name, i) => {
          expect(Number(seen.get(name))).toBe(scoreOf(i));
        });
      } finally {
        client.disconnect();
      }
    });
  }
});
