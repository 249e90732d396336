/**
 * Commands of many connections on two workers: each one is a single step for all others.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { replyEnd } from '../helpers/resp-reply.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const CLIENTS = 8;
const ROUNDS = 30;
const PIPELINE = 50;

let server: TestServer;
let clients: RawClient[];

beforeAll(async () => {
  server = await startTestServer({ memcachedPort: 0, workers: 2, args: ['--maxmemory-policy=noeviction'] });
  clients = await Promise.all(Array.from({ length: CLIENTS }, () => RawClient.connect(server.redisPort)));
});

afterAll(async () => {
  for (const client of clients) client.destroy();
  await server.stop();
});

/** Sends lines as one pipeline and takes one reply for each. */
async function pipeline(client: RawClient, lines: readonly string[]): Promise<string[]> {
  client.write(`${lines.join('\r\n')}\r\n`);
  const replies: string[] = [];
  while (replies.length < lines.length) {
    await client.until(() => replyEnd(client.text, 0) >= 0, 'a reply');
    const { text } = client;
    let taken = 0;
    for (let end = replyEnd(text, taken); end >= 0 && replies.length < lines.length; end = replyEnd(text, taken)) {
      replies.push(text.slice(taken, end));
      taken = end;
    }
    await client.read(taken);
  }
  return replies;
}

async function ask(line: string): Promise<string> {
  return (await pipeline(clients[0], [line]))[0];
}

/** All clients run their pipelines at the same time, ROUNDS times. */
async function everybody(linesOf: (client: number, round: number) => string[]): Promise<string[][]> {
  const all = clients.map(async (client, c) => {
    const replies: string[] = [];
    for (let round = 0; round < ROUNDS; round++) replies.push(...(await pipeline(client, linesOf(c, round))));
    return replies;
  });
  return Promise.all(all);
}

const repeated = (line: string): string[] => new Array<string>(PIPELINE).fill(line);
const TOTAL = CLIENTS * ROUNDS * PIPELINE;

describe('on two workers', () => {
  it('no increment is lost', { timeout: 60_000 }, async () => {
    await ask('FLUSHALL');
    await everybody((c) => repeated(c % 2 === 0 ? 'INCR n' : 'INCRBYFLOAT f 0.5'));
    expect(await ask('MGET n f')).toBe(`*2\r\n$4\r\n${TOTAL / 2}\r\n$4\r\n${TOTAL / 4}\r\n`);
  });

  it('no appended byte, set bit or field is lost', { timeout: 60_000 }, async () => {
    await ask('FLUSHALL');
    const replies = await everybody((c, round) => [
      ...repeated('APPEND a x'),
      ...Array.from({ length: PIPELINE }, (_, i) => `SETBIT b ${(round * PIPELINE + i) * CLIENTS + c} 1`),
      ...repeated(`BITFIELD c INCRBY u32 #${c} 1`),
    ]);
    // A growing value passes through all slab classes: spares of the other worker must not look like a full store.
    expect(replies.flat().filter((reply) => reply.startsWith('-'))).toEqual([]);
    expect(await ask('STRLEN a')).toBe(`:${TOTAL}\r\n`);
    expect(await ask('BITCOUNT b')).toBe(`:${TOTAL}\r\n`);
    const fields = Array.from({ length: CLIENTS }, (_, c) => `GET u32 #${c}`).join(' ');
    expect(await ask(`BITFIELD_RO c ${fields}`)).toBe(`*${CLIENTS}\r\n${`:${ROUNDS * PIPELINE}\r\n`.repeat(CLIENTS)}`);
  });

  it('MSET is seen whole or not at all', { timeout: 60_000 }, async () => {
    await ask('FLUSHALL');
    await ask('MSET k1 0 k2 0 k3 0');
    const replies = await everybody((c, round) =>
      c % 2 === 0
        ? Array.from(
            { length: PIPELINE },
            (_, i) => `MSET k1 ${c}.${round}.${i} k3 ${c}.${round}.${i} k2 ${c}.${round}.${i}`,
          )
        : repeated('MGET k1 k2 k3'),
    );
    for (const reply of replies.filter((_, c) => c % 2 === 1).flat()) {
      const values = reply.split('\r\n').filter((_, i) => i >= 2 && i % 2 === 0);
      expect(new Set(values).size, reply).toBe(1);
    }
  });

  it('a key that is renamed to and fro is always in one place', { timeout: 60_000 }, async () => {
    await ask('FLUSHALL');
    await ask('SET here v');
    const replies = await everybody((c) =>
      c === 0 ? repeated('RENAME here there') : c === 1 ? repeated('RENAME there here') : repeated('EXISTS here there'),
    );
    for (const reply of replies.slice(2).flat()) expect(reply).toBe(':1\r\n');
    for (const reply of replies.slice(0, 2).flat()) expect(reply).toMatch(/^(\+OK|-ERR no such key)\r\n$/);
  });

  it('MULTI is one step, across keys and with KEYS among them', { timeout: 60_000 }, async () => {
    await ask('FLUSHALL');
    const replies = await everybody((c) =>
      c % 2 === 0
        ? ['MULTI', 'INCR x', 'INCR y', c === 0 ? 'KEYS *' : 'EXISTS x y', 'EXEC', 'MULTI', 'DEL x y', 'EXEC']
        : repeated('MGET x y'),
    );
    for (const reply of replies.filter((_, c) => c % 2 === 1).flat()) {
      const [, , x, , y] = reply.replaceAll('$-1\r\n', '$1\r\n-\r\n').split('\r\n');
      expect(x, reply).toBe(y);
    }
    for (const reply of replies[0])
      if (reply.startsWith('*3')) expect(reply).toMatch(/\*2\r\n\$1\r\n[xy]\r\n\$1\r\n[xy]\r\n$/);
  });

  it('SCAN meets every key that stays, whatever comes and goes', { timeout: 60_000 }, async () => {
    await ask('FLUSHALL');
    const staying = Array.from({ length: 500 }, (_, i) => `stay:${i}`);
    await pipeline(
      clients[0],
      staying.map((name) => `SET ${name} v`),
    );
    let done = false;
    const churn = clients.slice(1).map(async (client, c) => {
      for (let round = 0; !done; round++) {
        const names = Array.from({ length: PIPELINE }, (_, i) => `churn:${c}:${round % 40}:${i}`);
        await pipeline(
          client,
          names.map((name) => `SET ${name} v`),
        );
        if (round % 2 === 0)
          await pipeline(
            client,
            names.map((name) => `DEL ${name}`),
          );
      }
    });
    for (let walk = 0; walk < 5; walk++) {
      const seen = new Set<string>();
      let cursor = '0';
      do {
        const words = (await ask(`SCAN ${cursor} COUNT 100`)).split('\r\n');
        cursor = words[2];
        for (let i = 5; i < words.length; i += 2) seen.add(words[i]);
      } while (cursor !== '0');
      expect(staying.filter((name) => !seen.has(name))).toEqual([]);
    }
    done = true;
    await Promise.all(churn);
  });

  it('SORT sees all keys that its elements name as of one moment', { timeout: 60_000 }, async () => {
    const names = Array.from({ length: 20 }, (_, i) => `e${i}`);
    await ask('FLUSHALL');
    await ask(`RPUSH l ${names.join(' ')}`);
    const setAll = (value: string) => `MSET ${names.map((name) => `w_${name} ${value}`).join(' ')}`;
    const replies = await everybody((c, round) =>
      c % 2 === 0
        ? repeated(setAll(`${c}.${round}`))
        : [...repeated('SORT l BY nosort GET w_*'), `SORT l BY w_* GET w_* STORE d${c}`],
    );
    const seen = replies.filter((_, c) => c % 2 === 1).flatMap((list) => list.filter((reply) => reply.startsWith('*')));
    for (const reply of seen)
      expect(new Set(reply.split('\r\n').filter((line) => /^(\d|\$-)/.test(line))).size).toBe(1);
  });
});
