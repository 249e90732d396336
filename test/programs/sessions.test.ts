/**
 * connect-redis with express-session at work: sessions of web clients, kept here between requests, over both Redis packages' forms.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { RedisStore } from 'connect-redis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../helpers/server.js';

interface Session {
  visits?: number;
  destroy(done: (error?: unknown) => void): void;
}
type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;
const session = createRequire(import.meta.url)('express-session') as (options: object) => Middleware;

let server: TestServer;
let web: Server;
let client: ReturnType<typeof createClient>;
let store: RedisStore;

beforeAll(async () => {
  server = await startTestServer({ workers: 2, memcachedPort: 0 });
  client = createClient({ url: `redis://127.0.0.1:${server.redisPort}` });
  await client.connect();
  store = new RedisStore({ client, prefix: 'web:', ttl: 60 });
  const middleware = session({ store, secret: 'a test', resave: false, saveUninitialized: false });
  web = createServer((request, response) => {
    middleware(request, response, () => {
      const own = (request as IncomingMessage & { session: Session }).session;
      if (request.url === '/leave') return own.destroy(() => response.end('left'));
      own.visits = (own.visits ?? 0) + 1;
      response.end(`${own.visits}`);
    });
  });
  await new Promise<void>((done) => web.listen(0, '127.0.0.1', done));
});

afterAll(async () => {
  await new Promise((done) => web?.close(done));
  client?.destroy();
  await server?.stop();
});

/** One request of a browser: the text, and its cookie from then on. */
async function visit(path: string, cookie = ''): Promise<{ text: string; cookie: string }> {
  const response = await fetch(`http://127.0.0.1:${(web.address() as AddressInfo).port}${path}`, {
    headers: { cookie },
  });
  return { text: await response.text(), cookie: response.headers.get('set-cookie')?.split(';')[0] ?? cookie };
}

describe('connect-redis', () => {
  it('keeps each browser’s session, with a time to live, until it leaves', async () => {
    const browsers = await Promise.all(Array.from({ length: 20 }, () => visit('/')));
    expect(browsers.map(({ text }) => text)).toEqual(browsers.map(() => '1'));
    for (let i = 2; i <= 5; i++) {
      const again = await Promise.all(browsers.map(({ cookie }) => visit('/', cookie)));
      expect(again.map(({ text }) => text)).toEqual(browsers.map(() => `${i}`));
    }
    const keys = await client.keys('web:*');
    expect(keys.length).toBe(browsers.length);
    const ttl = await client.ttl(keys[0]);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(60);

    expect((await visit('/leave', browsers[0].cookie)).text).toBe('left');
    expect((await visit('/', browsers[0].cookie)).text).toBe('1');
  });

  it('lists, counts and clears what it has stored', async () => {
    const ids = (await store.ids()) as string[];
    expect(ids.length).toBeGreaterThan(0);
    expect(await store.length()).toBe(ids.length);
    await store.clear();
    expect(await store.length()).toBe(0);
    expect(await client.keys('web:*')).toEqual([]);
  });
});
