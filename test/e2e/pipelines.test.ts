/** A pipeline answers as its requests do one by one: also where replies are copied together, and what they were read from changes. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blurTimes, histories, type Request } from '../helpers/random-commands.js';
import { RawClient } from '../helpers/raw-client.js';
import { replyEnd } from '../helpers/resp-reply.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

/** Copied by words, by the addon, sent from where they lie. */
const VALUE_BYTES = [24, 25, 100, 1000, 5000, 20_000, 300_000];
const RUNS = 30;
const HISTORY = 60;

let server: TestServer;

beforeAll(async () => {
  // One worker: alone in its pool.
  server = await startTestServer({ memcachedPort: 0, workers: 1 });
});

afterAll(() => server.stop());

/** The raw replies to requests that are sent in groups of `size`. */
async function replies(requests: readonly Request[], size: number): Promise<string[]> {
  const client = await RawClient.connect(server.redisPort);
  await client.ask('FLUSHALL\r\n', '+OK\r\n');
  const all: string[] = [];
  for (let i = 0; i < requests.length; i += size) {
    const group = requests.slice(i, i + size);
    client.write(Buffer.concat(group.map((request) => multibulk(request))));
    for (const request of group) {
      await client.until(() => replyEnd(client.text, 0) >= 0, `a reply to ${String(request).slice(0, 100)}`);
      all.push((await client.read(replyEnd(client.text, 0))).toString('latin1'));
    }
  }
  client.destroy();
  return all;
}

describe('a pipeline', () => {
  it.each(VALUE_BYTES)('reads values of %i bytes as they were before the next write', async (length) => {
    const value = 'o'.repeat(length);
    const changes: Request[] = [
      ['SET', 'k', 'n'.repeat(length)],
      ['SETRANGE', 'k', '0', 'NEW'],
      ['APPEND', 'k', 'NEW'],
      ['SETBIT', 'k', '8', '1'],
      ['GETDEL', 'k'],
      ['GETEX', 'k', 'PXAT', '1'],
      ['RENAME', 'k', 'other'],
      ['DEL', 'k'],
      ['FLUSHALL'],
      ['EVAL', "redis.call('SETRANGE', KEYS[1], 0, 'NEW') return redis.call('GET', KEYS[1])", '1', 'k'],
    ];
    const requests = changes.flatMap((change): Request[] => [
      ['SET', 'k', value],
      ['GET', 'k'],
      ['GET', 'k'],
      ['HSET', 'h', 'f', value],
      ['HGET', 'h', 'f'],
      change,
      ['SET', 'new', 'n'.repeat(length)],
      ['GET', 'k'],
      ['GET', 'new'],
    ]);
    const expected = await replies(requests, 1);
    expect(expected.filter((reply) => reply === `$${length}\r\n${value}\r\n`).length).toBeGreaterThanOrEqual(
      3 * changes.length,
    );
    expect(await replies(requests, requests.length)).toEqual(expected);
  });

  it('answers like its requests one by one', () =>
    fc.assert(
      fc.asyncProperty(histories(HISTORY), async (history) => {
        const expected = (await replies(history, 1)).map(blurTimes);
        expect((await replies(history, HISTORY)).map(blurTimes)).toEqual(expected);
      }),
      { numRuns: RUNS },
    ));
});
