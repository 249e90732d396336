/**
 * Transactions of many clients on several workers: nothing is lost, nothing is seen by halves.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { replyEnd } from '../helpers/resp-reply.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const CLIENTS = 12;

let server: TestServer;
let clients: RawClient[];

beforeAll(async () => {
  server = await startTestServer({ workers: 3, memcachedPort: 0 });
  clients = await Promise.all(Array.from({ length: CLIENTS }, () => RawClient.connect(server.redisPort)));
});

afterAll(async () => {
  for (const client of clients) client.destroy();
  await server.stop();
});

/** Sends requests together; returns the replies one by one. */
async function ask(client: RawClient, ...requests: string[]): Promise<string[]> {
  client.write(requests.map((request) => `${request}\r\n`).join(''));
  const replies: string[] = [];
  for (const request of requests) {
    await client.until(() => replyEnd(client.text, 0) >= 0, `a reply to ${request}`);
    replies.push((await client.read(replyEnd(client.text, 0))).toString('latin1'));
  }
  return replies;
}

describe('transactions on several workers', { timeout: 60_000 }, () => {
  it('WATCH makes read-modify-write exact', async () => {
    const rounds = 60;
    let retries = 0;
    await ask(clients[0], 'SET watched 0');
    await Promise.all(
      clients.map(async (client) => {
        for (let done = 0; done < rounds; ) {
          const [, value] = await ask(client, 'WATCH watched', 'GET watched');
          const next = Number(value.split('\r\n')[1]) + 1;
          const [, , result] = await ask(client, 'MULTI', `SET watched ${next}`, 'EXEC');
          if (result === '*-1\r\n') retries++;
          else done++;
        }
      }),
    );
    expect(await ask(clients[0], 'GET watched')).toEqual([`$3\r\n${CLIENTS * rounds}\r\n`]);
    expect(retries).toBeGreaterThan(0);
  });

  it('EXEC moves between keys without anybody seeing the sum change', async () => {
    const keys = Array.from({ length: 8 }, (_, i) => `account${i}`);
    await ask(clients[0], ...keys.map((key) => `SET ${key} 100`));
    let running = true;
    const watcher = (async () => {
      const read = `MGET ${keys.join(' ')}`;
      while (running) {
        const [reply] = await ask(clients[0], read);
        const sum = reply
          .split('\r\n')
          .filter((line) => /^-?\d+$/.test(line))
          .reduce((total, line) => total + Number(line), 0);
        expect(sum).toBe(800);
      }
    })();
    await Promise.all(
      clients.slice(1).map(async (client, c) => {
        for (let i = 0; i < 150; i++) {
          const [from, to] = [keys[(i + c) % 8], keys[(i * 3 + c + 1) % 8]];
          await ask(client, 'MULTI', `DECRBY ${from} 5`, `INCRBY ${to} 5`, 'EXEC');
        }
      }),
    );
    running = false;
    await watcher;
  });

  it('commands that run alone and those that do not share the store', async () => {
    await ask(clients[0], 'FLUSHALL');
    await Promise.all(
      clients.map(async (client, c) => {
        await ask(client, `SELECT ${c}`);
        for (let i = 0; i < 30; i++) {
          const replies = await ask(
            client,
            'MULTI',
            'FLUSHDB',
            'INCR n',
            'INCR n',
            'DBSIZE',
            'EXEC',
            'GET n',
            `MSET a ${i} b ${i}`,
            'MGET a b',
          );
          expect(replies[5]).toBe('*4\r\n+OK\r\n:1\r\n:2\r\n:1\r\n');
          expect(replies[6]).toBe('$1\r\n2\r\n');
          expect(replies[8]).toBe(`*2\r\n${`$${String(i).length}\r\n${i}\r\n`.repeat(2)}`);
        }
        await ask(client, 'SELECT 0');
      }),
    );
  });

  it('CLIENT PAUSE WRITE holds writes of all workers, and lets reads through', async () => {
    const [first, ...others] = clients;
    await ask(first, 'SET paused 0');
    const start = performance.now();
    await ask(first, 'CLIENT PAUSE 400 WRITE');
    await Promise.all(others.map((client) => ask(client, 'GET paused')));
    const readMs = performance.now() - start;
    await Promise.all(others.map((client) => ask(client, 'GET paused', 'INCR paused', 'GET other')));
    const writtenMs = performance.now() - start;
    expect(readMs).toBeLessThan(390);
    expect(writtenMs).toBeGreaterThan(390);
    expect(await ask(first, 'GET paused')).toEqual([`$2\r\n${others.length}\r\n`]);
  });

  it('CLIENT KILL reaches clients of other workers', async () => {
    const victims = await Promise.all(Array.from({ length: 6 }, () => RawClient.connect(server.redisPort)));
    for (const victim of victims) await ask(victim, 'CLIENT SETNAME victim');
    const [list] = await ask(clients[0], 'CLIENT LIST');
    const ids = [...list.matchAll(/^id=(\d+) .* name=victim /gm)].map(([, id]) => id);
    expect(ids.length).toBe(6);
    for (const id of ids) expect(await ask(clients[0], `CLIENT KILL ID ${id}`)).toEqual([':1\r\n']);
    await Promise.all(victims.map((victim) => victim.closed()));
    expect(await ask(clients[0], 'PING')).toEqual(['+PONG\r\n']);
  });
});
